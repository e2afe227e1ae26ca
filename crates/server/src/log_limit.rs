//! Lines that a crowd would repeat: one says as much as twenty a second, and a stranger must not be able to fill the disk.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_secs(10);

/// When a line was logged, and how often it would have been since.
#[derive(Default)]
pub(crate) struct LogLimit(Mutex<Logged>);

#[derive(Default)]
struct Logged {
    last: Option<Instant>,
    /// Since the last line.
    count: u64,
}

impl LogLimit {
    /// Whether the line should be logged now; if so, it is not due again for a while.
    pub(crate) fn is_due(&self) -> bool {
        self.due().is_some()
    }

    /// How many events the line stands for, if it should be logged now.
    pub(crate) fn due(&self) -> Option<u64> {
        self.due_at(Instant::now())
    }

    fn due_at(&self, now: Instant) -> Option<u64> {
        let mut logged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        logged.count += 1;
        if logged.last.is_some_and(|last| now.saturating_duration_since(last) < EVERY) {
            return None;
        }
        logged.last = Some(now);
        Some(std::mem::take(&mut logged.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_due_every_ten_seconds_and_stands_for_those_before_it() {
        let (limit, start) = (LogLimit::default(), Instant::now());
        let due = (0..25).filter_map(|second| Some((second, limit.due_at(start + Duration::from_secs(second))?)));
        assert_eq!(due.collect::<Vec<_>>(), [(0, 1), (10, 10), (20, 10)]);
    }
}
