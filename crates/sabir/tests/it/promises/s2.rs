//! The promises of CodeTether.

use sabir_testkit::sse::SseFrame;
use serde_json::{Value, json};

use crate::server_fixture::{ServerFixture, v1_message, v03_message};
use crate::webhook_receiver::WebhookReceiver;

const CARD: &str = "/.well-known/agent-card.json";
const RPC: &str = "/a2a/jsonrpc";
const REST: &str = "/a2a/rest";
const V1: (&str, &str) = ("A2A-Version", "1.0");

/// A message as CodeTether's page spells it.
fn page(text: &str) -> Value {
    json!({"message": {"parts": [{"type": "text", "content": text}]}})
}

/// The same with a role, as its REST binding has it.
fn page_with_role(text: &str) -> Value {
    json!({"message": {"role": "user", "parts": [{"type": "text", "content": text}]}})
}

/// A server whose callers show a token, and the header of one.
fn with_tokens() -> (ServerFixture, (&'static str, &'static str)) {
    let fixture = ServerFixture::with(|options| options.variable("A2A_AUTH_TOKENS", "alice:a-long-secret-of-alice"));
    (fixture, ("Authorization", "Bearer a-long-secret-of-alice"))
}

fn id_of(task: &Value) -> String {
    task["id"].as_str().unwrap_or_else(|| panic!("no task: {task}")).to_owned()
}

fn more(task: &str, text: &str) -> Value {
    let mut params = v03_message(text);
    params["message"]["taskId"] = json!(task);
    params
}

