//! The official SDKs of MCP in front of the release binary: the suites in `tests/mcp`, one for each language.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::clients::Kit;
use crate::setup_node::{self, LockedModules};
use crate::tally::Tally;
use crate::workspace::Workspace;
use crate::{setup_python, suite_output};

/// Each case has a limit; this is for all of them.
const LIMIT: Duration = Duration::from_secs(1200);
/// The packages of JavaScript have several SDKs, so the files that lock them name none.
const MODULES: &str = "sdks";

/// The job of this language, as its name says it.
pub fn name(kit: Kit) -> String {
    format!("mcp-{}", kit.language())
}

pub fn run(workspace: &Workspace, kit: Kit, binary: &Path) -> Result<Tally> {
    let folder = workspace.clients().join(name(kit));
    fs::create_dir_all(&folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let mut suite = match kit {
        Kit::Python => python_suite(workspace, &folder)?,
        Kit::Node => node_suite(workspace, &folder)?,
    };
    suite.arg("--sabir").arg(binary);
    suite.env("TMPDIR", &workspace.temp);
    suite_output::tally(&mut suite, LIMIT)
}

fn python_suite(workspace: &Workspace, folder: &Path) -> Result<Command> {
    let source = source(workspace, Kit::Python);
    setup_python::ready(folder, &source.join("requirements.lock.txt"))?;
    let mut suite = Command::new(setup_python::program(folder));
    suite.arg(source.join("suite.py"));
    Ok(suite)
}

fn node_suite(workspace: &Workspace, folder: &Path) -> Result<Command> {
    let source = source(workspace, Kit::Node);
    setup_node::ready(folder, &source, &LockedModules::read(&source, MODULES)?)?;
    let mut suite = Command::new("node");
    suite.arg("suite.mjs").current_dir(folder);
    // The agent that asks for permission is that of the console's suite.
    suite.arg("--python").arg(setup_python::machine_python()?);
    suite.arg("--agent").arg(workspace.root.join("tests/console/asking_agent.py"));
    Ok(suite)
}

fn source(workspace: &Workspace, kit: Kit) -> PathBuf {
    workspace.root.join("tests/mcp").join(kit.language())
}
