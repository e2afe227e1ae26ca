//! A real `sabir serve` on a free port, with an empty store: started, awaited, stopped, and judged by how it ends.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;

use crate::command;
use crate::nodes::Launcher;
use crate::workspace::Workspace;

const START_LIMIT: Duration = Duration::from_secs(60);
const STOP_LIMIT: Duration = Duration::from_secs(60);

/// What the server may see of our environment. The rest could configure it.
const ENVIRONMENT: [&str; 4] = ["PATH", "HOME", "RUST_LOG", "RUST_BACKTRACE"];

/// Builds the release binary, and says where it is.
pub fn build(workspace: &Workspace) -> Result<PathBuf> {
    println!("    building the server");
    command::shown(&mut release_build(workspace))?;
    Ok(workspace.target.join("release").join("sabir"))
}

pub fn release_build(workspace: &Workspace) -> Command {
    let mut build = workspace.cargo();
    build.args(["build", "--release", "--package", "sabir"]);
    build
}

/// What makes one server of the suites differ from another.
pub struct ServerVariant<'a> {
    /// Of its folder in `temp`.
    pub name: &'a str,
    pub arguments: &'a [&'a str],
    /// The text of its `sabir.toml`.
    pub configuration: &'a str,
}

impl ServerVariant<'_> {
    /// As it comes: open to everybody on this machine.
    pub const PLAIN: ServerVariant<'static> = ServerVariant { name: "server", arguments: &[], configuration: "" };
}

pub struct ServerProcess {
    pub url: String,
    /// The line that it printed when it was ready.
    pub ready: Value,
    child: Child,
    stdout: Receiver<String>,
    /// Store and working directory; gone when the server is.
    folder: PathBuf,
}

impl ServerProcess {
    /// Starts the server and waits until it is ready; its log goes to the file, its store to a folder in `temp`.
    pub fn start(launcher: &Launcher, variant: &ServerVariant<'_>, log: &Path, temp: &Path) -> Result<ServerProcess> {
        let folder = fresh_folder(&temp.join(variant.name))?;
        fs::write(folder.join("sabir.toml"), variant.configuration)?;
        let mut serve = launcher.command();
        serve.args(["serve", "--listen", "127.0.0.1:0"]).args(variant.arguments).arg("--store");
        serve.arg(format!("sqlite:{}", folder.join("sabir.db").display()));
        serve.env_clear().envs(ENVIRONMENT.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        serve.env("TMPDIR", temp);
        // The receivers of webhooks of the suites are on this machine.
        serve.env("SABIR_PUSH_ALLOW_CIDRS", "127.0.0.0/8");
        let mut new_key = Command::new(launcher.sabir());
        new_key.args(["key", "new", "--card", "--plain"]);
        if let Launcher::Nodes { .. } = launcher {
            // The same card has the same signature on each of them.
            new_key.args(["--alg", "eddsa"]);
        }
        let card_key = command::output(&mut new_key)?;
        serve.env("SABIR_CARD_SIGNING_KEY", card_key.trim());
        serve.current_dir(&folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(log)?);
        let mut child = serve.spawn().with_context(|| format!("`{}` cannot be started", launcher.sabir().display()))?;
        let (sender, stdout) = mpsc::channel();
        command::send_lines(child.stdout.take().expect("stdout is piped"), sender);
        let mut server = ServerProcess { url: String::new(), ready: Value::Null, child, stdout, folder };
        (server.url, server.ready) = server.ready().map_err(|error| {
            let end = command::last_lines(log);
            anyhow!("the server did not start: {error:#}\n    the end of its log, {}:{end}", log.display())
        })?;
        Ok(server)
    }

    /// Asks the server to end, and says what is wrong with the way it does.
    pub fn stop(mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("the server ended by itself while the suite ran: {status}");
        }
        // A shell has `kill` built in; a small machine may have no program of that name.
        command::output(Command::new("sh").args(["-c", &format!("kill -TERM {}", self.child.id())]))?;
        match command::wait(&mut self.child, Instant::now() + STOP_LIMIT)? {
            None => bail!("the server still ran {} s after SIGTERM", STOP_LIMIT.as_secs()),
            Some(status) if !status.success() => bail!("the server ended badly after SIGTERM: {status}"),
            Some(_) => {}
        }
        match self.stdout.recv_timeout(STOP_LIMIT) {
            Ok(line) => bail!("in a pipe the server prints one line, the address; it also printed: {line}"),
            Err(RecvTimeoutError::Timeout) => bail!("a child of the server outlived it, and holds its output open"),
            Err(RecvTimeoutError::Disconnected) => Ok(()),
        }
    }

    fn ready(&mut self) -> Result<(String, Value)> {
        match self.stdout.recv_timeout(START_LIMIT) {
            Ok(line) => ready_line(&line),
            Err(RecvTimeoutError::Timeout) => bail!("it did not print its address within {} s", START_LIMIT.as_secs()),
            Err(RecvTimeoutError::Disconnected) => match command::wait(&mut self.child, Instant::now() + STOP_LIMIT)? {
                Some(status) => bail!("it ended before it was ready: {status}"),
                None => bail!("it closed its output before it was ready"),
            },
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // Both may be gone already, and that is as good.
        let _ = command::kill(&mut self.child);
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The one line that a server prints into a pipe, and the address in it.
fn ready_line(line: &str) -> Result<(String, Value)> {
    let ready: Value = serde_json::from_str(line).unwrap_or_default();
    let url = ready["url"].as_str().map(str::to_owned);
    let url = url.with_context(|| format!("its first line is no JSON object with a `url`: {line}"))?;
    Ok((url, ready))
}

fn fresh_folder(folder: &Path) -> Result<PathBuf> {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    Ok(folder.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_in_one_json_line() {
        for (line, expected) in [
            (r#"{"url":"http://127.0.0.1:39201","pid":7}"#, "http://127.0.0.1:39201"),
            (
                r#"{"address":"127.0.0.1:1"}"#,
                "its first line is no JSON object with a `url`: {\"address\":\"127.0.0.1:1\"}",
            ),
            ("Sabir is ready", "its first line is no JSON object with a `url`: Sabir is ready"),
        ] {
            let printed = ready_line(line).map_or_else(|error| error.to_string(), |(url, _)| url);
            assert_eq!(printed, expected, "{line}");
        }
    }
}