/// One finished task for each way to finish, with the state's word.
fn finished(fixture: &ServerFixture) -> [(String, &'static str); 4] {
    let (canceled, mut events) = fixture.working("slow 60");
    fixture.rpc(RPC, "tasks/cancel", json!({"task_id": canceled}));
    events.rest().unwrap();
    [
        (id_of(&fixture.send("hello")), "completed"),
        (id_of(&fixture.send("fail badly")), "failed"),
        (canceled, "canceled"),
        (id_of(&fixture.send("reject this")), "rejected"),
    ]
}

/// The card has name, description, url and version
#[test]
fn s2_01_the_card_introduces_the_agent() {
    let fixture = ServerFixture::new();
    let reply = fixture.get(CARD);
    assert_eq!(reply.status, 200);
    let card = reply.json();
    for key in ["name", "description", "url", "version"] {
        assert!(card[key].as_str().is_some_and(|text| !text.is_empty()), "{key} in {card}");
    }
}

/// `A2A_AGENT_ORG` and `A2A_AGENT_ORG_URL` are the provider on the card
#[test]
fn s2_02_the_card_names_the_organisation_of_the_environment() {
    let fixture = ServerFixture::with(|options| {
        options.variable("A2A_AGENT_ORG", "CodeTether").variable("A2A_AGENT_ORG_URL", "https://codetether.run")
    });
    let provider = json!({"organization": "CodeTether", "url": "https://codetether.run"});
    assert_eq!(fixture.get(CARD).json()["provider"], provider);
}

/// The card says that streaming, push and state history are there (1.0 has no word for the last one), and a webhook is
/// really served
#[test]
fn s2_03_the_card_tells_capabilities() {
    let fixture = ServerFixture::with(|options| options.variable("PUSH_NOTIFICATION_ALLOWED_CIDRS", "127.0.0.0/8"));
    for path in [CARD, "/.well-known/agent.json"] {
        for version in ["", "0.3", "1.0"] {
            let card = fixture.ask("GET", path, &[("A2A-Version", version)], &Value::Null).json();
            let history = if version == "1.0" { Value::Null } else { json!(true) };
            for (capability, expected) in
                [("streaming", json!(true)), ("pushNotifications", json!(true)), ("stateTransitionHistory", history)]
            {
                assert_eq!(card["capabilities"][capability], expected, "{path} {version} {capability}: {card}");
            }
        }
    }
    let receiver = WebhookReceiver::start();
    let id = id_of(&fixture.send("hello"));
    let set = json!({"task_id": id, "pushNotificationConfig": {"url": receiver.url("/hook")}});
    let answer = fixture.rpc(RPC, "tasks/pushNotificationConfig/set", set);
    assert_eq!(answer["result"]["taskId"], id, "{answer}");
    assert_eq!(receiver.next().json()["id"], id);
}

/// The card lists the skills of the configuration, each with id, name and description; what else a skill can say may be
/// missing
#[test]
fn s2_04_the_card_lists_configured_skills() {
    let fixture = ServerFixture::configured(
        r#"
        [[agent]]
        id = "demo"
        kind = "demo"
        [[agent.skill]]
        id = "task-coordination"
        name = "Task Coordination"
        description = "Coordinate tasks between multiple agents"
        [[agent.skill]]
        id = "code-assistance"
        name = "Code Assistance"
        description = "AI-powered coding assistance"
        tags = ["code"]
        "#,
    );
    let skill = |id: &str, name: &str, description: &str, tags: Value| json!({"id": id, "name": name, "description": description, "tags": tags});
    let expected = json!([
        skill("task-coordination", "Task Coordination", "Coordinate tasks between multiple agents", json!([])),
        skill("code-assistance", "Code Assistance", "AI-powered coding assistance", json!(["code"])),
    ]);
    assert_eq!(fixture.get(CARD).json()["skills"], expected);
}

/// With tokens the card says that bearer is needed, in the members of 0.3 (`securitySchemes`, `security`), of 1.0
/// (`securityRequirements`) and of 0.1 (`authentication`); the card stays public
#[test]
fn s2_05_the_card_says_that_bearer_is_needed() {
    let (fixture, _) = with_tokens();
    let card = fixture.get(CARD).json();
    let scheme = &card["securitySchemes"]["bearer"];
    assert_eq!((&scheme["type"], &scheme["scheme"]), (&json!("http"), &json!("Bearer")), "{card}");
    assert_eq!(scheme["httpAuthSecurityScheme"]["scheme"], "Bearer", "{card}");
    assert_eq!(card["security"], json!([{"bearer": []}]));
    assert_eq!(card["securityRequirements"], json!([{"schemes": {"bearer": {}}}]));
    assert_eq!(card["authentication"], json!({"schemes": ["Bearer"]}));
    let open = ServerFixture::new().get(CARD).json();
    for member in ["securitySchemes", "security", "securityRequirements", "authentication"] {
        assert!(open[member].is_null(), "nobody is asked: {member} in {open}");
    }
}

/// A part `{"type": "text", "content": ...}` is text; role, `messageId` and `kind` may be missing
#[test]
fn s2_06_a_message_needs_no_more_than_its_text() {
    let fixture = ServerFixture::new();
    let body = json!({"jsonrpc": "2.0", "method": "message/send", "params": page("Analyze this code"), "id": "1"});
    let (answer, other) = (fixture.post(RPC, body.clone()).json(), fixture.post(RPC, body).json());
    assert_eq!(answer["id"], "1");
    let task = &answer["result"];
    assert_eq!(task["status"]["state"], "completed", "{answer}");
    assert_eq!(task["artifacts"][0]["parts"][0]["text"], "echo: Analyze this code", "what the agent got");
    let said = &task["history"][0];
    assert_eq!((&said["role"], &said["parts"][0]["text"]), (&json!("user"), &json!("Analyze this code")));
    assert!(said["messageId"].as_str().is_some_and(|id| !id.is_empty()), "{said}");
    assert_ne!(said["messageId"], other["result"]["history"][0]["messageId"], "every message has its own id");
}

/// `message/stream` takes the same short messages and streams events of one task up to its final status
#[test]
fn s2_07_a_short_message_can_be_streamed() {
    let fixture = ServerFixture::new();
    let body = json!({"jsonrpc": "2.0", "method": "message/stream", "params": page("Generate a report"), "id": "1"});
    let reply = fixture.post(RPC, body.clone());
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("text/event-stream")));
    let frames = fixture.stream(RPC, &[], &body);
    assert!(frames.iter().all(|frame| frame.json()["id"] == "1" && frame.json()["jsonrpc"] == "2.0"));
    let events: Vec<Value> = frames.iter().map(SseFrame::payload).collect();
    let shown: Vec<(&Value, &Value)> = events.iter().map(|event| (&event["kind"], &event["final"])).collect();
    let (task, status, artifact) = (json!("task"), json!("status-update"), json!("artifact-update"));
    assert_eq!(
        shown,
        [(&task, &Value::Null), (&status, &json!(false)), (&artifact, &Value::Null), (&status, &json!(true))]
    );
    assert_eq!(events[1]["status"]["state"], "working");
    assert_eq!(events[2]["artifact"]["parts"][0]["text"], "echo: Generate a report");
    assert_eq!(events[3]["status"]["state"], "completed");
    for event in &events[1..] {
        assert_eq!((&event["taskId"], &event["contextId"]), (&events[0]["id"], &events[0]["contextId"]));
    }
}

