//! Each exit code, and the error that programs read with it.

use serde_json::{Value, json};

use super::fixture::{ClientFixture, run};
use super::peer_server::{Answer, PeerServer};
use crate::server_fixture::ServerFixture;

/// Exit code, and the code in the error if there is one.
fn check(client: &ClientFixture, words: &[&str], variables: &[(&str, &str)], expected: (i32, &str)) {
    let outcome = run(&client.folder, words, variables, "");
    let code = outcome.last()["error"]["code"].as_str().unwrap_or_default();
    assert_eq!((outcome.code, code), expected, "{words:?}: {} {}", outcome.text, outcome.errors);
    if !code.is_empty() {
        let members: Vec<&String> = outcome.last()["error"].as_object().unwrap().keys().collect();
        assert_eq!(members, ["a2aCode", "code", "hint", "message"], "{words:?}");
        let message = outcome.last()["error"]["message"].as_str().unwrap();
        assert!(outcome.errors.contains(&format!("sabir: {message}")), "{words:?}: {}", outcome.errors);
    }
}

#[test]
fn every_end_has_its_code() {
    let client = ClientFixture::new();
    let url = client.url();
    let url = url.as_str();
    let (working, canceled) = (client.working(), client.working());
    client.run("cancel", &[&canceled]);
    let done = client.run("send", &["hello"]).last()["task"]["id"].as_str().unwrap().to_owned();
    for (words, expected) in [
        (&["send", url, "hello"][..], (0, "")),
        (&["send", url, "message hi"], (0, "")),
        (&["send", url, "--async", "fail"], (0, "")),
        (&["send", url, "fail"], (1, "")),
        (&["send", url], (2, "A2ACLI_ERR_USAGE")),
        (&["send"], (2, "A2ACLI_ERR_USAGE")),
        (&["send", url, "-", "x"], (2, "A2ACLI_ERR_USAGE")),
        (&["send", url, "x", "--file", "nowhere"], (2, "A2ACLI_ERR_USAGE")),
        (&["send", "ftp://x", "x"], (2, "A2ACLI_ERR_USAGE")),
        (&["send", url, "x", "--metadata", "[1]"], (2, "")),
        (&["send", url, "x", "--media-type", "a/b"], (2, "")),
        (&["send", url, "x", "--a2a-version", "0.9"], (2, "")),
        (&["send", url, "x", "--timeout", "never"], (2, "")),
        (&["get", url], (2, "A2ACLI_ERR_USAGE")),
        (&["get", "a", "b"], (2, "A2ACLI_ERR_USAGE")),
        (&["answer", url, &working], (2, "A2ACLI_ERR_USAGE")),
        (&["send", "--config", "nowhere.toml", "x"], (2, "A2ACLI_ERR_USAGE")),
        (&["send", "http://127.0.0.1:1", "x"], (3, "A2ACLI_ERR_UNREACHABLE")),
        (&["get", "http://nowhere.invalid", "x"], (3, "A2ACLI_ERR_UNREACHABLE")),
        (&["watch", "http://127.0.0.1:1", "x"], (3, "A2ACLI_ERR_UNREACHABLE")),
        (&["list", "http://127.0.0.1:1"], (3, "A2ACLI_ERR_UNREACHABLE")),
        (&["card", "http://127.0.0.1:1"], (3, "A2ACLI_ERR_UNREACHABLE")),
        (&["send", &format!("{url}/nowhere.json"), "x"], (3, "A2ACLI_ERR_CARD_NOT_FOUND")),
        (&["send", url, "slow 600 x", "--timeout", "300ms"], (5, "A2ACLI_ERR_TIMEOUT")),
        (&["watch", url, &working, "--timeout", "300ms"], (5, "A2ACLI_ERR_TIMEOUT")),
        (&["send", url, "ask x"], (6, "")),
        (&["send", url, "auth x"], (6, "")),
        (&["send", url, "reject x"], (7, "")),
        (&["get", url, "nobody"], (7, "TaskNotFoundError")),
        (&["watch", url, "nobody"], (7, "TaskNotFoundError")),
        (&["cancel", url, "nobody"], (7, "TaskNotFoundError")),
        // It is what was asked for, and the answer to a first cancel may have been lost.
        (&["cancel", url, &canceled], (0, "")),
        (&["cancel", url, &done], (7, "TaskNotCancelableError")),
        (&["send", url, "--task-id", "nobody", "x"], (7, "TaskNotFoundError")),
        (&["send", url, "--task-id", &canceled, "x"], (7, "UnsupportedOperationError")),
        (&["answer", url, &working, "x"], (7, "SABIR_ERR_NOT_WAITING")),
        (&["watch", url, &canceled], (8, "")),
        (&["get", url, &canceled], (0, "")),
    ] {
        check(&client, words, &[], expected);
    }
    assert_eq!(client.state(&working), "TASK_STATE_WORKING", "nobody has stopped it");
}

