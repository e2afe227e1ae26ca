//! Format and lints, with the two tools installed where rustup can do it.

use std::process::Command;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::command;
use crate::workspace::Workspace;

/// Everything, and the features of `sabir` one by one. Its integration tests run the program, so the library alone is without them.
const SELECTIONS: [&[&str]; 3] = [
    &["--workspace", "--all-targets"],
    // The whole workspace, though no other crate has features: for a crate alone most dependencies are compiled once more.
    &["--workspace", "--all-targets", "--no-default-features", "--features", "sabir/cli"],
    // Alone all the same: as a program that uses the library compiles it.
    &["--package", "sabir", "--lib", "--no-default-features"],
];

pub fn format(workspace: &Workspace) -> Result<()> {
    install(workspace, "fmt", "rustfmt")?;
    command::shown(workspace.cargo().args(["fmt", "--all", "--check"]))
}

pub fn clippy(workspace: &Workspace) -> Result<()> {
    install(workspace, "clippy", "clippy")?;
    for selection in SELECTIONS {
        command::shown(workspace.cargo().arg("clippy").args(selection).args(["--", "-D", "warnings"]))?;
    }
    Ok(())
}

fn install(workspace: &Workspace, subcommand: &str, component: &str) -> Result<()> {
    if command::works(workspace.cargo().args([subcommand, "--version"])) {
        return Ok(());
    }
    if !command::works(Command::new("rustup").arg("--version")) {
        bail!(
            "{component} is missing and there is no rustup to add it\nWhat to do: install {component}, then run again"
        );
    }
    let mut add = Command::new("rustup");
    add.args(["component", "add", component]).current_dir(&workspace.root);
    command::step(&mut add, Duration::from_secs(600), "check the network connection, then run again")
}