/// `tasks/get` takes `task_id`
#[test]
fn s2_08_a_task_is_read_by_its_snake_case_id() {
    let fixture = ServerFixture::new();
    let task = fixture.send("hello");
    let answer = fixture.rpc(RPC, "tasks/get", json!({"task_id": id_of(&task)}));
    assert_eq!(answer["result"], task, "{answer}");
    assert_eq!(answer["result"]["status"]["state"], "completed");
}

/// `tasks/cancel` takes `task_id` and answers with the canceled task
#[test]
fn s2_09_a_running_task_is_canceled_by_its_snake_case_id() {
    let fixture = ServerFixture::new();
    let (id, mut events) = fixture.working("slow 60");
    let answer = fixture.rpc(RPC, "tasks/cancel", json!({"task_id": id}));
    let task = &answer["result"];
    assert_eq!((&task["kind"], &task["id"]), (&json!("task"), &json!(id)), "{answer}");
    assert_eq!(task["status"]["state"], "canceled");
    let last = events.rest().unwrap().last().unwrap().payload();
    assert_eq!((&last["status"]["state"], &last["final"]), (&json!("canceled"), &json!(true)));
    assert_eq!(&fixture.task(&id), task);
}

/// `message/send`, `message/stream`, `tasks/get` and `tasks/cancel` all live at `/a2a/jsonrpc`
#[test]
fn s2_10_one_url_serves_every_method() {
    let fixture = ServerFixture::new();
    let sent = fixture.rpc(RPC, "message/send", page("ask Which day?"));
    assert_eq!(sent["result"]["status"]["state"], "input-required", "{sent}");
    let id = id_of(&sent["result"]);
    let streamed = fixture.stream_rpc(RPC, "message/stream", page("hello"));
    assert_eq!(streamed.last().unwrap()["status"]["state"], "completed");
    assert_eq!(fixture.rpc(RPC, "tasks/get", json!({"task_id": id}))["result"], sent["result"]);
    let canceled = fixture.rpc(RPC, "tasks/cancel", json!({"task_id": id}));
    assert_eq!(canceled["result"]["status"]["state"], "canceled", "{canceled}");
}

/// `POST /a2a/rest/message:send` takes a message without an envelope and answers with the task, without one too
#[test]
fn s2_11_a_message_can_be_sent_over_rest() {
    let fixture = ServerFixture::new();
    let reply = fixture.post(&format!("{REST}/message:send"), page_with_role("Analyze this code"));
    assert_eq!(reply.status, 200, "{}", reply.text());
    let answer = reply.json();
    assert_eq!(answer.as_object().unwrap().keys().collect::<Vec<_>>(), ["task"], "{answer}");
    let task = &answer["task"];
    assert!(!id_of(task).is_empty() && task["contextId"].is_string(), "{task}");
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(task["artifacts"][0]["parts"][0]["text"], "echo: Analyze this code");
    assert_eq!(task["history"][0]["role"], "ROLE_USER");
}

/// `POST /a2a/rest/message:stream` streams bare events, without a JSON-RPC envelope
#[test]
fn s2_12_a_message_can_be_streamed_over_rest() {
    let fixture = ServerFixture::new();
    let path = format!("{REST}/message:stream");
    let reply = fixture.post(&path, page_with_role("stream 2 1"));
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("text/event-stream")));
    let events: Vec<Value> =
        fixture.stream(&path, &[], &page_with_role("stream 2 1")).iter().map(SseFrame::json).collect();
    let keys: Vec<Vec<&String>> = events.iter().map(|event| event.as_object().unwrap().keys().collect()).collect();
    assert_eq!(keys, [["task"], ["statusUpdate"], ["artifactUpdate"], ["artifactUpdate"], ["statusUpdate"]]);
    assert_eq!(events[4]["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED");
}

