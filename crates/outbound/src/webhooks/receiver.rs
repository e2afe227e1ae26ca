//! What the dispatcher knows of one receiver: how much it may send there now.
//!
//! | circuit   | sends          | and becomes                                              |
//! |-----------|----------------|----------------------------------------------------------|
//! | closed    | all slots      | open, after `FAILURES` failures to connect in a row      |
//! | open      | nothing        | half-open, when its time is up                           |
//! | half-open | one at a time  | closed by an answer; open for longer by another failure  |
//!
//! Only failures of the connection count. An answer with an error status concerns one webhook: many may share a host.

use std::time::{Duration, Instant};

use super::backoff;

const FAILURES: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(super) struct Receiver {
    pub in_flight: usize,
    /// Failures to connect, in a row.
    failures: u32,
    closed_until: Option<Instant>,
}

impl Receiver {
    /// How many more deliveries may begin now.
    pub fn free(&self, slots: usize, now: Instant) -> usize {
        let slots = match self.closed_until {
            Some(until) if until > now => 0,
            // Half-open.
            Some(_) => 1,
            None => slots,
        };
        slots.saturating_sub(self.in_flight)
    }

    /// When an open circuit is tried again.
    pub fn pause(&self, now: Instant) -> Option<Instant> {
        self.closed_until.filter(|until| *until > now)
    }

    /// Nothing is under way and nothing is wrong, so nothing has to be known of it.
    pub fn is_forgettable(&self) -> bool {
        self.in_flight == 0 && self.failures == 0
    }

    pub fn has_answered(&mut self) {
        self.failures = 0;
        self.closed_until = None;
    }

    pub fn has_failed(&mut self, now: Instant) {
        self.failures = self.failures.saturating_add(1);
        if self.failures >= FAILURES {
            self.closed_until = Some(now + backoff::delay(FIRST_PAUSE, LONGEST_PAUSE, self.failures - FAILURES));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circuit_opens_and_closes() {
        let (mut receiver, start) = (Receiver::default(), Instant::now());
        assert_eq!(receiver.free(8, start), 8);
        receiver.in_flight = 3;
        assert_eq!(receiver.free(8, start), 5);
        for _ in 1..FAILURES {
            receiver.has_failed(start);
        }
        assert_eq!((receiver.free(8, start), receiver.pause(start)), (5, None), "closed still");
        receiver.has_failed(start);
        assert_eq!(receiver.free(8, start), 0);
        let until = receiver.pause(start).unwrap();
        assert!(until <= start + FIRST_PAUSE);
        receiver.in_flight = 0;
        assert_eq!(receiver.free(8, until), 1, "half-open");
        receiver.has_failed(until);
        assert!(receiver.pause(until).unwrap() > until + FIRST_PAUSE / 2);
        receiver.has_answered();
        assert_eq!(receiver.free(8, until), 8);
        assert!(receiver.is_forgettable());
    }
}
