//! The clock of this machine. Times of tasks, tokens and certificates depend on it.

use std::io::Read;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use sabir_engine::{Clock, SystemClock};

use super::finding::{Area, Finding};

const AREA: Area = Area::Clock;

/// 2025-01-01: no build of Sabir is older.
const EARLIEST: Duration = Duration::from_secs(1_735_689_600);
const SAMPLES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(5);
/// How far the clock may go astray while it is looked at.
const LARGEST_STEP: Duration = Duration::from_millis(100);
/// timedatectl may have to wait for its service, and a busy machine starts programs late. A third of what `--timeout` is by default.
const PATIENCE: Duration = Duration::from_secs(5);

const REMEDY: &str = "switch on time synchronization, for instance with `timedatectl set-ntp true` or chrony";

pub fn check() -> Vec<Finding> {
    let now = SystemClock.now().to_string();
    if SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default() < EARLIEST {
        return vec![Finding::problem(AREA, format!("it says {now}, which is in the past"), REMEDY)];
    }
    if let Some(step) = large_step() {
        return vec![Finding::problem(AREA, format!("it jumped by {step:?} while it was looked at"), REMEDY)];
    }
    match is_synchronized() {
        Some(true) => vec![Finding::ok(AREA, format!("it says {now}, and is synchronized"))],
        Some(false) => vec![
            Finding::ok(AREA, format!("it says {now}")),
            Finding::warning(AREA, "it is not synchronized, so it slowly becomes wrong", REMEDY),
        ],
        None => vec![Finding::ok(AREA, format!("it says {now}"))],
    }
}

/// Whether the kernel takes its clock for synchronized, by whatever service. `None`: that cannot be found out, as in most
/// containers.
///
/// The kernel says so to adjtimex (STA_UNSYNC), which no safe library offers and which no file shows. timedatectl asks it.
fn is_synchronized() -> Option<bool> {
    let mut child = Command::new("timedatectl")
        .args(["show", "--property=NTPSynchronized", "--value"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let start = Instant::now();
    while child.try_wait().ok()?.is_none() {
        if start.elapsed() > PATIENCE {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        thread::sleep(PAUSE);
    }
    // The answer is short, so it is in the pipe as a whole.
    let mut answer = [0; 16];
    let length = child.stdout.take()?.read(&mut answer).ok()?;
    match answer[..length].trim_ascii() {
        b"yes" => Some(true),
        b"no" => Some(false),
        _ => None,
    }
}

/// How far the clock went away from the one that only counts, if that is too far.
fn large_step() -> Option<Duration> {
    let first = Reading::now();
    for _ in 0..SAMPLES {
        thread::sleep(PAUSE);
        let step = Reading::now().step_since(&first);
        if step > LARGEST_STEP {
            return Some(step);
        }
    }
    None
}

/// The clock, read between two readings of the one that only counts: this process may stand still for long between them.
struct Reading {
    before: Instant,
    clock: SystemTime,
    after: Instant,
}

impl Reading {
    fn now() -> Self {
        let before = Instant::now();
        let clock = SystemTime::now();
        Self { before, clock, after: Instant::now() }
    }

    /// How far the clock has moved more, or less, than the time that has passed since an earlier reading; at least so far.
    fn step_since(&self, earlier: &Self) -> Duration {
        let shortest = earlier.clock + self.before.saturating_duration_since(earlier.after);
        let longest = earlier.clock + self.after.saturating_duration_since(earlier.before);
        let ahead = self.clock.duration_since(longest).unwrap_or_default();
        let behind = shortest.duration_since(self.clock).unwrap_or_default();
        ahead.max(behind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_is_told_from_an_interruption() {
        let (origin, time) = (Instant::now(), SystemTime::now());
        let reading = |before: u64, clock: u64, after: u64| Reading {
            before: origin + Duration::from_millis(before),
            clock: time + Duration::from_millis(clock),
            after: origin + Duration::from_millis(after),
        };
        for (first, second, expected) in [
            ((0, 5_000, 0), (10, 5_010, 10), 0),
            ((0, 5_000, 0), (10, 5_300, 10), 290),
            ((0, 5_000, 0), (10, 4_700, 10), 310),
            // Interrupted before the clock was read, after it, and in the first reading.
            ((0, 5_000, 0), (10, 5_900, 900), 0),
            ((0, 5_000, 0), (10, 5_010, 900), 0),
            ((0, 5_000, 900), (910, 5_910, 910), 0),
            ((0, 5_900, 900), (910, 5_910, 910), 0),
            ((0, 5_000, 0), (10, 6_000, 900), 100),
        ] {
            let [first, second] = [first, second].map(|(before, clock, after)| reading(before, clock, after));
            assert_eq!(second.step_since(&first), Duration::from_millis(expected), "{expected}");
        }
    }
}