/// `GET /a2a/rest/tasks/{id}` is the task, or 404 as problem+json with `a2a_code` -32001
#[test]
fn s2_13_a_task_can_be_read_over_rest() {
    let fixture = ServerFixture::new();
    let sent = fixture.post(&format!("{REST}/message:send"), page_with_role("hello")).json();
    let known = fixture.get(&format!("{REST}/tasks/{}", id_of(&sent["task"])));
    assert_eq!((known.status, known.json()), (200, sent["task"].clone()));
    let unknown = fixture.get(&format!("{REST}/tasks/nobody"));
    assert_eq!((unknown.status, unknown.header("content-type")), (404, Some("application/problem+json")));
    let problem = unknown.json();
    assert_eq!((&problem["status"], &problem["a2a_code"]), (&json!(404), &json!(-32001)), "{problem}");
    assert_eq!(problem["task_id"], "nobody");
}

/// `POST /a2a/rest/tasks/{id}:cancel` is 200 with the canceled task, 409 for a finished one (400 when the caller says
/// `A2A-Version: 1.0`), 404 for an unknown one
#[test]
fn s2_14_a_task_can_be_canceled_over_rest() {
    let fixture = ServerFixture::new();
    let cancel = |id: &str, headers: &[(&str, &str)]| {
        fixture.ask("POST", &format!("{REST}/tasks/{id}:cancel"), headers, &json!({}))
    };
    let (id, mut events) = fixture.working("slow 60");
    let running = cancel(&id, &[]);
    assert_eq!(running.status, 200, "{}", running.text());
    assert_eq!(running.json()["id"], id);
    assert_eq!(running.json()["status"]["state"], "TASK_STATE_CANCELED");
    events.rest().unwrap();
    for (id, state) in finished(&fixture) {
        let refused = cancel(&id, &[]);
        assert_eq!((refused.status, refused.header("content-type")), (409, Some("application/problem+json")));
        assert_eq!((&refused.json()["a2a_code"], &refused.json()["task_id"]), (&json!(-32002), &json!(id)), "{state}");
        let refused = cancel(&id, &[V1]);
        assert_eq!((refused.status, &refused.json()["error"]["code"]), (400, &json!(400)), "{state}");
        assert_eq!(refused.json()["error"]["details"][0]["reason"], "TASK_NOT_CANCELABLE");
        assert_eq!(fixture.task(&id)["status"]["state"], state, "nothing changes");
    }
    for headers in [&[][..], &[V1]] {
        assert_eq!(cancel("nobody", headers).status, 404, "{headers:?}");
    }
}

/// A task that the agent rejects goes from submitted over working to rejected, and is over
#[test]
fn s2_15_a_rejected_task_is_over() {
    let fixture = ServerFixture::new();
    let events = fixture.stream_rpc(RPC, "message/stream", page("reject not my job"));
    let states: Vec<&Value> = events.iter().map(|event| &event["status"]["state"]).collect();
    assert_eq!(states, ["submitted", "working", "rejected"]);
    assert_eq!(events[2]["final"], true);
    assert_eq!(events[2]["status"]["message"]["parts"][0]["text"], "not my job");
    let id = id_of(&events[0]);
    assert_eq!(fixture.rpc(RPC, "message/send", more(&id, "please"))["error"]["code"], -32004);
    assert_eq!(fixture.task(&id)["status"]["state"], "rejected");
}

/// A task that needs credentials is auth-required, and a later message goes on from there
#[test]
fn s2_16_a_task_that_needs_credentials_can_go_on() {
    let fixture = ServerFixture::new();
    let waiting = fixture.send("auth Log in first");
    assert_eq!(waiting["status"]["state"], "auth-required", "{waiting}");
    assert_eq!(waiting["status"]["message"]["parts"][0]["text"], "Log in first");
    let id = id_of(&waiting);
    let events = fixture.stream_rpc(RPC, "message/stream", more(&id, "here I am"));
    let states: Vec<&Value> =
        events.iter().map(|event| &event["status"]["state"]).filter(|state| !state.is_null()).collect();
    assert_eq!(states[states.len() - 2..], ["working", "completed"], "{events:?}");
    let ended = fixture.task(&id);
    assert_eq!(ended["status"]["state"], "completed");
    assert_eq!(ended["artifacts"][0]["parts"][0]["text"], "echo: here I am");
}

