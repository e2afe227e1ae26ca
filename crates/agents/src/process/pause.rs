//! What a guard does at its deadline: it pauses its program with all that the program has started.
//!
//! ```text
//!              deadline: SIGSTOP            twice nothing to stop
//!   running ──────────────────────> stopping ──────────────────> stopped
//!      ^                                │                           │
//!      └──── a later deadline: SIGCONT ─┴───────────────────────────┘
//! ```
//!
//! The process group is stopped first, in one call, since reading `/proc` takes long on a busy machine. Processes that left
//! the group are then searched and stopped until no search finds another: one that still runs may fork meanwhile. A search
//! does not see a process that ends during it and leaves a new one, so it counts only if the guard has reaped nobody.
//! Only processes that the guard has stopped are resumed. Systems other than Linux know only the group and resume all of it.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpid, kill_process, kill_process_group};

use super::deadline::Deadline;
use super::guard::ROUND;
use super::process_table::{self, Family, Process};

/// The longest pause between two searches. A process may take long to stop on a busy machine.
const LONGEST_ROUND: Duration = Duration::from_secs(1);

/// How many searches must find nothing. One alone may miss a process whose parent was stopped during the search.
const SEARCHES: u32 = 2;

/// The deadline of a guard, and the processes that it has stopped.
pub(super) struct Pause {
    deadline: Option<Deadline>,
    state: State,
    /// How many processes the guard has reaped.
    reaped: Arc<AtomicU64>,
}

enum State {
    Running,
    Stopping(Stopping),
    Stopped(StoppedProcesses),
}

struct Stopping {
    stopped: StoppedProcesses,
    /// Until the next search.
    round: Duration,
    clean_searches: u32,
    /// How many were reaped before the last search.
    reaped: u64,
}

impl Pause {
    pub(super) fn new(deadline: Option<Deadline>) -> Self {
        Self { deadline, state: State::Running, reaped: Arc::default() }
    }

    /// For the thread that reaps, which counts there.
    pub(super) fn reaped(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.reaped)
    }

    pub(super) fn set_deadline(&mut self, deadline: Deadline) {
        self.deadline = Some(deadline);
    }

    /// The time until the deadline. `None`: there is none.
    pub(super) fn time_left(&self) -> Option<Duration> {
        self.deadline.map(Deadline::time_left)
    }

    pub(super) fn is_over(&self) -> bool {
        self.deadline.is_some_and(Deadline::is_over)
    }

    /// When to call `update` again, unless there is a new deadline before.
    pub(super) fn next_update(&self) -> Option<Duration> {
        match &self.state {
            State::Running => self.time_left(),
            State::Stopping(stopping) => Some(stopping.round),
            State::Stopped(_) => None,
        }
    }

    /// Stops or resumes the program and all that it has started, as the deadline demands.
    pub(super) fn update(&mut self, program: Pid) {
        if !self.is_over() {
            return self.resume(program);
        }
        match std::mem::replace(&mut self.state, State::Running) {
            State::Running => {
                let reaped = self.reaped.load(Ordering::Relaxed);
                let _ = kill_process_group(program, Signal::STOP);
                let stopped = StoppedProcesses::default();
                self.search(program, Stopping { stopped, round: ROUND, clean_searches: 0, reaped });
            }
            State::Stopping(stopping) => self.search(program, stopping),
            stopped @ State::Stopped(_) => self.state = stopped,
        }
    }

    fn search(&mut self, program: Pid, mut stopping: Stopping) {
        let mut search = stopping.stopped.stop_others(program);
        let reaped = self.reaped.load(Ordering::Relaxed);
        if reaped != std::mem::replace(&mut stopping.reaped, reaped) {
            search = Search::FoundNew;
        }
        (stopping.round, stopping.clean_searches) = match search {
            Search::Clean => (ROUND, stopping.clean_searches + 1),
            Search::StillRunning => ((2 * stopping.round).min(LONGEST_ROUND), 0),
            Search::FoundNew => (ROUND, 0),
        };
        self.state = match stopping.clean_searches {
            SEARCHES => State::Stopped(stopping.stopped),
            _ => State::Stopping(stopping),
        };
    }

    /// Resumes all processes that the guard has stopped.
    fn resume(&mut self, program: Pid) {
        match std::mem::replace(&mut self.state, State::Running) {
            State::Running => {}
            State::Stopping(Stopping { stopped, .. }) | State::Stopped(stopped) => stopped.resume(program),
        }
    }
}

