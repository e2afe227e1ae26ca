//! One node: a process of the real program, and the watchdog that kills it when we are gone.
//!
//! The shell that becomes the node starts the watchdog first, so there is no moment in which the node runs without it. The
//! watchdog is no child of the node, which adopts and ends what it does not know.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::arguments::Arguments;

/// Its input is a pipe that only this process holds. A line in it means that the node has ended.
const SCRIPT: &str = r#"
    node=$$; folder=$1; shift
    exec 3<&0
    ( ( read -r ended || kill -9 $node; if [ "$folder" ]; then rm -rf "$folder"; fi ) <&3 >/dev/null 2>&1 & )
    exec "$@" </dev/null 3<&-"#;

pub struct Node {
    pub name: String,
    /// The line that it printed.
    pub ready: Value,
    child: Child,
    stdout: Option<BufReader<ChildStdout>>,
    watchdog: Option<ChildStdin>,
    code: Option<u8>,
}

pub enum NotStarted {
    /// The node ended with this code, and has said why.
    Ended(u8),
    Failed(String),
}

impl Node {
    /// `public_url`: what it says instead of its own address. `temporary`: a folder that is deleted in the end.
    pub fn spawn(
        arguments: &Arguments,
        number: usize,
        store: &str,
        folder: &Path,
        public_url: Option<&str>,
        temporary: Option<&Path>,
    ) -> Result<Self, NotStarted> {
        let failed = |error: std::io::Error| NotStarted::Failed(format!("cannot start a node: {error}"));
        fs::create_dir_all(folder).map_err(failed)?;
        let name = format!("n{number}");
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SCRIPT, "node"]).arg(temporary.unwrap_or(Path::new(""))).arg(&arguments.sabir);
        command.args(&arguments.words).args(["--listen", "127.0.0.1:0", "--store", store]).args(&arguments.others);
        if let Some((url, (_, address))) = public_url.and_then(|url| Some((url, url.split_once("://")?))) {
            command.args(["--public-url", url]).env("SABIR_SERVER_PUBLIC_GRPC", address);
        }
        command.env("SABIR_CLUSTER_NODE_NAME", &name).env("SABIR_STORE_FOLDER", folder);
        for variable in ["TESTKIT_NODES", "TESTKIT_POSTGRES_URL", "TESTKIT_POSTGRES"] {
            command.env_remove(variable);
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(failed)?;
        let (watchdog, stdout) = (child.stdin.take(), child.stdout.take().map(BufReader::new));
        Ok(Self { name, ready: Value::Null, child, stdout, watchdog, code: None })
    }

    pub fn wait_until_ready(&mut self) -> Result<(), NotStarted> {
        let mut stdout = self.stdout.take().expect("it is waited for once");
        let mut line = String::new();
        let read = stdout.read_line(&mut line).map_err(|error| NotStarted::Failed(error.to_string()))?;
        if read == 0 {
            let status = self.child.wait().map_err(|error| NotStarted::Failed(error.to_string()))?;
            return Err(NotStarted::Ended(exit_code(status)));
        }
        self.ready = serde_json::from_str(&line)
            .map_err(|error| NotStarted::Failed(format!("{error}: node {} printed {line:?}", self.name)))?;
        // A server prints one line; whoever reads ours must see it if a node prints more.
        thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::stdout()));
        Ok(())
    }

    pub fn address(&self) -> SocketAddr {
        let url = self.ready["url"].as_str().and_then(|url| url.split_once("://"));
        url.and_then(|(_, address)| address.parse().ok()).expect("a node prints its address")
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, name: &str) {
        let signal = match name {
            "HUP" => Signal::HUP,
            "INT" => Signal::INT,
            _ => Signal::TERM,
        };
        // Until it is waited for, its number is nobody else's.
        if self.code.is_none()
            && let Some(pid) = Pid::from_raw(self.child.id().cast_signed())
        {
            let _ = kill_process(pid, signal);
        }
    }

    /// Its name and its exit code, if it has ended.
    pub fn ended(&mut self) -> Option<(&str, u8)> {
        if self.code.is_none()
            && let Ok(Some(status)) = self.child.try_wait()
        {
            self.code = Some(exit_code(status));
            if let Some(mut watchdog) = self.watchdog.take() {
                let _ = std::io::Write::write_all(&mut watchdog, b"ended\n");
            }
        }
        self.code.map(|code| (self.name.as_str(), code))
    }
}

/// As shells have it.
fn exit_code(status: std::process::ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
    u8::try_from(code).unwrap_or(u8::MAX)
}
