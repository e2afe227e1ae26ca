//! A server that an official SDK built, on a free port: started, awaited, stopped, and judged by how it ends.
//!
//! It runs with the packages of the client suites. Its standard input is a pipe that closes with us, so that it never
//! outlives us.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use crate::clients::Kit;
use crate::sdk_servers::SdkServer;
use crate::workspace::Workspace;
use crate::{command, setup, setup_node, setup_python};

const START_LIMIT: Duration = Duration::from_secs(60);
const STOP_LIMIT: Duration = Duration::from_secs(20);

pub struct SdkServerProcess {
    pub url: String,
    child: Child,
    stdout: Receiver<String>,
}

impl SdkServerProcess {
    /// Starts the server and waits until it is ready; its log goes to the file.
    pub fn start(workspace: &Workspace, server: &SdkServer, binding: &str, log: &Path) -> Result<Self> {
        let mut serve = program(workspace, server)?;
        serve.args(["--port", "0", "--binding", binding]).env("TMPDIR", &workspace.temp);
        serve.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(File::create(log)?);
        let mut child = serve.spawn().with_context(|| format!("the server {} cannot be started", server.script))?;
        let (sender, stdout) = mpsc::channel();
        command::send_lines(child.stdout.take().expect("stdout is piped"), sender);
        let mut process = Self { url: String::new(), child, stdout };
        process.url = process.address().map_err(|error| {
            let end = command::last_lines(log);
            anyhow!("the server {} did not start: {error:#}\n    the end of its log:{end}", server.script)
        })?;
        Ok(process)
    }

    /// Ends the server by closing its input, and says what is wrong with the way it ends.
    pub fn stop(mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("the server ended by itself while the suite ran: {status}");
        }
        drop(self.child.stdin.take());
        match command::wait(&mut self.child, Instant::now() + STOP_LIMIT)? {
            None => bail!("the server still ran {} s after its input ended", STOP_LIMIT.as_secs()),
            Some(status) if !status.success() => bail!("the server ended badly: {status}"),
            Some(_) => {}
        }
        match self.stdout.recv_timeout(STOP_LIMIT) {
            Ok(line) => bail!("the server prints one line, its address; it also printed: {line}"),
            Err(RecvTimeoutError::Timeout) => bail!("a child of the server outlived it, and holds its output open"),
            Err(RecvTimeoutError::Disconnected) => Ok(()),
        }
    }

    fn address(&self) -> Result<String> {
        match self.stdout.recv_timeout(START_LIMIT) {
            Ok(line) if line.starts_with("http://127.0.0.1:") => Ok(line),
            Ok(line) => bail!("its first line is not its address: {line}"),
            Err(RecvTimeoutError::Timeout) => bail!("it did not print its address within {} s", START_LIMIT.as_secs()),
            Err(RecvTimeoutError::Disconnected) => bail!("it ended before it was ready"),
        }
    }
}

impl Drop for SdkServerProcess {
    fn drop(&mut self) {
        // It may be gone already, and that is as good.
        let _ = command::kill(&mut self.child);
    }
}

/// The program of the server, without its arguments.
fn program(workspace: &Workspace, server: &SdkServer) -> Result<Command> {
    let client = server.client();
    let source = workspace.root.join("tests").join("servers").join(client.kit.language());
    let installed = setup::folder(workspace, client);
    match client.kit {
        Kit::Python => {
            let mut python = Command::new(setup_python::program(&installed));
            python.arg(source.join(server.script));
            Ok(python)
        }
        Kit::Node => {
            let copies = installed.join("servers");
            fs::create_dir_all(&copies).with_context(|| format!("cannot make the folder {}", copies.display()))?;
            setup_node::copy_modules(&source, &copies)?;
            let mut node = Command::new("node");
            node.arg(copies.join(server.script));
            Ok(node)
        }
    }
}
