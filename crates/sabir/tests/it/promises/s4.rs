//! The promises of protoAgent.

use std::net::{TcpListener, TcpStream};

use sabir_testkit::http::Http;
use sabir_testkit::sse::{Events, SseFrame};
use serde_json::{Value, json};

use crate::server_fixture::ServerFixture;

const CARD: &str = "/.well-known/agent-card.json";
const RPC: &str = "/a2a";
const COST: &str = "https://proto-labs.ai/a2a/ext/cost-v1";
const TOOL_CALL: &str = "https://proto-labs.ai/a2a/ext/tool-call-v1";

/// A message as this system's clients spell it: no kind, no id.
fn message(text: &str) -> Value {
    json!({"message": {"role": "user", "parts": [{"text": text}]}})
}

fn send(fixture: &ServerFixture, text: &str) -> Value {
    result(fixture.rpc(RPC, "message/send", message(text)))
}

fn get(fixture: &ServerFixture, id: &Value) -> Value {
    result(fixture.rpc(RPC, "tasks/get", json!({"id": id})))
}

fn result(mut answer: Value) -> Value {
    assert!(answer.get("error").is_none(), "{answer}");
    answer["result"].take()
}

fn stream(fixture: &ServerFixture, text: &str) -> Vec<Value> {
    fixture.stream_rpc(RPC, "message/stream", message(text))
}

/// A stream to be read frame by frame.
fn open(fixture: &ServerFixture, text: &str) -> Events {
    fixture.open(RPC, &[], &json!({"jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": message(text)}))
}

fn resubscribe(fixture: &ServerFixture, id: &Value, headers: &[(&str, &str)]) -> Events {
    let body = json!({"jsonrpc": "2.0", "id": 2, "method": "tasks/resubscribe", "params": {"id": id}});
    fixture.open(RPC, headers, &body)
}

/// All that ever happened in a task.
fn replay(fixture: &ServerFixture, id: &Value) -> Vec<SseFrame> {
    resubscribe(fixture, id, &[("Last-Event-ID", "0")]).rest().unwrap()
}

/// The next frame; the stream is not over yet.
fn next(events: &mut Events) -> SseFrame {
    events.next_frame().unwrap().expect("the stream goes on")
}

/// Reads until the agent works; the task's id.
fn until_working(events: &mut Events) -> Value {
    let task = next(events).payload();
    assert_eq!(next(events).payload()["status"]["state"], "working");
    task["id"].clone()
}

/// The text in the artifacts of a task, or in the piece of one.
fn text_of(payload: &Value) -> String {
    let artifacts = match payload["kind"].as_str() {
        Some("task") => payload["artifacts"].as_array().cloned().unwrap_or_default(),
        Some("artifact-update") => vec![payload["artifact"].clone()],
        _ => Vec::new(),
    };
    let parts = artifacts.iter().flat_map(|artifact| artifact["parts"].as_array().expect("an artifact has parts"));
    parts.map(|part| part["text"].as_str().expect("a part has text")).collect()
}

fn chunks(count: usize) -> String {
    (1..=count).map(|i| format!("chunk {i}\n")).collect()
}

/// A port that nobody gets by asking for any.
fn free_port() -> u16 {
    let first = 20_000 + (std::process::id() % 10_000) as u16;
    (first..first + 2_000).find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).expect("a port is free")
}

/// `/.well-known/agent-card.json` and `/.well-known/agent.json` are the same, byte for byte
#[test]
fn s4_01_both_paths_of_the_card_give_the_same() {
    for fixture in [ServerFixture::new(), ServerFixture::with_agents(&["alpha", "beta"])] {
        let (card, old) = (fixture.get(CARD), fixture.get("/.well-known/agent.json"));
        assert_eq!((card.status, old.status), (200, 200));
        assert!(card.json().is_object());
        assert_eq!(card.body, old.body);
        assert_eq!(card.header("etag"), old.header("etag"));
    }
}

/// `--listen :7870` serves on that port, for this machine only
#[test]
fn s4_02_it_listens_where_it_is_told() {
    let port = free_port();
    let fixture = ServerFixture::with(|options| options.argument("--listen").argument(&format!(":{port}")));
    let mut http = Http::connect(([127, 0, 0, 1], port).into()).expect("it listens there");
    assert_eq!(http.exchange("GET", CARD, &[], b"").unwrap().status, 200);
    assert!(TcpStream::connect(("127.0.0.2", port)).is_err(), "it listens on one address alone");
    assert_eq!(fixture.get(CARD).status, 200, "and on the other one that it was given");
}

