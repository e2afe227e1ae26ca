//! No process that a program started outlives its run or the server.

use std::fs;
use std::process::Command;
use std::time::Duration;

use sabir_testkit::process::{SabirOptions, SabirProcess};
use serde_json::json;

use super::{ProgramFixture, RPC, begin, is_alive, message, pid_in, reason, send, state, wait_for};
use crate::SABIR;

/// A program with a child in its group and a daemon that left it.
const FAMILY: &str = "trap '' TERM\necho $$ > self\nsleep 300 & echo $! > child\n\
    setsid sh -c 'sleep 300 & echo $! > daemon' &\necho '{\"type\":\"system/init\"}'\nwait\nsleep 300\n";

fn family(program: &ProgramFixture) -> Vec<String> {
    ["self", "child", "daemon"].iter().map(|name| pid_in(&program.workspace().join(name))).collect()
}

#[test]
fn a_cancel_ends_all_processes_of_the_program_even_if_they_ignore_sigterm() {
    let program = ProgramFixture::new(FAMILY);
    let fixture = program.serve_apart("generic", "");
    let (id, _events) = fixture.working("go");
    let family = family(&program);
    let task = fixture.rpc("/a2a/jsonrpc", "tasks/cancel", json!({"id": id}))["result"].take();
    assert_eq!(task["status"]["state"], "canceled", "{task}");
    for pid in family {
        wait_for("its end", Duration::from_secs(5), || !is_alive(&pid));
    }
}

#[test]
fn no_process_outlives_the_server() {
    for how in ["KILL", "TERM"] {
        let program = ProgramFixture::new(FAMILY);
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("sabir.toml"), program.agent("prog", "generic", "")).unwrap();
        let server: SabirProcess = SabirOptions::new(SABIR, folder.path()).start();
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage",
            "params": {"message": message("go")["message"], "configuration": {"returnImmediately": true}}});
        let reply = server.http().exchange("POST", RPC, &[], body.to_string().as_bytes()).unwrap();
        assert_eq!(reply.status, 200, "{}", reply.text());
        let family = family(&program);
        let mut server = server;
        match how {
            "KILL" => server.kill(),
            _ => {
                server.terminate();
                server.wait(Duration::from_secs(20));
            }
        }
        for pid in family {
            wait_for(how, Duration::from_secs(8), || !is_alive(&pid));
        }
    }
}

/// A daemon that is found by its mark, one that has cleared its environment, and a child.
const DAEMONS: &str = "trap '' TERM\nsleep 300 & echo $! > child\n(setsid sh -c 'echo $$ > marked; exec sleep 300' &)\n\
    (env -i PATH=\"$PATH\" setsid sh -c 'echo $$ > unmarked; exec sleep 300' &)\n\
    until [ -s marked ] && [ -s unmarked ]; do sleep 0.01; done\n";

#[test]
fn a_program_that_kills_its_guard_leaves_no_process() {
    let program = ProgramFixture::new(&format!("{DAEMONS}kill -KILL $PPID\nexec sleep 300\n"));
    let fixture = program.serve_apart("command", "");
    let task = send(&fixture, message("x"));
    assert_eq!(state(&task), "FAILED", "{task}");
    for name in ["child", "marked", "unmarked"] {
        assert!(!is_alive(&pid_in(&program.workspace().join(name))), "{name}");
    }
    let children = format!("/proc/{0}/task/{0}/children", fixture.server.pid());
    assert_eq!(fs::read_to_string(children).unwrap_or_default().trim(), "", "they are reaped");
    // What a run leaves behind costs no other run its guard.
    assert_eq!(state(&send(&fixture, message("y"))), "FAILED");
}

#[test]
fn the_next_server_ends_processes_that_outlived_server_and_guard() {
    let program = ProgramFixture::new(&format!(
        "{DAEMONS}kill -KILL $(cut -d' ' -f4 /proc/$PPID/stat) $PPID\necho $$ > self\nexec sleep 300\n"
    ));
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("sabir.toml"), program.agent("prog", "command", "")).unwrap();
    let mut killed = SabirOptions::new(SABIR, folder.path()).start();
    begin(&killed);
    killed.wait(Duration::from_secs(30));
    let left: Vec<String> =
        ["self", "child", "marked"].iter().map(|name| pid_in(&program.workspace().join(name))).collect();
    // A server of another test may be quicker.
    let _next = SabirOptions::new(SABIR, folder.path()).start();
    for pid in left {
        wait_for("its end", Duration::from_secs(30), || !is_alive(&pid));
    }
    // Nobody can tell whose this one is.
    let unmarked = pid_in(&program.workspace().join("unmarked"));
    assert!(Command::new("kill").args(["-KILL", &unmarked]).status().unwrap().success());
}

