//! A stream of events, as server-sent events or as messages of gRPC, at the pace of its reader.
//!
//! Nothing is buffered here: the next piece is made when the connection has room for it. An event is
//! encoded once for all readers of its dialect; only the frame around it is each reader's own.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{FutureExt, Stream, stream};
use hyper::body::Frame;
use sabir_engine::{Batch, LogEntry, Subscription};
use sabir_model::{Error, Event, Task};
use sabir_wire::Responder;
use sabir_wire::grpc::GrpcStatus;
use tokio::time::{Instant, Sleep};

use crate::budget::SMALL;
use crate::call_observer::Observed;
use crate::encoded_tasks::{EncodedTasks, is_large};
use crate::grpc::trailers_of;
use crate::open_streams::OpenStream;
use crate::pieces::{Large, PIECE, Pieces};

/// How often a stream looks whether there is memory again.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Of one subscription, for one reader.
pub(crate) struct Frames {
    subscription: Subscription,
    responder: Responder<'static>,
    encoded_tasks: Arc<EncodedTasks>,
    keep_alive: Duration,
    quiet: Pin<Box<Sleep>>,
    wrote: Instant,
    /// To be shown when there is memory for it.
    snapshot: Option<Arc<Task>>,
    /// A large frame on its way.
    large: Option<Pieces>,
    /// Events that were read and are not encoded yet.
    pending: std::vec::IntoIter<Arc<LogEntry>>,
    is_over: bool,
    /// Until when the caller wants it.
    deadline: Option<Pin<Box<Sleep>>>,
    /// What is said behind the last frame, where the binding has something there.
    end: Option<GrpcStatus>,
    _open: OpenStream,
    /// The call of the stream ends with it.
    observed: Observed,
}

impl Frames {
    pub(crate) fn new(
        subscription: Subscription,
        responder: Responder<'static>,
        encoded_tasks: Arc<EncodedTasks>,
        keep_alive: Duration,
        open: OpenStream,
    ) -> Self {
        let end = responder.end_status(None);
        Self {
            subscription,
            responder,
            encoded_tasks,
            keep_alive,
            quiet: Box::pin(tokio::time::sleep(keep_alive)),
            wrote: Instant::now(),
            snapshot: None,
            large: None,
            pending: Vec::new().into_iter(),
            is_over: false,
            deadline: None,
            end,
            _open: open,
            observed: Observed::default(),
        }
    }

    /// The stream ends at this time, whatever becomes of the task.
    pub(crate) fn until(self, deadline: Option<Instant>) -> Self {
        Self { deadline: deadline.map(|deadline| Box::pin(tokio::time::sleep_until(deadline))), ..self }
    }

    /// The stream of this call.
    pub(crate) fn of(self, observed: Observed) -> Self {
        Self { observed, ..self }
    }

    /// The call of a stream that is not sent.
    pub(crate) fn into_observed(self) -> Observed {
        self.observed
    }

    /// Makes the first frame, if it is large and there already, so that a caller for whom there is no memory can still be
    /// told so by a status.
    pub(crate) fn begin(&mut self) -> Result<(), Error> {
        let batch = self.subscription.next().now_or_never();
        if let Some(Some(Ok(batch))) = &batch {
            self.observed.shows(batch);
        }
        match batch {
            Some(Some(Ok(Batch::Snapshot(task)))) => {
                self.snapshot = Some(task);
                self.show_snapshot()
            }
            Some(Some(Ok(Batch::Events(entries)))) => {
                self.pending = entries.into_iter();
                Ok(())
            }
            Some(Some(Err(error))) => Err(error),
            Some(None) => {
                self.is_over = true;
                Ok(())
            }
            None => Ok(()),
        }
    }

