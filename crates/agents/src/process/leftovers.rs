//! Ends programs whose guard cannot: the program killed or stopped its guard, or Sabir was killed together with it.
//!
//! A guard ends all that its program has started. A program has the same rights as its guard, so it can kill the guard or
//! stop it (`kill -STOP $PPID`). Then Sabir does the guard's work at once, and finds the processes in three ways:
//!
//! - Program and guard are marked (`mark.rs`). If Sabir was killed too, the next Sabir finds the marks of the dead one.
//! - All descendants of a guard belong to its run, marked or not. So the guard is killed last: as long as it exists, even
//!   stopped, its descendants can be found.
//! - A process can clear its environment and lose its guard. So a server adopts orphans, as guards do: the children of a
//!   killed guard become its own. A server starts nothing but guards, so any other child is a leftover.
//!
//! All need `/proc`. Systems other than Linux have only the process group. Reading `/proc` takes a while: call nothing here
//! on a thread of the runtime, and hold no lock meanwhile.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, getpid};
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use super::guard::{GIVE_UP, GRACE, ROUND};
use super::mark::Mark;
use super::process_table::{self, Process};

/// How long a guard whose Sabir is gone may take beyond the grace period of its program.
const MARGIN: Duration = Duration::from_millis(500);
/// How often a starting server checks whether the guards of a dead one are done.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// How often a server checks whether a guard was stopped.
const LOOK_AT_GUARD: Duration = Duration::from_secs(1);
/// Children that end in the same second are reaped together.
const REAP_PAUSE: Duration = Duration::from_secs(1);

/// Living guards by process id, with a count: an id may be reused before its last `KnownGuard` is dropped.
static GUARDS: LazyLock<Mutex<HashMap<i32, usize>>> = LazyLock::new(Mutex::default);
static ADOPTS: AtomicBool = AtomicBool::new(false);
/// Programs of an earlier server may still be ending.
static IS_CLEARING: LazyLock<watch::Sender<bool>> = LazyLock::new(|| watch::Sender::new(false));

fn guards() -> MutexGuard<'static, HashMap<i32, usize>> {
    GUARDS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on, what is left of programs whose guard was killed becomes a child of this process, marked or not. The process
/// must start nothing but guards afterwards. A process that has other children already, such as background jobs of the shell
/// that executed it, does not adopt and relies on the marks.
pub fn adopt_orphans() {
    let own = getpid().as_raw_pid();
    if process_table::all_processes().iter().all(|process| process.parent != own) {
        process_table::adopt_orphans();
        ADOPTS.store(true, Ordering::Relaxed);
    }
}

/// Reaps adopted processes that have ended by themselves. Never returns.
pub async fn reap_orphans() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut child_ended) = signal(SignalKind::child()) else { return };
    while ADOPTS.load(Ordering::Relaxed) && child_ended.recv().await.is_some() {
        let _ = spawn_blocking(reap_dead_orphans).await;
        tokio::time::sleep(REAP_PAUSE).await;
    }
}

fn reap_dead_orphans() {
    let own = getpid().as_raw_pid();
    let mut dead = process_table::all_processes();
    dead.retain(|process| process.parent == own && process.is_dead);
    forget_guards(&mut dead);
    for process in dead.iter().filter_map(|process| Pid::from_raw(process.id)) {
        let _ = rustix::process::waitpid(Some(process), rustix::process::WaitOptions::NOHANG);
    }
}

/// Removes guards from a list of children. The list must be made before the call: then a guard that was started meanwhile is
/// either not in it or known here, since `KnownGuard::spawn` holds the lock while it starts one.
fn forget_guards(children: &mut Vec<Process>) {
    let guards = guards();
    children.retain(|process| !guards.contains_key(&process.id));
}

/// A guard that lives.
pub(super) struct KnownGuard(i32);

