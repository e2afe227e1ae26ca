//! What the suites have left behind when all of them are through: it must be nothing.
//!
//! All suites of a run have one temporary folder (`TMPDIR`), which nobody else uses. So what lies in it is theirs, and a
//! process is theirs when its command line, its environment or its working directory names that folder. Guards and marked
//! programs of this checkout count wherever they work. Refs, worktrees and new files of the checkout itself are compared
//! with what was there before.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::command;
use crate::workspace::Workspace;

/// Servers that were killed leave their programs to the guards, which give them some time.
const PATIENCE: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_millis(100);
/// How many entries of one kind are named.
const MOST: usize = 10;

/// How everything was before the suites ran.
pub struct StateBefore {
    root: PathBuf,
    temp: PathBuf,
    processes: BTreeSet<String>,
    checkout: BTreeSet<String>,
}

impl StateBefore {
    /// Looks around, and makes the folder of the suites.
    pub fn look(workspace: &Workspace) -> Result<Self> {
        let temp = workspace.temp.clone();
        fs::create_dir_all(&temp).with_context(|| format!("cannot make the folder {}", temp.display()))?;
        let root = workspace.root.clone();
        Ok(Self { processes: processes(&root, &temp), checkout: checkout(&root), root, temp })
    }

    /// A sentence for each thing that is left. The folder is gone afterwards.
    pub fn left(self) -> Vec<String> {
        let deadline = Instant::now() + PATIENCE;
        let mut left = self.look_again();
        while !left.is_empty() && Instant::now() < deadline {
            std::thread::sleep(PAUSE);
            left = self.look_again();
        }
        let _ = fs::remove_dir_all(&self.temp);
        left
    }

    fn look_again(&self) -> Vec<String> {
        let mut left = Vec::new();
        for (what, found, before) in [
            ("process", processes(&self.root, &self.temp), &self.processes),
            ("in the temporary folder", names(&self.temp), &BTreeSet::new()),
            ("in the checkout", checkout(&self.root), &self.checkout),
        ] {
            let new: Vec<&String> = found.difference(before).collect();
            left.extend(new.iter().take(MOST).map(|name| format!("left behind, {what}: {name}")));
            if new.len() > MOST {
                left.push(format!("left behind, {what}: {} more", new.len() - MOST));
            }
        }
        left
    }
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path().display().to_string()).collect()
}

/// Refs of tasks, worktrees and files that git does not know.
fn checkout(root: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (what, arguments) in [
        ("ref", &["for-each-ref", "--format=%(refname)", "refs/sabir"][..]),
        ("worktree", &["worktree", "list", "--porcelain"]),
        ("file", &["ls-files", "--others", "--exclude-standard"]),
    ] {
        // Sources without a repository have neither.
        let lines = command::output(Command::new("git").arg("-C").arg(root).args(arguments)).unwrap_or_default();
        // People have worktrees too; those of tasks lie beside a database.
        let is_meant =
            |line: &&str| what != "worktree" || line.starts_with("worktree ") && line.contains("-worktrees/");
        found.extend(
            lines.lines().filter(is_meant).map(|line| format!("{what} {}", line.trim_start_matches("worktree "))),
        );
    }
    found
}

/// The processes of the suites, each with its number and its command line.
fn processes(root: &Path, temp: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let others = numbers.filter(|number| *number != std::process::id());
    others.filter_map(|number| FoundProcess::look(number)?.description(root, temp)).collect()
}

struct FoundProcess {
    number: u32,
    command_line: Vec<u8>,
    environment: Vec<u8>,
    folder: PathBuf,
    program: PathBuf,
}

impl FoundProcess {
    fn look(number: u32) -> Option<Self> {
        let entry = PathBuf::from(format!("/proc/{number}"));
        // One that has ended has no command line, and one of somebody else's no environment.
        Some(Self {
            number,
            command_line: fs::read(entry.join("cmdline")).ok().filter(|line| !line.is_empty())?,
            environment: fs::read(entry.join("environ")).ok()?,
            folder: fs::read_link(entry.join("cwd")).unwrap_or_default(),
            program: fs::read_link(entry.join("exe")).unwrap_or_default(),
        })
    }

