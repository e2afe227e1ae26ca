//! The console in a real browser: the suite in `tests/console`, with Debian's Chromium.
//!
//! `cargo xtask screenshots` runs it too, for the pictures in README.md and docs/.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::tally::Tally;
use crate::workspace::Workspace;
use crate::{apt, command, server, setup, setup_python, suite_output};

/// Each step of a case has a limit; this is longer than all of them.
const LIMIT: Duration = Duration::from_secs(2400);
const BROWSER: &str = "chromium";
/// Without fonts of its own a picture has boxes instead of letters.
const FONTS: &str = "fonts-dejavu-core";
pub const MEGABYTES: u32 = 150;

pub fn run(workspace: &Workspace, binary: &Path) -> Result<Tally> {
    suite_output::tally(&mut suite(workspace, binary)?, LIMIT)
}

/// Saves the pictures anew.
pub fn screenshots(workspace: &Workspace) -> Result<()> {
    let mut suite = suite(workspace, &server::build(workspace)?)?;
    suite.arg("--screenshots").arg(workspace.root.join("docs/images"));
    match suite_output::tally(&mut suite, LIMIT)? {
        Tally { failed: 0, .. } => Ok(()),
        tally => bail!("not every picture could be taken: {tally}"),
    }
}

fn suite(workspace: &Workspace, binary: &Path) -> Result<Command> {
    let missing = missing_packages();
    if !missing.is_empty() {
        apt::install(&missing)?;
    }
    let folder = folder(workspace);
    fs::create_dir_all(&folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    setup_python::ready(&folder, &requirements(workspace))?;
    let mut suite = Command::new(setup_python::program(&folder));
    suite.arg(workspace.root.join("tests/console/suite.py"));
    suite.arg("--sabir").arg(binary);
    suite.args(["--browser", BROWSER]);
    suite.env("TMPDIR", &workspace.temp);
    Ok(suite)
}

/// Debian packages that are not on this machine.
pub fn missing_packages() -> Vec<&'static str> {
    let mut missing = setup_python::missing_packages().to_vec();
    if !command::works(Command::new(BROWSER).arg("--version")) {
        missing.extend([BROWSER, FONTS]);
    }
    missing
}

/// Whether what goes into `target/` is there.
pub fn is_ready(workspace: &Workspace) -> bool {
    setup::read(&requirements(workspace)).is_ok_and(|text| setup::is_made(&folder(workspace), &text))
}

fn folder(workspace: &Workspace) -> PathBuf {
    workspace.target.join("browser")
}

fn requirements(workspace: &Workspace) -> PathBuf {
    workspace.root.join("tests/console/requirements.lock.txt")
}
