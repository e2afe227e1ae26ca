//! Processes that have lost their guard.
//!
//! A guard ends all that its program has started. A program that kills its guard leaves nobody who would do that, so Sabir
//! does it, and finds the processes in two ways:
//!
//! - Every program has a mark in its environment, which names its run and the Sabir that started it. What the program
//!   starts inherits the mark. When Sabir was killed at the same time, the next Sabir finds the marks of one that is gone.
//! - A process can clear its environment. So a server adopts orphans, as guards do: the processes below a killed guard
//!   become its children. It starts nothing but guards, therefore any other child is such a leftover.
//!
//! Both need `/proc`. On other systems than Linux the process group is all there is.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, getpid};

use super::guard::{GIVE_UP, GRACE, ROUND};
use super::kin::{self, Process};

/// The name of the mark in the environment of programs.
pub const MARK: &str = "SABIR_RUN";

/// What a server that starts waits in addition to the time that the guards of its predecessor take.
const MARGIN: Duration = Duration::from_millis(500);

/// A run of a program: `NAMESPACE.PID.START.NUMBER`. The first three name the Sabir that started it: its process id, when it
/// was started, and the namespace in which its process id counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark(String);

impl Mark {
    /// A mark that no other run has.
    pub(super) fn new() -> Self {
        static RUNS: AtomicU64 = AtomicU64::new(0);
        Self(format!("{}.{}", SELF.text(), RUNS.fetch_add(1, Ordering::Relaxed)))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// A process that runs programs: this one, or one that a mark names.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Starter {
    /// Process ids of different containers have nothing to do with each other.
    namespace: String,
    process: i32,
    start: u64,
}

static SELF: LazyLock<Starter> = LazyLock::new(|| {
    let process = getpid().as_raw_pid();
    let start = kin::look(process).map_or(0, |process| process.start);
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let digits = namespace.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
    Starter { namespace: digits, process, start }
});

impl Starter {
    fn text(&self) -> String {
        format!("{}.{}.{}", self.namespace, self.process, self.start)
    }

    fn parse(mark: &str) -> Option<Self> {
        let mut fields = mark.split('.');
        let namespace = fields.next()?.to_owned();
        Some(Self { namespace, process: fields.next()?.parse().ok()?, start: fields.next()?.parse().ok()? })
    }

    /// Whether it is known to be gone. What happens in other namespaces is not known here.
    fn is_gone(&self) -> bool {
        let is_running = || kin::look(self.process).is_some_and(|found| found.start == self.start && !found.is_dead);
        self.namespace == SELF.namespace && !is_running()
    }
}

/// Guards that live, by process id, and how often: an id may be given again before its last bearer is let go here.
static GUARDS: LazyLock<Mutex<HashMap<i32, usize>>> = LazyLock::new(Mutex::default);
static ADOPTS: AtomicBool = AtomicBool::new(false);

/// From now on this process finds all that is left of programs whose guard was killed, marked or not. It must start nothing
/// but guards afterwards. A process that has children already, such as one that was executed by a shell with jobs in the
/// background, could not tell whose they are and relies on the marks.
pub fn adopt_orphans() {
    let own = getpid().as_raw_pid();
    if kin::everybody().iter().all(|process| process.parent != own) {
        kin::adopt_orphans();
        ADOPTS.store(true, Ordering::Relaxed);
    }
}

/// A guard that lives.
pub(super) struct KnownGuard(i32);

impl KnownGuard {
    /// Starts a guard. It is known before anybody can take it for a leftover.
    pub(super) fn spawn(
        spawn: impl FnOnce() -> io::Result<tokio::process::Child>,
    ) -> io::Result<(tokio::process::Child, Self)> {
        let mut guards = GUARDS.lock().unwrap_or_else(PoisonError::into_inner);
        let child = spawn()?;
        let process = child.id().and_then(|id| i32::try_from(id).ok()).unwrap_or_default();
        *guards.entry(process).or_default() += 1;
        Ok((child, Self(process)))
    }
}

impl Drop for KnownGuard {
    fn drop(&mut self) {
        let mut guards = GUARDS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = guards.get_mut(&self.0) {
            *count -= 1;
            if *count == 0 {
                guards.remove(&self.0);
            }
        }
    }
}

/// Ends all that is left of a run whose guard is gone. Blocks until nothing is left, or nothing can be done.
pub(super) fn end(mark: &Mark) {
    end_all(|| {
        let mut found = orphans();
        found.extend(marked(|found| found == mark.as_str()));
        found
    });
}

/// Ends what was left by programs of a Sabir that was killed together with their guards. Guards that live are done before.
pub async fn end_leftovers_of_the_dead() {
    tokio::time::sleep(GRACE + MARGIN).await;
    let is_left = |mark: &str| Starter::parse(mark).is_some_and(|starter| starter.is_gone());
    let ending = tokio::task::spawn_blocking(move || end_all(|| marked(is_left)));
    if let Ok(count @ 1..) = ending.await {
        tracing::warn!(count, "ended processes that programs of an earlier server had left behind");
    }
}

/// A process, and how to tell that its id has not been given to another since.
struct Leftover {
    process: Pid,
    start: u64,
}

/// Kills until nobody is found any more. Returns how many there were at first.
fn end_all(find: impl Fn() -> Vec<Leftover>) -> usize {
    let deadline = Instant::now() + GIVE_UP;
    let mut found = find();
    let count = found.len();
    while !found.is_empty() && Instant::now() < deadline {
        for leftover in &found {
            leftover.kill();
        }
        thread::sleep(ROUND);
        found = find();
    }
    count
}

impl Leftover {
    fn new(process: &Process) -> Option<Self> {
        Some(Self { process: Pid::from_raw(process.id)?, start: process.start })
    }