/// `message/send` on `/a2a` takes parts without `kind` and messages without `messageId`, waits for the end, and keeps the
/// request's `metadata` with the task, where the agent reads the skill's name
#[test]
fn s4_03_a_plain_message_with_a_skill_is_accepted() {
    let fixture = ServerFixture::new();
    let params = json!({"message": {"role": "user", "parts": [{"text": "slow 0.1 summarize"}]}, "metadata": {"skill": "summarize_pr"}});
    let task = result(fixture.rpc(RPC, "message/send", params));
    assert_eq!(task["status"]["state"], "completed", "{task}");
    assert_eq!(text_of(&task), "echo: slow 0.1 summarize");
    assert_eq!(task["metadata"], json!({"skill": "summarize_pr"}));
    assert!(task["history"][0]["messageId"].as_str().is_some_and(|id| !id.is_empty()), "{task}");
    assert_eq!(get(&fixture, &task["id"])["metadata"], json!({"skill": "summarize_pr"}));
}

/// The answer of `message/send` is the task, with `data.usage` (input, output and total tokens) and `data.durationMs`
#[test]
fn s4_04_the_task_tells_what_it_cost() {
    let fixture = ServerFixture::new();
    let task = send(&fixture, "usage 1200 340");
    assert_eq!((&task["kind"], &task["status"]["state"]), (&json!("task"), &json!("completed")), "{task}");
    for key in ["id", "contextId"] {
        assert!(task[key].as_str().is_some_and(|id| !id.is_empty()), "{key} in {task}");
    }
    assert_eq!(text_of(&task), "echo: usage 1200 340");
    let usage = json!({"input_tokens": 1200, "output_tokens": 340, "total_tokens": 1540});
    assert_eq!(task["data"]["usage"], usage, "{task}");
    assert!(task["data"]["durationMs"].is_u64(), "{task}");
    assert_eq!(get(&fixture, &task["id"])["data"], task["data"]);
    let slow = send(&fixture, "slow 0.1 usage 1 2");
    assert!(slow["data"]["durationMs"].as_u64().is_some_and(|millis| millis >= 100), "{slow}");
}

/// The first frame of `message/stream` on `/a2a` is the task as it begins
#[test]
fn s4_05_a_stream_begins_with_the_task() {
    let fixture = ServerFixture::new();
    let first = &stream(&fixture, "hello")[0];
    assert_eq!((&first["kind"], &first["status"]["state"]), (&json!("task"), &json!("submitted")), "{first}");
    assert!(first["id"].is_string() && first["contextId"].is_string(), "{first}");
    assert_eq!(first["history"][0]["parts"][0]["text"], "hello");
    assert_eq!(text_of(first), "");
}

/// Every frame of a stream has a `kind`: `task`, `status-update` or `artifact-update`
#[test]
fn s4_06_every_frame_has_a_kind() {
    let fixture = ServerFixture::new();
    for text in ["hello", "stream 3 0", "tool grep", "usage 1 2", "fail", "reject", "ask Which day?", "auth"] {
        let frames = stream(&fixture, text);
        assert!(frames.len() >= 3, "{frames:?}");
        for (at, frame) in frames.iter().enumerate() {
            let kind = frame["kind"].as_str().unwrap_or_default();
            let expected: &[&str] = if at == 0 { &["task"] } else { &["status-update", "artifact-update"] };
            assert!(expected.contains(&kind), "{text}, frame {at}: {frame}");
            assert_eq!(frame.get("status").is_some(), kind != "artifact-update", "{frame}");
            assert_eq!(frame.get("artifact").is_some(), kind == "artifact-update", "{frame}");
        }
    }
}

/// The start and the end of a tool are each a `status-update`, with the call in the message's metadata as the tool-call
/// extension has it
#[test]
fn s4_07_tools_are_told_when_they_start_and_when_they_end() {
    let frames = stream(&ServerFixture::new(), "tool grep");
    let shown: Vec<&Value> = frames.iter().filter(|frame| frame["status"]["message"].is_object()).collect();
    let [start, end] = shown.as_slice() else { panic!("{frames:?}") };
    for (frame, text, phase) in
        [(start, "Using tool: grep", "started"), (end, "Tool result: grep is done", "completed")]
    {
        assert_eq!((&frame["kind"], &frame["final"]), (&json!("status-update"), &json!(false)), "{frame}");
        assert_eq!(frame["status"]["state"], "working");
        let message = &frame["status"]["message"];
        assert_eq!((&message["role"], &message["parts"][0]["text"]), (&json!("agent"), &json!(text)));
        let call = &message["metadata"][TOOL_CALL];
        assert_eq!((&call["name"], &call["phase"]), (&json!("grep"), &json!(phase)), "{frame}");
        assert!(message["extensions"].as_array().is_some_and(|uris| uris.contains(&json!(TOOL_CALL))), "{frame}");
    }
    let call = |frame: &Value| frame["status"]["message"]["metadata"][TOOL_CALL]["toolCallId"].clone();
    assert!(call(start).is_string());
    assert_eq!(call(start), call(end), "both tell of the same call");
    assert_eq!(text_of(&frames[frames.len() - 2]), "echo: tool grep");
}