/// What a search for running processes has found.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Search {
    /// None.
    Clean,
    /// Some that were sent SIGSTOP before.
    StillRunning,
    /// Some that were not known, or that have just ended.
    FoundNew,
}

#[derive(Default)]
struct StoppedProcesses {
    /// All that were found, by id and start time.
    known: HashMap<(i32, u64), StoppedBy>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum StoppedBy {
    Guard,
    /// By its program, or by a person.
    Other,
}

impl StoppedProcesses {
    /// Sends SIGSTOP to all descendants that run, as soon as each is found, since some exist only for a moment. Parents come
    /// first: a shell should not see its children stopped.
    fn stop_others(&mut self, program: Pid) -> Search {
        let family = Family::new();
        let guard = getpid().as_raw_pid();
        let mut search = Search::Clean;
        let mut found = HashSet::from([guard]);
        let mut parents = vec![guard];
        while let Some(parent) = parents.pop() {
            for child in family.children(parent) {
                if !found.insert(child) {
                    continue;
                }
                search = search.max(match process_table::find(child) {
                    Some(process) => self.stop(&process, program),
                    // Its children may have moved to a parent that was asked before.
                    None => Search::FoundNew,
                });
                parents.push(child);
            }
        }
        search
    }

    fn stop(&mut self, process: &Process, program: Pid) -> Search {
        let key = (process.id, process.start);
        let before = self.known.get(&key).copied();
        let stopped_by = match before {
            None if process.is_stopped => stopped_by(process, program),
            Some(before) if process.is_stopped => before,
            _ => StoppedBy::Guard,
        };
        self.known.insert(key, stopped_by);
        let Some(id) = Pid::from_raw(process.id).filter(|_| !process.is_stopped) else { return Search::Clean };
        // A process that is dead may still have threads.
        let sent = kill_process(id, Signal::STOP);
        match before {
            // A guard can do nothing about a process that has changed its user.
            _ if sent == Err(Errno::PERM) => Search::Clean,
            Some(_) if process.is_dead => Search::Clean,
            // It has the signal, and stops before it leaves the kernel.
            Some(StoppedBy::Guard) if process.is_uninterruptible => Search::Clean,
            Some(StoppedBy::Guard) => Search::StillRunning,
            Some(StoppedBy::Other) | None => Search::FoundNew,
        }
    }

    /// The youngest first, so children before their parents.
    fn resume(&self, program: Pid) {
        if cfg!(not(target_os = "linux")) {
            let _ = kill_process_group(program, Signal::CONT);
        }
        let ours = self.known.iter().filter(|(_, stopped_by)| **stopped_by == StoppedBy::Guard);
        let mut ours: Vec<(i32, u64)> = ours.map(|(key, _)| *key).collect();
        ours.sort_unstable_by_key(|(id, start)| Reverse((*start, *id)));
        for (id, start) in &ours {
            // It may have been killed, and its id reused.
            let is_same = process_table::find(*id).is_some_and(|found| found.start == *start);
            if let Some(process) = Pid::from_raw(*id).filter(|_| is_same) {
                let _ = kill_process(process, Signal::CONT);
            }
        }
    }
}

/// Who has stopped a process that is found stopped. The group has been sent SIGSTOP once. A process that runs consumes the
/// signal when it stops; one that was stopped before keeps it pending.
fn stopped_by(process: &Process, program: Pid) -> StoppedBy {
    let is_signalled = process.group == program.as_raw_pid();
    match is_signalled && !process_table::has_pending(process.id, Signal::STOP) {
        true => StoppedBy::Guard,
        false => StoppedBy::Other,
    }
}
