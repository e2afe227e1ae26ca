//! A point in time that Sabir and its guards read alike.
//!
//! An `Instant` means nothing in another process. CLOCK_MONOTONIC counts from one origin for all processes of a machine, on
//! Linux as on macOS, so an absolute time of it is right however late its message arrives.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Deadline(u64);

impl Deadline {
    /// A deadline that is never reached.
    pub(super) const NEVER: Self = Self(u64::MAX);

    pub(super) fn at(instant: Instant) -> Self {
        // In this order an interruption between the two makes the deadline earlier, never later.
        let clock = clock_nanoseconds();
        let now = Instant::now();
        let ahead = nanoseconds(instant.saturating_duration_since(now));
        let behind = nanoseconds(now.saturating_duration_since(instant));
        Self(clock.saturating_add(ahead).saturating_sub(behind))
    }

    pub(super) fn from_nanoseconds(nanoseconds: u64) -> Self {
        Self(nanoseconds)
    }

    pub(super) fn as_nanoseconds(self) -> u64 {
        self.0
    }

    /// The time until it is reached; zero afterwards.
    pub(super) fn time_left(self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(clock_nanoseconds()))
    }

    pub(super) fn is_over(self) -> bool {
        self.time_left().is_zero()
    }
}

fn clock_nanoseconds() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    nanoseconds(Duration::new(time.tv_sec.try_into().unwrap_or_default(), time.tv_nsec.try_into().unwrap_or_default()))
}

/// Enough for five hundred years.
fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_as_far_away_as_its_instant() {
        let (now, hour) = (Instant::now(), Duration::from_secs(3600));
        let left = Deadline::at(now + hour).time_left();
        assert!(left <= hour && left > hour - Duration::from_secs(60), "{left:?}");
        // Each reads two clocks, and may be interrupted between them.
        let begin = Instant::now();
        let [earlier, later] =
            [now - Duration::from_secs(1), now].map(|instant| Deadline::at(instant).as_nanoseconds());
        let tolerance = nanoseconds(begin.elapsed() + Duration::from_millis(1));
        assert!((earlier + 1_000_000_000).abs_diff(later) <= tolerance, "{earlier} {later}");
        for (deadline, expected) in [
            (Deadline::at(now), true),
            (Deadline::at(now + hour), false),
            (Deadline::from_nanoseconds(0), true),
            (Deadline::NEVER, false),
        ] {
            assert_eq!(deadline.is_over(), expected, "{deadline:?}");
        }
    }
}
