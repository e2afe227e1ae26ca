//! One coding program behind servers of its own, each with an empty store: the suite starts and stops them.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::programs::Program;
use crate::setup_python;
use crate::suite_output;
use crate::tally::Tally;
use crate::workspace::Workspace;

/// Each case has a limit and cleans up behind it; who ends the suite ends that too, so this is longer than all of them.
const LIMIT: Duration = Duration::from_secs(1200);

pub fn run(workspace: &Workspace, program: &Program, binary: &Path) -> Result<Tally> {
    let mut suite = Command::new(setup_python::machine_python()?);
    suite.arg(workspace.root.join("tests").join("agents").join("suite.py"));
    suite.arg("--sabir").arg(binary);
    suite.arg("--programs").arg(workspace.agents());
    suite.args(["--program", program.name]);
    suite.env("TMPDIR", &workspace.temp);
    suite_output::tally(&mut suite, LIMIT)
}
