//! What a process of this machine has used: processor time and memory, as Linux tells it.

use std::fs;
use std::time::Duration;

/// The processor time that a process has had so far.
#[derive(Debug, Clone, Copy)]
pub struct Used {
    /// In nanoseconds, summed over the threads. A thread that has ended is no longer counted.
    scheduled: Option<Duration>,
    /// In ticks of 10 ms, with all threads that ever were.
    ticked: Duration,
}

impl Used {
    /// None when there is no such process, or no `/proc`.
    pub fn by(pid: u32) -> Option<Used> {
        Some(Used { ticked: ticked(pid)?, scheduled: scheduled(pid) })
    }

    /// What was used from `earlier` to now: the exact figure, unless threads have ended with what they had used.
    pub fn since(self, earlier: Used) -> Duration {
        const TICK: Duration = Duration::from_millis(10);
        let ticked = self.ticked.saturating_sub(earlier.ticked);
        match self.scheduled.zip(earlier.scheduled) {
            Some((now, then)) if now + TICK * 3 >= then + ticked => now.saturating_sub(then),
            _ => ticked,
        }
    }
}

/// Memory in bytes that is really there.
pub fn resident(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

fn scheduled(pid: u32) -> Option<Duration> {
    let mut total = 0;
    for thread in fs::read_dir(format!("/proc/{pid}/task")).ok()? {
        // A thread may end while we look.
        let Ok(text) = fs::read_to_string(thread.ok()?.path().join("schedstat")) else { continue };
        total += text.split(' ').next()?.parse::<u64>().ok()?;
    }
    (total > 0).then_some(Duration::from_nanos(total))
}

fn ticked(pid: u32) -> Option<Duration> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after_name) = text.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(Duration::from_millis((user + system) * 10))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_works_uses_time() {
        let mut busy = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let before = Used::by(busy.id()).unwrap();
        let used = || Used::by(busy.id()).unwrap().since(before);
        while used() < Duration::from_millis(30) {}
        assert!(resident(busy.id()).unwrap() > 100_000);
        busy.kill().unwrap();
        busy.wait().unwrap();
    }

    #[test]
    fn threads_that_end_take_nothing_away() {
        let used = |scheduled, ticked| Used {
            scheduled: Some(Duration::from_millis(scheduled)),
            ticked: Duration::from_millis(ticked),
        };
        for (before, after, expected) in [
            (used(105, 100), used(226, 220), 121),
            (used(105, 100), used(80, 220), 120),
            (used(105, 100), used(105, 110), 0),
        ] {
            assert_eq!(after.since(before), Duration::from_millis(expected), "{before:?} {after:?}");
        }
    }

    #[test]
    fn nobody_uses_nothing() {
        assert!(Used::by(u32::MAX).is_none());
        assert_eq!(resident(u32::MAX), None);
    }
}