/// Completed, failed, canceled and rejected are the end of a task; submitted, working, input-required and auth-required
/// are not
#[test]
fn s2_17_four_states_are_the_end_and_four_are_not() {
    let fixture = ServerFixture::configured("[[agent]]\nid = \"demo\"\nkind = \"demo\"\nmax_concurrent = 1\n");
    let mut tasks = finished(&fixture).to_vec();
    tasks.push((id_of(&fixture.send("ask Which day?")), "input-required"));
    tasks.push((id_of(&fixture.send("auth Log in first")), "auth-required"));
    let (working, mut events) = fixture.working("slow 60");
    let mut queued = v03_message("waits for its turn");
    queued["configuration"] = json!({"blocking": false});
    tasks.push((id_of(&fixture.rpc(RPC, "message/send", queued)["result"]), "submitted"));
    tasks.push((working, "working"));
    for (id, state) in &tasks {
        assert_eq!(fixture.task(id)["status"]["state"], *state);
    }
    let mut over: Vec<&str> = Vec::new();
    for (id, state) in &tasks {
        let answer = fixture.rpc(RPC, "tasks/cancel", json!({"task_id": id}));
        if answer["error"]["code"] == -32002 {
            assert_eq!(fixture.rpc(RPC, "message/send", more(id, "go on"))["error"]["code"], -32004, "{state}");
            assert_eq!(fixture.task(id)["status"]["state"], *state);
            over.push(state);
        } else {
            assert_eq!(answer["result"]["status"]["state"], "canceled", "{state}: {answer}");
        }
    }
    assert_eq!(over, ["completed", "failed", "canceled", "rejected"]);
    events.rest().unwrap();
}

/// A message to a task that is over is refused with -32004 and changes nothing
#[test]
fn s2_18_a_finished_task_takes_no_message() {
    let fixture = ServerFixture::new();
    for (id, state) in finished(&fixture) {
        let before = fixture.task(&id);
        assert_eq!(before["status"]["state"], state);
        for spelled in ["taskId", "task_id"] {
            let mut params = page("go on");
            params["message"][spelled] = json!(id);
            let answer = fixture.rpc(RPC, "message/send", params);
            assert_eq!(answer["error"]["code"], -32004, "{state} {spelled}: {answer}");
        }
        assert_eq!(fixture.task(&id), before);
    }
}

/// A task that does not exist is -32001, `Task not found`
#[test]
fn s2_19_an_unknown_task_is_not_found() {
    let fixture = ServerFixture::new();
    for method in ["tasks/get", "tasks/cancel"] {
        let answer = fixture.rpc(RPC, method, json!({"task_id": "task-123"}));
        let expected = json!({"code": -32001, "message": "Task not found", "data": {"taskId": "task-123"}});
        assert_eq!(answer["error"], expected, "{method}");
    }
}

/// `tasks/cancel` with `task_id` of a task that is over is -32002, `Task cannot be canceled`
#[test]
fn s2_20_a_finished_task_cannot_be_canceled() {
    let fixture = ServerFixture::new();
    for (id, state) in finished(&fixture) {
        let error = fixture.rpc(RPC, "tasks/cancel", json!({"task_id": id}))["error"].take();
        assert_eq!((&error["code"], &error["message"]), (&json!(-32002), &json!("Task cannot be canceled")), "{state}");
        assert_eq!(error["data"]["taskId"], id);
        assert_eq!(fixture.task(&id)["status"]["state"], state, "nothing changes");
    }
}

