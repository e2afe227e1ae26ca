//! What a release hands out, built with a quick profile, then installed and run: the suite in `tests/packages`.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::dist::{self, DistOptions};
use crate::tally::Tally;
use crate::workspace::Workspace;
use crate::{apt, command, setup_python, suite_output};

/// Each case has a limit and cleans up behind it; this is longer than all of them.
const LIMIT: Duration = Duration::from_secs(3600);
/// The same crates and settings as a release, without the minutes that its optimizations take.
const PROFILE: &str = "dist-test";
/// Programs, and the Debian packages that hold them. Cases whose program cannot be had are skipped, and say so.
const TOOLS: [(&str, &str); 8] = [
    ("podman", "podman"),
    ("runc", "runc"),
    ("mmdebstrap", "mmdebstrap"),
    ("lintian", "lintian"),
    ("systemd-analyze", "systemd"),
    ("docker-compose", "docker-compose"),
    ("unshare", "util-linux"),
    ("xz", "xz-utils"),
];

pub const DEBIAN_MEGABYTES: u32 = 530;

pub fn run(workspace: &Workspace) -> Result<Tally> {
    let missing = missing_tools();
    if !missing.is_empty()
        && let Err(error) = apt::install(&missing)
    {
        println!("    going on without {}: {error:#}", missing.join(", "));
    }
    let out = cache(workspace).join("dist");
    let options = DistOptions { profile: PROFILE.to_owned(), out: out.clone(), only: Vec::new() };
    dist::run(workspace, &options)?;
    let mut suite = Command::new(setup_python::machine_python()?);
    suite.arg(workspace.root.join("tests/packages/suite.py"));
    suite.arg("--dist").arg(out).arg("--cache").arg(cache(workspace));
    suite.env("TMPDIR", &workspace.temp);
    suite_output::tally(&mut suite, LIMIT)
}

/// The build that `run` asks for, with the tools that it needs.
pub fn build(workspace: &Workspace) -> Result<Command> {
    dist::build(workspace, PROFILE)
}

/// Debian packages that the suite needs on this machine.
pub fn missing_packages() -> Vec<&'static str> {
    let mut missing = dist::missing_packages();
    missing.extend(missing_tools());
    missing.extend(setup_python::missing_packages());
    missing
}

/// Whether the Debian that packages are installed in was made before.
pub fn has_debian(workspace: &Workspace) -> bool {
    let entries = std::fs::read_dir(cache(workspace)).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name()).any(|name| name.to_string_lossy().starts_with("debian-"))
}

fn cache(workspace: &Workspace) -> PathBuf {
    workspace.target.join("packages")
}

fn missing_tools() -> Vec<&'static str> {
    let is_there = |program: &str| {
        command::works(Command::new("sh").args(["-c", &format!("PATH=\"$PATH:/usr/sbin\" command -v {program}")]))
    };
    TOOLS.iter().filter(|(program, _)| !is_there(program)).map(|(_, package)| *package).collect()
}
