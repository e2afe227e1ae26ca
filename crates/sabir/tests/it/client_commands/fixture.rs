//! Client commands in a folder of their own, with nothing in their environment.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::SABIR;
use crate::server_fixture::ServerFixture;

/// Commands for one server.
pub struct ClientFixture {
    pub fixture: ServerFixture,
    pub folder: TempDir,
}

/// What a command did.
#[derive(Debug)]
pub struct Outcome {
    pub code: i32,
    /// The lines of stdout, each of which must be JSON.
    pub lines: Vec<Value>,
    pub text: String,
    pub errors: String,
}

impl ClientFixture {
    pub fn new() -> Self {
        Self::of(ServerFixture::new())
    }

    pub fn of(fixture: ServerFixture) -> Self {
        ClientFixture { fixture, folder: tempfile::tempdir().unwrap() }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.fixture.server.address)
    }

    /// `sabir VERB URL MORE...` in a pipe.
    pub fn run(&self, verb: &str, more: &[&str]) -> Outcome {
        let url = self.url();
        run(&self.folder, &[&[verb, &url], more].concat(), &[], "")
    }

    /// The same for people, although in a pipe.
    pub fn run_text(&self, verb: &str, more: &[&str]) -> Outcome {
        self.run(verb, &[more, &["--format", "text"]].concat())
    }

    /// Sends a text that is expected to make a task, and gives the task.
    pub fn sent(&self, text: &str) -> Value {
        let mut outcome = self.run("send", &[text]);
        outcome.lines.pop().unwrap_or_else(|| panic!("{}", outcome.errors))["task"].take()
    }

    /// A task that works until somebody cancels it.
    pub fn working(&self) -> String {
        let outcome = self.run("send", &["--async", "slow 600 x"]);
        outcome.lines[0]["task"]["id"].as_str().unwrap().to_owned()
    }

    pub fn state(&self, task: &str) -> String {
        self.run("get", &[task]).lines[0]["status"]["state"].as_str().unwrap().to_owned()
    }
}

pub fn run(folder: &TempDir, arguments: &[&str], variables: &[(&str, &str)], input: &str) -> Outcome {
    let mut child = Command::new(SABIR)
        .args(arguments)
        .current_dir(folder.path())
        .env_clear()
        .env("HOME", folder.path())
        .envs(variables.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that does not read its input closes it.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    Outcome::of(child.wait_with_output().unwrap())
}

impl Outcome {
    pub fn of(output: Output) -> Self {
        let text = String::from_utf8(output.stdout).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap_or_default()).collect();
        let errors = String::from_utf8(output.stderr).unwrap();
        Outcome { code: output.status.code().unwrap_or(-1), lines, text, errors }
    }

    /// The last line, which is the whole task or the error.
    pub fn last(&self) -> &Value {
        self.lines.last().unwrap_or(&Value::Null)
    }

    /// The text of the first artifact of the last line.
    pub fn answer(&self) -> &str {
        self.last()["task"]["artifacts"][0]["parts"][0]["text"].as_str().unwrap_or_default()
    }
}