    pub(crate) fn into_stream(self) -> impl Stream<Item = Frame<Bytes>> + Send {
        stream::unfold(self, |mut frames| async move {
            let frame = match frames.next().await {
                Some(piece) => Frame::data(piece),
                None => Frame::trailers(trailers_of(&frames.end.take()?)),
            };
            Some((frame, frames))
        })
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if self.deadline.as_ref().is_some_and(|deadline| deadline.deadline() <= Instant::now()) {
                self.is_over = true;
                self.observed.failed(&Error::DeadlineExceeded);
                self.end = self.end.take().and(self.responder.end_status(Some(&Error::DeadlineExceeded)));
                return None;
            }
            match self.known() {
                Ok(Some(piece)) => {
                    self.wrote = Instant::now();
                    return Some(piece);
                }
                Ok(None) if self.is_over => return None,
                Ok(None) => {}
                // What is missing is memory; all that is to be shown is still there.
                Err(_) => {
                    tokio::select! {
                        () = tokio::time::sleep(LOOK_AGAIN) => {}
                        () = until(&mut self.deadline) => continue,
                    }
                    let is_between_frames = self.large.as_ref().is_none_or(|large| !large.has_begun());
                    if let Some(comment) = self.responder.keep_alive()
                        && is_between_frames
                        && self.is_quiet()
                    {
                        return Some(Bytes::from_static(comment));
                    }
                    continue;
                }
            }
            tokio::select! {
                biased;
                batch = self.subscription.next() => {
                    if let Some(Ok(batch)) = &batch {
                        self.observed.shows(batch);
                    }
                    match batch {
                        // What may still happen to the task is for the next subscriber.
                        None => self.is_over = true,
                        Some(Ok(Batch::Snapshot(task))) => self.snapshot = Some(task),
                        Some(Ok(Batch::Events(entries))) => self.pending = entries.into_iter(),
                        Some(Err(error)) => return Some(self.break_off(&error)).filter(|frame| !frame.is_empty()),
                    }
                }
                () = &mut self.quiet => {
                    let is_quiet = self.is_quiet();
                    self.quiet.as_mut().reset(self.wrote + self.keep_alive);
                    if let Some(comment) = self.responder.keep_alive().filter(|_| is_quiet) {
                        return Some(Bytes::from_static(comment));
                    }
                }
                () = until(&mut self.deadline) => {}
            }
        }
    }

    fn is_quiet(&mut self) -> bool {
        let is_quiet = self.wrote.elapsed() >= self.keep_alive;
        if is_quiet {
            self.wrote = Instant::now();
        }
        is_quiet
    }

    /// A piece of what was read before. What counts for its size is what is written, with the envelope of this reader.
    fn known(&mut self) -> Result<Option<Bytes>, Error> {
        self.show_snapshot()?;
        let mut out = Vec::new();
        while out.len() < PIECE {
            if let Some(large) = &mut self.large {
                // What stands before it goes first.
                if !out.is_empty() {
                    break;
                }
                if let Some(piece) = large.next()? {
                    return Ok(Some(piece));
                }
                self.large = None;
            }
            let Some(entry) = self.pending.next() else { break };
            let large = entry.encoded(
                self.responder.slot(),
                |event| self.encode(event),
                |payload| {
                    if payload.len() > SMALL {
                        return Some(payload.clone());
                    }
                    self.responder.write_frame(Some(entry.seq), payload, &mut out);
                    None
                },
            );
            let Some(payload) = large else { continue };
            match self.encoded_tasks.hold(&entry, payload.len()) {
                Ok(held) => {
                    let wrapper = self.responder.frame_wrapper(Some(entry.seq), payload.len());
                    self.large = Some(Pieces::wrapped(Large::Event(payload, held), wrapper));
                }
                // It cannot wait: it is in memory already. Its reader can go on from here later.
                Err(error) => {
                    self.pending = Vec::new().into_iter();
                    out.extend_from_slice(&self.break_off(&error));
                }
            }
        }
        // A reader may stall with this in hand.
        out.shrink_to_fit();
        Ok((!out.is_empty()).then(|| Bytes::from(out)))
    }

    /// The task as it is, if that is to be shown and there is memory for it.
    fn show_snapshot(&mut self) -> Result<(), Error> {
        let Some(task) = &self.snapshot else { return Ok(()) };
        self.large = Some(if is_large(task) {
            let loan = self.encoded_tasks.lend(task.clone(), self.responder.snapshot_encoder(task))?;
            let wrapper = self.responder.frame_wrapper(Some(task.seq), loan.length());
            Pieces::wrapped(Large::ReleasableBytes(loan), wrapper)
        } else {
            let mut frame = Vec::new();
            self.responder.write_snapshot_frame(task, &mut frame);
            Pieces::small(frame)
        });
        self.snapshot = None;
        Ok(())
    }

    fn break_off(&mut self, error: &Error) -> Bytes {
        tracing::warn!(task = %self.subscription.task(), %error, "a stream broke off");
        self.is_over = true;
        self.observed.failed(error);
        self.end = self.responder.end_status(Some(error));
        let mut out = Vec::new();
        self.responder.write_error_frame(error, &mut out);
        Bytes::from(out)
    }

    /// A task does not change after its end, so what is shown with it is the same for all readers.
    fn encode(&self, event: &Event) -> Vec<u8> {
        let whole = if self.responder.needs_task(event) { self.subscription.whole() } else { None };
        match whole {
            Some(task) => self.responder.encode_final_event(&task, event),
            None => self.responder.encode_event(self.subscription.task(), self.subscription.context(), event),
        }
    }
}

