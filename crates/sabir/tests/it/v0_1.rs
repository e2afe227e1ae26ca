//! Clients of 0.1, and what of 0.2 is its own, served by the real program.

use std::fs;
use std::thread;

use sabir_testkit::http::HttpReply;
use sabir_testkit::process::{SabirOptions, SabirProcess};
use sabir_testkit::sse::{self, Events, SseFrame};
use serde_json::{Value, json};

use crate::SABIR;

struct V01Fixture {
    server: SabirProcess,
    _folder: Option<tempfile::TempDir>,
}

impl V01Fixture {
    fn new() -> Self {
        Self::with("")
    }

    fn with(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("sabir.toml"), config).unwrap();
        let server = SabirOptions::new(SABIR, folder.path()).start();
        Self { server, _folder: Some(folder) }
    }

    fn ask(&self, verb: &str, path: &str, headers: &[(&str, &str)], body: &str) -> HttpReply {
        self.server.http().exchange(verb, path, headers, body.as_bytes()).expect("it answers")
    }

    fn call(&self, path: &str, version: &str, method: &str, params: Value) -> Value {
        self.ask("POST", path, &[("A2A-Version", version)], &request(method, params)).json()
    }

    /// Without a version, at the first mount.
    fn rpc(&self, method: &str, params: Value) -> Value {
        self.call("/", "", method, params)
    }

    fn send(&self, id: &str, text: &str) -> Value {
        let answer = self.rpc("tasks/send", message(id, text));
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    fn open(&self, headers: &[(&str, &str)], method: &str, params: Value) -> Events {
        let body = request(method, params);
        let opened = sse::open(self.server.address, "POST", "/", headers, body.as_bytes()).unwrap();
        opened.unwrap_or_else(|reply| panic!("{}", reply.text()))
    }

    fn stream(&self, headers: &[(&str, &str)], method: &str, params: Value) -> Vec<SseFrame> {
        self.open(headers, method, params).rest().unwrap()
    }
}

fn request(method: &str, params: Value) -> String {
    json!({"jsonrpc": "2.0", "id": "req-001", "method": method, "params": params}).to_string()
}

fn message(id: &str, text: &str) -> Value {
    json!({"id": id, "message": {"role": "user", "parts": [{"type": "text", "text": text}]}})
}

/// What a frame says, in a few words.
fn say(frame: &SseFrame) -> String {
    let payload = frame.payload();
    let end = if payload["final"] == true { " final" } else { "" };
    let made = payload["artifacts"].as_array().map_or(String::new(), |made| format!(" with {}", made.len()));
    match payload["artifact"].as_object() {
        Some(artifact) => format!(
            "{} of {}{}{}",
            artifact["parts"][0]["text"].as_str().unwrap_or_default().trim(),
            artifact["index"],
            if artifact.get("append") == Some(&json!(true)) { " append" } else { "" },
            if artifact.get("lastChunk") == Some(&json!(true)) { " last" } else { "" },
        ),
        None => format!("{}{end}{made}", payload["status"]["state"].as_str().unwrap()),
    }
}

fn all(frames: &[SseFrame]) -> Vec<String> {
    frames.iter().map(say).collect()
}

