//! A stream of events: read frame by frame, and kept as a list when it is over.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::HeaderMap;
use sabir_model::{Chunk, Event, State, Task, TaskId};
use sabir_outbound::client::OpenResponse;
use sabir_outbound::remote::{EventParser, ServerEvent};
use sabir_wire::{Binding, Operation, PeerErrorKind, PeerProtocol, PeerResponse, Received};
use serde_json::Value;

use super::evidence::{Evidence, excerpt};
use super::exchange::{ResponseId, dial_error, read_json};
use super::grpc_answer::{GrpcClose, text_protocol};
use super::grpc_messages::GrpcMessages;
use super::proto_json::GrpcMethod;
use super::reading::{drop_error_beside_result, read_frame};
use super::wire_error::WireError;

/// How long a stream may stay open behind its last event.
const LINGER: Duration = Duration::from_secs(3);
/// A stream of a short answer has a few frames.
const MOST_FRAMES: usize = 5000;
const LARGEST_FRAME: usize = 8 << 20;
/// All frames of a stream are kept until it is judged.
const LARGEST_STREAM: usize = 16 << 20;

pub struct OpenStream {
    protocol: PeerProtocol,
    response: OpenResponse,
    framing: Framing,
    log: StreamLog,
    is_over: bool,
    /// Of the frames that are kept.
    bytes: usize,
}

/// How frames are told apart.
enum Framing {
    Events(EventParser),
    Messages(GrpcMessages, GrpcMethod),
}

pub struct StreamLog {
    pub operation: Operation,
    pub tried: String,
    pub headers: HeaderMap,
    pub response_id: ResponseId,
    pub frames: Vec<StreamFrame>,
    pub ending: Ending,
    /// What gRPC said at the end, if it came to that. An error is the last frame, too.
    pub close: Option<GrpcClose>,
    /// The task that frames without a name are about.
    task: Option<TaskId>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The server closed it.
    Closed,
    /// It was open behind its last event, for this long.
    StaysOpen(Duration),
    /// Nothing more came, and no last event.
    Silent(Duration),
    Broken(String),
    /// There was no end of it.
    TooLong,
}

pub struct StreamFrame {
    /// The whole frame, with its envelope.
    pub whole: Value,
    /// What the envelope holds.
    pub result: Value,
    pub envelope: FrameEnvelope,
    pub content: FrameContent,
    pub text: String,
    /// Why a client that goes by the specification could not have read it.
    pub violation: Option<sabir_model::Error>,
}

/// Whether a frame has the envelope of JSON-RPC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameEnvelope {
    AsItShouldBe,
    Missing,
    /// In HTTP+JSON.
    Unexpected,
}

#[derive(Debug)]
pub enum FrameContent {
    Task(Box<Task>),
    Message,
    Status { task: TaskId, state: State },
    Artifact { task: TaskId, chunk: Box<Chunk> },
    Error(Box<WireError>),
    Unreadable(String),
}

impl OpenStream {
    pub fn new(
        protocol: PeerProtocol,
        operation: Operation,
        tried: String,
        response_id: ResponseId,
        task: Option<TaskId>,
        method: Option<GrpcMethod>,
        response: OpenResponse,
    ) -> Self {
        let headers = response.headers.clone();
        let log = StreamLog {
            operation,
            tried,
            headers,
            response_id,
            frames: Vec::new(),
            ending: Ending::Closed,
            close: None,
            task,
        };
        let framing = match method {
            Some(method) => Framing::Messages(GrpcMessages::new(LARGEST_FRAME), method),
            None => Framing::Events(EventParser::new(LARGEST_FRAME)),
        };
        OpenStream { protocol, response, framing, log, is_over: false, bytes: 0 }
    }

    /// Bytes that were read already.
    pub fn feed(&mut self, bytes: &[u8]) {
        match &mut self.framing {
            Framing::Events(parser) => {
                let mut events = Vec::new();
                let fed = parser.feed(bytes, &mut events);
                self.keep(events);
                if let Err(error) = fed {
                    self.end(Ending::Broken(error.to_string()));
                }
            }
            Framing::Messages(messages, _) => {
                messages.feed(bytes);
                self.keep_messages();
            }
        }
    }

    /// Reads until there is enough, the stream ends, or the time is over.
    pub async fn read_until(&mut self, patience: Duration, is_enough: impl Fn(&StreamLog) -> bool) {
        let end = Instant::now() + patience;
        while !self.is_over && !is_enough(&self.log) {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            self.read_some(left).await;
        }
    }

