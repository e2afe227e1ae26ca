//! Every command of README.md and docs/, run as a reader would type it: the suite in `tests/docs`.
//!
//! It runs with what the pages name: the SDKs of the newest version, two coding programs, two proxies and a few small
//! tools. The proxies are unpacked below `target/`, since an installed one would start to serve on this machine.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::clients::CLIENTS;
use crate::programs::PROGRAMS;
use crate::tally::Tally;
use crate::workspace::Workspace;
use crate::{apt, command, setup, setup_program, setup_python, suite_output};

/// Each page has a limit and cleans up behind it; this is longer than all of them.
const LIMIT: Duration = Duration::from_secs(1800);

const SDKS: [&str; 2] = ["python-1.3.0", "js-1.3.0"];
const CODING_PROGRAMS: [&str; 2] = ["claude-code", "codex"];
/// Programs, and the Debian packages that hold them.
const TOOLS: [(&str, &str); 6] = [
    ("curl", "curl"),
    ("jq", "jq"),
    ("git", "git"),
    ("sqlite3", "sqlite3"),
    ("openssl", "openssl"),
    ("systemd-analyze", "systemd"),
];
const PROXIES: [(&str, &str); 2] = [("nginx", "usr/sbin/nginx"), ("caddy", "usr/bin/caddy")];

pub fn run(workspace: &Workspace, binary: &Path) -> Result<Tally> {
    let proxies = set_up(workspace)?;
    let mut suite = Command::new(setup_python::machine_python()?);
    suite.arg(workspace.root.join("tests/docs/suite.py"));
    suite.arg("--sabir").arg(binary);
    suite.arg("--clients").arg(workspace.clients());
    suite.arg("--programs").arg(workspace.agents());
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(proxies);
    suite.env("PATH", std::env::join_paths(folders).context("a folder of the PATH has a colon in its name")?);
    suite.env("TMPDIR", &workspace.temp);
    suite_output::tally(&mut suite, LIMIT)
}

/// Makes ready what the pages need, and says in which folders the proxies lie.
fn set_up(workspace: &Workspace) -> Result<Vec<PathBuf>> {
    for client in CLIENTS.iter().filter(|client| SDKS.contains(&client.name)) {
        setup::ready(workspace, client)?;
    }
    for program in PROGRAMS.iter().filter(|program| CODING_PROGRAMS.contains(&program.name)) {
        setup_program::ready(workspace, program)?;
    }
    let missing = missing_packages();
    if !missing.is_empty() {
        apt::install(&missing)?;
    }
    let folder = workspace.target.join("proxies");
    let mut folders = vec![];
    for (program, path) in PROXIES {
        if is_there(program) {
            continue;
        }
        let unpacked = folder.join(path);
        if !unpacked.is_file() {
            apt::unpack(program, &folder)?;
        }
        if !unpacked.is_file() {
            bail!("the package {program} holds no {path}\nWhat to do: install {program} in your way, then run again");
        }
        folders.extend(unpacked.parent().map(Path::to_owned));
    }
    Ok(folders)
}

/// Debian packages that the pages need on this machine.
pub fn missing_packages() -> Vec<&'static str> {
    TOOLS.iter().filter(|(program, _)| !is_there(program)).map(|(_, package)| *package).collect()
}

fn is_there(program: &str) -> bool {
    command::works(Command::new("sh").args(["-c", &format!("PATH=\"$PATH:/usr/sbin\" command -v {program}")]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_about_compatibility_lists_what_is_tested() {
        let page = include_str!("../../docs/reference/compatibility.md");
        let sdks = CLIENTS.iter().map(|client| client.version);
        let programs = PROGRAMS.iter().map(|program| program.version);
        for version in sdks.chain(programs) {
            assert!(page.contains(version), "{version} is tested and not listed");
        }
    }
}