#[test]
fn without_a_local_server_it_is_said_what_to_do() {
    let client = ClientFixture::new();
    for (listen, expected) in [("127.0.0.1:1", "start a server with `sabir serve`"), ("127.0.0.1:0", "`sabir serve`")] {
        let variables = [("SABIR_LISTEN", listen), ("SABIR_STORE", "sqlite:none.db")];
        check(&client, &["send", "hello"], &variables, (3, "A2ACLI_ERR_UNREACHABLE"));
        let outcome = run(&client.folder, &["send", "hello"], &variables, "");
        assert!(outcome.errors.contains(expected), "{}", outcome.errors);
    }
}

#[test]
fn credentials_that_are_missing_or_wrong_are_told_apart() {
    let client = ClientFixture::of(ServerFixture::configured("[auth]\ntokens = ['alice:token-of-alice']\n"));
    let url = client.url();
    for (protocol, binding) in [("1.0", "jsonrpc"), ("1.0", "http+json"), ("0.3", "jsonrpc"), ("0.1", "jsonrpc")] {
        let words = |verb, more| vec![verb, url.as_str(), more, "--a2a-version", protocol, "--transport", binding];
        for (words, task) in [(words("send", "hello"), 0), (words("get", "nobody"), 7)] {
            let not_found = if task == 7 { "TaskNotFoundError" } else { "" };
            check(&client, &words, &[], (4, "A2ACLI_ERR_CREDENTIALS_MISSING"));
            check(&client, &words, &[("SABIR_TOKEN", "other")], (4, "A2ACLI_ERR_AUTH_FAILED"));
            check(&client, &words, &[("SABIR_TOKEN", "token-of-alice")], (task, not_found));
        }
    }
}

fn card(url: &str, streaming: bool) -> String {
    let interface = json!({"url": format!("{url}/rpc"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"});
    json!({
        "name": "peer", "description": "", "version": "1", "supportedInterfaces": [interface],
        "capabilities": {"streaming": streaming}, "defaultInputModes": [], "defaultOutputModes": [], "skills": [],
    })
    .to_string()
}

#[test]
fn a_message_that_may_have_arrived_is_not_sent_twice() {
    for streaming in [true, false] {
        let peer = PeerServer::start(move |url, request| match request.body.is_empty() {
            true => Answer::Json(card(url, streaming)),
            false => Answer::HangUp,
        });
        let client = ClientFixture::new();
        check(&client, &["send", &peer.url, "hello"], &[], (9, "SABIR_ERR_OUTCOME_UNKNOWN"));
        assert_eq!(peer.bodies().len(), 1, "{streaming}");
    }
}

#[test]
fn a_server_that_cannot_stream_is_asked_so_often_as_is_wanted() {
    let status =
        |state: &str| json!({"id": "t1", "contextId": "c1", "status": {"state": format!("TASK_STATE_{state}")}});
    let peer = PeerServer::start(move |url, request| {
        if request.body.is_empty() {
            return Answer::Json(card(url, false));
        }
        let body: Value = serde_json::from_str(&request.body).unwrap();
        let result = match (body["method"].as_str().unwrap(), request.earlier) {
            ("SendMessage", _) => json!({"task": status("WORKING")}),
            (_, ..3) => status("WORKING"),
            _ => status("COMPLETED"),
        };
        Answer::Json(json!({"jsonrpc": "2.0", "id": body["id"], "result": result}).to_string())
    });
    let client = ClientFixture::new();
    let outcome = run(&client.folder, &["send", &peer.url, "hello", "--poll-interval", "10ms"], &[], "");
    assert_eq!((outcome.code, &outcome.last()["task"]["id"]), (0, &json!("t1")), "{}", outcome.errors);
    let asked = peer.bodies().iter().filter(|body| body.contains("GetTask")).count();
    assert!(asked >= 3, "{asked}");
}

#[test]
fn what_is_no_a2a_is_said() {
    for (answer, expected) in [
        ("<html>", (1, "A2ACLI_ERR_CARD_INVALID")),
        (
            r#"{"name":"x","supportedInterfaces":[{"url":"http://x","protocolBinding":"SOAP","protocolVersion":"1.0"}]}"#,
            (3, "SABIR_ERR_NO_INTERFACE"),
        ),
    ] {
        let peer = PeerServer::start(move |_, _| Answer::Json(answer.to_owned()));
        check(&ClientFixture::new(), &["send", &peer.url, "hello"], &[], expected);
    }
    let peer = PeerServer::start(|url, request| match request.body.is_empty() {
        true => Answer::Json(card(url, false)),
        false => Answer::Json("[]".to_owned()),
    });
    check(&ClientFixture::new(), &["get", &peer.url, "t"], &[], (1, "SABIR_ERR_NOT_A2A"));
}
