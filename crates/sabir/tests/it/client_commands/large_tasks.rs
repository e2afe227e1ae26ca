//! Servers that never stop: what a command keeps of a task, and of a list, has a limit.

use serde_json::{Value, json};

use super::fixture::run;
use super::peer_server::{Answer, NumberedEvent, PeerServer};

fn card(url: &str, binding: &str) -> String {
    let card = json!({
        "name": "Endless", "description": "It never stops.", "version": "1", "skills": [],
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "capabilities": {"streaming": true},
        "supportedInterfaces": [{"url": url, "protocolBinding": binding, "protocolVersion": "1.0"}],
    });
    card.to_string()
}

/// A server whose streams are these events for ever.
fn endless(event: NumberedEvent) -> PeerServer {
    PeerServer::start(move |url, request| match request.body.is_empty() {
        true => Answer::Json(card(url, "HTTP+JSON")),
        false => Answer::Endless(event),
    })
}

fn artifact(number: usize, artifact: &Value) -> String {
    let task = json!({"id": "t1", "contextId": "c1", "status": {"state": "TASK_STATE_WORKING"}});
    let update = json!({"taskId": "t1", "contextId": "c1", "artifact": artifact, "append": number > 1});
    if number == 0 { json!({"task": task}).to_string() } else { json!({"artifactUpdate": update}).to_string() }
}

fn large() -> String {
    "x".repeat(1 << 20)
}

#[test]
fn a_task_without_end_is_left_at_a_limit_that_the_error_names() {
    let folder = tempfile::tempdir().unwrap();
    let rows: [(&str, NumberedEvent); 3] = [
        ("text", |number| artifact(number, &json!({"artifactId": "a", "parts": [{"text": large()}]}))),
        ("names of types", |number| {
            artifact(number, &json!({"artifactId": "a", "parts": [{"text": "x", "mediaType": large()}]}))
        }),
        ("metadata", |number| {
            let id = format!("a{number}");
            artifact(number, &json!({"artifactId": id, "parts": [{"text": "x"}], "metadata": {"m": large()}}))
        }),
    ];
    for (name, event) in rows {
        let peer = endless(event);
        let url = peer.url.as_str();
        for format in ["text", "json"] {
            let words = ["send", url, "hello", "--format", format, "--output", "out", "--timeout", "100s"];
            let outcome = run(&folder, &words, &[], "");
            let expected = format!(
                "sabir: the task has become larger than 67108864 bytes; no more of a task is kept here, and it continues; \
                 to stop it: sabir cancel {url} t1; to fetch it when it has ended: sabir get {url} t1\n"
            );
            assert_eq!((outcome.code, &outcome.errors), (1, &expected), "{name} as {format}");
        }
    }
}

#[test]
fn a_list_is_printed_page_by_page() {
    let folder = tempfile::tempdir().unwrap();
    // The third page never comes; what came before it is there all the same.
    let peer = PeerServer::start(|url, request| {
        let Ok(call) = serde_json::from_str::<Value>(&request.body) else {
            return Answer::Json(card(url, "JSONRPC"));
        };
        let page = request.earlier;
        if page == 2 {
            return Answer::Json(
                json!({"jsonrpc": "2.0", "id": call["id"], "error": {"code": -32602, "message": "no"}}).to_string(),
            );
        }
        let task = json!({"id": format!("t{page}"), "contextId": "c1", "status": {"state": "TASK_STATE_WORKING"}});
        let result = json!({"tasks": [task], "nextPageToken": format!("p{page}"), "pageSize": 1, "totalSize": 9});
        Answer::Json(json!({"jsonrpc": "2.0", "id": call["id"], "result": result}).to_string())
    });
    let outcome = run(&folder, &["list", &peer.url], &[], "");
    let ids: Vec<&Value> = outcome.lines.iter().map(|line| &line["id"]).collect();
    assert_eq!(ids, [&json!("t0"), &json!("t1"), &Value::Null], "{}", outcome.errors);
    assert_eq!((outcome.code, outcome.last()["error"]["code"].is_string()), (7, true), "{}", outcome.text);
    // People get a table of what was asked for.
    let outcome = run(&folder, &["list", &peer.url, "--limit", "1", "--format", "text"], &[], "");
    assert_eq!(outcome.code, 0, "{}", outcome.errors);
    assert_eq!(outcome.text.lines().count(), 2, "{}", outcome.text);
}