    /// Reads to the end. A stream that has shown its last event gets a little time to close.
    pub async fn finish(mut self, patience: Duration) -> StreamLog {
        self.read_until(patience, StreamLog::has_ended).await;
        if !self.is_over && !self.log.has_ended() {
            self.end(Ending::Silent(patience));
        }
        let linger = Instant::now() + LINGER.min(patience);
        while !self.is_over {
            let left = linger.saturating_duration_since(Instant::now());
            if left.is_zero() {
                self.end(Ending::StaysOpen(LINGER.min(patience)));
            } else {
                self.read_some(left).await;
            }
        }
        self.log
    }

    pub fn log(&self) -> &StreamLog {
        &self.log
    }

    async fn read_some(&mut self, patience: Duration) {
        match tokio::time::timeout(patience, self.response.chunk(patience)).await {
            Ok(Ok(Some(bytes))) => self.take(&bytes),
            Ok(Ok(None)) => self.close(),
            Ok(Err(error)) if !matches!(error, sabir_outbound::DialError::BodyTimeout { .. }) => {
                self.end(Ending::Broken(dial_error(&error)));
            }
            Ok(Err(_)) | Err(_) => {}
        }
    }

    fn take(&mut self, bytes: &Bytes) {
        self.feed(bytes);
        if self.log.frames.len() >= MOST_FRAMES || self.bytes >= LARGEST_STREAM {
            self.end(Ending::TooLong);
        }
    }

    /// The server has closed the stream.
    fn close(&mut self) {
        match &mut self.framing {
            Framing::Events(parser) => {
                let mut events = Vec::new();
                parser.finish(&mut events);
                self.keep(events);
                self.end(Ending::Closed);
            }
            Framing::Messages(messages, _) => {
                let is_cut_off = messages.is_cut_off();
                let OpenResponse { status, headers, trailers, .. } = &self.response;
                let close = GrpcClose::of(self.protocol, status.as_u16(), headers, trailers);
                if let Some(error) = &close.error {
                    self.log.frames.push(StreamFrame::of_error(error.clone()));
                }
                self.log.close = Some(close);
                self.end(match is_cut_off {
                    true => Ending::Broken("its last message is cut off".to_owned()),
                    false => Ending::Closed,
                });
            }
        }
    }

    fn end(&mut self, ending: Ending) {
        self.is_over = true;
        self.log.ending = ending;
    }

    fn keep(&mut self, events: Vec<ServerEvent>) {
        for event in events {
            if event.data.is_empty() {
                continue;
            }
            let frame = StreamFrame::read(self.protocol, &self.log, &event.data);
            self.keep_frame(frame, event.data.len());
        }
    }

    fn keep_messages(&mut self) {
        while let Framing::Messages(messages, method) = &mut self.framing {
            let message = match messages.next() {
                Ok(Some(message)) => message,
                Ok(None) => return,
                Err(why) => return self.end(Ending::Broken(why)),
            };
            let frame = match method.read_response(&message) {
                Ok(json) => StreamFrame::read(text_protocol(self.protocol), &self.log, json.to_string().as_bytes()),
                Err(why) => StreamFrame::unreadable(why.clone(), why),
            };
            self.keep_frame(frame, message.len());
        }
    }

    fn keep_frame(&mut self, frame: StreamFrame, bytes: usize) {
        if self.log.task.is_none() {
            self.log.task = frame.task().cloned();
        }
        self.bytes += bytes;
        self.log.frames.push(frame);
    }
}

impl StreamLog {
    pub fn evidence(&self) -> Evidence {
        self.evidence_at(0)
    }

    /// The frames around one of them.
    pub fn evidence_at(&self, place: usize) -> Evidence {
        let first = place.saturating_sub(1);
        let mut got: Vec<String> = self
            .frames
            .iter()
            .enumerate()
            .skip(first)
            .take(3)
            .map(|(at, frame)| format!("frame {}: {}", at + 1, frame.text))
            .collect();
        if got.is_empty() {
            got.push("no frame".to_owned());
        }
        let more = self.frames.len().saturating_sub(first + 3);
        if more > 0 {
            got.push(format!("… {more} more"));
        }
        got.push(self.ending.words());
        Evidence::new(self.tried.clone(), got.join(" | "))
    }

    /// The last frames.
    pub fn evidence_of_end(&self) -> Evidence {
        self.evidence_at(self.frames.len().saturating_sub(2))
    }

    /// Whether an event was seen behind which there can be none.
    pub fn has_ended(&self) -> bool {
        let is_waiting = self.frames.last().and_then(StreamFrame::state).is_some_and(State::is_waiting);
        is_waiting || self.terminal_at().is_some() || self.frames.iter().any(StreamFrame::is_end)
    }

    /// The first frame with a terminal state.
    pub fn terminal_at(&self) -> Option<usize> {
        self.frames.iter().position(|frame| frame.state().is_some_and(State::is_terminal))
    }

