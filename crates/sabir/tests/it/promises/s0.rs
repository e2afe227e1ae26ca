//! The promises of coding-agent-a2a.

use std::time::{Duration, Instant};

use sabir_testkit::sse::SseFrame;
use serde_json::{Value, json};

use crate::server_fixture::{ServerFixture, v03_message};

const CARD: &str = "/.well-known/agent-card.json";
const RPC: &str = "/a2a/jsonrpc";

fn stream(fixture: &ServerFixture, text: &str) -> Vec<Value> {
    fixture.stream_rpc(RPC, "message/stream", v03_message(text))
}

fn id_of(task: &Value) -> &str {
    task["id"].as_str().expect("a task has an id")
}

/// Like `2026-05-10T18:00:00.123Z`.
fn is_utc(timestamp: &str) -> bool {
    let Some((date, time)) = timestamp.strip_suffix('Z').and_then(|moment| moment.split_once('T')) else {
        return false;
    };
    let (seconds, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let shape = |text: &str| text.replace(|letter: char| letter.is_ascii_digit(), "0");
    shape(date) == "0000-00-00"
        && shape(seconds) == "00:00:00"
        && !fraction.is_empty()
        && shape(fraction).trim_matches('0').is_empty()
}

/// The card is one JSON object at `/.well-known/agent-card.json`, public: no credentials are asked for, and wrong ones do no
/// harm
#[test]
fn s0_01_the_card_is_public_json() {
    let fixture = ServerFixture::new();
    for headers in [&[][..], &[("Authorization", "Bearer nobody")], &[("Origin", "https://app.example")]] {
        let card = fixture.ask("GET", CARD, headers, &Value::Null);
        assert_eq!((card.status, card.header("content-type")), (200, Some("application/json")), "{headers:?}");
        assert!(card.json().is_object(), "{}", card.text());
    }
}

/// The card says protocol 0.3.0, the version of the product, streaming and state history, and its absolute `url`, which
/// ends in `/a2a/jsonrpc`, answers
#[test]
fn s0_02_the_card_tells_versions_url_and_capabilities() {
    let fixture = ServerFixture::new();
    let card = fixture.get(CARD).json();
    assert_eq!(card["protocolVersion"], "0.3.0");
    assert_eq!(card["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(card["capabilities"]["streaming"], true);
    assert_eq!(card["capabilities"]["stateTransitionHistory"], true);
    let origin = format!("http://{}", fixture.server.address);
    let path = card["url"].as_str().unwrap().strip_prefix(&origin).expect("an absolute address");
    assert_eq!(path, RPC);
    assert_eq!(fixture.rpc(path, "message/send", v03_message("hi"))["result"]["status"]["state"], "completed");
}

/// With `push.enabled = false` the card says that there are no webhooks, and every push method is -32003
#[test]
fn s0_03_webhooks_can_be_switched_off() {
    let fixture = ServerFixture::configured("[push]\nenabled = false\n");
    for version in ["", "0.3", "1.0"] {
        let card = fixture.ask("GET", CARD, &[("A2A-Version", version)], &Value::Null).json();
        assert_eq!(card["capabilities"]["pushNotifications"], false, "{version}: {card}");
    }
    let task = fixture.send("hello");
    let (id, url) = (id_of(&task), "https://hooks.example/a2a");
    for (method, params) in [
        ("tasks/pushNotificationConfig/set", json!({"taskId": id, "pushNotificationConfig": {"url": url}})),
        ("tasks/pushNotificationConfig/get", json!({"id": id})),
        ("tasks/pushNotificationConfig/list", json!({"id": id})),
        ("tasks/pushNotificationConfig/delete", json!({"id": id, "pushNotificationConfigId": "c"})),
        ("CreateTaskPushNotificationConfig", json!({"taskId": id, "url": url})),
        ("GetTaskPushNotificationConfig", json!({"taskId": id, "id": "c"})),
        ("ListTaskPushNotificationConfigs", json!({"taskId": id})),
        ("DeleteTaskPushNotificationConfig", json!({"taskId": id, "id": "c"})),
    ] {
        let answer = fixture.rpc(RPC, method, params);
        assert_eq!(answer["error"]["code"], -32003, "{method}: {answer}");
    }
}

/// A JSON-RPC answer has HTTP status 200, the request's `id` with its type, and either a result or an error
#[test]
fn s0_07_a_json_rpc_answer_has_the_id_of_its_request() {
    let fixture = ServerFixture::new();
    for id in [json!(1), json!("abc")] {
        for (params, has, lacks) in [(v03_message("hi"), "result", "error"), (json!({}), "error", "result")] {
            let reply =
                fixture.post(RPC, json!({"jsonrpc": "2.0", "id": id, "method": "message/send", "params": params}));
            assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")));
            let answer = reply.json();
            assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &id), "{answer}");
            assert!(answer.get(has).is_some() && answer.get(lacks).is_none(), "{answer}");
        }
    }
}

/// `message/send` answers with the finished task: ids that the server made, time of the status in UTC, artifacts, and the
/// message in its history
#[test]
fn s0_08_a_send_answers_with_the_whole_task() {
    let fixture = ServerFixture::new();
    let mut params = v03_message("Add a health check endpoint");
    params["configuration"] = json!({"blocking": true});
    let send = || fixture.rpc(RPC, "message/send", params.clone())["result"].take();
    let (task, other) = (send(), send());
    assert_eq!(task["kind"], "task", "{task}");
    for id in ["id", "contextId"] {
        assert!(task[id].as_str().is_some_and(|id| !id.is_empty()), "{id} in {task}");
        assert_ne!(task[id], other[id], "{id} is new with every task");
    }
    assert_eq!(task["status"]["state"], "completed");
    let timestamp = task["status"]["timestamp"].as_str().unwrap();
    assert!(is_utc(timestamp), "{timestamp}");
    assert_eq!(task["artifacts"][0]["parts"][0]["text"], "echo: Add a health check endpoint");
    let history = task["history"].as_array().unwrap();
    assert_eq!(history.len(), 1, "{task}");
    for key in ["kind", "messageId", "role", "parts"] {
        assert_eq!(history[0][key], params["message"][key], "{key}");
    }
}

/// `message/send` answers when the agent has ended, however long it works, and not before
#[test]
fn s0_09_a_send_waits_for_the_end_of_the_agent() {
    let fixture = ServerFixture::new();
    let start = Instant::now();
    let task = fixture.send("slow 0.7 hello");
    assert!(start.elapsed() >= Duration::from_millis(700), "it took {:?}", start.elapsed());
    assert_eq!(task["status"]["state"], "completed", "{task}");
}

/// `message/stream` answers with `text/event-stream`, every event one `data:` line of JSON and an empty line
#[test]
fn s0_10_a_stream_is_server_sent_events() {
    let fixture = ServerFixture::new();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": v03_message("stream 3 1")});
    let reply = fixture.post(RPC, body);
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("text/event-stream")));
    let text = reply.text();
    let mut blocks: Vec<&str> = text.split("\n\n").collect();
    assert_eq!(blocks.pop(), Some(""), "an empty line ends the last event, too");
    assert_eq!(blocks.len(), 6, "{text}");
    for block in blocks {
        let data: Vec<&str> = block.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
        assert_eq!(data.len(), 1, "{block}");
        assert!(serde_json::from_str::<Value>(data[0]).unwrap()["result"].is_object(), "{block}");
        assert!(block.lines().all(|line| line.starts_with("data: ") || line.starts_with("id: ")), "{block}");
    }
}

