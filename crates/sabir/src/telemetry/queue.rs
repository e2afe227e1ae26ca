//! Spans that wait for the exporter. The queue is bounded: a span that finds it full is dropped and counted, so a collector
//! that is slow or away costs spans and nothing else.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

use super::settings::BatchSettings;
use super::span::EndedSpan;

pub(super) struct SpanQueue {
    spans: Mutex<Vec<EndedSpan>>,
    limit: usize,
    batch: usize,
    dropped: AtomicU64,
    first: Notify,
    full: Notify,
}

impl SpanQueue {
    pub(super) fn new(settings: &BatchSettings) -> Self {
        Self {
            spans: Mutex::default(),
            limit: settings.queue,
            batch: settings.size,
            dropped: AtomicU64::new(0),
            first: Notify::new(),
            full: Notify::new(),
        }
    }

    pub(super) fn push(&self, span: EndedSpan) {
        let length = {
            let mut spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
            if spans.len() >= self.limit {
                drop(spans);
                self.dropped.fetch_add(1, Ordering::Relaxed);
                return;
            }
            spans.push(span);
            spans.len()
        };
        // The exporter is woken once per batch, not once per span.
        if length == 1 {
            self.first.notify_one();
        }
        if length == self.batch {
            self.full.notify_one();
        }
    }

    /// Resolves when there is a span.
    pub(super) async fn until_first(&self) {
        while self.is_empty() {
            self.first.notified().await;
        }
    }

    /// Resolves when there is a whole batch.
    pub(super) async fn until_full(&self) {
        while self.len() < self.batch {
            self.full.notified().await;
        }
    }

    /// At most one batch, oldest first.
    pub(super) fn take(&self) -> Vec<EndedSpan> {
        let mut spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        if spans.len() <= self.batch {
            return std::mem::take(&mut *spans);
        }
        let rest = spans.split_off(self.batch);
        std::mem::replace(&mut *spans, rest)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn len(&self) -> usize {
        self.spans.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Spans that were dropped since the last look.
    pub(super) fn take_dropped(&self) -> u64 {
        self.dropped.swap(0, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn a_full_queue_drops_and_counts() {
        let queue = SpanQueue::new(&BatchSettings { queue: 5, size: 2, ..BatchSettings::default() });
        for number in 0..8 {
            queue.push(EndedSpan::named(format!("{number}")));
        }
        let names =
            |spans: Vec<EndedSpan>| spans.iter().map(|span| span.name.to_string()).collect::<Vec<_>>().join(" ");
        assert_eq!(queue.take_dropped(), 3);
        assert_eq!([names(queue.take()), names(queue.take()), names(queue.take())], ["0 1", "2 3", "4"]);
        assert_eq!((queue.take_dropped(), queue.is_empty()), (0, true));
    }

    #[test]
    fn the_exporter_is_woken_by_the_first_span_and_by_a_whole_batch() {
        let queue = SpanQueue::new(&BatchSettings { queue: 5, size: 2, ..BatchSettings::default() });
        let is_ready = || (queue.until_first().now_or_never().is_some(), queue.until_full().now_or_never().is_some());
        assert_eq!(is_ready(), (false, false));
        queue.push(EndedSpan::named("a"));
        assert_eq!(is_ready(), (true, false));
        queue.push(EndedSpan::named("b"));
        assert_eq!(is_ready(), (true, true));
    }
}
