//! Optimized builds that go on while the tests of the workspace run, most of which wait.
//!
//! They fill `target/` and nothing else: whoever needs a build asks cargo for it as always, waits for cargo's lock if it is still
//! under way, and is told there what is wrong with it. They have the lowest priority, so that no test waits for a processor.

use std::fs::File;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::jobs::TestJob;
use crate::workspace::Workspace;
use crate::{command, packages, server};

const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Ends with this value, at the latest.
pub struct BuildsAhead {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl BuildsAhead {
    /// Starts what these jobs will ask for, one build after the other.
    pub fn start(workspace: &Workspace, jobs: &[TestJob]) -> Result<Self> {
        let mut builds = Vec::new();
        if jobs.iter().any(TestJob::needs_server) {
            builds.push(server::release_build(workspace));
        }
        if jobs.iter().any(|job| matches!(job, TestJob::Packages)) {
            builds.push(packages::build(workspace)?);
        }
        let log = workspace.target.join("builds-ahead.log");
        let log = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let is_over = Arc::new(AtomicBool::new(false));
        let told = is_over.clone();
        let thread = thread::spawn(move || {
            for build in builds {
                // What failed here fails again where it is needed.
                let _ = run(lowest_priority(&build), &log, &told);
            }
        });
        Ok(Self { is_over, thread: Some(thread) })
    }
}

impl Drop for BuildsAhead {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(mut build: Command, log: &File, is_over: &AtomicBool) -> Result<()> {
    let mut child = build.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log.try_clone()?).spawn()?;
    while child.try_wait()?.is_none() {
        if is_over.load(Ordering::Relaxed) {
            return command::kill(&mut child);
        }
        thread::sleep(LOOK_AGAIN);
    }
    Ok(())
}

/// The same command under `nice`.
fn lowest_priority(command: &Command) -> Command {
    let mut nice = Command::new("nice");
    nice.args(["-n", "19"]).arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        nice.current_dir(folder);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => nice.env(name, value),
            None => nice.env_remove(name),
        };
    }
    nice
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_keeps_its_arguments_folder_and_variables() {
        let mut build = Command::new("sh");
        build.args(["-c", "echo $COLOUR; pwd; nice"]).current_dir("/").env("COLOUR", "green");
        assert_eq!(command::output(&mut lowest_priority(&build)).unwrap(), "green\n/\n19");
    }
}
