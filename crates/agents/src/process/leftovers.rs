//! Programs whose guard does not end them: it was killed or stopped by its program, or Sabir itself was killed with it.
//!
//! A guard ends all that its program has started. A program has the same rights as its guard, so it can kill the guard or
//! stop it (`kill -STOP $PPID`). Then Sabir does the guard's work at once, and finds the processes in three ways:
//!
//! - Program and guard are marked (`mark.rs`). When Sabir was killed too, the next Sabir finds the marks of one that is
//!   gone.
//! - What lives below a guard belongs to its run, marked or not. So the guard is killed last: while it lives, even though
//!   stopped, nobody below it can slip away.
//! - A process can clear its environment and lose its guard. So a server adopts orphans, as guards do: the processes below
//!   a killed guard become its children. It starts nothing but guards, therefore any other child is such a leftover.
//!
//! All need `/proc`. On other systems than Linux the process group is all there is. Looking through `/proc` takes a while:
//! nothing here may be called on a thread of the runtime, and no lock is held meanwhile.

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

/// A guard whose Sabir is gone may take so long for its work beyond the time that it gives its program.
const MARGIN: Duration = Duration::from_millis(500);
/// How often a server that starts looks whether the guards of another one are done.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// How often it is looked whether a guard was stopped.
const LOOK_AT_GUARD: Duration = Duration::from_secs(1);
/// Children that end in the same second are reaped together.
const REAP_PAUSE: Duration = Duration::from_secs(1);

/// Guards that live, by process id, and how often: an id may be given again before its last bearer is let go here.
static GUARDS: LazyLock<Mutex<HashMap<i32, usize>>> = LazyLock::new(Mutex::default);
static ADOPTS: AtomicBool = AtomicBool::new(false);
/// Programs of an earlier server may still be ending.
static IS_CLEARING: LazyLock<watch::Sender<bool>> = LazyLock::new(|| watch::Sender::new(false));

fn guards() -> MutexGuard<'static, HashMap<i32, usize>> {
    GUARDS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on this process finds all that is left of programs whose guard was killed, marked or not. It must start nothing
/// but guards afterwards. A process that has children already, such as one that was executed by a shell with jobs in the
/// background, could not tell whose they are and relies on the marks.
pub fn adopt_orphans() {
    let own = getpid().as_raw_pid();
    if process_table::all_processes().iter().all(|process| process.parent != own) {
        process_table::adopt_orphans();
        ADOPTS.store(true, Ordering::Relaxed);
    }
}

/// Reaps what this process has adopted and what then ended by itself: the parent, who would have, is gone. Ends never.
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

/// Takes guards out of a list of children. The list must be made before: a guard that was started meanwhile is not in it or
/// is known here, since `KnownGuard::spawn` holds the lock while it starts one.
fn forget_guards(children: &mut Vec<Process>) {
    let guards = guards();
    children.retain(|process| !guards.contains_key(&process.id));
}

/// A guard that lives.
pub(super) struct KnownGuard(i32);

impl KnownGuard {
    /// Starts a guard. It is known before anybody can take it for a leftover.
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

/// Returns when this guard has been stopped for a while, by a signal or a debugger. Nobody but its program does that. One look
/// is not enough: whoever pauses Sabir with all its processes lets them go on one after the other.
pub(super) async fn until_stopped(guard: Option<u32>) {
    let guard = guard.and_then(|guard| i32::try_from(guard).ok());
    let is_stopped = || guard.and_then(process_table::find).is_some_and(|guard| guard.is_stopped);
    let mut was_stopped = false;
    while !(was_stopped && is_stopped()) {
        was_stopped = is_stopped();
        tokio::time::sleep(LOOK_AT_GUARD).await;
    }
}

/// Ends all of a run, its guard too. Blocks until nothing is left, or nothing can be done.
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

/// Ends all programs of this process now, within this time. For a process that is about to exit: their guards end them too,
/// unless a program has stopped its guard.
pub fn end_programs(limit: Duration) {
    let deadline = Instant::now() + limit;
    while Mark::is_used() {
        let left = MarkedProcesses::all(Mark::is_ours);
        if left.is_empty() || Instant::now() >= deadline {
            return;
        }
        left.values().for_each(MarkedProcesses::kill);
        thread::sleep(ROUND);
    }
}

/// Ends what was left by programs of a Sabir that is gone, and returns at once. From now on
/// `until_leftovers_are_gone` waits.
pub fn end_leftovers_of_dead_servers() {
    IS_CLEARING.send_replace(true);
    tokio::spawn(async {
        clear().await;
        IS_CLEARING.send_replace(false);
    });
}

/// Returns when no program of a Sabir that is gone works any more, or nothing can be done about it: a server that was killed
/// and is started again at once would put two programs into one folder and one session.
pub async fn until_leftovers_are_gone() {
    let _ = IS_CLEARING.subscribe().wait_for(|is_clearing| !is_clearing).await;
}

/// A guard that does its work is left to it.
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

/// What lives of one run of a program.
#[derive(Debug, Default)]
struct MarkedProcesses {
    guard: Option<Process>,
    /// The program and what it has started.
    processes: Vec<Process>,
}

impl MarkedProcesses {
    /// All runs whose mark is like this.
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
                    process_table::descendants_of(process.id, &processes).into_iter().filter(|kin| !kin.is_dead),
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

    /// Whether somebody else has to end it, so long after its Sabir was found to be gone. A guard that is not stopped does
    /// that, and gives its program some time.
    fn is_due(&self, age: Duration) -> bool {
        self.guard.is_none_or(|guard| guard.is_stopped) || age > GRACE + MARGIN
    }

    /// The guard last, when nobody is below it.
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

/// Children of this process that are no guards, and all below them.
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
