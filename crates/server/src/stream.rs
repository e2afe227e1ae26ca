//! A stream of events as server-sent events, at the pace of its reader.
//!
//! Nothing is buffered here: the next batch is taken when the connection has room for it. An event is
//! spelled once for all readers of its dialect; only the frame around it is each reader's own.

use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, stream};
use sabir_engine::{Batch, Subscription};
use sabir_model::Event;
use sabir_wire::{KEEP_ALIVE, Voice};
use tokio::time::{Instant, Sleep};

struct Reader {
    subscription: Subscription,
    voice: Voice<'static>,
    keep_alive: Duration,
    quiet: Pin<Box<Sleep>>,
    wrote: Instant,
    is_over: bool,
}

pub(crate) fn frames(
    subscription: Subscription,
    voice: Voice<'static>,
    keep_alive: Duration,
) -> impl Stream<Item = Bytes> + Send {
    let quiet = Box::pin(tokio::time::sleep(keep_alive));
    let reader = Reader { subscription, voice, keep_alive, quiet, wrote: Instant::now(), is_over: false };
    stream::unfold(reader, |mut reader| async move {
        let frames = reader.next().await?;
        Some((frames, reader))
    })
}

impl Reader {
    async fn next(&mut self) -> Option<Bytes> {
        if self.is_over {
            return None;
        }
        loop {
            tokio::select! {
                biased;
                batch = self.subscription.next() => {
                    let mut out = Vec::new();
                    match batch? {
                        Ok(Batch::Snapshot(task)) => self.voice.snapshot(&task, &mut out),
                        Ok(Batch::Events(entries)) => {
                            for entry in entries {
                                let payload = entry.spelled(self.voice.slot(), |event| self.spell(event));
                                self.voice.frame(Some(entry.seq), &payload, &mut out);
                            }
                        }
                        Err(error) => {
                            tracing::warn!(task = %self.subscription.task(), %error, "a stream broke off");
                            self.is_over = true;
                            self.voice.error_frame(&error, &mut out);
                        }
                    }
                    self.wrote = Instant::now();
                    return Some(Bytes::from(out));
                }
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

    /// A task does not change after its end, so what is shown with it is the same for all readers.
    fn spell(&self, event: &Event) -> Vec<u8> {
        let whole = if self.voice.wants_task(event) { self.subscription.whole() } else { None };
        match whole {
            Some(task) => self.voice.spell_end(&task, event),
            None => self.voice.spell(self.subscription.task(), self.subscription.context(), event),
        }
    }
}
