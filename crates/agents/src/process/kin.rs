//! Who descends from this process.
//!
//! A process that leaves its group and loses its parent is handed to the nearest ancestor that asked for such orphans. The
//! guard asks, so on Linux everything that a program has started, daemons too, hangs somewhere below the guard and is found
//! in `/proc`. Elsewhere nobody can ask: there the process group is all there is.

use rustix::process::Pid;

/// A process below this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kin {
    pub(super) process: Pid,
    pub(super) group: i32,
}

/// From now on, orphans among the descendants become children of this process.
pub(super) fn adopt_orphans() {
    // A kernel that does not know it leaves us with the group.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

#[cfg(not(target_os = "linux"))]
pub(super) fn descendants() -> Vec<Kin> {
    Vec::new()
}

/// All children, their children, and so on, as they stand now.
#[cfg(target_os = "linux")]
pub(super) fn descendants() -> Vec<Kin> {
    let everybody: Vec<Entry> = std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit))
        .filter_map(|entry| Entry::parse(&std::fs::read(entry.path().join("stat")).ok()?))
        .collect();
    below(rustix::process::getpid().as_raw_pid(), &everybody)
}

#[cfg(target_os = "linux")]
struct Entry {
    process: i32,
    parent: i32,
    group: i32,
}

#[cfg(target_os = "linux")]
impl Entry {
    /// `12 (name) S 1 12 12 ...`: the process, its name, its state, its parent, its group. A name may hold anything, brackets
    /// and bytes that are no text too.
    fn parse(stat: &[u8]) -> Option<Self> {
        let name_end = stat.iter().rposition(|byte| *byte == b')')?;
        let process = std::str::from_utf8(stat.split(|byte| *byte == b' ').next()?).ok()?.parse().ok()?;
        let mut rest = std::str::from_utf8(&stat[name_end + 1..]).ok()?.split_ascii_whitespace().skip(1);
        Some(Self { process, parent: rest.next()?.parse().ok()?, group: rest.next()?.parse().ok()? })
    }
}

#[cfg(target_os = "linux")]
fn below(ancestor: i32, everybody: &[Entry]) -> Vec<Kin> {
    let mut found = Vec::new();
    let mut parents = vec![ancestor];
    while let Some(parent) = parents.pop() {
        for entry in everybody.iter().filter(|entry| entry.parent == parent) {
            parents.push(entry.process);
            found.extend(Pid::from_raw(entry.process).map(|process| Kin { process, group: entry.group }));
        }
    }
    found
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::{Entry, below};

    #[test]
    fn the_whole_tree_below_is_found_and_nobody_else() {
        let everybody: Vec<Entry> = [
            &b"1 (init) S 0 1 1 0"[..],
            b"10 (guard) S 1 10 10 0",
            b"11 (program) S 10 11 10 0",
            b"12 (a) name (x) S 11 11 10 0",
            b"13 (\xff\xfe) R 12 13 13 0",
            b"14 (daemon) S 10 14 14 0",
            b"20 (stranger) S 1 20 20 0",
        ]
        .iter()
        .map(|stat| Entry::parse(stat).unwrap())
        .collect();
        let mut found: Vec<_> = below(10, &everybody).iter().map(|kin| (kin.process.as_raw_pid(), kin.group)).collect();
        found.sort_unstable();
        assert_eq!(found, [(11, 11), (12, 11), (13, 13), (14, 14)]);
        assert!(Entry::parse(b"").is_none());
        assert!(Entry::parse(b"7 (half").is_none());
    }
}
