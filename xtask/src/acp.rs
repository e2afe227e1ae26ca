//! The official Python SDK of the Agent Client Protocol in front of `sabir acp` of the release binary: the suite in `tests/acp`.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::tally::Tally;
use crate::workspace::Workspace;
use crate::{setup_python, suite_output};

pub const NAME: &str = "acp-python";
/// Each case has a limit; this is for all of them.
const LIMIT: Duration = Duration::from_secs(900);

pub fn run(workspace: &Workspace, binary: &Path) -> Result<Tally> {
    let folder = workspace.clients().join(NAME);
    fs::create_dir_all(&folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let source = workspace.root.join("tests/acp/python");
    setup_python::ready(&folder, &source.join("requirements.lock.txt"))?;
    let mut suite = Command::new(setup_python::program(&folder));
    suite.arg(source.join("suite.py")).arg("--sabir").arg(binary).env("TMPDIR", &workspace.temp);
    suite_output::tally(&mut suite, LIMIT)
}