/// Where webhooks are switched off, a push method or a message that brings a webhook is -32003, and no task is made
#[test]
fn s2_21_webhooks_that_are_off_are_not_supported() {
    let fixture = ServerFixture::configured("[push]\nenabled = false\n");
    let config = json!({"url": "https://hooks.example/a2a"});
    let mut with_hook = v03_message("hello");
    with_hook["configuration"] = json!({"pushNotificationConfig": config});
    let refused = fixture.rpc(RPC, "message/send", with_hook);
    assert_eq!(refused["error"]["code"], -32003, "{refused}");
    assert_eq!(fixture.rpc(RPC, "ListTasks", json!({}))["result"]["totalSize"], 0, "no task is made");

    let id = id_of(&fixture.send("hello"));
    let set = json!({"task_id": id, "pushNotificationConfig": config});
    let error = fixture.rpc(RPC, "tasks/pushNotificationConfig/set", set)["error"].take();
    assert_eq!((&error["code"], &error["message"]), (&json!(-32003), &json!("Push Notification is not supported")));
    let refused = fixture.post(&format!("{REST}/tasks/{id}/pushNotificationConfigs"), config);
    assert_eq!((refused.status, &refused.json()["a2a_code"]), (400, &json!(-32003)), "{}", refused.text());
}

/// A stream from an agent that offers none is -32004; its card says so, and `message/send` works
#[test]
fn s2_22_a_stream_that_is_not_offered_is_unsupported() {
    let fixture = ServerFixture::configured("[[agent]]\nid = \"demo\"\nkind = \"demo\"\nstreaming = false\n");
    assert_eq!(fixture.get(CARD).json()["capabilities"]["streaming"], false);
    let waiting = id_of(&fixture.send("ask Which day?"));
    for (method, params) in [("message/stream", page("hello")), ("tasks/resubscribe", json!({"task_id": waiting}))] {
        let reply = fixture.post(RPC, json!({"jsonrpc": "2.0", "id": "1", "method": method, "params": params}));
        assert_eq!((reply.status, reply.header("content-type")), (200, Some("text/event-stream")), "{method}");
        let text = reply.text();
        let data: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
        assert_eq!(data.len(), 1, "{method}: the error is the only frame: {text}");
        let answer: Value = serde_json::from_str(data[0]).unwrap();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("1"), &json!(-32004)), "{method}: {answer}");
        assert_eq!(answer["error"]["message"], "This operation is not supported");
    }
    let refused = fixture.rpc(RPC, "SendStreamingMessage", v1_message("hello"));
    assert_eq!(refused["error"]["code"], -32004, "{refused}");
    let refused = fixture.post(&format!("{REST}/message:stream"), page_with_role("hello"));
    assert_eq!((refused.status, &refused.json()["a2a_code"]), (400, &json!(-32004)), "{}", refused.text());
    assert_eq!(fixture.rpc(RPC, "ListTasks", json!({}))["result"]["totalSize"], 1, "no task is made");
    assert_eq!(fixture.send("hello")["status"]["state"], "completed");
}

/// A part of a media type that no skill takes is -32005, and no task is made; the demo agent is choosy with
/// `compat.strict`
#[test]
fn s2_23_a_media_type_that_no_skill_takes_is_refused() {
    let fixture = ServerFixture::configured("[compat]\nstrict = true\n");
    let send = |part: Value| {
        let message = json!({"kind": "message", "messageId": part.to_string(), "role": "user", "parts": [part]});
        fixture.rpc(RPC, "message/send", json!({"message": message}))
    };
    let taken = fixture.get(CARD).json()["skills"][0]["inputModes"].take();
    assert_eq!(taken, json!(["text/plain", "application/json"]));
    let picture = send(json!({"kind": "file", "file": {"mimeType": "image/png", "bytes": "aGk="}}));
    let error = &picture["error"];
    assert_eq!(
        (&error["code"], &error["message"]),
        (&json!(-32005), &json!("Incompatible content types")),
        "{picture}"
    );
    assert_eq!(fixture.rpc("/a2a/v1", "ListTasks", json!({}))["result"]["totalSize"], 0, "no task is made");
    for part in [json!({"kind": "text", "text": "hello"}), json!({"kind": "data", "data": {"a": 1}})] {
        let answer = send(part);
        assert_eq!(answer["result"]["status"]["state"], "completed", "{answer}");
    }
}

