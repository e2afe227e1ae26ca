//! Counts the streams that are open now.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Default)]
pub(crate) struct OpenStreams(Arc<AtomicUsize>);

/// Counts until it is dropped.
pub(crate) struct OpenStream(Arc<AtomicUsize>);

impl OpenStreams {
    pub(crate) fn enter(&self) -> OpenStream {
        self.0.fetch_add(1, Ordering::Relaxed);
        OpenStream(self.0.clone())
    }

    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
