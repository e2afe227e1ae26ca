//! How long to wait before the next attempt.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// Doubles with every attempt, up to a bound; between half and all of that, so that those who failed together do not come
/// back together.
pub(super) fn delay(first: Duration, most: Duration, attempts: u32) -> Duration {
    let doubled = first.saturating_mul(2_u32.saturating_pow(attempts.min(31))).min(most);
    doubled.mul_f64(0.5 + fraction() / 2.0)
}

/// The bound of a delivery that has failed for so long. A receiver that was away shortly is not kept waiting; afterwards a
/// wait is no longer than the time of trouble before it.
pub(super) fn longest(most: Duration, failing_for: Duration) -> Duration {
    let bound = if failing_for < AT_FIRST { LONGEST_AT_FIRST } else { failing_for };
    bound.min(most)
}

const AT_FIRST: Duration = Duration::from_secs(5 * 60);
const LONGEST_AT_FIRST: Duration = Duration::from_secs(30);

/// A random number from 0 up to 1. Every `RandomState` has keys of its own.
fn fraction() -> f64 {
    (RandomState::new().hash_one(0_u8) >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_close_together_at_first() {
        let most = Duration::from_secs(3600);
        for (failing_for, expected) in [(0, 30), (299, 30), (300, 300), (1000, 1000), (86400, 3600)] {
            assert_eq!(longest(most, Duration::from_secs(failing_for)), Duration::from_secs(expected));
        }
        assert_eq!(longest(Duration::from_millis(5), Duration::ZERO), Duration::from_millis(5));
    }

    #[test]
    fn delays_grow_up_to_a_bound() {
        let (first, most) = (Duration::from_secs(1), Duration::from_secs(3600));
        for (attempts, longest) in [(0, 1), (1, 2), (5, 32), (11, 2048), (12, 3600), (31, 3600), (u32::MAX, 3600)] {
            let longest = Duration::from_secs(longest);
            for _ in 0..100 {
                let delay = delay(first, most, attempts);
                assert!(delay >= longest / 2 && delay <= longest, "{delay:?} after {attempts}");
            }
        }
    }
}