/// A stream tells that the agent is working, and all its frames carry the same task and context
#[test]
fn s0_11_a_stream_says_working_and_is_about_one_task() {
    let fixture = ServerFixture::new();
    let events = stream(&fixture, "stream 3 1");
    let working: Vec<&Value> = events.iter().filter(|event| event["status"]["state"] == "working").collect();
    assert_eq!(working.len(), 1, "{events:?}");
    assert_eq!((&working[0]["kind"], &working[0]["final"]), (&json!("status-update"), &json!(false)));
    assert!(working[0]["taskId"].is_string() && working[0]["contextId"].is_string(), "{}", working[0]);
    for event in &events {
        let id = if event["kind"] == "task" { &event["id"] } else { &event["taskId"] };
        assert_eq!((id, &event["contextId"]), (&working[0]["taskId"], &working[0]["contextId"]), "{event}");
    }
}

/// A tool that the agent uses is told as a working status with the text `Using tool: NAME`
#[test]
fn s0_13_a_tool_is_told_while_it_is_used() {
    let fixture = ServerFixture::new();
    let events = stream(&fixture, "tool read_file");
    let text = |event: &Value| event["status"]["message"]["parts"][0]["text"] == "Using tool: read_file";
    let event = events.iter().find(|event| text(event)).unwrap_or_else(|| panic!("{events:?}"));
    assert_eq!((&event["kind"], &event["final"]), (&json!("status-update"), &json!(false)));
    assert_eq!(event["status"]["state"], "working");
    assert_eq!(event["status"]["message"]["role"], "agent");
    assert_eq!(event["status"]["message"]["parts"][0]["kind"], "text");
}