#[test]
fn a_client_names_its_task() {
    let fixture = V01Fixture::new();
    for path in ["/", "/a2a", "/a2a/jsonrpc", "/v1/a2a", "/a2a/v0.1", "/agents/demo/a2a", "/agents/demo/a2a/v0.1"] {
        let id = format!("task at {path}");
        let mut params = message(&id, "hello");
        params["sessionId"] = json!("s");
        params["metadata"] = json!({"n": 1.0});
        let answer = fixture.call(path, "", "tasks/send", params);
        assert_eq!(answer["id"], "req-001", "{path}");
        let mut task = answer["result"].clone();
        let time = task["status"]["timestamp"].take();
        assert!(time.as_str().unwrap().ends_with('Z'), "{time}");
        let made = task["artifacts"][0]["id"].take();
        assert!(made.is_string(), "{answer}");
        let expected = json!({
            "id": id, "sessionId": "s", "status": {"state": "completed", "timestamp": null}, "metadata": {"n": 1.0},
            "artifacts": [{"id": null, "name": "result", "index": 0, "parts": [{"type": "text", "text": "echo: hello"}]}],
            "history": [{"role": "user", "parts": [{"type": "text", "text": "hello"}]}],
        });
        assert_eq!(task, expected, "{path}");
        assert_eq!(fixture.call(path, "", "tasks/get", json!({"id": id}))["result"], answer["result"], "{path}");
    }
    // A session is what later versions call a context.
    let listed = fixture.call("/", "1.0", "ListTasks", json!({"contextId": "s"}));
    assert_eq!(listed["result"]["totalSize"], 7, "{listed}");
    let unnamed = fixture.send("without session", "hello");
    assert!(unnamed["sessionId"].as_str().is_some_and(|id| !id.is_empty()), "{unnamed}");
}

#[test]
fn parts_of_every_kind_come_back_in_order() {
    let fixture = V01Fixture::new();
    let parts = json!([
        {"type": "text", "text": "look", "metadata": {"a": 1}},
        {"type": "file", "file": {"name": "a.txt", "mimeType": "text/plain", "bytes": "SGVsbG8="}},
        {"type": "file", "file": {"uri": "https://example.com/a.txt"}},
        {"type": "data", "data": {"berth": 4}},
        {"type": "data", "data": [1, 2], "metadata": {"b": 2}},
    ]);
    let sent = fixture.rpc("tasks/send", json!({"id": "t", "message": {"role": "user", "parts": parts.clone()}}));
    let made = sent["result"]["artifacts"][0]["parts"].as_array().unwrap();
    assert_eq!(made[0], json!({"type": "text", "text": "echo: look"}));
    assert_eq!(made[1..4], parts.as_array().unwrap()[1..4]);
    // What is no object travels in one, so that clients which follow the schema can read it.
    let wrapped = json!({"type": "data", "data": {"value": [1, 2]}, "metadata": {"data_part_compat": true, "b": 2}});
    assert_eq!(made[4], wrapped);
    let read = fixture.rpc("GetTask", json!({"id": "t"}));
    assert_eq!(read["result"]["artifacts"][0]["parts"][4], json!({"data": [1, 2], "metadata": {"b": 2}}));
    let bad = json!({"id": "u", "message": {"role": "user", "parts": [{"type": "file", "file": {"bytes": "?"}}]}});
    let refused = fixture.rpc("tasks/send", bad);
    assert_eq!(refused["error"]["code"], -32602);
    assert_eq!(refused["error"]["data"]["detail"], "message.parts[0].file.bytes must be base64");
    assert_eq!(fixture.rpc("tasks/get", json!({"id": "u"}))["error"]["code"], -32001, "nothing was made");
}

#[test]
fn a_second_message_continues_the_task() {
    let fixture = V01Fixture::new();
    let asked = fixture.send("t", "ask Which day?");
    assert_eq!(asked["status"]["state"], "input-required");
    assert_eq!(asked["status"]["message"], json!({"role": "agent", "parts": [{"type": "text", "text": "Which day?"}]}));
    let done = fixture.send("t", "friday");
    assert_eq!((&done["id"], &done["sessionId"]), (&json!("t"), &asked["sessionId"]));
    assert_eq!(done["status"]["state"], "completed");
    for (length, expected) in
        [(json!(null), vec!["ask Which day?", "Which day?", "friday"]), (json!(1), vec!["friday"]), (json!(0), vec![])]
    {
        let task = &fixture.rpc("tasks/get", json!({"id": "t", "historyLength": length}))["result"];
        let none = vec![];
        let history = task["history"].as_array().unwrap_or(&none).iter();
        let texts: Vec<&str> = history.map(|message| message["parts"][0]["text"].as_str().unwrap()).collect();
        assert_eq!(texts, expected, "{length}");
    }
    // A session alone answers nobody here: every id that is new makes a task.
    let waiting = fixture.send("w", "ask Where?");
    let mut other = message("x", "here");
    other["sessionId"] = waiting["sessionId"].clone();
    assert_eq!(fixture.rpc("tasks/send", other)["result"]["status"]["state"], "completed");
    assert_eq!(fixture.rpc("tasks/get", json!({"id": "w"}))["result"]["status"]["state"], "input-required");
}