/// What an agent writes in pieces comes as `artifact-update` frames while it is still at work
#[test]
fn s4_08_pieces_come_while_the_agent_works() {
    let fixture = ServerFixture::new();
    let mut events = open(&fixture, "stream 2 60000");
    let id = until_working(&mut events);
    let piece = next(&mut events).payload();
    assert_eq!((&piece["kind"], text_of(&piece).as_str()), (&json!("artifact-update"), "chunk 1\n"), "{piece}");
    assert_eq!((&piece["append"], &piece["lastChunk"]), (&json!(false), &json!(false)));
    let task = get(&fixture, &id);
    assert_eq!((&task["status"]["state"], text_of(&task).as_str()), (&json!("working"), "chunk 1\n"));
}

/// `tasks/get` on `/a2a` with `id` gives the task at any time
#[test]
fn s4_09_a_task_can_be_read_at_any_time() {
    let fixture = ServerFixture::new();
    let mut events = open(&fixture, "slow 60");
    let id = until_working(&mut events);
    for (id, state) in [
        (id, "working"),
        (send(&fixture, "hello")["id"].take(), "completed"),
        (send(&fixture, "ask Which day?")["id"].take(), "input-required"),
        (send(&fixture, "fail")["id"].take(), "failed"),
    ] {
        let task = get(&fixture, &id);
        assert_eq!((&task["kind"], &task["id"]), (&json!("task"), &id), "{task}");
        assert_eq!(task["status"]["state"], state);
    }
}

/// `tasks/resubscribe` with `id` picks up a stream that was lost: with `Last-Event-ID` exactly what is missing, without it
/// the task so far and what follows; either way the whole answer once, up to the final frame
#[test]
fn s4_10_a_lost_stream_is_picked_up_without_a_gap() {
    const COUNT: usize = 40;
    let fixture = ServerFixture::new();
    for is_exact in [true, false] {
        let mut events = open(&fixture, &format!("stream {COUNT} 25"));
        let id = until_working(&mut events);
        let seen: Vec<SseFrame> = (0..5).map(|_| next(&mut events)).collect();
        drop(events);
        let mut text: String = seen.iter().map(|frame| text_of(&frame.payload())).collect();
        assert_eq!(text, chunks(5));

        let last = seen[4].id.expect("frames have numbers").to_string();
        let headers = [("Last-Event-ID", last.as_str())];
        let rest = resubscribe(&fixture, &id, if is_exact { &headers } else { &[] }).rest().unwrap();
        let mut payloads: Vec<Value> = rest.iter().map(SseFrame::payload).collect();
        if !is_exact {
            let snapshot = payloads.remove(0);
            assert_eq!((&snapshot["kind"], &snapshot["id"]), (&json!("task"), &id), "{snapshot}");
            assert!(text_of(&snapshot).starts_with(&text), "what was seen is in the snapshot");
            text = text_of(&snapshot);
        }
        let pieces: Vec<&Value> = payloads.iter().filter(|payload| payload["kind"] == "artifact-update").collect();
        assert!(!pieces.is_empty() && pieces.iter().all(|piece| piece["append"] == true), "it was in mid-stream");
        text.extend(pieces.into_iter().map(text_of));
        assert_eq!(text, chunks(COUNT));
        let end = payloads.last().unwrap();
        assert_eq!((&end["kind"], &end["final"]), (&json!("status-update"), &json!(true)), "{end}");
        assert_eq!(end["status"]["state"], "completed");
        assert_eq!(text_of(&get(&fixture, &id)), text);
    }
}

