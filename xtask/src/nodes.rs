//! Suites against several nodes behind a balancer, on one Postgres that is started once for all of them.
//!
//! The example `cluster` of the testkit takes the place of the server: it looks like one, and is three.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::tally::Tally;
use crate::workspace::Workspace;
use crate::{apt, command, postgres, workspace_tests};

const NODES: &str = "3";
/// Its folder is deleted with it, and has some hundred databases.
const STOP_LIMIT: Duration = Duration::from_secs(120);
/// The tests of the program that run against nodes, but for those of the list.
const TESTS: [&str; 2] = ["promises::", "dialect_matrix::"];
const LEFT_OUT: &str = "crates/sabir/tests/it/not_on_nodes.txt";

/// What starts a server of the suites.
#[derive(Clone)]
pub enum Launcher {
    /// The binary.
    Alone(PathBuf),
    /// Several of it.
    Nodes { sabir: PathBuf, cluster: PathBuf, postgres: String },
}

impl Launcher {
    pub fn sabir(&self) -> &Path {
        match self {
            Launcher::Alone(sabir) | Launcher::Nodes { sabir, .. } => sabir,
        }
    }

    /// What takes the arguments of `sabir`.
    pub fn command(&self) -> Command {
        match self {
            Launcher::Alone(sabir) => Command::new(sabir),
            Launcher::Nodes { sabir, cluster, postgres } => {
                let mut command = Command::new(cluster);
                command.arg("--sabir").arg(sabir).args(["--nodes", NODES, "--postgres", postgres, "--"]);
                command
            }
        }
    }
}

/// A running Postgres, and the program that starts nodes on it.
pub struct NodesSetup {
    pub cluster: PathBuf,
    pub postgres: String,
    child: Child,
}

impl NodesSetup {
    pub fn start(workspace: &Workspace) -> Result<Self> {
        if let Some(package) = postgres::missing_server() {
            apt::install(&[package])?;
        }
        let mut build = workspace.cargo();
        // With the features of the tests of the workspace, which have built them.
        build.args(["build", "--workspace", "--example", "cluster", "--example", "postgres"]);
        command::shown(&mut build)?;
        let examples = workspace.target.join("debug").join("examples");
        let mut command = Command::new(examples.join("postgres"));
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("Postgres cannot be run")?;
        let mut line = String::new();
        let read = BufReader::new(child.stdout.take().expect("stdout is piped")).read_line(&mut line);
        let setup = Self { cluster: examples.join("cluster"), postgres: line.trim().to_owned(), child };
        if read.is_err() || !setup.postgres.starts_with("postgres://") {
            bail!("Postgres did not start; it printed: {line}");
        }
        Ok(setup)
    }

    /// It ends with its input.
    pub fn stop(mut self) -> Result<()> {
        drop(self.child.stdin.take());
        match command::wait(&mut self.child, Instant::now() + STOP_LIMIT)? {
            Some(status) if status.success() => Ok(()),
            Some(status) => bail!("Postgres ended badly: {status}"),
            None => bail!("Postgres still ran {} s after its input ended", STOP_LIMIT.as_secs()),
        }
    }

    /// The tests of the promises and the dialects, against nodes of the debug binary.
    pub fn run_tests(&self, workspace: &Workspace) -> Result<Tally> {
        let list =
            fs::read_to_string(workspace.root.join(LEFT_OUT)).with_context(|| format!("cannot read {LEFT_OUT}"))?;
        // Of all crates, though only one has tests of these names: alone it would be built with other features, once more.
        let mut words = vec!["--workspace", "--test", "it", "--"];
        words.extend(TESTS);
        for (name, reason) in left_out(&list) {
            println!("    left out: {name}: {reason}");
            words.extend(["--skip", name]);
        }
        let variables = [("TESTKIT_NODES", NODES), ("TESTKIT_POSTGRES_URL", &self.postgres)];
        workspace_tests::run(workspace, &words, &variables)
    }
}

impl Drop for NodesSetup {
    fn drop(&mut self) {
        // Its guard ends Postgres. Both may be gone already, and that is as good.
        let _ = command::kill(&mut self.child);
    }
}

/// The tests of the list, each with its reason.
fn left_out(list: &str) -> Vec<(&str, &str)> {
    list.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(": ")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_test_that_is_left_out_has_a_reason() {
        let list = "# Why\npromises::s1::a: it looks at the file: always\n\nnothing\n";
        assert_eq!(left_out(list), [("promises::s1::a", "it looks at the file: always")]);
    }
}
