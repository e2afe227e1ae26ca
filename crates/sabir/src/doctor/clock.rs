//! The clock of this machine. Times of tasks, tokens and certificates depend on it.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use sabir_engine::{Clock, SystemClock};

use super::finding::{Area, Finding};

const AREA: Area = Area::Clock;

/// 2025-01-01: no build of Sabir is older.
const EARLIEST: Duration = Duration::from_secs(1_735_689_600);
const SAMPLES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(5);
/// How far the clock may go astray between two looks.
const LARGEST_STEP: Duration = Duration::from_millis(100);

const REMEDY: &str = "switch on time synchronization, for instance with `timedatectl set-ntp true` or chrony";

pub fn check() -> Vec<Finding> {
    let now = SystemClock.now().to_string();
    if SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default() < EARLIEST {
        return vec![Finding::problem(AREA, format!("it says {now}, which is in the past"), REMEDY)];
    }
    if let Some(step) = largest_step() {
        return vec![Finding::problem(AREA, format!("it jumped by {step:?} while it was looked at"), REMEDY)];
    }
    // systemd-timesyncd keeps this file while it is synchronized; other services have other ways to say so.
    let synchronized = match Path::new("/run/systemd/timesync/synchronized").exists() {
        true => ", and is synchronized",
        false => "",
    };
    vec![Finding::ok(AREA, format!("it says {now}{synchronized}"))]
}

/// How far the clock went away from the one that only counts, if that is too far.
fn largest_step() -> Option<Duration> {
    let (start, counted) = (SystemTime::now(), Instant::now());
    for _ in 0..SAMPLES {
        thread::sleep(PAUSE);
        let expected = start + counted.elapsed();
        let now = SystemTime::now();
        let step = now.duration_since(expected).unwrap_or_else(|before| before.duration());
        if step > LARGEST_STEP {
            return Some(step);
        }
    }
    None
}