    #[cfg(target_os = "linux")]
    fn kill(&self) {
        use rustix::process::{PidfdFlags, Signal, WaitOptions, pidfd_open, pidfd_send_signal, waitpid};
        // The handle stays with the process that had the id when it was opened.
        let Ok(handle) = pidfd_open(self.process, PidfdFlags::empty()) else { return };
        if kin::look(self.process.as_raw_pid()).is_some_and(|found| found.start == self.start) {
            let _ = pidfd_send_signal(&handle, Signal::KILL);
        }
        if ADOPTS.load(Ordering::Relaxed) {
            // If it is our child, nobody else reaps it.
            let _ = waitpid(Some(self.process), WaitOptions::NOHANG);
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn kill(&self) {}
}

/// Processes whose mark is like this.
fn marked(is_wanted: impl Fn(&str) -> bool) -> Vec<Leftover> {
    let own = getpid().as_raw_pid();
    let is_marked = |process: &&Process| {
        let environment = std::fs::read(format!("/proc/{}/environ", process.id)).unwrap_or_default();
        let mut variables = environment.split(|byte| *byte == 0);
        let mark = variables.find_map(|variable| variable.strip_prefix(MARK.as_bytes())?.strip_prefix(b"="));
        mark.and_then(|mark| std::str::from_utf8(mark).ok()).is_some_and(&is_wanted)
    };
    let others = kin::everybody();
    others
        .iter()
        .filter(|process| process.id != own && !process.is_dead)
        .filter(is_marked)
        .filter_map(Leftover::new)
        .collect()
}

/// Children of this process that are no guards, and all below them.
fn orphans() -> Vec<Leftover> {
    if !ADOPTS.load(Ordering::Relaxed) {
        return Vec::new();
    }
    let own = getpid().as_raw_pid();
    let everybody = {
        // No guard is started while we look.
        let guards = GUARDS.lock().unwrap_or_else(PoisonError::into_inner);
        let mut everybody = kin::everybody();
        everybody.retain(|process| process.parent != own || !guards.contains_key(&process.id));
        everybody
    };
    kin::below(own, &everybody).into_iter().filter_map(Leftover::new).collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn only_a_starter_of_this_namespace_is_known_to_be_gone() {
        let (namespace, process, start) = (&SELF.namespace, SELF.process, SELF.start);
        for (mark, expected) in [
            (Mark::new().0, Some(false)),
            (format!("{namespace}.{process}.{}.0", start + 1), Some(true)),
            (format!("{namespace}.{}.7.0", i32::MAX), Some(true)),
            (format!("1.{}.7.0", i32::MAX), Some(false)),
            ("12".into(), None),
            (String::new(), None),
            ("a.b.c.d".into(), None),
        ] {
            assert_eq!(Starter::parse(&mark).map(|starter| starter.is_gone()), expected, "{mark}");
        }
        assert_ne!(Mark::new(), Mark::new());
    }
}