    /// Its description, if it is one of the suites'.
    fn description(&self, root: &Path, temp: &Path) -> Option<String> {
        let is_guard = self.command_line.split(|byte| *byte == 0).nth(1) == Some(b"__guard");
        let is_marked = self.environment.split(|byte| *byte == 0).any(|variable| variable.starts_with(b"SABIR_RUN="));
        let is_ours = self.names(temp) || (is_guard || is_marked) && self.names(root);
        let words = String::from_utf8_lossy(&self.command_line).replace('\0', " ");
        is_ours.then(|| format!("{} {}", self.number, words.trim_end()))
    }

    fn names(&self, folder: &Path) -> bool {
        let path = folder.as_os_str().as_encoded_bytes();
        let holds = |text: &[u8]| text.windows(path.len()).any(|window| window == path);
        self.folder.starts_with(folder)
            || self.program.starts_with(folder)
            || holds(&self.command_line)
            || holds(&self.environment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(command_line: &str, environment: &str, folder: &str, program: &str) -> FoundProcess {
        let bytes = |words: &str| words.replace(' ', "\0").into_bytes();
        FoundProcess {
            number: 7,
            command_line: bytes(command_line),
            environment: bytes(environment),
            folder: folder.into(),
            program: program.into(),
        }
    }

    #[test]
    fn processes_of_the_suites_are_told_from_all_others() {
        for (found, expected) in [
            (process("sleep 300", "TMPDIR=/tmp/suites", "/", "/bin/sleep"), true),
            (process("sleep 300", "", "/tmp/suites/a", "/bin/sleep"), true),
            (process("/tmp/suites/a/program", "", "/", "/bin/sh"), true),
            (process("/proc/self/exe __guard --mark 1 sh", "", "/", "/src/target/debug/sabir"), true),
            (process("sh", "SABIR_RUN=1 HOME=/src/x", "/", "/bin/sh"), true),
            (process("sh", "SABIR_RUN=1", "/elsewhere", "/bin/sh"), false),
            (process("/proc/self/exe __guard --mark 1 sh", "", "/", "/elsewhere/target/debug/sabir"), false),
            // An editor, and a server that somebody runs by hand.
            (process("vi crates/x.rs", "HOME=/root", "/src", "/bin/vi"), false),
            (process("target/debug/sabir serve", "", "/src", "/src/target/debug/sabir"), false),
        ] {
            let description = found.description(Path::new("/src"), Path::new("/tmp/suites"));
            assert_eq!(description.is_some(), expected, "{}", String::from_utf8_lossy(&found.command_line));
        }
    }

    #[test]
    fn what_is_new_is_left() {
        let temp = std::env::temp_dir().join(format!("sabir-xtask-leftovers-{}", std::process::id()));
        let root = temp.join("no repository");
        fs::create_dir_all(&root).unwrap();
        let before = StateBefore { processes: BTreeSet::new(), checkout: BTreeSet::new(), root, temp: temp.clone() };
        fs::remove_dir(&before.root).unwrap();
        assert_eq!(before.look_again(), Vec::<String>::new());
        fs::write(temp.join("file"), "").unwrap();
        let mut sleeping = Command::new("sleep").arg("60").current_dir(&temp).spawn().unwrap();
        // A program that has just begun has no command line for a moment.
        while FoundProcess::look(sleeping.id()).is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let left = before.look_again();
        sleeping.kill().unwrap();
        sleeping.wait().unwrap();
        let file = format!("left behind, in the temporary folder: {}", temp.join("file").display());
        assert_eq!(left, [format!("left behind, process: {} sleep 60", sleeping.id()), file]);
        fs::remove_dir_all(&temp).unwrap();
    }
}
