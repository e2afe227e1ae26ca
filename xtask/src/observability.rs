//! `/metrics` under the eyes of real tools: the suite in `tests/observability`, with the parsers of Prometheus' own client library
//! and a Prometheus that is unpacked below `target/`, since an installed one would start to serve on this machine.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::tally::Tally;
use crate::workspace::Workspace;
use crate::{apt, setup_python, suite_output};

const LIMIT: Duration = Duration::from_secs(600);

pub fn run(workspace: &Workspace, binary: &Path) -> Result<Tally> {
    let source = workspace.root.join("tests/observability");
    let environment = folder(workspace).join("python");
    setup_python::ready(&environment, &source.join("requirements.lock.txt"))?;
    let mut suite = Command::new(setup_python::program(&environment));
    suite.arg(source.join("suite.py")).arg("--sabir").arg(binary);
    for program in ["prometheus", "promtool"] {
        suite.arg(format!("--{program}")).arg(unpacked(workspace, program)?);
    }
    suite.env("TMPDIR", &workspace.temp);
    suite_output::tally(&mut suite, LIMIT)
}

fn folder(workspace: &Workspace) -> PathBuf {
    workspace.target.join("observability")
}

/// A program of Debian's package `prometheus`.
fn unpacked(workspace: &Workspace, program: &str) -> Result<PathBuf> {
    let folder = folder(workspace).join("prometheus");
    let file = folder.join("usr/bin").join(program);
    if !file.is_file() {
        apt::unpack("prometheus", &folder)?;
    }
    if !file.is_file() {
        bail!(
            "the package prometheus holds no usr/bin/{program}\nWhat to do: install prometheus in your way, then run again"
        );
    }
    Ok(file)
}