impl KnownGuard {
    /// Starts a guard and registers it under one lock, so that nobody takes it for a leftover.
    pub(super) fn spawn(
        spawn: impl FnOnce() -> io::Result<tokio::process::Child>,
    ) -> io::Result<(tokio::process::Child, Self)> {
        let mut guards = guards();
        let child = spawn()?;
        let process = child.id().and_then(|id| i32::try_from(id).ok()).unwrap_or_default();
        *guards.entry(process).or_default() += 1;
        Ok((child, Self(process)))
    }
}

impl Drop for KnownGuard {
    fn drop(&mut self) {
        let mut guards = guards();
        if let Some(count) = guards.get_mut(&self.0) {
            *count -= 1;
            if *count == 0 {
                guards.remove(&self.0);
            }
        }
    }
}

/// Returns when this guard has been stopped for a while, by a signal or a debugger. Only its program does that. One check is
/// not enough: somebody who pauses Sabir with all its processes resumes them one after the other.
pub(super) async fn until_stopped(guard: Option<u32>) {
    let guard = guard.and_then(|guard| i32::try_from(guard).ok());
    let is_stopped = || guard.and_then(process_table::find).is_some_and(|guard| guard.is_stopped);
    let mut was_stopped = false;
    while !(was_stopped && is_stopped()) {
        was_stopped = is_stopped();
        tokio::time::sleep(LOOK_AT_GUARD).await;
    }
}

/// Kills all processes of a run, its guard too. Blocks until none is left, or until it gives up.
pub(super) fn end(mark: &Mark) {
    let deadline = Instant::now() + GIVE_UP;
    loop {
        let mut left = MarkedProcesses::all(|found| found == mark).remove(mark).unwrap_or_default();
        left.processes.extend(orphans());
        if left.is_empty() || Instant::now() >= deadline {
            return;
        }
        left.kill();
        thread::sleep(ROUND);
    }
}

/// Returns when no program of this process runs any more.
pub async fn until_no_program_runs() {
    while !guards().is_empty() {
        tokio::time::sleep(2 * ROUND).await;
    }
}

/// Kills all programs of this process within `limit`, and returns whether none is left. For a process that is about to exit:
/// the guards do the same, but later, and not if a program has stopped its guard.
pub fn end_programs(limit: Duration) -> bool {
    let deadline = Instant::now() + limit;
    while Mark::is_used() {
        let left = MarkedProcesses::all(Mark::is_ours);
        if left.is_empty() {
            break;
        }
        if Instant::now() >= deadline {
            return false;
        }
        left.values().for_each(MarkedProcesses::kill);
        thread::sleep(ROUND);
    }
    true
}

/// Begins to kill what programs of a dead Sabir have left, and returns at once. `until_leftovers_are_gone` waits for it.
pub fn end_leftovers_of_dead_servers() {
    IS_CLEARING.send_replace(true);
    tokio::spawn(async {
        clear().await;
        IS_CLEARING.send_replace(false);
    });
}

/// Returns when no program of a dead Sabir runs any more, or when nothing can be done about it. Without this wait, a server
/// that is restarted after a kill would run two programs in one folder and one session.
pub async fn until_leftovers_are_gone() {
    let _ = IS_CLEARING.subscribe().wait_for(|is_clearing| !is_clearing).await;
}

/// Guards that work are given their time.
async fn clear() {
    let mut seen: HashMap<Mark, Instant> = HashMap::new();
    let mut count = 0;
    let deadline = Instant::now() + GRACE + MARGIN + GIVE_UP;
    while Instant::now() < deadline {
        let Ok(left) = spawn_blocking(|| MarkedProcesses::all(Mark::is_of_dead_server)).await else { break };
        if left.is_empty() {
            break;
        }
        let mut pause = LOOK_AGAIN;
        let mut due = Vec::new();
        for (mark, run) in left {
            if run.is_due(seen.entry(mark).or_insert_with(Instant::now).elapsed()) {
                due.push(run);
            }
        }
        if !due.is_empty() {
            count += due.iter().map(|run| run.processes.len()).sum::<usize>();
            pause = ROUND;
            let _ = spawn_blocking(move || due.iter().for_each(MarkedProcesses::kill)).await;
        }
        tokio::time::sleep(pause).await;
    }
    if count > 0 {
        tracing::warn!("ended processes that programs of an earlier server had left behind");
    }
}

