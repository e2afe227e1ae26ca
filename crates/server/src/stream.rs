//! A stream of events as server-sent events, at the pace of its reader.
//!
//! Nothing is buffered here: the next piece is made when the connection has room for it. An event is
//! spelled once for all readers of its dialect; only the frame around it is each reader's own.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, stream};
use sabir_engine::{Batch, Entry, Subscription};
use sabir_model::{Error, Event};
use sabir_wire::{KEEP_ALIVE, Voice};
use tokio::time::{Instant, Sleep};

use crate::body::PIECE;

struct Reader {
    subscription: Subscription,
    voice: Voice<'static>,
    keep_alive: Duration,
    quiet: Pin<Box<Sleep>>,
    wrote: Instant,
    /// Events that were read and are not spelled yet.
    pending: std::vec::IntoIter<Arc<Entry>>,
    is_over: bool,
}

pub(crate) fn frames(
    subscription: Subscription,
    voice: Voice<'static>,
    keep_alive: Duration,
) -> impl Stream<Item = Bytes> + Send {
    let quiet = Box::pin(tokio::time::sleep(keep_alive));
    let pending = Vec::new().into_iter();
    let reader = Reader { subscription, voice, keep_alive, quiet, wrote: Instant::now(), pending, is_over: false };
    stream::unfold(reader, |mut reader| async move {
        let frames = reader.next().await?;
        Some((frames, reader))
    })
}

impl Reader {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(frames) = self.pending_frames() {
                return Some(frames);
            }
            if self.is_over {
                return None;
            }
            tokio::select! {
                biased;
                batch = self.subscription.next() => match batch? {
                    Ok(Batch::Snapshot(task)) => {
                        let mut out = Vec::new();
                        self.voice.snapshot(&task, &mut out);
                        return Some(self.written(out));
                    }
                    Ok(Batch::Events(entries)) => self.pending = entries.into_iter(),
                    Err(error) => return Some(self.break_off(&error)),
                },
                () = &mut self.quiet => {
                    let is_quiet = self.wrote.elapsed() >= self.keep_alive;
                    if is_quiet {
                        self.wrote = Instant::now();
                    }
                    self.quiet.as_mut().reset(self.wrote + self.keep_alive);
                    if is_quiet {
                        return Some(Bytes::from_static(KEEP_ALIVE));
                    }
                }
            }
        }
    }

    /// Frames of events that were read before, until there is a piece of them. What counts is what is written, with the
    /// envelope of this reader.
    fn pending_frames(&mut self) -> Option<Bytes> {
        let mut out = Vec::new();
        while out.len() < PIECE {
            let Some(entry) = self.pending.next() else { break };
            let payload = entry.spelled(self.voice.slot(), |event| self.spell(event));
            self.voice.frame(Some(entry.seq), &payload, &mut out);
        }
        (!out.is_empty()).then(|| self.written(out))
    }

    fn break_off(&mut self, error: &Error) -> Bytes {
        tracing::warn!(task = %self.subscription.task(), %error, "a stream broke off");
        self.is_over = true;
        let mut out = Vec::new();
        self.voice.error_frame(error, &mut out);
        self.written(out)
    }

    fn written(&mut self, frames: Vec<u8>) -> Bytes {
        self.wrote = Instant::now();
        Bytes::from(frames)
    }

    /// A task does not change after its end, so what is shown with it is the same for all readers.
    fn spell(&self, event: &Event) -> Vec<u8> {
        let whole = if self.voice.wants_task(event) { self.subscription.whole() } else { None };
        match whole {
            Some(task) => self.voice.spell_end(&task, event),
            None => self.voice.spell(self.subscription.task(), self.subscription.context(), event),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt;
    use sabir_agents::DemoAgent;
    use sabir_engine::{Answer, Builder, Hosted, Inputs};
    use sabir_model::{AgentId, Caller};
    use sabir_store::MemoryStore;
    use sabir_wire::{Compat, Decoded, Head, KnownAgents, Surface, locate};

    use super::*;

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
        let head = Head { verb: "POST", path: "/", ..Head::default() };
        let Surface::JsonRpc(mount) = locate(&head, &Demo) else { panic!("the root takes JSON-RPC") };
        let Decoded { call, voice } = mount.decode(&head, request.as_bytes(), Compat::default(), &Demo);
        let Answer::Stream(subscription) = engine.call(&Caller::anonymous(), call.unwrap()).await.unwrap() else {
            panic!("a stream is answered with one")
        };
        // All of it is there before anything is read.
        while !subscription.whole().unwrap().status.state.is_terminal() {
            tokio::task::yield_now().await;
        }
        frames(subscription, voice.into_owned(), Duration::from_secs(60)).collect().await
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