#[test]
fn states_and_answers_that_0_1_does_not_know() {
    let fixture = V01Fixture::new();
    for (text, state, words) in [
        ("reject no way", "failed", "no way"),
        ("fail badly", "failed", "badly"),
        ("auth who are you?", "input-required", "who are you?"),
        ("message hi there", "completed", "hi there"),
    ] {
        let task = fixture.send(text, text);
        assert_eq!(task["status"]["state"], state, "{text}");
        assert_eq!(task["status"]["message"]["parts"][0]["text"], words, "{text}");
        assert!(task["status"]["message"].get("messageId").is_none() && task.get("kind").is_none(), "{task}");
    }
    let read = fixture.rpc("GetTask", json!({"id": "reject no way"}));
    assert_eq!(read["result"]["status"]["state"], "TASK_STATE_REJECTED", "it is kept as it was");
    let frames = fixture.stream(&[], "tasks/sendSubscribe", message("direct", "message hi"));
    assert_eq!(all(&frames), ["submitted", "working", "completed final"]);
}

#[test]
fn two_agents_may_have_tasks_of_one_name() {
    let fixture = V01Fixture::with(
        "[[agent]]\nid = \"alpha\"\nkind = \"demo\"\ndefault = true\n\n[[agent]]\nid = \"beta\"\nkind = \"demo\"\n",
    );
    let mut sessions = Vec::new();
    for agent in ["alpha", "beta"] {
        let path = format!("/agents/{agent}/a2a");
        let asked = fixture.call(&path, "", "tasks/send", message("t", &format!("ask {agent}?")));
        assert_eq!(asked["result"]["status"]["message"]["parts"][0]["text"], format!("{agent}?"), "{asked}");
        sessions.push(asked["result"]["sessionId"].clone());
    }
    assert_ne!(sessions[0], sessions[1]);
    let done = fixture.call("/agents/beta/a2a", "", "tasks/send", message("t", "yes"));
    assert_eq!(done["result"]["status"]["state"], "completed");
    let waiting = fixture.call("/agents/alpha/a2a", "", "tasks/get", json!({"id": "t"}));
    assert_eq!(waiting["result"]["status"]["state"], "input-required");
    // At the root a send is for the default agent.
    assert_eq!(fixture.send("t", "yes")["sessionId"], sessions[0]);
}

#[test]
fn sends_of_one_new_name_at_once_make_one_task() {
    let fixture = V01Fixture::new();
    for round in 0..10 {
        let id = format!("t-{round}");
        thread::scope(|scope| {
            for caller in 0..6 {
                let (fixture, id) = (&fixture, &id);
                scope.spawn(move || assert_eq!(fixture.send(id, &format!("ask {caller}?"))["id"], id.as_str()));
            }
        });
        let task = &fixture.rpc("tasks/get", json!({"id": id}))["result"];
        let history = task["history"].as_array().unwrap();
        let from_callers = history.iter().filter(|message| message["role"] == "user").count();
        assert_eq!(from_callers, 6, "{task}");
    }
    assert_eq!(fixture.call("/", "1.0", "ListTasks", json!({}))["result"]["totalSize"], 10);
}