/// A client that hangs up in mid-stream does not stop the task
#[test]
fn s4_11_a_task_outlives_its_stream() {
    let fixture = ServerFixture::new();
    let mut events = open(&fixture, "slow 0.5 hello");
    let id = until_working(&mut events);
    drop(events);
    assert_eq!(get(&fixture, &id)["status"]["state"], "working");
    let task = fixture
        .server
        .until("it ends", |_| Some(get(&fixture, &id)).filter(|task| task["status"]["state"] != "working"));
    assert_eq!((&task["status"]["state"], text_of(&task).as_str()), (&json!("completed"), "echo: slow 0.5 hello"));
}

/// `tasks/cancel` on `/a2a` with `id` cancels a task that runs
#[test]
fn s4_12_a_running_task_is_cancelled() {
    let fixture = ServerFixture::new();
    let mut events = open(&fixture, "slow 60");
    let id = until_working(&mut events);
    let task = result(fixture.rpc(RPC, "tasks/cancel", json!({"id": id})));
    assert_eq!((&task["kind"], &task["id"]), (&json!("task"), &id), "{task}");
    assert_eq!(task["status"]["state"], "canceled");
    let end = events.rest().unwrap().last().expect("the stream tells").payload();
    assert_eq!((&end["status"]["state"], &end["final"]), (&json!("canceled"), &json!(true)), "{end}");
    assert_eq!(get(&fixture, &id)["status"]["state"], "canceled");
}

/// `tasks/cancel` on `/a2a` of a task that has ended is no error and changes nothing
#[test]
fn s4_13_a_cancel_of_a_finished_task_does_nothing() {
    let fixture = ServerFixture::new();
    let mut events = open(&fixture, "slow 60");
    let canceled = until_working(&mut events);
    result(fixture.rpc(RPC, "tasks/cancel", json!({"id": canceled})));
    for (id, state) in [
        (canceled, "canceled"),
        (send(&fixture, "hello")["id"].take(), "completed"),
        (send(&fixture, "fail")["id"].take(), "failed"),
        (send(&fixture, "reject")["id"].take(), "rejected"),
    ] {
        let (before, events) = (get(&fixture, &id), replay(&fixture, &id));
        assert_eq!(before["status"]["state"], state);
        assert_eq!(result(fixture.rpc(RPC, "tasks/cancel", json!({"id": id}))), before);
        assert_eq!((get(&fixture, &id), replay(&fixture, &id)), (before, events), "{state}");
    }
}

/// `GET /a2a/tasks/ID` answers as `tasks/get` does; an unknown id is 404
#[test]
fn s4_24_a_task_can_be_read_by_its_address() {
    let fixture = ServerFixture::new();
    for text in ["hello", "ask Which day?", "fail", "usage 1 2"] {
        let id = send(&fixture, text)["id"].take();
        let reply = fixture.get(&format!("/a2a/tasks/{}", id.as_str().unwrap()));
        assert_eq!(reply.status, 200);
        assert_eq!(reply.json(), get(&fixture, &id));
    }
    let reply = fixture.get("/a2a/tasks/ghost");
    assert_eq!((reply.status, reply.header("content-type")), (404, Some("application/problem+json")));
    assert_eq!(reply.json()["a2a_code"], -32001, "{}", reply.text());
}

/// The card lists the extensions for cost and tool calls: each one is really sent, in the metadata of artifacts and of
/// messages, under its URI. The only other one is that the server knows `Idempotency-Key`, which nothing is sent for
#[test]
fn s4_29_the_card_lists_the_extensions_that_are_sent() {
    let fixture = ServerFixture::new();
    let card = fixture.get(CARD).json();
    let extensions = card["capabilities"]["extensions"].as_array().expect("an array").clone();
    let mut listed: Vec<&str> = extensions.iter().map(|extension| extension["uri"].as_str().unwrap()).collect();
    listed.sort_unstable();
    assert_eq!(listed, [COST, TOOL_CALL, "urn:sabir:a2a:ext:idempotency-key-v1"]);

    let task = send(&fixture, "usage 1200 340");
    let cost = &task["artifacts"][0]["metadata"][COST];
    assert_eq!(cost["usage"], task["data"]["usage"], "{task}");
    assert_eq!((&cost["usage"]["total_tokens"], &cost["success"]), (&json!(1540), &json!(true)), "{task}");
    assert!(cost["durationMs"].is_u64(), "{task}");
    assert_eq!(task["artifacts"][0]["extensions"], json!([COST]));

    let frames = stream(&fixture, "tool grep");
    assert!(frames.iter().any(|frame| frame["status"]["message"]["metadata"][TOOL_CALL].is_object()), "{frames:?}");
}
