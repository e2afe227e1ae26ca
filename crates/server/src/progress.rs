//! Whether the reader of one HTTP/2 stream makes progress.
//!
//! On HTTP/2 a client holds back one reply by its flow control while the connection and its other streams go on, and
//! hyper does not look at a reply again before there is room for more of it. So each stream runs in a task of its own,
//! which gives up when nothing of a whole reply was asked for in a while; the client then sees that stream reset.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper::rt::Executor;
use tokio::sync::Notify;
use tokio::time::Instant;

tokio::task_local! {
    static PROGRESS: Arc<Progress>;
}

pub(crate) struct Progress {
    latest: Mutex<Instant>,
    has_begun: Notify,
}

impl Progress {
    /// Of the stream whose task this is, if it is one.
    pub(crate) fn of_this_stream() -> Option<Arc<Self>> {
        PROGRESS.try_with(Arc::clone).ok()
    }

    /// A whole reply is there to be read.
    pub(crate) fn begin(&self) {
        self.made();
        self.has_begun.notify_one();
    }

    pub(crate) fn made(&self) {
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Waits until a whole reply has begun and its reader has made no progress for so long.
    async fn stalls(&self, limit: Duration) {
        self.has_begun.notified().await;
        loop {
            let latest = *self.latest.lock().unwrap_or_else(PoisonError::into_inner);
            if latest.elapsed() >= limit {
                return;
            }
            tokio::time::sleep_until(latest + limit).await;
        }
    }
}

/// Runs the streams of an HTTP/2 connection.
#[derive(Clone)]
pub(crate) struct Streams {
    /// How long the reader of a whole reply may make no progress.
    pub(crate) limit: Duration,
}

impl<F> Executor<F> for Streams
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, stream: F) {
        let limit = self.limit;
        tokio::spawn(async move {
            let progress = Arc::new(Progress { latest: Mutex::new(Instant::now()), has_begun: Notify::new() });
            tokio::select! {
                _ = PROGRESS.scope(progress.clone(), stream) => {}
                () = progress.stalls(limit) => tracing::debug!("a reply was given up: nobody reads it"),
            }
        });
    }
}
