//! Sabir as the client of one server of an official SDK, through one binding: the suite in `tests/servers`. Commands,
//! fronts and `sabir check` are tried on it.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::sdk_server::SdkServerProcess;
use crate::sdk_servers::SdkServer;
use crate::tally::Tally;
use crate::workspace::Workspace;
use crate::{command, setup_python, suite_output};

const LIMIT: Duration = Duration::from_secs(600);

/// Runs the suite; `binary` is Sabir, `log` where the server's log goes.
pub fn run(workspace: &Workspace, server: &SdkServer, binding: &str, binary: &Path, log: &Path) -> Result<Tally> {
    let process = SdkServerProcess::start(workspace, server, binding, log)?;
    let mut suite = Command::new(setup_python::machine_python()?);
    suite.arg(workspace.root.join("tests").join("servers").join("suite.py"));
    suite.args(["--url", &process.url, "--sdk", server.sdk, "--version", server.protocol, "--binding", binding]);
    suite.arg("--sabir").arg(binary);
    suite.env("TMPDIR", &workspace.temp);
    let mut tally = suite_output::tally(&mut suite, LIMIT)?;
    if let Err(error) = process.stop() {
        println!("    FAILED: {error:#}");
        tally += Tally::FAILED;
    }
    if tally.failed > 0 {
        println!("    the end of the server's log, {}:{}", log.display(), command::last_lines(log));
    }
    Ok(tally)
}
