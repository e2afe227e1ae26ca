//! A stream of a remote agent: events as they come, each read by its dialect.

use std::collections::VecDeque;
use std::time::Duration;

use sabir_model::TaskId;
use sabir_wire::{Operation, PeerError, PeerErrorKind, PeerProtocol, Received};
use tokio::time::Instant;

use super::error::RemoteError;
use super::event_stream::{EventParser, ServerEvent};
use super::grpc_end::{grpc_end, grpc_error};
use super::message_stream::{BrokenStream, MessageParser};
use super::settings::{Observer, WireEvent};
use crate::client::OpenResponse;

/// Where a Sabir says the number of the first message.
const FIRST_EVENT_ID: &str = "first-event-id";
/// Whether the server is there is shown by pings.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// One frame of a stream.
#[derive(Debug)]
pub struct Frame {
    /// The id by which the stream can be resumed behind this frame.
    pub id: Option<String>,
    pub received: Received,
}

/// An open stream. Dropping it hangs up, which changes nothing for the task.
pub struct RemoteStream {
    source: Source,
    pub(super) protocol: PeerProtocol,
    pub(super) operation: Operation,
    pub(super) observer: Option<Observer>,
    /// Frames that name no task are about this one.
    task: Option<TaskId>,
    /// The first frame, if it was waited for.
    first: Option<Frame>,
}

enum Source {
    Events(Box<Events>),
    Messages(Box<Messages>),
    /// Some servers answer a streaming call with one plain answer.
    Single(Option<Received>),
}

struct Events {
    response: OpenResponse,
    parser: EventParser,
    pending: VecDeque<ServerEvent>,
    /// For how long no byte may come, comments included.
    silence: Duration,
    last_bytes: Instant,
    /// The last bytes have come; what is pending may be cut off.
    is_over: bool,
}

/// A stream of gRPC.
struct Messages {
    response: OpenResponse,
    parser: MessageParser,
    /// The number of the next message, if the server numbers them.
    next_number: Option<u64>,
}

impl RemoteStream {
    pub(super) fn messages(
        response: OpenResponse,
        protocol: PeerProtocol,
        operation: Operation,
        limit: usize,
        observer: Option<Observer>,
    ) -> Self {
        let first = response.headers.get(FIRST_EVENT_ID).and_then(|value| value.to_str().ok());
        let next_number = first.and_then(|number| number.parse().ok());
        let messages = Messages { response, parser: MessageParser::new(limit), next_number };
        let source = Source::Messages(Box::new(messages));
        RemoteStream { source, protocol, operation, observer, task: None, first: None }
    }

    pub(super) fn events(
        response: OpenResponse,
        protocol: PeerProtocol,
        operation: Operation,
        task: Option<TaskId>,
        limit: usize,
        silence: Duration,
        observer: Option<Observer>,
    ) -> Self {
        let parser = EventParser::new(limit);
        let events =
            Events { response, parser, pending: VecDeque::new(), silence, last_bytes: Instant::now(), is_over: false };
        let source = Source::Events(Box::new(events));
        RemoteStream { source, protocol, operation, observer, task, first: None }
    }

    pub(super) fn single(received: Received, protocol: PeerProtocol, operation: Operation) -> Self {
        RemoteStream {
            source: Source::Single(Some(received)),
            protocol,
            operation,
            observer: None,
            task: None,
            first: None,
        }
    }

    /// Waits for the first frame and keeps it. A refusal may come as the only frame of a stream. Some agents think before they
    /// say their first word, so this may take longer than the silence in between.
    pub(super) async fn wait_for_first(mut self, patience: Duration) -> Result<Self, RemoteError> {
        let later = self.set_silence(patience);
        self.first = Some(self.next().await?.ok_or(RemoteError::StreamEnded)?);
        self.set_silence(later);
        Ok(self)
    }

    /// Sets how long no byte may come, and answers with how long that was before.
    fn set_silence(&mut self, silence: Duration) -> Duration {
        match &mut self.source {
            Source::Events(events) => std::mem::replace(&mut events.silence, silence),
            // Pings of HTTP/2 show whether the server is there.
            Source::Messages(_) | Source::Single(_) => silence,
        }
    }

