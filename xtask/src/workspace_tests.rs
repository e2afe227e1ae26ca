//! `cargo test`, passed through line by line and counted on the way.

use std::process::Stdio;

use anyhow::Result;

use crate::tally::Tally;
use crate::workspace::Workspace;
use crate::{command, postgres};

/// Compiles what `all` runs.
pub fn compile(workspace: &Workspace) -> Result<()> {
    command::shown(workspace.cargo().args(["test", "--workspace", "--no-run"]))
}

/// Tests that need a Postgres get one, and must not be skipped.
pub fn all(workspace: &Workspace) -> Result<Tally> {
    postgres::ready()?;
    run(workspace, &["--workspace"], &[(postgres::REQUIRED_VARIABLE, "required")])
}

/// The crates below the server: what they do is shown without sockets and processes.
pub fn quick(workspace: &Workspace) -> Result<Tally> {
    let crates = ["sabir-model", "sabir-wire", "sabir-store", "sabir-engine", "sabir-server"];
    let words: Vec<&str> = crates.into_iter().flat_map(|name| ["--package", name]).collect();
    run(workspace, &words, &[])
}

/// The tests that these words of `cargo test` name, with these variables.
pub fn run(workspace: &Workspace, which: &[&str], variables: &[(&str, &str)]) -> Result<Tally> {
    let mut test = workspace.cargo();
    // One broken crate must not hide the results of the others.
    test.args(["test", "--no-fail-fast"])
        .args(which)
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    test.env("TMPDIR", &workspace.temp);
    let mut child = test.spawn()?;
    let mut tally = Tally::default();
    for line in command::lines(child.stdout.take().expect("stdout is piped")) {
        println!("{line}");
        tally += Tally::parse_test_result(&line).unwrap_or_default();
    }
    let status = child.wait()?;
    // A crate that does not compile and a test that takes its process down print no result.
    if !status.success() && tally.failed == 0 {
        println!("    FAILED: `cargo test` ended with {status} and no failed test; its output is above");
        tally += Tally::FAILED;
    }
    Ok(tally)
}
