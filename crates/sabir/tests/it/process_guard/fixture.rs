//! Small programs under the guard, and which of their processes are still alive.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use sabir_agents::process::{Child, Launch, Output};

use crate::SABIR;

/// Longer than anything takes, also on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// How long a guard gives its program to end before it kills it. On a busy machine a program may not run for as long.
pub const GRACE: Duration = Duration::from_secs(2);

/// Marks all processes of one program: they inherit it in their environment.
pub struct ProcessMark(String);

impl ProcessMark {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        Self::from(format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)))
    }

    pub fn from(text: String) -> Self {
        Self(format!("GUARD_TEST_MARK={text}."))
    }

    pub fn variable(&self) -> (OsString, OsString) {
        let (name, value) = self.0.split_once('=').unwrap();
        (name.into(), value.into())
    }

    /// Its processes that are alive, the guard too.
    pub fn alive(&self) -> Vec<u32> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let Some(process) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
            if environment.split(|byte| *byte == 0).any(|variable| variable == self.0.as_bytes()) {
                found.push(process);
            }
        }
        found
    }

    pub fn assert_none_alive(&self) {
        assert_eq!(self.alive().into_iter().map(describe).collect::<Vec<_>>(), Vec::<String>::new());
    }
}

fn describe(process: u32) -> String {
    let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    format!("{process}: {}", String::from_utf8_lossy(&line).replace('\0', " "))
}

/// A shell script, to be run.
pub fn script(script: &str, mark: &ProcessMark) -> Launch {
    Launch {
        guard: SABIR.into(),
        program: "sh".into(),
        arguments: vec!["-c".into(), script.into()],
        folder: std::env::temp_dir(),
        environment: vec![("PATH".into(), std::env::var_os("PATH").unwrap()), mark.variable()],
        max_line: 1024 * 1024,
        max_output: 1024 * 1024 * 1024,
        stop_grace: Duration::from_secs(20),
        open_files: None,
    }
}

pub async fn start(text: &str) -> Child {
    script(text, &ProcessMark::new()).start().await.unwrap()
}

pub async fn line(child: &mut Child) -> String {
    match tokio::time::timeout(PATIENCE, child.next()).await.expect("it says something") {
        Output::Line(line) => line,
        other => panic!("expected a line, got {other:?}"),
    }
}

pub async fn until(what: &str, check: impl Fn() -> bool) {
    let start = Instant::now();
    while !check() {
        assert!(start.elapsed() < PATIENCE, "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

pub fn exists(process: u32) -> bool {
    Path::new(&format!("/proc/{process}")).exists()
}

/// The state, parent and group of a process.
pub fn stat(process: u32) -> Option<(String, u32, u32)> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let mut fields = stat[stat.rfind(')')? + 1..].split_whitespace();
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// A size from the status of a process, in bytes.
pub fn memory(process: u32, what: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(what)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

pub fn kill(process: u32) {
    signal("-KILL", process);
}

pub fn signal(signal: &str, process: u32) {
    let status = Command::new("kill").args([signal, &process.to_string()]).status().unwrap();
    assert!(status.success(), "cannot send {signal} to {process}");
}

const ALONE: &str = "GUARD_TEST_ALONE";

/// Some tests need a process of their own: to be killed, or to be measured. Such a test runs itself again in one, where
/// `given` then returns the text. `None`: this is the outer one, which gets the command instead.
pub fn given() -> Option<String> {
    std::env::var(ALONE).ok()
}

pub fn alone(test: &str, given: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(ALONE, given);
    command
}