    /// Whether a frame has arrived in part. A large one may take its time.
    pub(super) fn is_in_frame(&self) -> bool {
        match &self.source {
            Source::Events(events) => events.parser.is_in_event(),
            Source::Messages(messages) => messages.parser.is_in_message(),
            Source::Single(_) => false,
        }
    }

    /// From now on, frames that name no task are about this one.
    pub fn set_task(&mut self, task: TaskId) {
        self.task = Some(task);
    }

    /// The next frame; `None`: the stream has ended. A frame that makes no sense at all is passed over.
    pub async fn next(&mut self) -> Result<Option<Frame>, RemoteError> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        if let Source::Messages(_) = self.source {
            return self.next_message().await;
        }
        loop {
            let Some((event, is_cut_off)) = self.next_event().await? else {
                return Ok(match &mut self.source {
                    Source::Single(received) => received.take().map(|received| Frame { id: None, received }),
                    Source::Events(_) | Source::Messages(_) => None,
                });
            };
            if let Some(observer) = &self.observer {
                observer(WireEvent::Frame { id: event.id.as_deref(), data: &event.data });
            }
            // Some servers say goodbye like a chat API.
            if event.data.is_empty() || event.data == b"[DONE]" {
                continue;
            }
            match self.protocol.read_frame(self.operation, self.task.as_ref(), &event.data) {
                Ok(received) => return Ok(Some(Frame { id: event.id, received })),
                Err(PeerError { kind: PeerErrorKind::Malformed, .. }) if is_cut_off => return Ok(None),
                Err(error @ PeerError { kind: PeerErrorKind::Malformed, .. }) => {
                    tracing::debug!(%error, "a frame of a remote stream makes no sense and is passed over");
                    return Err(RemoteError::Peer { error, retry_after: None });
                }
                Err(error) => return Err(RemoteError::Peer { error, retry_after: None }),
            }
        }
    }

    async fn next_message(&mut self) -> Result<Option<Frame>, RemoteError> {
        let Source::Messages(messages) = &mut self.source else { return Ok(None) };
        let Messages { response, parser, next_number } = &mut **messages;
        let malformed = |why: &str| {
            let error = PeerError::malformed(200, why);
            RemoteError::Peer { error, retry_after: None }
        };
        let message = loop {
            match parser.next() {
                Ok(Some(message)) => break message,
                Ok(None) => {}
                Err(BrokenStream::TooLarge(error)) => return Err(error.into()),
                Err(BrokenStream::UnknownPrefix) => return Err(malformed("a message has no prefix of gRPC")),
            }
            match response.chunk(FOREVER).await? {
                Some(bytes) => parser.feed(&bytes),
                None if parser.is_in_message() => return Err(RemoteError::StreamEnded),
                None if grpc_end(&response.headers, &response.trailers).is_ok() => return Ok(None),
                None if grpc_end(&response.headers, &response.trailers).status.is_none() => {
                    return Err(RemoteError::StreamEnded);
                }
                None => return Err(grpc_error(self.protocol, response.status, &response.headers, &response.trailers)),
            }
        };
        let id = next_number.map(|number| number.to_string());
        *next_number = next_number.map(|number| number.saturating_add(1));
        if let Some(observer) = &self.observer {
            observer(WireEvent::Frame { id: id.as_deref(), data: &message });
        }
        match self.protocol.read_message(self.operation, &message) {
            Ok(received) => Ok(Some(Frame { id, received })),
            Err(error) => Err(RemoteError::Peer { error, retry_after: None }),
        }
    }

    /// The next event, and whether the stream ended in the middle of it.
    async fn next_event(&mut self) -> Result<Option<(ServerEvent, bool)>, RemoteError> {
        let Source::Events(events) = &mut self.source else { return Ok(None) };
        let Events { response, parser, pending, silence, last_bytes, is_over } = &mut **events;
        loop {
            if let Some(event) = pending.pop_front() {
                return Ok(Some((event, *is_over && pending.is_empty())));
            }
            if *is_over {
                return Ok(None);
            }
            let mut events = Vec::new();
            // What was waited in calls that were given up counts.
            let patience = silence.saturating_sub(last_bytes.elapsed());
            let chunk = response.chunk(patience).await?;
            *last_bytes = Instant::now();
            match chunk {
                Some(bytes) => parser.feed(&bytes, &mut events)?,
                None => {
                    parser.finish(&mut events);
                    *is_over = true;
                }
            }
            pending.extend(events);
        }
    }
}