#[test]
fn a_stream_ends_with_what_was_made() {
    let fixture = V01Fixture::new();
    let frames = fixture.stream(&[], "tasks/sendSubscribe", message("t", "stream 3 1"));
    assert_eq!(
        all(&frames),
        [
            "submitted",
            "working",
            "chunk 1 of 0",
            "chunk 2 of 0 append",
            "chunk 3 of 0 append last",
            "completed final with 1"
        ]
    );
    assert_eq!(frames.iter().filter_map(|frame| frame.id).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    for frame in &frames {
        let envelope = frame.json();
        assert_eq!((&envelope["jsonrpc"], &envelope["id"]), (&json!("2.0"), &json!("req-001")));
        assert_eq!(frame.payload()["id"], "t");
        assert!(frame.payload().get("kind").is_none() && frame.payload().get("taskId").is_none(), "{}", frame.data);
    }
    let end = frames[5].payload();
    assert_eq!(end["artifacts"][0]["parts"], json!([{"type": "text", "text": "chunk 1\nchunk 2\nchunk 3\n"}]));
    assert_eq!(end["artifacts"][0]["id"], frames[2].payload()["artifact"]["id"]);
    let task = &fixture.rpc("tasks/get", json!({"id": "t"}))["result"];
    assert_eq!((&task["artifacts"], &task["status"]), (&end["artifacts"], &end["status"]));

    // A turn that ends by asking ends the stream as well, and the answer opens the next one.
    let asked = fixture.stream(&[], "tasks/sendSubscribe", message("a", "ask Which?"));
    assert_eq!(all(&asked), ["submitted", "working", "input-required final"]);
    let answered = fixture.stream(&[], "tasks/sendSubscribe", message("a", "this"));
    assert_eq!(all(&answered), ["working", "echo: this of 0 last", "completed final with 1"]);

    // Other versions see the same stream without it.
    let replayed =
        fixture.stream(&[("Last-Event-ID", "5"), ("A2A-Version", "0.3")], "tasks/resubscribe", json!({"id": "t"}));
    assert_eq!(replayed.len(), 1);
    assert_eq!(
        (&replayed[0].payload()["kind"], &replayed[0].payload()["final"]),
        (&json!("status-update"), &json!(true))
    );
    assert!(replayed[0].payload().get("artifacts").is_none());
}

#[test]
fn a_stream_is_resumed_byte_for_byte_even_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let options = SabirOptions::new(SABIR, folder.path());
    let fixture = V01Fixture { server: options.start(), _folder: None };
    let live = fixture.stream(&[], "tasks/sendSubscribe", message("t", "stream 4 1"));
    let check = |fixture: &V01Fixture| {
        for seen in 0..live.len() {
            let last = seen.to_string();
            let rest = fixture.stream(&[("Last-Event-ID", &last)], "tasks/resubscribe", json!({"id": "t"}));
            assert_eq!(rest, live[seen..], "after {seen}");
        }
        // Without a cursor: how it stands, which does not end the reading, and its end once more.
        let whole = fixture.stream(&[], "tasks/resubscribe", json!({"id": "t"}));
        assert_eq!(all(&whole), ["completed", "completed final with 1"]);
        assert_eq!((whole[0].id, &whole[1]), (Some(7), live.last().unwrap()));
    };
    check(&fixture);
    fixture.server.kill();
    let fixture = V01Fixture { server: options.start(), _folder: None };
    check(&fixture);
    let beyond = request("tasks/resubscribe", json!({"id": "t"}));
    let refused = fixture.ask("POST", "/", &[("Last-Event-ID", "99")], &beyond);
    assert_eq!((refused.status, refused.header("content-type")), (200, Some("text/event-stream")));
    assert!(refused.text().contains("-32602"), "{}", refused.text());
}

#[test]
fn readers_of_a_running_task_see_one_end() {
    let fixture = V01Fixture::new();
    let mut sender = fixture.open(&[], "tasks/sendSubscribe", message("t", "slow 1 stream 2 1"));
    let first: Vec<SseFrame> = (0..2).map(|_| sender.next_frame().unwrap().unwrap()).collect();
    assert_eq!(all(&first), ["submitted", "working"]);
    let mut by_birth = fixture.open(&[], "tasks/resubscribe", json!({"id": "t"}));
    let mut by_version = fixture.open(&[("A2A-Version", "0.1")], "tasks/resubscribe", json!({"id": "t"}));
    let mut newer = fixture.open(&[("A2A-Version", "0.3")], "tasks/resubscribe", json!({"id": "t"}));
    let rest = sender.rest().unwrap();
    assert_eq!(rest.len(), 3);
    for reader in [&mut by_birth, &mut by_version] {
        let frames = reader.rest().unwrap();
        assert_eq!(say(&frames[0]), "working");
        assert_eq!(frames[1..], rest);
    }
    let kinds: Vec<Value> = newer.rest().unwrap().iter().map(|frame| frame.payload()["kind"].clone()).collect();
    assert_eq!(kinds, ["task", "artifact-update", "artifact-update", "status-update"]);
}

