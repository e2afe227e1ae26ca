//! Every command in every version and binding, and what programs read of it.

use std::cmp::Reverse;

use serde_json::{Value, json};

use super::fixture::ClientFixture;

/// Version, binding, and how the request of a stream looks on the wire.
const PROTOCOLS: [(&str, &str, &str); 6] = [
    ("1.0", "jsonrpc", r#""method":"SendStreamingMessage""#),
    ("1.0", "http+json", "/message:stream\n"),
    ("0.3", "jsonrpc", r#""method":"message/stream""#),
    ("0.3", "http+json", "/v1/message:stream\n"),
    ("0.2", "jsonrpc", r#""method":"message/stream""#),
    ("0.1", "jsonrpc", r#""method":"tasks/sendSubscribe""#),
];

/// Which member each line has.
fn kinds(lines: &[Value]) -> String {
    let kind = |line: &Value| line.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join("+");
    lines.iter().map(kind).collect::<Vec<_>>().join(" ")
}

#[test]
fn every_command_works_in_every_version_and_binding() {
    let client = ClientFixture::new();
    for (version, binding, on_the_wire) in PROTOCOLS {
        let name = format!("{version} over {binding}");
        let run = |verb: &str, words: &[&str]| {
            client.run(verb, &[words, &["--a2a-version", version, "--transport", binding]].concat())
        };
        let sent = run("send", &["stream 3 0", "--raw"]);
        assert_eq!(sent.code, 0, "{name}: {}", sent.errors);
        assert!(sent.errors.contains(on_the_wire), "{name}: {}", sent.errors);
        // On the wire 0.2 is 0.3, and servers that look at the header know that one.
        let named = if version == "0.2" { "0.3" } else { version };
        assert!(sent.errors.contains(&format!("> a2a-version: {named}\n")), "{name}: {}", sent.errors);
        assert_eq!(sent.answer(), "chunk 1\nchunk 2\nchunk 3\n", "{name}");
        let task = &sent.last()["task"];
        let id = task["id"].as_str().unwrap();

        let got = run("get", &[id]);
        assert_eq!((got.code, got.lines.as_slice()), (0, std::slice::from_ref(task)), "{name}: the same task");
        let watched = run("watch", &[id]);
        assert_eq!((watched.code, watched.last()), (0, sent.last()), "{name}: {}", watched.errors);

        let waiting = run("send", &["ask Which day?"]);
        assert_eq!(waiting.code, 6, "{name}: {}", waiting.errors);
        assert!(waiting.errors.contains("to give it: sabir answer http://"), "{name}: {}", waiting.errors);
        let question = waiting.last()["task"]["id"].as_str().unwrap();
        let answered = run("answer", &[question, "on", "Friday"]);
        assert_eq!((answered.code, answered.answer()), (0, "echo: on Friday"), "{name}: {}", answered.errors);
        assert_eq!(answered.last()["task"]["id"], question, "{name}");

        let started = run("send", &["--async", "slow 600 x"]);
        assert_eq!((started.code, kinds(&started.lines).as_str()), (0, "task"), "{name}: {}", started.errors);
        let id = started.last()["task"]["id"].as_str().unwrap();
        let canceled = run("cancel", &[id]);
        let state = &canceled.last()["status"]["state"];
        assert_eq!((canceled.code, state), (0, &json!("TASK_STATE_CANCELED")), "{name}: {}", canceled.errors);
        assert_eq!(run("watch", &[id]).code, 8, "{name}");

        let listed = run("list", &["--state", "canceled", "--limit", "1"]);
        if version == "1.0" {
            assert_eq!((listed.code, &listed.last()["id"]), (0, &json!(id)), "{name}: {}", listed.errors);
        } else {
            assert_eq!(listed.code, 7, "{name}: {}", listed.errors);
            assert_eq!(listed.last()["error"]["hint"], "only A2A 1.0 can list tasks", "{name}");
        }
    }
}

#[test]
fn programs_get_a_line_for_each_event_and_last_the_task() {
    let client = ClientFixture::new();
    for (text, code, expected) in [
        ("hello", 0, "statusUpdate statusUpdate artifactUpdate statusUpdate task"),
        ("stream 2 0", 0, "statusUpdate statusUpdate artifactUpdate artifactUpdate statusUpdate task"),
        ("fail boom", 1, "statusUpdate statusUpdate statusUpdate task"),
        ("message hi", 0, "message"),
    ] {
        let outcome = client.run("send", &[text]);
        assert_eq!((outcome.code, kinds(&outcome.lines).as_str()), (code, expected), "{text}: {}", outcome.errors);
    }
    let sent = client.run("send", &["stream 2 0"]);
    assert_eq!(sent.errors, "", "nothing is wrong, so nothing is said");
    let task = &sent.last()["task"];
    assert_eq!(sent.lines[2]["artifactUpdate"]["artifact"]["parts"], json!([{"text": "chunk 1\n"}]));
    assert_eq!(sent.lines[3]["artifactUpdate"]["append"], true);
    for line in &sent.lines[..5] {
        let event = line.as_object().unwrap().values().next().unwrap();
        assert_eq!((&event["taskId"], &event["contextId"]), (&task["id"], &task["contextId"]));
    }
    assert_eq!(sent.lines[4]["statusUpdate"]["status"], task["status"]);
    // What the server itself shows.
    let shown = client.fixture.get(&format!("/tasks/{}", task["id"].as_str().unwrap())).json();
    assert_eq!(*task, shown);
}

#[test]
fn lists_are_read_page_by_page() {
    let client = ClientFixture::new();
    let mut sent: Vec<Value> =
        (0..105).map(|number| client.fixture.send(&format!("n {number}"))["id"].take()).collect();
    // Ids begin with their millisecond. Tasks of the same one have no order among them, but always the same.
    let millisecond = |id: &Value| id.as_str().unwrap()[..13].to_owned();
    sent.sort_by_key(|id| Reverse(millisecond(id)));
    let listed = |limit: &str| {
        let outcome = client.run("list", &["--limit", limit]);
        assert_eq!(outcome.code, 0, "{}", outcome.errors);
        outcome.lines.iter().map(|task| task["id"].clone()).collect::<Vec<_>>()
    };
    let all = listed("500");
    assert_eq!(all.iter().map(millisecond).collect::<Vec<_>>(), sent.iter().map(millisecond).collect::<Vec<_>>());
    assert!(sent.iter().all(|id| all.contains(id)), "{all:?}");
    for (limit, expected) in [("3", 3), ("100", 100), ("103", 103)] {
        assert_eq!(listed(limit), all[..expected]);
    }
    let context = client.sent("hello")["contextId"].take();
    let context = context.as_str().unwrap();
    let plain = client.run("list", &["--context-id", context]);
    assert_eq!((plain.lines.len(), plain.last().get("artifacts")), (1, None));
    let whole = client.run("list", &["--context-id", context, "--artifacts", "--history", "1"]);
    assert_eq!(whole.last()["artifacts"][0]["parts"][0]["text"], "echo: hello");
    assert_eq!(whole.last()["history"].as_array().map(Vec::len), Some(1));
    assert_eq!(client.run("list", &["--state", "rejected"]).text, "");
    assert_eq!(client.run("list", &["--since", "2999-01-01T00:00:00Z"]).text, "");
}
