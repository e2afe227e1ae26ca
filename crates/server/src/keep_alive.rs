//! Comments in a stream of server-sent events that says nothing for a while, so that nobody takes it for dead.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Frame;
use tokio::time::{Instant, Sleep};

pub(crate) struct KeepAlive {
    period: Duration,
    quiet: Pin<Box<Sleep>>,
}

impl KeepAlive {
    pub(crate) fn every(period: Duration) -> Self {
        Self { period, quiet: Box::pin(tokio::time::sleep(period)) }
    }

    /// A comment, if it is time for one.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Frame<Bytes>> {
        if self.quiet.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        self.quiet.as_mut().reset(Instant::now() + self.period);
        // Registers the next wake-up.
        let _ = self.quiet.as_mut().poll(context);
        Poll::Ready(Frame::data(Bytes::from_static(b": keep-alive\n\n")))
    }
}
