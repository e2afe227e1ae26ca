//! The processes of this machine, and which of them descend from which.
//!
//! The kernel gives an orphan to its nearest ancestor that is a subreaper. The guard is one, so on Linux everything that a
//! program has started, daemons too, is a descendant of the guard and is found in `/proc`. Other systems have no subreapers,
//! only the process group.

use rustix::process::{Pid, Signal};

/// A process, as `/proc` shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) id: i32,
    pub(super) parent: i32,
    pub(super) group: i32,
    /// When it was started. No other process has the same id and the same start.
    pub(super) start: u64,
    /// A zombie: it has ended and waits to be reaped.
    pub(super) is_dead: bool,
    /// Stopped by a signal or a debugger.
    pub(super) is_stopped: bool,
    /// Waits in the kernel and receives no signal meanwhile: for a disk, or for a child after `vfork`.
    pub(super) is_uninterruptible: bool,
}

/// A descendant of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Descendant {
    pub(super) process: Pid,
    pub(super) group: i32,
}

/// From now on, orphans among the descendants become children of this process.
pub(super) fn adopt_orphans() {
    // An old kernel refuses; then only the process group is known.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// All descendants of this process at this moment.
pub(super) fn descendants() -> Vec<Descendant> {
    let processes = all_processes();
    let descendant = |process: &Process| Some(Descendant { process: Pid::from_raw(process.id)?, group: process.group });
    descendants_of(rustix::process::getpid().as_raw_pid(), &processes).into_iter().filter_map(descendant).collect()
}

/// All visible processes. Systems other than Linux show none.
pub(super) fn all_processes() -> Vec<Process> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| find(entry.file_name().to_str()?.parse().ok()?)).collect()
}

/// Who is whose child. Most kernels list the children of a process, which costs little on a machine with many processes. On
/// others all processes are read.
pub(super) enum Family {
    Listed,
    Read(Vec<Process>),
}

impl Family {
    pub(super) fn new() -> Self {
        match std::fs::exists("/proc/thread-self/children") {
            Ok(true) => Family::Listed,
            _ => Family::Read(all_processes()),
        }
    }

    /// The ids of the children. Some may be missing if others end at the same time.
    pub(super) fn children(&self, parent: i32) -> Vec<i32> {
        match self {
            Family::Listed => listed_children(parent),
            Family::Read(processes) => {
                let children = processes.iter().filter(|process| process.parent == parent);
                children.map(|process| process.id).collect()
            }
        }
    }
}

/// Each thread has its own.
fn listed_children(parent: i32) -> Vec<i32> {
    let threads = std::fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<_>>()).collect()
}

/// One process, if it exists.
pub(super) fn find(id: i32) -> Option<Process> {
    Process::parse(&std::fs::read(format!("/proc/{id}/stat")).ok()?)
}

/// Whether this signal was sent to the process, and the process has not received it.
pub(super) fn has_pending(id: i32, signal: Signal) -> bool {
    let status = std::fs::read(format!("/proc/{id}/status")).unwrap_or_default();
    pending_signals(&status) & (1 << (signal.as_raw() - 1)) != 0
}

/// `ShdPnd:\t0000000000040000`: the signals that were sent to the process, not to one of its threads.
fn pending_signals(status: &[u8]) -> u64 {
    let mut lines = status.split(|byte| *byte == b'\n');
    let mask = lines.find_map(|line| std::str::from_utf8(line.strip_prefix(b"ShdPnd:")?).ok());
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default()
}

impl Process {
    /// `12 (name) S 1 12 12 ...`: the process, its name, its state, its parent, its group. A name may hold anything, even
    /// brackets and invalid UTF-8.
    fn parse(stat: &[u8]) -> Option<Self> {
        let name_end = stat.iter().rposition(|byte| *byte == b')')?;
        let id = std::str::from_utf8(stat.split(|byte| *byte == b' ').next()?).ok()?.parse().ok()?;
        let mut rest = std::str::from_utf8(&stat[name_end + 1..]).ok()?.split_ascii_whitespace();
        let state = rest.next()?;
        let (is_dead, is_stopped) = (matches!(state, "Z" | "X"), matches!(state, "T" | "t"));
        let is_uninterruptible = state == "D";
        let (parent, group) = (rest.next()?.parse().ok()?, rest.next()?.parse().ok()?);
        // The 22nd field of the line.
        let start = rest.nth(16).and_then(|start| start.parse().ok()).unwrap_or_default();
        Some(Self { id, parent, group, start, is_dead, is_stopped, is_uninterruptible })
    }
}

/// Those of the processes that descend from this one.
pub(super) fn descendants_of(ancestor: i32, processes: &[Process]) -> Vec<&Process> {
    let mut found = Vec::new();
    let mut parents = vec![ancestor];
    while let Some(parent) = parents.pop() {
        for process in processes.iter().filter(|process| process.parent == parent) {
            parents.push(process.id);
            found.push(process);
        }
    }
    found
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::{Family, Process, all_processes, descendants_of, pending_signals};

    #[test]
    fn the_whole_tree_below_is_found_and_nobody_else() {
        let processes: Vec<Process> = [
            &b"1 (init) S 0 1 1 0"[..],
            b"10 (guard) S 1 10 10 0",
            b"11 (program) S 10 11 10 0",
            b"12 (a) name (x) S 11 11 10 0",
            b"13 (\xff\xfe) R 12 13 13 0",
            b"14 (daemon) S 10 14 14 0",
            b"20 (stranger) S 1 20 20 0",
        ]
        .iter()
        .map(|stat| Process::parse(stat).unwrap())
        .collect();
        let mut found: Vec<_> =
            descendants_of(10, &processes).iter().map(|process| (process.id, process.group)).collect();
        found.sort_unstable();
        assert_eq!(found, [(11, 11), (12, 11), (13, 13), (14, 14)]);
        let whole = b"7 (x) Z 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 1234 20";
        assert_eq!(Process::parse(whole).map(|found| (found.start, found.is_dead)), Some((1234, true)));
        for (state, expected) in [("T", true), ("t", true), ("S", false), ("Z", false)] {
            let found = Process::parse(format!("7 (T) {state} 1 2 3").as_bytes());
            assert_eq!(found.map(|found| found.is_stopped), Some(expected), "{state}");
        }
        assert!(Process::parse(b"").is_none());
        assert!(Process::parse(b"7 (half").is_none());
    }

    #[test]
    fn both_ways_find_a_child() {
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let (own, id) = (rustix::process::getpid().as_raw_pid(), i32::try_from(child.id()).unwrap());
        for family in [Family::new(), Family::Read(all_processes())] {
            assert!(family.children(own).contains(&id));
            assert!(family.children(id).is_empty());
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn pending_signals_are_read() {
        for (status, expected) in [
            (&b"Name:\tsh\nSigPnd:\t0000000000000001\nShdPnd:\t0000000000040000\nSigBlk:\t00\n"[..], 0x40000),
            (b"Name:\t\xff\nShdPnd:\t0000000000000000\n", 0),
            (b"", 0),
        ] {
            assert_eq!(pending_signals(status), expected, "{}", String::from_utf8_lossy(status));
        }
    }
}
