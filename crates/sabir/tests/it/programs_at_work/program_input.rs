//! What a program is given: its command line, its environment, its folder, and the files of a message.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use sabir_testkit::process::SabirOptions;
use serde_json::json;

use super::{ProgramFixture, answer, is_alive, message, reason, send, state, wait_for};
use crate::SABIR;
use crate::server_fixture::ServerFixture;

#[test]
fn a_command_answers_with_what_it_prints() {
    let program = ProgramFixture::new("tr a-z A-Z; echo; pwd\n");
    let task = send(&program.serve_apart("command", ""), message("hello"));
    assert_eq!(state(&task), "COMPLETED", "{task}");
    let folder = fs::canonicalize(program.workspace()).unwrap();
    assert_eq!(answer(&task).trim_end(), format!("HELLO\n\n{}", folder.display()));
}

#[test]
fn the_exit_code_of_a_command_decides() {
    let program = ProgramFixture::new("echo half; echo 'no luck' >&2; exit 7\n");
    let task = send(&program.serve_apart("command", ""), message("x"));
    assert_eq!(state(&task), "FAILED");
    assert!(reason(&task).contains("exit code 7") && reason(&task).contains("no luck"), "{task}");
    assert_eq!(answer(&task).trim_end(), "half");
}

#[test]
fn a_program_gets_only_its_configured_environment() {
    let program = ProgramFixture::new("env\n");
    let config =
        program.agent("prog", "command", "env = { COLOUR = \"green\" }\npass_env = [\"PASSED_ON\", \"MANY_*\"]\n");
    let fixture = ServerFixture::with(|options| {
        fs::write(options.folder.join("sabir.toml"), config).unwrap();
        let options = options.variable("SECRET_OF_THE_HOUSE", "s").variable("SABIR_SEND_MAX_WAIT", "60s");
        options.variable("PASSED_ON", "p").variable("MANY_THINGS", "m")
    });
    let task = send(&fixture, message("x"));
    let lines: Vec<&str> = answer(&task).lines().collect();
    for expected in ["COLOUR=green", "PASSED_ON=p", "MANY_THINGS=m"] {
        assert!(lines.contains(&expected), "{expected} in {lines:?}");
    }
    assert!(lines.iter().any(|line| line.starts_with("PATH=")), "{lines:?}");
    // The mark, by which Sabir finds what programs leave behind, and what the program works on.
    let told = ["SABIR_RUN=", "SABIR_TASK_ID=", "SABIR_CONTEXT_ID="];
    let is_ours = |line: &&str| line.starts_with("SABIR") && !told.iter().any(|name| line.starts_with(name));
    assert!(!lines.iter().any(|line| line.starts_with("SECRET") || is_ours(line)), "{lines:?}");
}

#[test]
fn callers_choose_among_the_allowed_folders() {
    let program = ProgramFixture::new("pwd\n");
    for name in ["roots/one", "elsewhere"] {
        fs::create_dir_all(program.path(name)).unwrap();
    }
    let fixture = program.serve_apart("command", &format!("workspace_roots = [{:?}]\n", program.path("roots")));
    let at = |folder: &Path| {
        let mut params = message("x");
        params["metadata"] = json!({"workspace": folder});
        params["message"]["messageId"] = json!(folder);
        send(&fixture, params)
    };
    let inside = at(&program.path("roots/one"));
    let real = fs::canonicalize(program.path("roots/one")).unwrap();
    assert_eq!(answer(&inside).trim_end(), real.to_str().unwrap(), "{inside}");
    for outside in ["elsewhere", "roots/../elsewhere", "roots/missing"] {
        let refused = at(&program.path(outside));
        assert_eq!(state(&refused), "REJECTED", "{outside}: {refused}");
    }
}

#[test]
fn files_and_data_of_a_message_reach_the_program() {
    let program = ProgramFixture::new("cat; cat .sabir/*/notes.txt\n");
    let mut params = message("read this");
    params["message"]["parts"] = json!([
        {"text": "read this"},
        {"raw": "Zm9ydHktdHdv", "filename": "notes.txt", "mediaType": "text/plain"},
        {"data": {"depth": 3}},
    ]);
    let task = send(&program.serve_apart("command", ""), params);
    assert_eq!(state(&task), "COMPLETED", "{task}");
    for expected in ["read this", "notes.txt", r#"{"depth":3}"#, "forty-two"] {
        assert!(answer(&task).contains(expected), "{expected} in {}", answer(&task));
    }
}

#[test]
fn programs_do_not_have_the_terminal_of_the_server() {
    let program =
        ProgramFixture::new("if (: < /dev/tty) 2>&1; then echo 'it has a terminal'; else echo 'it has none'; fi\n");
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("sabir.toml"), program.agent("prog", "command", "")).unwrap();
    // `script` gives the server a terminal; its one line goes around that.
    let starter = program.path("in-a-terminal");
    let line = format!("#!/bin/sh\nexec 3>&1\nexec script -qec \"exec '{SABIR}' $* >&3\" /dev/null > /dev/null\n");
    fs::write(&starter, line).unwrap();
    fs::set_permissions(&starter, fs::Permissions::from_mode(0o755)).unwrap();
    let server = SabirOptions::new(starter.to_str().unwrap(), folder.path()).start();
    let pid = server.ready["pid"].as_u64().unwrap();
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let terminal = stat[stat.rfind(')').unwrap()..].split(' ').nth(5).unwrap();
    assert_ne!(terminal, "0", "the server has a terminal");
    let task = server.rpc("SendMessage", message("x"))["result"]["task"].take();
    assert!(answer(&task).trim_end().ends_with("it has none"), "{task}");
    assert!(Command::new("kill").args(["-TERM", &pid.to_string()]).status().unwrap().success());
    wait_for("the end", Duration::from_secs(30), || !is_alive(&pid.to_string()));
}

#[test]
fn a_message_too_long_for_a_command_line_is_refused_as_such() {
    let program = ProgramFixture::new("echo '{\"type\":\"result\",\"subtype\":\"success\"}'\n");
    let mut long = message("x");
    long["message"]["parts"][0]["text"] = json!("x".repeat(200_000));
    let task = send(&program.serve_apart("generic", ""), long);
    assert_eq!(state(&task), "FAILED");
    assert!(reason(&task).contains("longer than the program"), "{task}");
}
