//! Where the workspace and its build results lie, and which crates it has, as cargo tells it.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::command;

pub struct Workspace {
    pub root: PathBuf,
    pub target: PathBuf,
    /// The temporary folder of the suites.
    pub temp: PathBuf,
    /// What `cargo metadata --no-deps` printed.
    pub metadata: Value,
}

impl Workspace {
    pub fn load() -> Result<Workspace> {
        let text = command::output(cargo().args(["metadata", "--format-version", "1", "--no-deps"]))?;
        let metadata: Value = serde_json::from_str(&text).context("`cargo metadata` did not print JSON")?;
        let path = |member: &str| {
            metadata[member].as_str().map(PathBuf::from).with_context(|| format!("no `{member}` in `cargo metadata`"))
        };
        let temp = std::env::temp_dir().join(format!("sabir-suites-{}", std::process::id()));
        Ok(Workspace { root: path("workspace_root")?, target: path("target_directory")?, temp, metadata })
    }

    /// Where the client suites have their SDKs, and their servers' logs.
    pub fn clients(&self) -> PathBuf {
        self.target.join("clients")
    }

    /// Where the coding programs are installed.
    pub fn agents(&self) -> PathBuf {
        self.target.join("agents")
    }

    /// `cargo` with the workspace as its working directory.
    pub fn cargo(&self) -> Command {
        let mut command = cargo();
        command.current_dir(&self.root);
        command
    }
}

/// The cargo that runs us, so that a chosen toolchain stays chosen.
fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()))
}
