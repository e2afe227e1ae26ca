//! Limits per caller through the real program: what each dialect is told, and that one caller does not delay another.

use std::sync::atomic::{AtomicUsize, Ordering};

use sabir_testkit::http::HttpReply;
use sabir_testkit::process::{SabirOptions, SabirProcess};
use serde_json::{Value, json};

use crate::SABIR;
use crate::server_fixture::{ServerFixture, v1_message, v03_message};

/// The tokens are `of-alice` and `of-bob`.
const CALLERS: &str = "
[[auth.token]]
subject = 'alice'
hash = 'sha256:a835b7c3f35bc86ff7805b9b802ec850ade63343f62181c8a3aff327c6e1bc93'

[[auth.token]]
subject = 'bob'
hash = 'sha256:afaf76da0eb764754faab931a4930ad4164c8f764ffaa14d6a28d279d2b7a997'

[[agent]]
id = 'demo'
kind = 'demo'
";
const ALICE: (&str, &str) = ("Authorization", "Bearer of-alice");
const BOB: (&str, &str) = ("Authorization", "Bearer of-bob");
const ENDLESS: &str = "slow 3600 x";

fn rpc(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": "r", "method": method, "params": params})
}

fn v1_at_once(text: &str) -> Value {
    let mut params = v1_message(text);
    params["configuration"] = json!({"returnImmediately": true});
    params
}

/// Starts a task that works for an hour.
fn start_endless(fixture: &ServerFixture, who: (&str, &str)) -> HttpReply {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let mut params = v1_at_once(ENDLESS);
    params["message"]["messageId"] = json!(COUNT.fetch_add(1, Ordering::Relaxed).to_string());
    fixture.ask("POST", "/a2a/v1", &[who], &rpc("SendMessage", &params))
}

#[test]
fn each_dialect_is_told_which_limit_it_is_and_when_to_try_again() {
    let fixture =
        ServerFixture::configured(&format!("{CALLERS}tasks_per_caller = 1\n[limits]\ntasks_per_caller = 50\n"));
    assert_eq!(start_endless(&fixture, ALICE).status, 200);
    let sentence = "at most 1 task at once for you on agent demo; wait for one to end, or cancel one";
    let v0_1 = json!({"id": "mine", "message": {"role": "user", "parts": [{"type": "text", "text": "x"}]}});
    let run = json!({"message": {"role": "user", "content": "x"}});
    for (path, headers, body, pointer, expected) in [
        ("/a2a/v1", &[][..], rpc("SendMessage", &v1_message("x")), "/error/data/0/reason", json!("RESOURCE_EXHAUSTED")),
        ("/a2a/jsonrpc", &[], rpc("message/send", &v03_message("x")), "/error/code", json!(-32007)),
        ("/a2a/jsonrpc", &[], rpc("message/stream", &v03_message("x")), "", json!(null)),
        ("/a2a/jsonrpc", &[], rpc("tasks/send", &v0_1), "/error/code", json!(-32603)),
        (
            "/message:send",
            &[("A2A-Version", "1.0")],
            v1_message("x"),
            "/error/details/0/reason",
            json!("RESOURCE_EXHAUSTED"),
        ),
        ("/a2a/rest/v1/message:send", &[], v03_message("x"), "/code", json!(-32007)),
        ("/v1/a2a/agents/demo/message:send", &[], run, "/error", json!(format!("too many requests: {sentence}"))),
    ] {
        let headers: Vec<_> = headers.iter().copied().chain([ALICE]).collect();
        let reply = fixture.ask("POST", path, &headers, &body);
        assert_eq!((reply.status, reply.header("retry-after")), (429, Some("5")), "{path}: {}", reply.text());
        assert!(reply.text().contains(sentence), "{path}: {}", reply.text());
        // A stream is refused with an event.
        if !pointer.is_empty() {
            assert_eq!(reply.json().pointer(pointer), Some(&expected), "{path}: {}", reply.text());
        }
    }
    assert_eq!(start_endless(&fixture, BOB).status, 200, "another caller has places of its own");
}

#[test]
fn a_place_is_free_when_a_task_is_canceled() {
    let fixture = ServerFixture::configured(&format!("{CALLERS}[limits]\ntasks_per_caller = 1\n"));
    for _ in 0..20 {
        let started = start_endless(&fixture, ALICE);
        assert_eq!(started.status, 200, "{}", started.text());
        assert_eq!(start_endless(&fixture, ALICE).status, 429);
        let id = started.json()["result"]["task"]["id"].clone();
        let canceled = fixture.ask("POST", "/a2a/v1", &[ALICE], &rpc("CancelTask", &json!({"id": id})));
        assert_eq!(canceled.status, 200, "{}", canceled.text());
    }
}