#[test]
fn a_subscriber_of_a_waiting_task_sees_its_next_turn() {
    let fixture = V01Fixture::new();
    fixture.send("t", "ask Which?");
    let mut watching = fixture.open(&[], "tasks/resubscribe", json!({"id": "t"}));
    let snapshot = watching.next_frame().unwrap().unwrap();
    assert_eq!(say(&snapshot), "input-required", "not final: there is more to come");
    fixture.send("t", "this");
    assert_eq!(all(&watching.rest().unwrap()), ["working", "echo: this of 0 last", "completed final with 1"]);
}

#[test]
fn shared_methods_answer_by_version_or_birth() {
    let fixture = V01Fixture::new();
    fixture.send("old", "hello");
    let made = fixture.rpc(
        "message/send",
        json!({"message": {"messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "hi"}]}}),
    );
    let new = made["result"]["id"].as_str().unwrap();
    let is_0_1 = |task: &Value| task["sessionId"].is_string() && task.get("kind").is_none();
    let is_0_3 = |task: &Value| task["contextId"].is_string() && task["kind"] == "task";
    for (path, version, old_is_old, new_is_old) in [
        ("/", "", true, false),
        ("/a2a", "", true, false),
        ("/a2a/jsonrpc", "0.1", true, true),
        ("/v1/a2a", "0.2", false, false),
        ("/", "0.3", false, false),
        ("/a2a/v0.1", "", true, true),
        ("/a2a/v0.3", "", false, false),
        ("/agents/demo/a2a", "", true, false),
    ] {
        for (id, is_old) in [("old", old_is_old), (new, new_is_old)] {
            let task = &fixture.call(path, version, "tasks/get", json!({"id": id}))["result"];
            assert_eq!(task["id"], id);
            let fits = if is_old { is_0_1(task) } else { is_0_3(task) };
            assert!(fits, "{path} {version}: {task}");
        }
    }
    for (version, id, is_old) in [("", "old", true), ("", new, false), ("0.3", "old", false), ("0.1", new, true)] {
        let task = fixture.ask("GET", &format!("/a2a/tasks/{id}"), &[("A2A-Version", version)], "").json();
        let fits = if is_old { is_0_1(&task) } else { is_0_3(&task) };
        assert!(fits, "{version}: {task}");
    }
    // A name of its own leaves no choice.
    assert!(is_0_1(&fixture.call("/", "0.3", "tasks/send", message("third", "hi"))["result"]));
    assert_eq!(fixture.call("/", "1.0", "GetTask", json!({"id": "old"}))["result"]["id"], "old");
    assert_eq!(fixture.ask("GET", "/tasks/old", &[], "").json()["id"], "old");
}

#[test]
fn a_running_task_is_canceled_and_a_finished_one_is_not() {
    let fixture = V01Fixture::new();
    thread::scope(|scope| {
        let sender = scope.spawn(|| fixture.send("t", "slow 60 hello"));
        fixture.server.until("the task runs", |_| {
            let task = fixture.rpc("tasks/get", json!({"id": "t"}));
            (task["result"]["status"]["state"] == "working").then_some(())
        });
        let canceled = fixture.rpc("tasks/cancel", json!({"id": "t"}));
        assert_eq!(canceled["result"]["status"]["state"], "canceled", "{canceled}");
        assert!(canceled["result"]["sessionId"].is_string());
        assert_eq!(sender.join().unwrap()["status"]["state"], "canceled");
    });
    fixture.send("done", "hello");
    for id in ["t", "done"] {
        for (path, version, params) in [
            ("/", "", json!({"id": id})),
            ("/a2a", "", json!({"id": id})),
            ("/a2a", "0.1", json!({"id": id})),
            ("/a2a", "0.3", json!({"id": id})),
            ("/a2a/jsonrpc", "", json!({"taskId": id})),
            ("/a2a/v0.1", "", json!({"id": id})),
        ] {
            let refused = fixture.call(path, version, "tasks/cancel", params);
            let expected = json!({"code": -32002, "message": "Task cannot be canceled", "data": {"taskId": id}});
            assert_eq!(refused["error"], expected, "{path} {version}");
        }
    }
    // Clients of 0.3 were promised otherwise for tasks of their own.
    let made = fixture.call("/a2a", "", "message/send", json!({"message": {"parts": [{"text": "hi"}]}}));
    let left = fixture.call("/a2a", "", "tasks/cancel", json!({"id": made["result"]["id"]}));
    assert_eq!(left["result"]["status"]["state"], "completed", "{left}");
}

#[test]
fn errors_have_titles_and_codes_of_0_1() {
    let fixture = V01Fixture::with("[push]\nenabled = false\n");
    let done = fixture.send("done", "hello");
    assert_eq!(done["status"]["state"], "completed");
    fixture.send("waiting", "ask Which?");
    let with = |mut params: Value, member: &str, value: Value| {
        params[member] = value;
        params
    };
    let hook = json!({"url": "https://client.example.com/hook"});
    for (path, version, method, params, code, data) in [
        ("/", "", "tasks/get", json!({"id": "nope"}), -32001, json!({"taskId": "nope"})),
        ("/", "", "tasks/cancel", json!({"id": "nope"}), -32001, json!({"taskId": "nope"})),
        ("/a2a", "", "tasks/get", json!({}), -32602, json!({"detail": "id is required"})),
        ("/a2a", "", "tasks/send", json!({"id": "x"}), -32602, json!({"detail": "message is required"})),
        (
            "/a2a",
            "",
            "tasks/send",
            json!({"message": {"parts": [{"text": "x"}]}}),
            -32602,
            json!({"detail": "id is required"}),
        ),
        (
            "/a2a/v0.1",
            "",
            "tasks/send",
            json!({"id": "x", "message": {"parts": [{"text": "x"}]}}),
            -32602,
            json!({"detail": "message.role is required; message.parts[0].type is required"}),
        ),
        (
            "/",
            "",
            "tasks/send",
            message("done", "more"),
            -32004,
            json!({"taskId": "done", "detail": "the task is finished"}),
        ),
        (
            "/",
            "",
            "tasks/send",
            with(message("waiting", "this"), "sessionId", json!("other")),
            -32602,
            json!({"detail": "sessionId does not match the task"}),
        ),
        ("/", "", "tasks/send", with(message("x", "hi"), "pushNotification", hook.clone()), -32003, Value::Null),
        (
            "/",
            "",
            "tasks/pushNotification/set",
            json!({"id": "done", "pushNotificationConfig": hook}),
            -32003,
            Value::Null,
        ),
        ("/", "", "tasks/pushNotification/get", json!({"id": "done"}), -32003, Value::Null),
        ("/", "", "tasks/pushNotification/list", json!({"id": "done"}), -32601, Value::Null),
        ("/a2a/v0.1", "", "message/send", json!({}), -32601, Value::Null),
        (
            "/",
            "1.0",
            "tasks/send",
            message("x", "hi"),
            -32009,
            json!({"name": "VersionNotSupported", "requested": "1.0", "supported": "0.1,0.2,0.3,1.0"}),
        ),
    ] {
        let answer = fixture.call(path, version, method, params.clone());
        assert_eq!(answer["id"], "req-001");
        let error = &answer["error"];
        assert_eq!((&error["code"], &error["data"]), (&json!(code), &data), "{path} {method} {params}");
    }
    assert_eq!(fixture.rpc("tasks/get", json!({"id": "x"}))["error"]["code"], -32001, "nothing was made");
    let broken = fixture.ask("POST", "/a2a/v0.1", &[], "{not json").json();
    assert_eq!((&broken["id"], &broken["error"]["code"]), (&json!(null), &json!(-32700)));

    // A client that waits for a stream can read nothing else.
    for params in [message("done", "more"), json!({"id": "x"})] {
        let refused = fixture.ask("POST", "/", &[], &request("tasks/sendSubscribe", params));
        assert_eq!((refused.status, refused.header("content-type")), (200, Some("text/event-stream")));
        assert!(refused.text().starts_with("event: error\ndata: {\"jsonrpc\":\"2.0\",\"id\":\"req-001\",\"error\":"));
    }
}

#[test]
fn a_full_queue_has_no_code_of_its_own_in_0_1() {
    let fixture = V01Fixture::with("[[agent]]\nid = \"demo\"\nkind = \"demo\"\nmax_concurrent = 1\nqueue = 0\n");
    let mut running = fixture.open(&[], "tasks/sendSubscribe", message("t", "slow 60 hello"));
    running.next_frame().unwrap().unwrap();
    let busy = fixture.ask("POST", "/", &[], &request("tasks/send", message("u", "hello")));
    assert_eq!((busy.status, busy.header("retry-after")), (503, Some("5")));
    assert_eq!(busy.json()["error"]["code"], -32603, "{}", busy.text());
}

#[test]
fn the_card_of_0_1_has_the_url_of_its_mount() {
    let fixture = V01Fixture::new();
    let card = fixture.ask("GET", "/.well-known/agent.json", &[("A2A-Version", "0.1")], "").json();
    let members: Vec<&str> = card.as_object().unwrap().keys().map(String::as_str).collect();
    let expected = [
        "capabilities",
        "defaultInputModes",
        "defaultOutputModes",
        "description",
        "name",
        "provider",
        "skills",
        "url",
        "version",
    ];
    assert_eq!(members, expected);
    let capabilities = json!({"streaming": true, "pushNotifications": true, "stateTransitionHistory": true});
    assert_eq!(card["capabilities"], capabilities);
    let path = card["url"].as_str().unwrap().split_once(&fixture.server.address.to_string()).unwrap().1;
    assert_eq!(fixture.call(path, "", "tasks/send", message("t", "hi"))["result"]["id"], "t");
}

#[test]
fn what_is_special_to_0_2() {
    let fixture = V01Fixture::new();
    for path in [
        "/agent/authenticatedExtendedCard",
        "/a2a/agent/authenticatedExtendedCard",
        "/agents/demo/agent/authenticatedExtendedCard",
        "/agents/demo/a2a/agent/authenticatedExtendedCard",
    ] {
        let missing = fixture.ask("GET", path, &[], "");
        assert_eq!(missing.status, 404, "{path}");
        let detail = missing.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains("/.well-known/agent-card.json"), "{detail}");
    }
    let params = json!({"message": {"kind": "message", "messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "hi"}]},
        "configuration": {"acceptedOutputModes": ["text/plain"]}});
    let sent = fixture.call("/", "0.2", "message/send", params.clone());
    assert_eq!((&sent["result"]["kind"], &sent["result"]["status"]["state"]), (&json!("task"), &json!("completed")));
    let frames = fixture.stream(&[], "message/sendStream", params);
    assert_eq!(frames.last().unwrap().payload()["final"], true);
    let get = fixture.rpc("tasks/pushNotificationConfig/get", json!({"id": sent["result"]["id"]}));
    assert_eq!(get["result"], Value::Null, "the id of a config may be missing: {get}");
    let card = fixture.ask("GET", "/.well-known/agent.json", &[("A2A-Version", "0.2")], "").json();
    assert!(card.get("supportedInterfaces").is_none() && card["url"].is_string(), "{card}");
}
