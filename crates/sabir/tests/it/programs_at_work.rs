//! Programs behind the real server, by topic in the files below: what they are given, what they print, what they ask, what is
//! kept of their work, and that none of them is left behind.

mod kept_work;
mod leftover_processes;
mod output;
mod permissions;
mod program_input;
mod resumed_sessions;
mod trust;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use sabir_testkit::process::SabirProcess;
use serde_json::{Value, json};

use crate::program_fixture::{ProgramFixture, answer, artifact, message, reason, state};
use crate::server_fixture::ServerFixture;

const RPC: &str = "/a2a/v1";

fn send(fixture: &ServerFixture, params: Value) -> Value {
    let answer = fixture.rpc(RPC, "SendMessage", params);
    answer["result"]["task"].as_object().map(|task| Value::Object(task.clone())).unwrap_or_else(|| panic!("{answer}"))
}

fn is_alive(pid: &str) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

fn wait_for(what: &str, limit: Duration, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < limit, "{what}: not within {limit:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn pid_in(path: &Path) -> String {
    let mut pid = String::new();
    wait_for("a pid", Duration::from_secs(10), || {
        pid = fs::read_to_string(path).unwrap_or_default();
        pid.ends_with('\n')
    });
    pid.trim().to_owned()
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(["-c", "user.name=t", "-c", "user.email=t@example.com"]).args(arguments);
    let output = command.output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Starts a run whose caller does not wait.
fn begin(server: &SabirProcess) {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage",
        "params": {"message": message("go")["message"], "configuration": {"returnImmediately": true}}});
    let reply = server.http().exchange("POST", RPC, &[], body.to_string().as_bytes()).unwrap();
    assert_eq!(reply.status, 200, "{}", reply.text());
}
