//! The OpenID provider of the test kit as a process of its own, whose tokens the suites in other languages ask for.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::command;
use crate::workspace::Workspace;

const STOP_LIMIT: Duration = Duration::from_secs(20);

/// Builds the program, and says where it is.
pub fn build(workspace: &Workspace) -> Result<PathBuf> {
    command::shown(workspace.cargo().args(["build", "--workspace", "--example", "oidc_provider"]))?;
    Ok(workspace.target.join("debug").join("examples").join("oidc_provider"))
}

pub struct IdentityProvider {
    /// The line that it printed: `issuer`, `audience`, `client_id` and `client_secret`.
    pub told: Value,
    child: Child,
}

impl IdentityProvider {
    pub fn start(program: &Path) -> Result<Self> {
        let mut command = Command::new(program);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("`{}` cannot be started", program.display()))?;
        let mut line = String::new();
        let read = BufReader::new(child.stdout.take().expect("stdout is piped")).read_line(&mut line);
        let provider = Self { told: serde_json::from_str(&line).unwrap_or_default(), child };
        if read.is_err() || !provider.told["issuer"].is_string() {
            bail!("the identity provider did not start; it printed: {line}");
        }
        Ok(provider)
    }

    /// It ends with its input.
    pub fn stop(mut self) -> Result<()> {
        drop(self.child.stdin.take());
        match command::wait(&mut self.child, Instant::now() + STOP_LIMIT)? {
            Some(status) if status.success() => Ok(()),
            Some(status) => bail!("the identity provider ended badly: {status}"),
            None => bail!("the identity provider still ran {} s after its input ended", STOP_LIMIT.as_secs()),
        }
    }
}

impl Drop for IdentityProvider {
    fn drop(&mut self) {
        // It may be gone already, and that is as good.
        let _ = command::kill(&mut self.child);
    }
}
