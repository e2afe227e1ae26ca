//! What the dispatcher knows of one receiver: how much it may send there now.
//!
//! | circuit   | sends          | and becomes                                              |
//! |-----------|----------------|----------------------------------------------------------|
//! | closed    | all slots      | open, after `FAILURES` failures to connect in a row      |
//! | open      | nothing        | half-open, when its time is up                           |
//! | half-open | one at a time  | closed by an answer; open for longer by another failure  |
//!
//! Only failures of the connection count. An answer with an error status concerns one webhook: many may share a host.
//!
//! Slow receivers do not use up all slots: see `Pace`.

use std::time::{Duration, Instant};

use sabir_model::Timestamp;

use super::backoff;

const FAILURES: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Deliveries at the same time to a receiver that could not be reached the last time.
const IN_DOUBT: usize = 8;

/// A receiver that takes longer is slow.
const QUICK: Duration = Duration::from_secs(2);

/// How quickly a receiver answers. The slower kinds leave room for the quicker ones, and an unknown receiver gets two
/// deliveries until it has answered: with one, a single URL without an answer would stop all others of its host.
///
/// | pace    | slots that it may have, together with slower ones |
/// |---------|---------------------------------------------------|
/// | quick   | all                                               |
/// | unknown | three quarters                                    |
/// | slow    | one half                                          |
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Pace {
    Quick,
    #[default]
    Unknown,
    Slow,
}

impl Pace {
    pub const ALL: [Pace; 3] = [Pace::Quick, Pace::Unknown, Pace::Slow];

    /// How many more deliveries may begin. `in_flight` has those of each pace.
    pub fn room(self, total: usize, in_flight: &[usize; Pace::ALL.len()]) -> usize {
        let limit = |pace| match pace {
            Pace::Quick => total,
            Pace::Unknown => (total - total / 4).max(1),
            Pace::Slow => (total / 2).max(1),
        };
        let used = |pace: Pace| in_flight[pace as usize..].iter().sum::<usize>();
        // A delivery also takes a slot from every quicker pace.
        let paces = Pace::ALL.into_iter().filter(|pace| *pace <= self);
        paces.map(|pace| limit(pace).saturating_sub(used(pace))).min().unwrap_or(0)
    }
}

#[derive(Debug, Default)]
pub(super) struct Receiver {
    pub in_flight: usize,
    pub pace: Pace,
    /// Failures to connect, in a row.
    failures: u32,
    open_until: Option<Instant>,
    /// The earliest failure since the last answer. The store knows more of it after a restart.
    dead_since: Option<DeadSince>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeadSince {
    /// As seen here.
    Seen(Timestamp),
    /// As the store has it.
    Stored(Timestamp),
}

impl Receiver {
    /// How many more deliveries may begin now.
    pub fn free(&self, slots: usize, now: Instant) -> usize {
        let slots = match self.open_until {
            Some(until) if until > now => 0,
            // Half-open.
            Some(_) => 1,
            None if self.pace == Pace::Unknown => slots.min(2),
            None if self.failures > 0 => slots.min(IN_DOUBT),
            None => slots,
        };
        slots.saturating_sub(self.in_flight)
    }

    /// Lower ranks come first.
    pub fn rank(&self) -> (Pace, usize) {
        (self.pace, self.in_flight)
    }

    /// When an open circuit is tried again.
    pub fn pause(&self, now: Instant) -> Option<Instant> {
        self.open_until.filter(|until| *until > now)
    }

    pub fn has_answered(&mut self, took: Duration) {
        self.failures = 0;
        (self.open_until, self.dead_since) = (None, None);
        self.pace = if took < QUICK { Pace::Quick } else { Pace::Slow };
    }

    pub fn dead_since(&self) -> Option<DeadSince> {
        self.dead_since
    }

    /// The store has told since when its deliveries fail.
    pub fn is_dead_since(&mut self, since: Timestamp) {
        self.dead_since = Some(DeadSince::Stored(since));
    }

    pub fn has_failed(&mut self, now: Instant, time: Timestamp) {
        self.dead_since.get_or_insert(DeadSince::Seen(time));
        self.pace = Pace::Slow;
        self.failures = self.failures.saturating_add(1);
        if self.failures >= FAILURES {
            self.open_until = Some(now + backoff::delay(FIRST_PAUSE, LONGEST_PAUSE, self.failures - FAILURES));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circuit_opens_and_closes() {
        let (mut receiver, start) = (Receiver::default(), Instant::now());
        let since = Timestamp::from_millis(7);
        assert_eq!(receiver.free(8, start), 2, "unknown");
        receiver.has_answered(Duration::ZERO);
        assert_eq!(receiver.free(8, start), 8);
        receiver.in_flight = 3;
        assert_eq!(receiver.free(8, start), 5);
        for _ in 1..FAILURES {
            receiver.has_failed(start, since);
        }
        assert_eq!((receiver.free(8, start), receiver.pause(start)), (5, None), "closed still");
        assert_eq!(receiver.free(64, start), IN_DOUBT - 3, "in doubt");
        receiver.has_failed(start, since);
        assert_eq!(receiver.free(8, start), 0);
        let until = receiver.pause(start).unwrap();
        assert!(until <= start + FIRST_PAUSE);
        receiver.in_flight = 0;
        assert_eq!(receiver.free(8, until), 1, "half-open");
        receiver.has_failed(until, since);
        assert!(receiver.pause(until).unwrap() > until + FIRST_PAUSE / 2);
        assert_eq!(receiver.dead_since, Some(DeadSince::Seen(since)));
        receiver.has_answered(QUICK);
        assert_eq!((receiver.free(8, until), receiver.pace, receiver.dead_since), (8, Pace::Slow, None));
    }

    #[test]
    fn slow_receivers_leave_room() {
        for (total, in_flight, expected) in [
            (16, [0, 0, 0], [16, 12, 8]),
            (16, [0, 0, 8], [8, 4, 0]),
            (16, [0, 4, 8], [4, 0, 0]),
            (16, [0, 12, 0], [4, 0, 0]),
            (16, [10, 2, 1], [3, 3, 3]),
            (16, [16, 0, 0], [0, 0, 0]),
            (1, [0, 0, 0], [1, 1, 1]),
            (1, [0, 0, 1], [0, 0, 0]),
        ] {
            let room = Pace::ALL.map(|pace| pace.room(total, &in_flight));
            assert_eq!(room, expected, "{total} {in_flight:?}");
        }
    }
}
