//! Marks say to which run of a program a process belongs, and which Sabir started it.
//!
//! A program has the mark in its environment, and what the program starts inherits it. Its guard has the mark on its command
//! line. So any Sabir finds both in `/proc`.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::getpid;

use super::process_table;
use super::{GUARD, MARKED};

/// The name of the mark in the environment of programs.
pub const MARK: &str = "SABIR_RUN";

/// A run of a program: `NAMESPACE.PID.START.NUMBER`. The first three name the Sabir that started it: the namespace of its
/// process id, its process id, and its start time.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Mark(String);

static RUNS: AtomicU64 = AtomicU64::new(0);

impl Mark {
    /// A mark that no other run has.
    pub(super) fn new() -> Self {
        Self(format!("{}.{}", SELF.text(), RUNS.fetch_add(1, Ordering::Relaxed)))
    }

    /// Whether this process has ever marked a run.
    pub(super) fn is_used() -> bool {
        RUNS.load(Ordering::Relaxed) > 0
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// The mark of a program, or of a process that it has started.
    pub(super) fn of_program(process: i32) -> Option<Self> {
        let environment = std::fs::read(format!("/proc/{process}/environ")).ok()?;
        let mut variables = environment.split(|byte| *byte == 0);
        let mark = variables.find_map(|variable| variable.strip_prefix(MARK.as_bytes())?.strip_prefix(b"="))?;
        Some(Self(std::str::from_utf8(mark).ok()?.to_owned()))
    }

    /// The mark of a guard.
    pub(super) fn of_guard(process: i32) -> Option<Self> {
        Self::in_command_line(&std::fs::read(format!("/proc/{process}/cmdline")).ok()?)
    }

    /// `sabir __guard --mark MARK ...`
    fn in_command_line(line: &[u8]) -> Option<Self> {
        let mut words = line.split(|byte| *byte == 0).skip(1);
        let is_guard = words.next()? == GUARD.as_bytes() && words.next()? == MARKED.as_bytes();
        is_guard.then(|| Some(Self(std::str::from_utf8(words.next()?).ok()?.to_owned())))?
    }

    pub(super) fn is_ours(&self) -> bool {
        ServerProcess::parse(&self.0).is_some_and(|server| server == *SELF)
    }

    /// Whether the Sabir that started the run is known to be gone.
    pub(super) fn is_of_dead_server(&self) -> bool {
        ServerProcess::parse(&self.0).is_some_and(|server| server.is_gone())
    }
}

/// A process that runs programs: this one, or one that a mark names.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ServerProcess {
    /// Process ids are unique only within a namespace, such as a container.
    namespace: String,
    process: i32,
    start: u64,
}

static SELF: LazyLock<ServerProcess> = LazyLock::new(|| {
    let process = getpid().as_raw_pid();
    let start = process_table::find(process).map_or(0, |process| process.start);
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let digits = namespace.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
    ServerProcess { namespace: digits, process, start }
});

impl ServerProcess {
    fn text(&self) -> String {
        format!("{}.{}.{}", self.namespace, self.process, self.start)
    }

    fn parse(mark: &str) -> Option<Self> {
        let mut fields = mark.split('.');
        let namespace = fields.next()?.to_owned();
        Some(Self { namespace, process: fields.next()?.parse().ok()?, start: fields.next()?.parse().ok()? })
    }

    /// Whether it is known to be gone. Processes of other namespaces are never known to be.
    fn is_gone(&self) -> bool {
        let is_running =
            || process_table::find(self.process).is_some_and(|found| found.start == self.start && !found.is_dead);
        self.namespace == SELF.namespace && !is_running()
    }
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
            assert_eq!(ServerProcess::parse(&mark).map(|server| server.is_gone()), expected, "{mark}");
        }
        assert_ne!(Mark::new(), Mark::new());
        assert!(Mark::new().is_ours());
    }

    #[test]
    fn a_guard_has_its_mark_on_its_command_line() {
        for (line, expected) in [
            (&b"/proc/self/exe\0__guard\0--mark\x001.2.3.4\0/bin/sh\0"[..], Some("1.2.3.4")),
            (b"sabir\0__guard\0/bin/sh\0--mark\x001.2.3.4\0", None),
            (b"sh\0-c\0sabir __guard --mark 1.2.3.4\0", None),
            (b"sabir\0__guard\0--mark", None),
            (b"", None),
        ] {
            let found = Mark::in_command_line(line);
            assert_eq!(found.as_ref().map(Mark::as_str), expected, "{}", String::from_utf8_lossy(line));
        }
    }
}
