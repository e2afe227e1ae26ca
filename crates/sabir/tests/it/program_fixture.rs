//! A shell script as the program of an agent, with a workspace beside it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sabir_testkit::process::{SabirOptions, SabirProcess};
use serde_json::{Value, json};

use crate::SABIR;
use crate::server_fixture::ServerFixture;

pub struct ProgramFixture {
    pub folder: tempfile::TempDir,
}

impl ProgramFixture {
    pub fn new(body: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("work")).unwrap();
        let script = Self { folder };
        script.put("program", &format!("#!/bin/sh\n{body}"));
        script
    }

    /// An executable file in the folder.
    pub fn put(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn program(&self) -> PathBuf {
        self.path("program")
    }

    pub fn workspace(&self) -> PathBuf {
        self.path("work")
    }

    /// The table of an agent that runs the program.
    pub fn agent(&self, id: &str, kind: &str, more: &str) -> String {
        let (program, workspace) = (self.program(), self.workspace());
        format!("[[agent]]\nid = {id:?}\nkind = {kind:?}\ncommand = [{program:?}]\nworkspace = {workspace:?}\n{more}\n")
    }

    pub fn options(&self, toml: &str) -> SabirOptions {
        fs::write(self.folder.path().join("sabir.toml"), toml).unwrap();
        SabirOptions::new(SABIR, self.folder.path())
    }

    /// A server with one agent of this kind.
    pub fn serve(&self, kind: &str, more: &str) -> SabirProcess {
        self.options(&self.agent("prog", kind, more)).start()
    }

    /// The same, with the server in a folder of its own.
    pub fn serve_apart(&self, kind: &str, more: &str) -> ServerFixture {
        ServerFixture::configured(&self.agent("prog", kind, more))
    }

    /// Waits until nothing is left in the workspace, and fails with what is.
    pub fn wait_until_empty(&self) {
        wait_for("an empty workspace", || names(&self.workspace()).is_empty());
    }
}

/// The names in a folder, sorted.
pub fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

pub fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(20), "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Parameters of a send in 1.0.
pub fn message(text: &str) -> Value {
    static COUNT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let id = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    json!({"message": {"messageId": format!("m{id}"), "role": "ROLE_USER", "parts": [{"text": text}]}})
}

/// The same with a file of this content.
pub fn message_with_file(text: &str, name: &str, content: &str) -> Value {
    let mut params = message(text);
    let file = json!({"raw": base64(content.as_bytes()), "filename": name, "mediaType": "text/plain"});
    params["message"]["parts"].as_array_mut().unwrap().push(file);
    params
}

fn base64(bytes: &[u8]) -> String {
    sabir_model::Base64::encode(bytes).as_str().to_owned()
}

pub fn send(server: &SabirProcess, params: Value) -> Value {
    let answer = server.rpc("SendMessage", params);
    let task = answer["result"]["task"].clone();
    assert!(task.is_object(), "{answer}");
    task
}

pub fn state(task: &Value) -> &str {
    task["status"]["state"].as_str().unwrap_or_default().trim_start_matches("TASK_STATE_")
}

/// The text of the last status.
pub fn reason(task: &Value) -> &str {
    task["status"]["message"]["parts"][0]["text"].as_str().unwrap_or_default()
}

pub fn artifact<'a>(task: &'a Value, name: &str) -> &'a Value {
    let artifacts = task["artifacts"].as_array().map(Vec::as_slice).unwrap_or_default();
    artifacts.iter().find(|artifact| artifact["name"] == name).unwrap_or(&Value::Null)
}

pub fn answer(task: &Value) -> &str {
    artifact(task, "assistant-response")["parts"][0]["text"].as_str().unwrap_or_default()
}