/// An agent that can take no more is -32007, `AgentUnavailable`, with HTTP status 503 and a time to try again; in 1.0 it is
/// -32603 with the reason `RESOURCE_EXHAUSTED`
#[test]
fn s2_25_a_busy_agent_is_unavailable() {
    let fixture =
        ServerFixture::configured("[[agent]]\nid = \"demo\"\nkind = \"demo\"\nmax_concurrent = 1\nqueue = 0\n");
    let (id, mut events) = fixture.working("slow 60");
    let send = |method: &str, params: Value| {
        fixture.post(RPC, json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
    };
    let refused = send("message/send", v03_message("one too many"));
    let error = &refused.json()["error"];
    assert_eq!((refused.status, &error["code"]), (503, &json!(-32007)), "{error}");
    assert_eq!((&error["message"], &error["data"]["name"]), (&json!("Agent unavailable"), &json!("AgentUnavailable")));
    let seconds = refused.header("retry-after").expect("a time to try again");
    assert!(seconds.parse::<u32>().unwrap() > 0, "{seconds}");
    let refused = send("SendMessage", v1_message("one too many"));
    let error = &refused.json()["error"];
    assert_eq!((refused.status, &error["code"]), (503, &json!(-32603)), "{error}");
    assert_eq!(error["data"][0]["reason"], "RESOURCE_EXHAUSTED");

    assert_eq!(
        fixture.rpc(RPC, "ListTasks", json!({}))["result"]["totalSize"],
        1,
        "nothing is kept of what was refused"
    );
    fixture.rpc(RPC, "tasks/cancel", json!({"task_id": id}));
    events.rest().unwrap();
    let served = fixture.server.until("there is room again", |_| {
        let reply = send("message/send", v03_message("now"));
        (reply.status == 200).then(|| reply.json())
    });
    assert_eq!(served["result"]["status"]["state"], "completed", "{served}");
}

/// A caller without a token is told 401 with `WWW-Authenticate: Bearer`, and so is one with a wrong token; JSON-RPC names the
/// error `AuthenticationRequired`, REST has it as the title of a problem
#[test]
fn s2_26_a_caller_without_a_token_is_told_to_show_one() {
    let (fixture, right) = with_tokens();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": page("hello")});
    for headers in [&[][..], &[("Authorization", "Bearer a-secret-that-nobody-has")]] {
        for (path, body, place, name) in [
            (RPC, &body, "/error/data/name", "AuthenticationRequired"),
            (&format!("{REST}/message:send"), &page_with_role("hello"), "/title", "Authentication required"),
        ] {
            let refused = fixture.ask("POST", path, headers, body);
            let challenge = refused.header("www-authenticate").unwrap_or_default();
            assert_eq!((refused.status, challenge.starts_with("Bearer ")), (401, true), "{path}: {challenge}");
            let told = refused.json();
            assert_eq!(told.pointer(place), Some(&json!(name)), "{path}: {told}");
        }
    }
    let served = fixture.ask("POST", RPC, &[right], &body).json();
    assert_eq!(served["result"]["status"]["state"], "completed", "{served}");
}

/// A caller whose token lacks the scope is told 403, and nothing is done; JSON-RPC names the error `AuthorizationFailed`, REST
/// says that it is forbidden
#[test]
fn s2_27_a_token_without_the_scope_is_not_enough() {
    // The hash of `a-secret-for-reading`, as `sabir token hash` prints it.
    let fixture = ServerFixture::configured(
        r#"
        [[auth.token]]
        subject = "reader"
        scopes = ["read"]
        hash = "sha256:5839e39e30f2fbb41851f36d18cd4b027422b9a11c9a282ca8ea7f6e6f2fe101"
        "#,
    );
    let reader = ("Authorization", "Bearer a-secret-for-reading");
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": page("hello")});
    for (path, body, place, name) in [
        (RPC, &body, "/error/data/name", "AuthorizationFailed"),
        (&format!("{REST}/message:send"), &page_with_role("hello"), "/title", "Forbidden"),
    ] {
        let refused = fixture.ask("POST", path, &[reader], body);
        let told = refused.json();
        assert_eq!((refused.status, told.pointer(place)), (403, Some(&json!(name))), "{path}: {told}");
    }
    let tasks = fixture.ask("GET", "/tasks", &[reader, V1], &Value::Null);
    assert_eq!((tasks.status, &tasks.json()["totalSize"]), (200, &json!(0)), "reading is what it is for");
}

/// Bad JSON is -32700, a request without a method -32600, bad params -32602, all with HTTP status 200
#[test]
fn s2_28_malformed_requests_have_their_codes() {
    let fixture = ServerFixture::new();
    for (body, code) in [
        (r#"{"jsonrpc": "2.0", "method""#, -32700),
        (r#"{"jsonrpc": "2.0", "id": "1", "params": {}}"#, -32600),
        (r#"{"jsonrpc": "2.0", "id": "1", "method": "tasks/get", "params": {}}"#, -32602),
        (r#"{"jsonrpc": "2.0", "id": "1", "method": "tasks/get", "params": {"task_id": 7}}"#, -32602),
        (r#"{"jsonrpc": "2.0", "id": "1", "method": "tasks/get", "params": {"task_id": "a", "id": "b"}}"#, -32602),
        (r#"{"jsonrpc": "2.0", "id": "1", "method": "tasks/get", "params": ["task-123"]}"#, -32602),
        (r#"{"jsonrpc": "2.0", "id": "1", "method": "message/send", "params": {}}"#, -32602),
        (r#"{"jsonrpc": "2.0", "id": "1", "method": "message/send", "params": {"message": {"parts": []}}}"#, -32602),
        (r#"{"jsonrpc": "2.0", "id": "1", "method": "message/send", "params": {"message": {"parts": [{}]}}}"#, -32602),
    ] {
        let reply = fixture.post_text(RPC, body);
        let answer = reply.json();
        assert_eq!((reply.status, &answer["error"]["code"]), (200, &json!(code)), "{body}: {answer}");
        assert_eq!(answer["id"], if code == -32700 { Value::Null } else { json!("1") }, "{body}");
    }
}

/// Two sends with the same `contextId` are one conversation: the second run sees the first exchange, and both tasks carry
/// the context
#[test]
fn s2_29_a_context_is_a_conversation() {
    let fixture = ServerFixture::new();
    let send = |context: &str, text: &str| {
        let mut params = page(text);
        params["message"]["contextId"] = json!(context);
        fixture.rpc(RPC, "message/send", params)["result"].take()
    };
    let (first, second) = (send("harbour", "The ship is late"), send("harbour", "history"));
    assert_ne!(first["id"], second["id"], "each has its own task");
    assert_eq!((&first["contextId"], &second["contextId"]), (&json!("harbour"), &json!("harbour")));
    let seen = second["artifacts"][0]["parts"][0]["text"].as_str().expect("it saw something");
    assert_eq!(seen, "The ship is late\necho: The ship is late");
    let elsewhere = send("airport", "history");
    assert_eq!(elsewhere["status"]["state"], "completed");
    assert!(!elsewhere.to_string().contains("ship"), "another context knows nothing of it: {elsewhere}");
}

/// A subscriber that does not read holds up neither the agent nor other subscribers, and when it reads later it gets
/// every event
#[test]
fn s2_30_a_subscriber_that_does_not_read_hurts_nobody() {
    const CHUNKS: usize = 20_000;
    let fixture = ServerFixture::new();
    // Every frame repeats the id of its request, so that this stream is more than the connection holds by itself.
    let long = "x".repeat(1000);
    let params = v03_message(&format!("stream {CHUNKS} 0"));
    let body = json!({"jsonrpc": "2.0", "id": long, "method": "message/stream", "params": params});
    let mut slow = fixture.open(RPC, &[], &body);
    let first = slow.next_frame().unwrap().unwrap();
    let id = id_of(&first.payload());

    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/resubscribe", "params": {"id": id}});
    let quick = fixture.stream(RPC, &[("Last-Event-ID", "0")], &body);
    assert_eq!(quick.len(), CHUNKS + 3, "another subscriber has all events");
    assert_eq!(quick.last().unwrap().payload()["status"]["state"], "completed");
    let task = fixture.task(&id);
    assert_eq!(task["status"]["state"], "completed", "the agent has ended");

    let mut late = vec![first];
    late.extend(slow.rest().unwrap());
    assert_eq!(late.len(), quick.len());
    for (late, quick) in late.iter().zip(&quick) {
        assert_eq!((late.id, late.payload()), (quick.id, quick.payload()));
    }
    let text_of = |frame: &SseFrame| frame.payload()["artifact"]["parts"][0]["text"].as_str().map(String::from);
    let text: String = late.iter().filter_map(text_of).collect();
    assert_eq!(text.lines().count(), CHUNKS);
    assert_eq!(task["artifacts"][0]["parts"][0]["text"], text, "the pieces are the whole answer");
}
