//! Lines that a crowd would repeat: one says as much as twenty a second.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_secs(10);

/// When a line was logged.
#[derive(Default)]
pub(crate) struct LogLimit(Mutex<Option<Instant>>);

impl LogLimit {
    /// Whether the line should be logged now; if so, it is not due again for a while.
    pub(crate) fn is_due(&self) -> bool {
        self.is_due_at(Instant::now())
    }

    fn is_due_at(&self, now: Instant) -> bool {
        let mut logged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = logged.is_none_or(|at| now.saturating_duration_since(at) >= EVERY);
        if is_due {
            *logged = Some(now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_due_every_ten_seconds() {
        let (limit, start) = (LogLimit::default(), Instant::now());
        let due = (0..25).filter(|second| limit.is_due_at(start + Duration::from_secs(*second)));
        assert_eq!(due.collect::<Vec<_>>(), [0, 10, 20]);
    }
}
