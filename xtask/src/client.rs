//! One client suite through one binding, against servers of its own with empty stores: one that is open, and one that
//! asks for credentials over HTTPS.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::nodes::Launcher;
use crate::secured_server::SecuredServer;
use crate::server::{ServerProcess, ServerVariant};
use crate::tally::Tally;
use crate::{command, suite_output};

const LIMIT: Duration = Duration::from_secs(600);

/// What the suite talks to: the programs.
pub struct Programs {
    pub server: Launcher,
    pub provider: PathBuf,
}

/// Runs the suite; `command` is its program, `log` where the server's log goes, `temp` where temporary files go.
pub fn run(mut command: Command, binding: &str, programs: &Programs, log: &Path, temp: &Path) -> Result<Tally> {
    let server = ServerProcess::start(&programs.server, &ServerVariant::PLAIN, log, temp)?;
    let secured_log = log.with_extension("secured.log");
    let secured = SecuredServer::start(&programs.server, &programs.provider, &secured_log, temp)?;
    command.args(["--url", &server.url, "--binding", binding, "--secured"]).arg(&secured.description);
    // Node reads this name once, when it starts.
    command.env("NODE_EXTRA_CA_CERTS", &secured.authority);
    // Whatever proxy the machine has, the loopback interface is not behind it.
    command.env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1");
    // Certificates that a channel does not trust are part of the suites; grpcio would write of each.
    command.env("GRPC_VERBOSITY", "NONE");
    command.env("TMPDIR", temp);
    // Sabir is a client too: it verifies what the SDKs sign.
    command.env("SABIR", programs.server.sabir());
    let mut tally = suite_output::tally(&mut command, LIMIT)?;
    for stopped in [server.stop(), secured.stop()] {
        if let Err(error) = stopped {
            println!("    FAILED: {error:#}");
            tally += Tally::FAILED;
        }
    }
    if tally.failed > 0 {
        for log in [log, &secured_log] {
            println!("    the end of the server's log, {}:{}", log.display(), command::last_lines(log));
        }
    }
    Ok(tally)
}