    /// The error that the whole stream is, as servers of 0.x refuse a stream.
    pub fn only_error(&self) -> Option<&WireError> {
        match self.frames.as_slice() {
            [StreamFrame { content: FrameContent::Error(error), .. }] => Some(error),
            _ => None,
        }
    }

    pub fn task(&self) -> Option<&TaskId> {
        self.frames.iter().find_map(StreamFrame::task)
    }
}

impl Ending {
    pub fn words(&self) -> String {
        match self {
            Ending::Closed => "the stream was closed".to_owned(),
            Ending::StaysOpen(time) => format!("the stream was still open after {} s", time.as_secs()),
            Ending::Silent(time) => format!("nothing more came within {} s", time.as_secs()),
            Ending::Broken(why) => format!("the stream broke: {why}"),
            Ending::TooLong => {
                format!(
                    "the stream had more than {MOST_FRAMES} frames or {LARGEST_STREAM} bytes, and was read no further"
                )
            }
        }
    }
}

impl StreamFrame {
    fn read(protocol: PeerProtocol, log: &StreamLog, data: &[u8]) -> Self {
        let text = excerpt(data);
        let Some(mut whole) = read_json(data) else { return Self::unreadable(text, "it is no JSON".to_owned()) };
        let has_envelope = whole.get("result").is_some() || whole.get("jsonrpc").is_some();
        let is_rpc = protocol.binding() == Binding::JsonRpc;
        let envelope = match (is_rpc, has_envelope) {
            (true, false) if whole.get("error").is_none() => FrameEnvelope::Missing,
            (false, true) => FrameEnvelope::Unexpected,
            _ => FrameEnvelope::AsItShouldBe,
        };
        drop_error_beside_result(&mut whole);
        let result = whole.get("result").filter(|_| has_envelope).cloned().unwrap_or_else(|| whole.clone());
        let is_error = whole.get("error").is_some_and(|error| !error.is_null());
        let read = match is_error {
            // An error is read with its envelope.
            true => protocol.read_frame(log.operation, log.task.as_ref(), whole.to_string().as_bytes()),
            false => read_frame(protocol, log.operation, log.task.as_ref(), &result),
        };
        let (content, violation) = match read {
            Ok(Received { response, violation }) => (FrameContent::of(response), violation),
            Err(error) if error.kind == PeerErrorKind::Malformed => (FrameContent::Unreadable(error.message), None),
            Err(error) => {
                let object = whole.get("error").cloned().unwrap_or_else(|| whole.clone());
                (FrameContent::Error(Box::new(WireError::new(error, object))), None)
            }
        };
        StreamFrame { whole, result, envelope, content, text, violation }
    }

    fn unreadable(text: String, why: String) -> Self {
        let (envelope, content) = (FrameEnvelope::AsItShouldBe, FrameContent::Unreadable(why));
        StreamFrame { whole: Value::Null, result: Value::Null, envelope, content, text, violation: None }
    }

    /// The status at the end of a stream of gRPC.
    fn of_error(error: WireError) -> Self {
        let (whole, text) = (error.object.clone(), excerpt(error.object.to_string().as_bytes()));
        let (envelope, content) = (FrameEnvelope::AsItShouldBe, FrameContent::Error(Box::new(error)));
        StreamFrame { whole, result: Value::Null, envelope, content, text, violation: None }
    }

    pub fn task(&self) -> Option<&TaskId> {
        match &self.content {
            FrameContent::Task(task) => Some(&task.id),
            FrameContent::Status { task, .. } | FrameContent::Artifact { task, .. } => Some(task),
            FrameContent::Message | FrameContent::Error(_) | FrameContent::Unreadable(_) => None,
        }
    }

    pub fn state(&self) -> Option<State> {
        match &self.content {
            FrameContent::Task(task) => Some(task.status.state),
            FrameContent::Status { state, .. } => Some(*state),
            _ => None,
        }
    }

    /// A message or an error: there is nothing behind it.
    fn is_end(&self) -> bool {
        matches!(self.content, FrameContent::Message | FrameContent::Error(_))
    }
}

impl FrameContent {
    fn of(response: PeerResponse) -> Self {
        match response {
            PeerResponse::Task(task) => FrameContent::Task(task),
            PeerResponse::Message(_) => FrameContent::Message,
            PeerResponse::Event { task, event, .. } => Self::of_event(task, *event),
            PeerResponse::FinalEvent { task, event } => Self::of_event(task.id, *event),
            _ => FrameContent::Unreadable("it is no event".to_owned()),
        }
    }

    fn of_event(task: TaskId, event: Event) -> Self {
        match event {
            Event::Status(change) => FrameContent::Status { task, state: change.status.state },
            Event::Artifact(chunk) => FrameContent::Artifact { task, chunk: Box::new(chunk) },
            _ => FrameContent::Unreadable("it is no event".to_owned()),
        }
    }
}