/// The last frame of a stream is the terminal status with `final` true; after it the server closes and nothing follows
#[test]
fn s0_15_the_final_status_ends_the_stream() {
    let fixture = ServerFixture::new();
    let events = stream(&fixture, "stream 2 1");
    let finals: Vec<bool> = events.iter().map(|event| event["final"] == true).collect();
    assert_eq!(finals, [false, false, false, false, true], "{events:?}");
    let last = &events[4];
    assert_eq!((&last["kind"], &last["status"]["state"]), (&json!("status-update"), &json!("completed")));

    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": v03_message("bye")}).to_string();
    let mut http = fixture.server.http();
    http.send("POST", RPC, &[("Connection", "close")], body.as_bytes()).unwrap();
    assert!(http.receive().unwrap().text().contains(r#""final":true"#));
    let after = http.receive_head().unwrap_err();
    assert_eq!(after.kind(), std::io::ErrorKind::UnexpectedEof, "the connection is closed");
}

/// `tasks/get` with `taskId` gives the task as it stands: working while it runs, its last state afterwards
#[test]
fn s0_17_a_task_is_read_by_task_id() {
    let fixture = ServerFixture::new();
    let check = |id: &str, state: &str| {
        let task = fixture.rpc(RPC, "tasks/get", json!({"taskId": id}))["result"].take();
        assert_eq!((&task["kind"], &task["id"]), (&json!("task"), &json!(id)), "{task}");
        assert_eq!(task["status"]["state"], state);
    };
    let (id, mut events) = fixture.working("slow 60");
    check(&id, "working");
    fixture.rpc(RPC, "tasks/cancel", json!({"taskId": id}));
    events.rest().unwrap();
    check(&id, "canceled");
    for (text, state) in [("hello", "completed"), ("fail", "failed")] {
        check(id_of(&fixture.send(text)), state);
    }
}

/// `tasks/get` with a `taskId` that nobody knows is -32001
#[test]
fn s0_18_an_unknown_task_is_not_found() {
    let fixture = ServerFixture::new();
    let answer = fixture.rpc(RPC, "tasks/get", json!({"taskId": "nobody"}));
    assert_eq!(answer["error"]["code"], -32001, "{answer}");
    assert_eq!(answer["error"]["data"], json!({"taskId": "nobody"}));
    assert!(answer.get("result").is_none(), "{answer}");
}

/// `tasks/cancel` with `taskId` of a task that is over changes nothing and answers with the task as it is
#[test]
fn s0_20_a_cancel_of_a_finished_task_changes_nothing() {
    let fixture = ServerFixture::new();
    let (canceled, mut events) = fixture.working("slow 60");
    fixture.rpc(RPC, "tasks/cancel", json!({"taskId": canceled}));
    events.rest().unwrap();
    let (completed, failed) = (fixture.send("hello"), fixture.send("fail badly"));
    for (id, state) in [(id_of(&completed), "completed"), (id_of(&failed), "failed"), (canceled.as_str(), "canceled")] {
        let all = || {
            let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/resubscribe", "params": {"id": id}});
            fixture.stream(RPC, &[("Last-Event-ID", "0")], &body)
        };
        let (before, events) = (fixture.task(id), all());
        assert_eq!(before["status"]["state"], state);
        let answer = fixture.rpc(RPC, "tasks/cancel", json!({"taskId": id}));
        assert!(answer.get("error").is_none(), "{answer}");
        assert_eq!(answer["result"], before, "the answer is the task");
        assert_eq!(fixture.task(id), before);
        assert_eq!(all(), events, "no event is added");
    }
}

/// `tasks/cancel` with a `taskId` that nobody knows is -32001
#[test]
fn s0_21_a_cancel_of_an_unknown_task_is_not_found() {
    let fixture = ServerFixture::new();
    let answer = fixture.rpc(RPC, "tasks/cancel", json!({"taskId": "nobody"}));
    assert_eq!(answer["error"]["code"], -32001, "{answer}");
    assert_eq!(answer["error"]["data"], json!({"taskId": "nobody"}));
    assert!(answer.get("result").is_none(), "{answer}");
}

/// Every new task is seen as submitted first and as working next, however it ends
#[test]
fn s0_32_a_task_is_submitted_then_working() {
    let fixture = ServerFixture::new();
    for (text, end) in [
        ("hello", "completed"),
        ("fail", "failed"),
        ("reject", "rejected"),
        ("ask", "input-required"),
        ("auth", "auth-required"),
        ("stream 2 0", "completed"),
    ] {
        let events = stream(&fixture, text);
        let states: Vec<&Value> =
            events.iter().map(|event| &event["status"]["state"]).filter(|state| !state.is_null()).collect();
        assert_eq!(states, ["submitted", "working", end], "{text}");
    }
}

/// A body that is not JSON is -32700 with `id` null
#[test]
fn s0_35_a_body_that_is_no_json_is_a_parse_error() {
    let fixture = ServerFixture::new();
    let reply = fixture.post_text(RPC, "{not json");
    let answer = reply.json();
    assert_eq!((reply.status, &answer["error"]["code"]), (200, &json!(-32700)), "{answer}");
    assert_eq!((&answer["jsonrpc"], answer.get("id")), (&json!("2.0"), Some(&Value::Null)), "{answer}");
}

/// JSON without `jsonrpc` or without `method` is -32600
#[test]
fn s0_36_json_that_is_no_request_is_invalid() {
    let fixture = ServerFixture::new();
    for body in [
        json!({"id": 1, "method": "tasks/get", "params": {"taskId": "t"}}),
        json!({"jsonrpc": "2.0", "id": 1, "params": {"taskId": "t"}}),
    ] {
        let reply = fixture.post(RPC, body.clone());
        let answer = reply.json();
        assert_eq!((reply.status, &answer["error"]["code"]), (200, &json!(-32600)), "{body}: {answer}");
        assert_eq!(answer["id"], 1, "{answer}");
    }
}

/// A method that does not exist is -32601, with HTTP status 200
#[test]
fn s0_37_an_unknown_method_is_not_found() {
    let fixture = ServerFixture::new();
    let reply = fixture.post(RPC, json!({"jsonrpc": "2.0", "id": 1, "method": "nope/nope", "params": {}}));
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (200, &json!(-32601)), "{}", reply.text());
}

/// The frames of a stream come while the agent still runs, also to `curl -N`
#[test]
fn s0_38_frames_come_while_the_agent_runs() {
    let fixture = ServerFixture::new();
    let headers = [("User-Agent", "curl/8.5.0"), ("Accept", "text/event-stream")];
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": v03_message("stream 1000 50")});
    let mut events = fixture.open(RPC, &headers, &body);
    let first: Vec<Value> = (0..4).map(|_| events.next_frame().unwrap().unwrap().payload()).collect();
    let kinds: Vec<&Value> = first.iter().map(|event| &event["kind"]).collect();
    assert_eq!(kinds, ["task", "status-update", "artifact-update", "artifact-update"]);
    let id = id_of(&first[0]);
    assert_eq!(fixture.task(id)["status"]["state"], "working", "the agent still runs");
    fixture.rpc(RPC, "tasks/cancel", json!({"taskId": id}));
    let rest: Vec<Value> = events.rest().unwrap().iter().map(SseFrame::payload).collect();
    assert_eq!(rest.last().unwrap()["status"]["state"], "canceled");
}