#[test]
fn a_message_that_is_too_large_is_invalid_in_each_dialect() {
    let fixture = ServerFixture::configured(&format!(
        "{CALLERS}message_bytes = 'off'\nmessage_parts = 2\n[limits]\nmessage_bytes = 4\n"
    ));
    let mut v1 = v1_message("a message of more than four bytes");
    assert_eq!(fixture.ask("POST", "/a2a/v1", &[ALICE], &rpc("SendMessage", &v1)).json()["error"], Value::Null);
    v1["message"]["parts"] = json!([{"text": "a"}, {"text": "b"}, {"text": "c"}]);
    let mut v03 = v03_message("x");
    v03["message"]["parts"] =
        json!([{"kind": "text", "text": "a"}, {"kind": "text", "text": "b"}, {"kind": "text", "text": "c"}]);
    let v0_1 = json!({"id": "mine", "message": {"role": "user", "parts": [
        {"type": "text", "text": "a"}, {"type": "text", "text": "b"}, {"type": "text", "text": "c"}]}});
    for (path, body) in [
        ("/a2a/v1", rpc("SendMessage", &v1)),
        ("/a2a/jsonrpc", rpc("message/send", &v03)),
        ("/a2a/jsonrpc", rpc("tasks/send", &v0_1)),
    ] {
        let reply = fixture.ask("POST", path, &[ALICE], &body);
        assert_eq!((reply.status, &reply.json()["error"]["code"]), (200, &json!(-32602)), "{}", reply.text());
        assert!(reply.text().contains("are 3; agent demo takes at most 2"), "{}", reply.text());
    }
}

#[test]
fn requests_and_streams_of_a_caller_are_limited() {
    let fixture = ServerFixture::configured(&format!(
        "{CALLERS}[limits]\nrequests_per_second = 1\nburst = 5\nopen_streams = 1\n"
    ));
    let body = rpc("message/stream", &v03_message(ENDLESS));
    let _open = fixture.open("/a2a/jsonrpc", &[ALICE], &body);
    let refused = fixture.ask("POST", "/a2a/jsonrpc", &[ALICE], &body);
    let sentence = "at most 1 stream at once for you; close one, or send without streaming and get the task";
    assert!(refused.status == 429 && refused.text().contains(sentence), "{}", refused.text());
    let list = || fixture.ask("POST", "/a2a/v1", &[ALICE], &rpc("ListTasks", &json!({})));
    let refused: Vec<HttpReply> = (0..50).map(|_| list()).filter(|reply| reply.status != 200).collect();
    assert!(!refused.is_empty());
    for reply in refused {
        assert_eq!((reply.status, reply.header("retry-after")), (429, Some("1")));
        assert!(reply.text().contains("at most 1 request a second for you; wait, then try again"), "{}", reply.text());
    }
    assert_eq!(fixture.ask("POST", "/a2a/v1", &[BOB], &rpc("ListTasks", &json!({}))).status, 200);
}

#[test]
fn a_caller_with_five_hundred_queued_tasks_does_not_delay_another() {
    let fixture = ServerFixture::configured(&format!("{CALLERS}max_concurrent = 1\nqueue = 500\n"));
    let running = start_endless(&fixture, ALICE).json()["result"]["task"]["id"].clone();
    let send = |who, text: &str| fixture.ask("POST", "/a2a/v1", &[who], &rpc("SendMessage", &v1_at_once(text)));
    for _ in 0..500 {
        let reply = start_endless(&fixture, ALICE);
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    assert_eq!(send(ALICE, "one too many").status, 503);
    let task = send(BOB, "hello").json()["result"]["task"].clone();
    assert_eq!(task["status"]["state"], "TASK_STATE_SUBMITTED", "{task}");
    fixture.ask("POST", "/a2a/v1", &[ALICE], &rpc("CancelTask", &json!({"id": running})));
    // Each of her tasks would take an hour. Whoever subscribes reads to the end.
    let subscribe = rpc("SubscribeToTask", &json!({"id": task["id"]}));
    let opened =
        sabir_testkit::sse::open(fixture.server.address, "POST", "/a2a/v1", &[BOB], subscribe.to_string().as_bytes());
    if let Ok(mut events) = opened.unwrap() {
        events.rest().unwrap();
    }
    let ended = fixture.ask("POST", "/a2a/v1", &[BOB], &rpc("GetTask", &json!({"id": task["id"]}))).json();
    assert_eq!(ended["result"]["status"]["state"], "TASK_STATE_COMPLETED", "{ended}");
}

#[test]
fn a_caller_has_so_many_bytes_in_the_store_also_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let config = format!("{CALLERS}[limits]\nstored_bytes = '10kB'\n");
    std::fs::write(folder.path().join("sabir.toml"), config).unwrap();
    let options = SabirOptions::new(SABIR, folder.path());
    let send = |server: &SabirProcess, who, text: &str| {
        let mut params = v1_message(text);
        params["message"]["messageId"] = json!("m");
        let body = rpc("SendMessage", &params).to_string();
        server.http().exchange("POST", "/a2a/v1", &[who], body.as_bytes()).unwrap()
    };
    let server = options.start();
    let first = send(&server, ALICE, &"x".repeat(10_000));
    assert_eq!((first.status, &first.json()["error"]), (200, &Value::Null), "{}", first.text());
    let check = |server: &SabirProcess| {
        let refused = send(server, ALICE, "hello");
        assert_eq!((refused.status, refused.header("retry-after")), (429, Some("3600")), "{}", refused.text());
        assert!(refused.text().contains(" of 10000 bytes; wait until old ones are deleted"), "{}", refused.text());
        assert_eq!(refused.json()["error"]["data"][0]["reason"], "RESOURCE_EXHAUSTED", "{}", refused.text());
        assert_eq!(send(server, BOB, "hello").status, 200, "another caller has room of its own");
    };
    check(&server);
    server.kill();
    check(&options.start());
}
