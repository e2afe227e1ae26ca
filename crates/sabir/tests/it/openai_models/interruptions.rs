//! What becomes of a turn that is canceled, that waits too long, or whose server ends.

use serde_json::json;

use super::fixture::{Front, Model, Reply, at_once, calls, piece, says, until, within};
use super::tools::TOOLS;
use crate::program_fixture::{ProgramFixture, answer, message, reason, send, state, wait_for};

#[test]
fn a_cancel_closes_the_connection_and_the_history_is_as_before() {
    let model = Model::new(vec![says("one")]);
    let server = Front::new(&model, "").serve();
    send(&server, within("c", message("first")));
    model.answers_next(vec![Reply::StreamThenSilence(vec![piece("half")])]);
    let task = send(&server, at_once(within("c", message("lost"))));
    model.wait_until_asked(2);
    let canceled = server.rpc("CancelTask", json!({"id": task["id"]}));
    assert_eq!(state(&canceled["result"]), "CANCELED", "{canceled}");
    model.wait_until_closed();
    model.answers_next(vec![says("two")]);
    send(&server, within("c", message("second")));
    assert_eq!(model.last_messages(), ["system: Be brief.", "user: first", "assistant: one", "user: second"]);
}

#[test]
fn a_silent_server_is_not_waited_for_for_ever() {
    for (reply, expected) in [
        (Reply::StreamThenSilence(vec![]), "did not begin its answer within 0.3 s"),
        (Reply::StreamThenSilence(vec![piece("half")]), "paused for more than 0.3 s"),
    ] {
        let model = Model::new(vec![reply]);
        let server = Front::new(&model, "answer_timeout = \"300ms\"\nsilence_timeout = \"300ms\"").serve();
        let task = send(&server, message("hi"));
        assert_eq!(state(&task), "FAILED", "{task}");
        assert!(reason(&task).contains(expected), "{task}");
        model.wait_until_closed();
    }
}

#[test]
fn a_turn_whose_server_was_killed_runs_again() {
    let model = Model::new(vec![Reply::StreamThenSilence(vec![piece("lost ")]), says("whole answer")]);
    let front = Front::new(&model, "");
    let server = front.start();
    let task = send(&server, at_once(message("hi")));
    server.until("the first words", |server| {
        let shown = super::fixture::task(server, &task["id"]);
        (answer(&shown) == "lost ").then_some(())
    });
    server.kill();
    let server = front.start();
    let done = until(&server, &task["id"], "COMPLETED");
    assert_eq!(answer(&done), "whole answer", "{done}");
    assert_eq!(done["artifacts"].as_array().unwrap().len(), 1, "the new answer takes the place of the old one: {done}");
    assert_eq!(model.asked().len(), 2);
}

#[test]
fn what_a_tool_has_done_is_not_done_again() {
    let program = ProgramFixture::new(TOOLS);
    let model = Model::new(vec![calls("work", &json!({})), Reply::StreamThenSilence(vec![])]);
    let front = Front::new(&model, &format!("mcp_servers.t = {{ command = [{:?}] }}", program.program()));
    std::fs::create_dir_all(front.folder.path()).unwrap();
    let server = front.start();
    let task = send(&server, at_once(message("hi")));
    model.wait_until_asked(2);
    server.kill();
    let server = front.start();
    let failed = until(&server, &task["id"], "FAILED");
    assert!(reason(&failed).contains("restart"), "{failed}");
    assert_eq!(model.asked().len(), 2);
    wait_for("the end of the tool server", || !front.folder.path().join("pid").exists() || !runs(&front));
}

/// Whether the tool server still runs.
fn runs(front: &Front) -> bool {
    let pid = std::fs::read_to_string(front.folder.path().join("pid")).unwrap_or_default();
    std::path::Path::new(&format!("/proc/{}", pid.trim())).exists()
}

#[test]
fn a_cancel_ends_a_tool_that_hangs() {
    let program = ProgramFixture::new(TOOLS);
    let model = Model::new(vec![calls("hang", &json!({}))]);
    let front = Front::new(&model, &format!("mcp_servers.t = {{ command = [{:?}] }}", program.program()));
    let server = front.start();
    let task = send(&server, at_once(message("hi")));
    wait_for("the call", || front.folder.path().join("hangs").exists());
    assert!(runs(&front));
    let canceled = server.rpc("CancelTask", json!({"id": task["id"]}));
    assert_eq!(state(&canceled["result"]), "CANCELED", "{canceled}");
    wait_for("the end of the tool server", || !runs(&front));
}
