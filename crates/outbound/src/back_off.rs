//! How long to wait before a server is asked again.

use std::time::Duration;

/// Waits between attempts, each longer than the one before.
#[derive(Debug, Clone)]
pub struct BackOff {
    next: Duration,
    first: Duration,
    longest: Duration,
}

impl BackOff {
    /// After something went wrong.
    pub fn after_failures() -> Self {
        Self::new(Duration::from_millis(200), Duration::from_secs(15))
    }

    /// Between two looks at a task that is being worked on; always the same time, if the operator names one.
    pub(crate) fn between_polls(interval: Option<Duration>) -> Self {
        match interval {
            Some(interval) => Self::new(interval, interval),
            None => Self::new(Duration::from_millis(250), Duration::from_secs(5)),
        }
    }

    fn new(first: Duration, longest: Duration) -> Self {
        BackOff { next: first, first, longest }
    }

    pub(crate) fn reset(&mut self) {
        self.next = self.first;
    }

    /// The next wait: each is half as long again as the one before, and what the server asks for counts if it is more.
    pub fn next(&mut self, asked: Option<Duration>) -> Duration {
        let wait = self.next;
        self.next = (self.next * 3 / 2).min(self.longest);
        asked.map_or(wait, |asked| asked.max(wait))
    }
}