/// Never, without a deadline.
async fn until(deadline: &mut Option<Pin<Box<Sleep>>>) {
    match deadline {
        Some(deadline) => deadline.as_mut().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt;
    use sabir_agents::DemoAgent;
    use sabir_engine::{Answer, Builder, Hosted, Inputs};
    use sabir_model::{AgentId, Caller};
    use sabir_store::MemoryStore;
    use sabir_wire::{Compat, Decoded, KnownAgents, RequestHead, Surface, locate};

    use super::*;
    use crate::budget::Budget;
    use crate::open_streams::OpenStreams;

    struct Demo;

    impl KnownAgents for Demo {
        fn knows(&self, id: &str) -> bool {
            id == "demo"
        }

        fn ids(&self) -> Vec<AgentId> {
            vec![AgentId::parse("demo").unwrap()]
        }
    }

    /// What a JSON-RPC request is answered as a stream, piece by piece.
    async fn pieces(request: &str) -> Vec<Bytes> {
        let agent = Hosted::new(AgentId::parse("demo").unwrap(), Arc::new(DemoAgent::new(Inputs::Anything)));
        let engine = Builder::new(Arc::new(MemoryStore::new())).agent(agent).start().await.unwrap();
        let head = RequestHead { verb: "POST", path: "/", ..RequestHead::default() };
        let Surface::Call(endpoint) = locate(&head, &Demo) else { panic!("the root takes JSON-RPC") };
        let Decoded { call, responder } = endpoint.decode(&head, request.as_bytes(), Compat::default(), &Demo);
        let Answer::Stream(subscription) = engine.call(&Caller::anonymous(), call.unwrap()).await.unwrap() else {
            panic!("a stream is answered with one")
        };
        // All of it is there before anything is read.
        while !subscription.whole().unwrap().status.state.is_terminal() {
            tokio::task::yield_now().await;
        }
        let encoded_tasks = EncodedTasks::new(Budget::new(usize::MAX));
        let open = OpenStreams::default().enter();
        let frames = Frames::new(subscription, responder.into_owned(), encoded_tasks, Duration::from_secs(60), open);
        frames
            .into_stream()
            .map(|frame| frame.into_data().expect("server-sent events have no trailers"))
            .collect()
            .await
    }

    #[tokio::test]
    async fn a_reader_is_handed_small_pieces_whatever_its_envelope() {
        for id_length in [1, 1000] {
            let id = "i".repeat(id_length);
            let message = r#"{"messageId":"m","role":"user","parts":[{"kind":"text","text":"stream 1000 0"}]}"#;
            let request = format!(
                r#"{{"jsonrpc":"2.0","id":"{id}","method":"message/stream","params":{{"message":{message}}}}}"#
            );
            let pieces = pieces(&request).await;
            let frames: usize = pieces.iter().map(|piece| piece.windows(6).filter(|at| at == b"data: ").count()).sum();
            assert_eq!(frames, 1003);
            let largest = pieces.iter().map(Bytes::len).max().unwrap();
            assert!(largest < PIECE + 2000, "a piece of {largest} bytes");
            assert!(pieces.len() > frames * id_length / PIECE, "{} pieces", pieces.len());
        }
    }
}
