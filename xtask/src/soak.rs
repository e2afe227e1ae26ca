//! `cargo xtask soak`: the release server under mixed traffic and restarts, driven by the example `soak` of the testkit.

use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::server;
use crate::workspace::Workspace;

/// The words are the driver's, such as `--minutes N` and `--store postgres`, and so is the exit code.
pub fn run(workspace: &Workspace, words: &[&str]) -> Result<ExitCode> {
    let binary = server::build(workspace)?;
    let mut soak = workspace.cargo();
    soak.args(["run", "--release", "--package", "sabir-testkit", "--example", "soak", "--", "--sabir"]);
    let status = soak.arg(binary).args(words).status().context("`cargo run` cannot be started")?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