/// The living processes of one run of a program.
#[derive(Debug, Default)]
struct MarkedProcesses {
    guard: Option<Process>,
    /// The program and what it has started.
    processes: Vec<Process>,
}

impl MarkedProcesses {
    /// All runs whose mark `is_wanted` accepts.
    fn all(is_wanted: impl Fn(&Mark) -> bool) -> HashMap<Mark, Self> {
        let own = getpid().as_raw_pid();
        let mut processes = process_table::all_processes();
        processes.retain(|process| process.id != own);
        let mut runs: HashMap<Mark, Self> = HashMap::new();
        for process in processes.iter().filter(|process| !process.is_dead) {
            if let Some(mark) = Mark::of_guard(process.id).filter(&is_wanted) {
                let run = runs.entry(mark).or_default();
                run.guard = Some(*process);
                run.processes.extend(
                    process_table::descendants_of(process.id, &processes)
                        .into_iter()
                        .filter(|process| !process.is_dead),
                );
            } else if let Some(mark) = Mark::of_program(process.id).filter(&is_wanted) {
                runs.entry(mark).or_default().processes.push(*process);
            }
        }
        runs
    }

    fn is_empty(&self) -> bool {
        self.guard.is_none() && self.processes.is_empty()
    }

    /// Whether this process must kill the run, `age` after its Sabir was found dead. A guard that is not stopped does it
    /// itself, after a grace period.
    fn is_due(&self, age: Duration) -> bool {
        self.guard.is_none_or(|guard| guard.is_stopped) || age > GRACE + MARGIN
    }

    /// Kills the guard last, when it has no descendants.
    fn kill(&self) {
        match (&self.guard, self.processes.is_empty()) {
            (Some(guard), true) => kill(guard),
            _ => self.processes.iter().for_each(kill),
        }
    }
}

#[cfg(target_os = "linux")]
fn kill(process: &Process) {
    use rustix::process::{PidfdFlags, Signal, WaitOptions, pidfd_open, pidfd_send_signal, waitpid};
    let Some(id) = Pid::from_raw(process.id) else { return };
    // The handle stays with the process that had the id when it was opened.
    let Ok(handle) = pidfd_open(id, PidfdFlags::empty()) else { return };
    if process_table::find(process.id).is_some_and(|found| found.start == process.start) {
        let _ = pidfd_send_signal(&handle, Signal::KILL);
    }
    if ADOPTS.load(Ordering::Relaxed) && !guards().contains_key(&process.id) {
        // If it is our child, nobody else reaps it.
        let _ = waitpid(Some(id), WaitOptions::NOHANG);
    }
}

#[cfg(not(target_os = "linux"))]
fn kill(_: &Process) {}

/// Children of this process that are no guards, and their descendants.
fn orphans() -> Vec<Process> {
    if !ADOPTS.load(Ordering::Relaxed) {
        return Vec::new();
    }
    let own = getpid().as_raw_pid();
    let processes = process_table::all_processes();
    let mut children = processes.clone();
    children.retain(|process| process.parent == own);
    forget_guards(&mut children);
    let below = children
        .iter()
        .flat_map(|child| process_table::descendants_of(child.id, &processes))
        .copied()
        .collect::<Vec<_>>();
    children.into_iter().chain(below).collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_guard_that_works_is_left_its_time() {
        let guard = |is_stopped| {
            let guard = process_table::find(getpid().as_raw_pid()).unwrap();
            Some(Process { is_stopped, ..guard })
        };
        for (what, guard, age, expected) in [
            ("a guard that works", guard(false), Duration::ZERO, false),
            ("a guard that gives its program time", guard(false), GRACE, false),
            ("a guard that should be done", guard(false), GRACE + 2 * MARGIN, true),
            ("a guard that was stopped", guard(true), Duration::ZERO, true),
            ("no guard", None, Duration::ZERO, true),
        ] {
            assert_eq!(MarkedProcesses { guard, processes: Vec::new() }.is_due(age), expected, "{what}");
        }
    }
}
