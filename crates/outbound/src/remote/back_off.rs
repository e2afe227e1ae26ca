//! How long to wait before a remote agent is asked again.

use std::time::Duration;

#[derive(Debug, Clone)]
pub(super) struct BackOff {
    next: Duration,
    first: Duration,
    longest: Duration,
}

impl BackOff {
    /// After something went wrong.
    pub(super) fn after_failures() -> Self {
        Self::new(Duration::from_millis(200), Duration::from_secs(15))
    }

    /// Between two looks at a task that is being worked on; always the same time, if the operator names one.
    pub(super) fn between_polls(interval: Option<Duration>) -> Self {
        match interval {
            Some(interval) => Self::new(interval, interval),
            None => Self::new(Duration::from_millis(250), Duration::from_secs(5)),
        }
    }

    fn new(first: Duration, longest: Duration) -> Self {
        BackOff { next: first, first, longest }
    }

    pub(super) fn reset(&mut self) {
        self.next = self.first;
    }

    /// The next wait: each is half as long again as the one before, and what the server asks for counts if it is more.
    pub(super) fn next(&mut self, asked: Option<Duration>) -> Duration {
        let wait = self.next;
        self.next = (self.next * 3 / 2).min(self.longest);
        asked.map_or(wait, |asked| asked.max(wait))
    }
}