/// A program that stops its guard when it is told to end.
const STOPPER: &str =
    "echo $PPID > guard\ntrap 'kill -STOP $PPID' TERM\necho $$ > self\nwhile :; do sleep 0.05; done\n";

/// The processes of such a program, also one that has no mark.
fn stoppers(program: &ProgramFixture) -> Vec<String> {
    ["guard", "self", "child", "marked", "unmarked"]
        .iter()
        .map(|name| pid_in(&program.workspace().join(name)))
        .collect()
}

fn alive(pids: &[String]) -> Vec<&String> {
    pids.iter().filter(|pid| is_alive(pid)).collect()
}

#[test]
fn a_program_that_stops_its_guard_is_ended() {
    for stop in ["kill -STOP $PPID\n", "sleep 0.3; kill -STOP $PPID\n"] {
        let program =
            ProgramFixture::new(&format!("echo $PPID > guard\n{DAEMONS}echo $$ > self\n{stop}exec sleep 300\n"));
        let task = send(&program.serve_apart("command", ""), message("x"));
        assert_eq!(state(&task), "FAILED", "{task}");
        assert!(alive(&stoppers(&program)).is_empty(), "{stop}: {:?}", alive(&stoppers(&program)));
    }
    // Before its guard can say that it runs.
    let program = ProgramFixture::new("kill -STOP $PPID\necho $PPID > guard\nexec sleep 300\n");
    let task = send(&program.serve_apart("command", ""), message("x"));
    assert_eq!(state(&task), "FAILED", "{task}");
    assert!(!is_alive(&pid_in(&program.workspace().join("guard"))));
}

#[test]
fn a_program_that_stops_its_guard_does_not_outlive_a_cancel() {
    let program = ProgramFixture::new(&format!("{DAEMONS}{STOPPER}"));
    let fixture = program.serve_apart("command", "");
    let (id, _events) = fixture.working("go");
    let left = stoppers(&program);
    let task = fixture.rpc("/a2a/jsonrpc", "tasks/cancel", json!({"id": id}))["result"].take();
    assert_eq!(task["status"]["state"], "canceled", "{task}");
    assert!(alive(&left).is_empty(), "{:?} of {left:?}", alive(&left));
}

#[test]
fn a_program_that_stops_its_guard_does_not_outlive_the_server() {
    for grace in ["10s", "0s"] {
        let program = ProgramFixture::new(&format!("{DAEMONS}{STOPPER}"));
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("sabir.toml"), program.agent("prog", "command", "")).unwrap();
        let mut server = SabirOptions::new(SABIR, folder.path()).variable("SABIR_SERVER_GRACE", grace).start();
        begin(&server);
        let left = stoppers(&program);
        server.terminate();
        assert_eq!(server.wait(Duration::from_secs(30)).code(), Some(0));
        // Nobody is there any more who could end them.
        assert!(alive(&left).is_empty(), "{grace}: {:?} of {left:?}", alive(&left));
    }
}

#[test]
fn the_next_server_ends_a_program_that_stopped_its_guard() {
    let program = ProgramFixture::new(&format!("{DAEMONS}{STOPPER}"));
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("sabir.toml"), program.agent("prog", "command", "")).unwrap();
    let server = SabirOptions::new(SABIR, folder.path()).start();
    begin(&server);
    let left = stoppers(&program);
    server.kill();
    // A server of another test may be quicker.
    let _next = SabirOptions::new(SABIR, folder.path()).start();
    wait_for("their end", Duration::from_secs(30), || alive(&left).is_empty());
}

#[test]
fn a_stop_does_not_wait_for_the_end_of_a_program_that_has_closed_its_output() {
    // It needs a moment to end, which it does not have if it is told late.
    let program = ProgramFixture::new(
        "trap 'sleep 1.6; echo told > told; exit 0' TERM\nexec >&- 2>&-\necho $$ > self\nwhile :; do sleep 0.05; done\n",
    );
    for how in ["cancel", "timeout"] {
        let limit = if how == "timeout" { "timeout = '1s'" } else { "" };
        let fixture = program.serve_apart("command", limit);
        let (id, mut events) = fixture.working("go");
        pid_in(&program.workspace().join("self"));
        let expected = match how {
            "cancel" => {
                fixture.rpc("/a2a/jsonrpc", "tasks/cancel", json!({"id": id}));
                ("canceled", "")
            }
            _ => {
                drop(events.rest());
                ("failed", "timed out: the turn took longer than 1s")
            }
        };
        let task = fixture.task(&id);
        assert_eq!((task["status"]["state"].as_str().unwrap(), reason(&task)), expected, "{task}");
        assert!(program.workspace().join("told").exists(), "{how}");
        fs::remove_file(program.workspace().join("self")).unwrap();
        fs::remove_file(program.workspace().join("told")).unwrap();
    }
}
