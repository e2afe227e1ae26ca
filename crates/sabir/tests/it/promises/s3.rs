//! The promises of a tutorial of protocol v0.1.

use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sabir_testkit::oidc_provider::{AUDIENCE, DISCOVERY, ServedProvider};
use sabir_testkit::process::{SabirOptions, SabirProcess};
use sabir_testkit::sse::{Events, SseFrame};
use serde_json::{Value, json};

use crate::SABIR;
use crate::server_fixture::ServerFixture;
use crate::webhook_receiver::{ReceivedRequest, WebhookReceiver};

/// Where the tutorial sends everything.
const RPC: &str = "/a2a";

/// JSON whose numbers and members do not survive a reader that takes them for its own.
const EXACT: &str = r#"{"metrics":{"complexity":42,"ratio":1e3,"lines":12345678901234567},"b":5.0,"a":0.10}"#;

/// The params of `tasks/send`.
fn params(id: &str, text: &str) -> Value {
    with_parts(id, json!([{"type": "text", "text": text}]))
}

fn with_parts(id: &str, parts: Value) -> Value {
    json!({"id": id, "message": {"role": "user", "parts": parts}})
}

fn request(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": "req-001", "method": method, "params": params})
}

/// The task that a send of this text ends with, or waits with.
fn send(fixture: &ServerFixture, id: &str, text: &str) -> Value {
    result(fixture.rpc(RPC, "tasks/send", params(id, text)))
}

fn get(fixture: &ServerFixture, id: &str) -> Value {
    result(fixture.rpc(RPC, "tasks/get", json!({"id": id})))
}

fn result(mut answer: Value) -> Value {
    assert!(answer["result"].is_object(), "{answer}");
    answer["result"].take()
}

fn subscribe(fixture: &ServerFixture, id: &str, text: &str) -> Events {
    fixture.open(RPC, &[], &request("tasks/sendSubscribe", &params(id, text)))
}

fn payloads(frames: &[SseFrame]) -> Vec<Value> {
    frames.iter().map(SseFrame::payload).collect()
}

/// All that the task has told so far, from its first event on.
fn shown(fixture: &ServerFixture, id: &str) -> Vec<Value> {
    let replay = request("tasks/resubscribe", &json!({"id": id}));
    payloads(&fixture.stream(RPC, &[("Last-Event-ID", "0")], &replay))
}

fn states(events: &[Value]) -> Vec<&str> {
    events.iter().filter_map(|event| event["status"]["state"].as_str()).collect()
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap_or_else(|| panic!("no object: {value}")).keys().map(String::as_str).collect()
}

/// The texts of the history, each with its role.
fn said(task: &Value) -> Vec<String> {
    let history = task["history"].as_array().map(Vec::as_slice).unwrap_or_default();
    let line = |message: &Value| format!("{}: {}", message["role"], message["parts"][0]["text"]).replace('"', "");
    history.iter().map(line).collect()
}

/// A server that may send to receivers on this machine.
fn with_receivers() -> ServerFixture {
    ServerFixture::with(|options| options.variable("PUSH_NOTIFICATION_ALLOWED_CIDRS", "127.0.0.0/8"))
}

fn is_completed(request: &ReceivedRequest) -> bool {
    request.json()["status"]["state"] == "completed"
}

/// `tasks/send` at `/a2a` makes the task under the id that the client chose, and the answer has the id of its request
#[test]
fn s3_01_a_client_names_its_task() {
    let fixture = ServerFixture::new();
    let body = json!({
        "jsonrpc": "2.0",
        "id": "req-001",
        "method": "tasks/send",
        "params": {
            "id": "task-abc-123",
            "message": {
                "role": "user",
                "parts": [{"type": "text", "text": "Summarize the latest AI safety research"}],
            },
        },
    });
    let reply = fixture.post(RPC, body);
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")));
    let answer = reply.json();
    assert_eq!(keys(&answer), ["id", "jsonrpc", "result"], "{answer}");
    assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!("req-001")));
    assert_eq!(answer["result"]["id"], "task-abc-123");
    assert_eq!(answer["result"]["status"]["state"], "completed");
    assert_eq!(get(&fixture, "task-abc-123"), answer["result"], "and it is known by that name");
}

/// The card is at `/.well-known/agent.json`
#[test]
fn s3_02_the_card_is_at_the_old_path() {
    let fixture = ServerFixture::new();
    let card = fixture.get("/.well-known/agent.json");
    assert_eq!((card.status, card.header("content-type")), (200, Some("application/json")));
    assert!(card.json()["name"].is_string(), "{}", card.text());
    assert_eq!(card.body, fixture.get("/.well-known/agent-card.json").body);
}

/// The card tells name, description, version, provider, the three capabilities, skills and media types, and JSON-RPC of
/// v0.1 answers at its `url`
#[test]
fn s3_03_the_card_tells_who_and_where() {
    let fixture = ServerFixture::new();
    for version in ["", "0.1"] {
        let card = fixture.ask("GET", "/.well-known/agent.json", &[("A2A-Version", version)], &Value::Null).json();
        for key in ["name", "description", "url", "version"] {
            assert!(card[key].as_str().is_some_and(|text| !text.is_empty()), "{key} in {card}");
        }
        for key in ["organization", "url"] {
            assert!(card["provider"][key].as_str().is_some_and(|text| !text.is_empty()), "{key} in {card}");
        }
        for key in ["streaming", "pushNotifications", "stateTransitionHistory"] {
            assert!(card["capabilities"][key].is_boolean(), "{key} in {card}");
        }
        assert_eq!(card["capabilities"]["streaming"], true);
        assert!(card["skills"].as_array().is_some_and(|skills| !skills.is_empty()), "{card}");
        for key in ["defaultInputModes", "defaultOutputModes"] {
            assert_eq!(card[key], json!(["text/plain", "application/json"]), "{key}");
        }
        let origin = format!("http://{}", fixture.server.address);
        let path = card["url"].as_str().unwrap().strip_prefix(&origin).expect("an absolute address");
        let id = format!("by the card {version}");
        assert_eq!(result(fixture.rpc(path, "tasks/send", params(&id, "hi")))["id"], id);
    }
}

/// Where an OpenID provider issues the tokens, `authentication` on the card has the schemes `["oauth2"]`, and as `credentials`
/// the address of the provider's OpenID configuration
#[test]
fn s3_04_the_card_says_where_oauth2_is_configured() {
    let served = ServedProvider::start();
    let issuer = &served.provider.issuer;
    let discovery = format!("{issuer}{DISCOVERY}");
    let fixture = ServerFixture::with(|options| {
        options.variable("AUTH_OIDC_DISCOVERY_URL", &discovery).variable("AUTH_AUDIENCE", AUDIENCE)
    });
    for version in ["", "0.1"] {
        let card = fixture.ask("GET", "/.well-known/agent.json", &[("A2A-Version", version)], &Value::Null).json();
        assert_eq!(card["authentication"], json!({"schemes": ["oauth2"], "credentials": discovery}), "{card}");
    }
    // A token from there is taken.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64;
    let authorization = format!("Bearer {}", served.provider.key().token(&served.provider.claims("alice", now)));
    let body = request("tasks/send", &params("t", "hello"));
    for (headers, status) in [(&[("Authorization", authorization.as_str())][..], 200), (&[], 401)] {
        let reply = fixture.ask("POST", RPC, headers, &body);
        assert_eq!(reply.status, status, "{}", reply.text());
    }
}

/// A skill on the card has id, name, description and tags; one without examples is told without them
#[test]
fn s3_05_a_skill_needs_no_examples() {
    let fixture = ServerFixture::configured(
        r#"
        [[agent]]
        id = "reviewer"
        kind = "demo"
        [[agent.skill]]
        id = "security-review"
        name = "Security Review"
        description = "Analyze code for security vulnerabilities"
        tags = ["security", "code-review"]
        examples = ["Review this Python file for SQL injection risks"]
        [[agent.skill]]
        id = "style-review"
        name = "Style Review"
        description = "Check code against style guidelines"
        tags = ["style", "linting"]
        "#,
    );
    let expected = json!([
        {
            "id": "security-review",
            "name": "Security Review",
            "description": "Analyze code for security vulnerabilities",
            "tags": ["security", "code-review"],
            "examples": ["Review this Python file for SQL injection risks"],
        },
        {
            "id": "style-review",
            "name": "Style Review",
            "description": "Check code against style guidelines",
            "tags": ["style", "linting"],
        },
    ]);
    for version in ["", "0.1"] {
        let card = fixture.ask("GET", "/.well-known/agent.json", &[("A2A-Version", version)], &Value::Null).json();
        assert_eq!(card["skills"], expected, "{version}");
    }
}

/// A part `{"type": "text", "text": ...}` reaches the agent as text
#[test]
fn s3_06_the_agent_sees_the_text() {
    let fixture = ServerFixture::new();
    let task = send(&fixture, "t", "Analyze this data");
    assert_eq!(task["artifacts"][0]["parts"], json!([{"type": "text", "text": "echo: Analyze this data"}]), "{task}");
}

/// A file with `bytes` reaches the agent with its content, name and type; what is no base64 is -32602 and makes no task
#[test]
fn s3_07_the_agent_gets_the_bytes_of_a_file() {
    let fixture = ServerFixture::new();
    let file = |bytes: &str| json!([{"type": "file", "file": {"name": "handler.py", "mimeType": "text/x-python", "bytes": bytes}}]);
    // The same two bytes, spelled in three ways: what comes back was read, not copied.
    for (id, bytes) in [("standard", "++8="), ("without padding", "++8"), ("for addresses", "--8=")] {
        let task = result(fixture.rpc(RPC, "tasks/send", with_parts(id, file(bytes))));
        assert_eq!(task["artifacts"][0]["parts"], file("++8="), "{id}: {task}");
    }
    for bytes in ["no base64!", "+", "++8==="] {
        let refused = fixture.rpc(RPC, "tasks/send", with_parts("bad", file(bytes)));
        assert_eq!(refused["error"]["code"], -32602, "{bytes}: {refused}");
        assert_eq!(fixture.rpc(RPC, "tasks/get", json!({"id": "bad"}))["error"]["code"], -32001, "{bytes}");
    }
}

/// A file with `uri` reaches the agent as that URI with its name and type, and the server itself fetches nothing
#[test]
fn s3_08_the_agent_gets_the_uri_of_a_file() {
    let fixture = ServerFixture::new();
    let host = TcpListener::bind("127.0.0.1:0").unwrap();
    host.set_nonblocking(true).unwrap();
    let uri = format!("http://{}/report.pdf", host.local_addr().unwrap());
    let parts = json!([{"type": "file", "file": {"name": "report.pdf", "mimeType": "application/pdf", "uri": uri}}]);
    let task = result(fixture.rpc(RPC, "tasks/send", with_parts("t", parts.clone())));
    assert_eq!(task["artifacts"][0]["parts"], parts, "{task}");
    let caller = host.accept().unwrap_err();
    assert_eq!(caller.kind(), std::io::ErrorKind::WouldBlock, "nobody asked for the file");
}

/// The JSON of a data part reaches the agent and comes back byte for byte, numbers and order of members included
#[test]
fn s3_09_the_agent_gets_the_data_unchanged() {
    let fixture = ServerFixture::new();
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tasks/send","params":{{"id":"t","message":{{"role":"user","parts":[{{"type":"data","data":{EXACT}}}]}}}}}}"#
    );
    let part = format!(r#"{{"type":"data","data":{EXACT}}}"#);
    let sent = fixture.post_text(RPC, &body).text();
    assert_eq!(sent.matches(&part).count(), 2, "in the history and in the artifact: {sent}");
    let read = fixture.post(RPC, request("tasks/get", &json!({"id": "t"}))).text();
    assert_eq!(read.matches(&part).count(), 2, "{read}");
}

/// Text, file and data in one message all arrive, in their order
#[test]
fn s3_10_parts_of_every_kind_keep_their_order() {
    let fixture = ServerFixture::new();
    let text = r#"{"type":"text","text":"Please review"}"#;
    let file = r#"{"type":"file","file":{"name":"handler.py","mimeType":"text/x-python","bytes":"aW1wb3J0IG9z"}}"#;
    let data = format!(r#"{{"type":"data","data":{EXACT}}}"#);
    let uri = r#"{"type":"file","file":{"uri":"https://example.com/a.txt"}}"#;
    for (id, parts) in
        [("one way", [text, file, &data, uri].join(",")), ("the other way", [uri, &data, file, text].join(","))]
    {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tasks/send","params":{{"id":"{id}","message":{{"role":"user","parts":[{parts}]}}}}}}"#
        );
        let answer = fixture.post_text(RPC, &body).text();
        assert!(answer.contains(&format!(r#""history":[{{"role":"user","parts":[{parts}]}}]"#)), "{id}: {answer}");
        // The demo agent's own text comes first; then what it was given, as it was given.
        let others = parts.replace(&format!("{text},"), "").replace(&format!(",{text}"), "");
        let made = format!(r#""parts":[{{"type":"text","text":"echo: Please review"}},{others}]"#);
        assert!(answer.contains(&made), "{id}: {made} in {answer}");
    }
}

/// A task goes from submitted over working to completed
#[test]
fn s3_11_a_task_is_submitted_then_working_then_completed() {
    let fixture = ServerFixture::new();
    assert_eq!(send(&fixture, "t", "slow 0.1 hello")["status"]["state"], "completed");
    assert_eq!(states(&shown(&fixture, "t")), ["submitted", "working", "completed"]);
}

/// Each progress text of the agent is a working status with a message of role `agent`
#[test]
fn s3_12_progress_is_told_by_the_agent() {
    let fixture = ServerFixture::new();
    let events = payloads(&subscribe(&fixture, "t", "tool read_file").rest().unwrap());
    let progress: Vec<&Value> = events.iter().filter(|event| event["status"]["message"].is_object()).collect();
    assert_eq!(progress.len(), 2, "{events:?}");
    for (event, text) in progress.iter().zip(["Using tool: read_file", "Tool result: read_file is done"]) {
        assert_eq!((&event["status"]["state"], &event["final"]), (&json!("working"), &json!(false)), "{event}");
        let message = &event["status"]["message"];
        assert_eq!(message["role"], "agent", "{event}");
        assert_eq!(message["parts"], json!([{"type": "text", "text": text}]), "{event}");
    }
}

/// A task that asks is input-required; `tasks/send` with its id and the answer lets the same task go on to its end
#[test]
fn s3_13_an_answer_goes_to_the_task_of_its_id() {
    let fixture = ServerFixture::new();
    let asked = send(&fixture, "t", "ask Which day?");
    assert_eq!(asked["status"]["state"], "input-required", "{asked}");
    assert_eq!(asked["status"]["message"]["parts"][0]["text"], "Which day?");
    let done = send(&fixture, "t", "Friday");
    assert_eq!((&done["id"], &done["sessionId"]), (&json!("t"), &asked["sessionId"]));
    assert_eq!(done["status"]["state"], "completed");
    assert_eq!(done["artifacts"][0]["parts"][0]["text"], "echo: Friday");
    assert_eq!(said(&done), ["user: ask Which day?", "agent: Which day?", "user: Friday"]);
    let expected = ["submitted", "working", "input-required", "working", "completed"];
    assert_eq!(states(&shown(&fixture, "t")), expected);
}

/// A task whose agent fails is failed, and its status message says why
#[test]
fn s3_14_an_agent_that_fails_fails_the_task() {
    let fixture = ServerFixture::new();
    let task = send(&fixture, "t", "fail The disk is full");
    assert_eq!(task["status"]["state"], "failed", "{task}");
    let expected = json!({"role": "agent", "parts": [{"type": "text", "text": "The disk is full"}]});
    assert_eq!(task["status"]["message"], expected);
    assert_eq!(states(&shown(&fixture, "t")), ["submitted", "working", "failed"]);
}

/// `tasks/cancel` of a working task answers with the canceled task
#[test]
fn s3_15_a_working_task_can_be_canceled() {
    let fixture = ServerFixture::new();
    let mut events = subscribe(&fixture, "t", "slow 60");
    let first: Vec<SseFrame> = (0..2).map(|_| events.next_frame().unwrap().unwrap()).collect();
    assert_eq!(states(&payloads(&first)), ["submitted", "working"]);
    let canceled = result(fixture.rpc(RPC, "tasks/cancel", json!({"id": "t"})));
    assert_eq!((&canceled["id"], &canceled["status"]["state"]), (&json!("t"), &json!("canceled")), "{canceled}");
    let end = payloads(&events.rest().unwrap());
    assert_eq!((states(&end), &end[0]["final"]), (vec!["canceled"], &json!(true)));
    assert_eq!(get(&fixture, "t"), canceled);
}

/// A v0.1 task has `id`, `sessionId`, `status`, `artifacts`, `history` and `metadata`; its parts say their `type`, and
/// nothing has a `kind`
#[test]
fn s3_16_a_task_is_spelled_as_v0_1_spells_it() {
    let fixture = ServerFixture::new();
    let parts = json!([
        {"type": "text", "text": "Review this code"},
        {"type": "file", "file": {"name": "a.py", "mimeType": "text/x-python", "bytes": "aW1wb3J0IG9z"}},
        {"type": "data", "data": {"language": "python"}},
    ]);
    let mut params = with_parts("t", parts);
    params["sessionId"] = json!("session-xyz");
    params["metadata"] = json!({"priority": "high"});
    fixture.rpc(RPC, "tasks/send", params.clone());
    let task = get(&fixture, "t");
    assert_eq!(keys(&task), ["artifacts", "history", "id", "metadata", "sessionId", "status"], "{task}");
    assert_eq!((&task["id"], &task["sessionId"]), (&json!("t"), &json!("session-xyz")));
    assert_eq!(keys(&task["status"]), ["state", "timestamp"], "{task}");
    assert!(task["status"]["timestamp"].as_str().is_some_and(|time| time.ends_with('Z')), "{task}");
    assert_eq!(task["metadata"], params["metadata"]);
    assert_eq!(task["history"], json!([params["message"]]), "parts have a type; messages have neither kind nor id");
    let types: Vec<&Value> =
        task["artifacts"][0]["parts"].as_array().unwrap().iter().map(|part| &part["type"]).collect();
    assert_eq!(types, ["text", "file", "data"]);
    assert!(!task.to_string().contains("\"kind\""), "{task}");

    let waiting = send(&fixture, "w", "ask Which file?");
    assert_eq!(get(&fixture, "w"), waiting);
    assert_eq!(keys(&waiting["status"]), ["message", "state", "timestamp"], "{waiting}");
    let question = json!({"role": "agent", "parts": [{"type": "text", "text": "Which file?"}]});
    assert_eq!(waiting["status"]["message"], question);
}

/// Tasks that are sent with one `sessionId` carry it; elsewhere it is their `contextId`
#[test]
fn s3_17_tasks_of_one_session_belong_together() {
    let fixture = ServerFixture::new();
    for id in ["first", "second"] {
        let mut params = params(id, "hello");
        params["sessionId"] = json!("session-xyz");
        assert_eq!(result(fixture.rpc(RPC, "tasks/send", params))["sessionId"], "session-xyz", "{id}");
        assert_eq!(get(&fixture, id)["sessionId"], "session-xyz", "{id}");
        assert_eq!(fixture.rpc(RPC, "GetTask", json!({"id": id}))["result"]["contextId"], "session-xyz", "{id}");
    }
    assert_ne!(send(&fixture, "third", "hello")["sessionId"], "session-xyz", "without one, the session is new");
    let listed = fixture.rpc(RPC, "ListTasks", json!({"contextId": "session-xyz"}));
    assert_eq!(listed["result"]["totalSize"], 2, "{listed}");
}

/// An artifact has an id, a name, a description, parts of every kind, and metadata
#[test]
fn s3_18_an_artifact_is_told_whole() {
    let fixture = ServerFixture::new();
    let parts = json!([
        {"type": "text", "text": "usage 1200 340"},
        {"type": "data", "data": {"vulnerabilities": 3}},
    ]);
    let task = result(fixture.rpc(RPC, "tasks/send", with_parts("t", parts)));
    let artifact = &task["artifacts"][0];
    assert_eq!(keys(artifact), ["description", "id", "index", "metadata", "name", "parts"], "{task}");
    for key in ["id", "name", "description"] {
        assert!(artifact[key].as_str().is_some_and(|text| !text.is_empty()), "{key} in {artifact}");
    }
    let expected = json!([
        {"type": "text", "text": "echo: usage 1200 340"},
        {"type": "data", "data": {"vulnerabilities": 3}},
    ]);
    assert_eq!(artifact["parts"], expected);
    assert!(artifact["metadata"].to_string().contains("1200"), "what the work has cost is in it: {artifact}");
    assert_eq!(get(&fixture, "t")["artifacts"], task["artifacts"]);
}

/// What a task has made stays: all artifacts are there when it is over, and after a restart of the server
#[test]
fn s3_19_artifacts_stay_also_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let options = SabirOptions::new(SABIR, folder.path());
    let server = options.start();
    let ask = |server: &SabirProcess, body: &Value| {
        server.http().exchange("POST", RPC, &[], body.to_string().as_bytes()).unwrap().json()
    };
    let parts = json!([
        {"type": "text", "text": "## Security Review"},
        {"type": "data", "data": {"vulnerabilities": 3}},
        {"type": "file", "file": {"name": "a.py", "mimeType": "text/x-python", "bytes": "aW1wb3J0IG9z"}},
    ]);
    let cases = [
        (
            "echoed",
            parts,
            json!([
                {"type": "text", "text": "echo: ## Security Review"},
                {"type": "data", "data": {"vulnerabilities": 3}},
                {"type": "file", "file": {"name": "a.py", "mimeType": "text/x-python", "bytes": "aW1wb3J0IG9z"}},
            ]),
        ),
        (
            "in pieces",
            json!([{"type": "text", "text": "stream 30 0"}]),
            json!([{"type": "text", "text": (1..=30).map(|i| format!("chunk {i}\n")).collect::<String>()}]),
        ),
    ];
    let check = |server: &SabirProcess, when: &str| {
        for (id, _, made) in &cases {
            let task = ask(server, &request("tasks/get", &json!({"id": id})));
            assert_eq!(task["result"]["status"]["state"], "completed", "{id} {when}: {task}");
            assert_eq!(task["result"]["artifacts"].as_array().map(Vec::len), Some(1), "{id} {when}: {task}");
            assert_eq!(task["result"]["artifacts"][0]["parts"], *made, "{id} {when}");
        }
    };
    for (id, parts, _) in &cases {
        ask(&server, &request("tasks/send", &with_parts(id, parts.clone())));
    }
    check(&server, "after completion");
    server.kill();
    check(&options.start(), "after a restart");
}

/// `tasks/send` with `pushNotification` sets the webhook before the work starts: it gets the working state and everything
/// after it; an address that is not public is -32602 and makes no task
#[test]
fn s3_20_a_task_can_bring_its_webhook() {
    let (fixture, receiver) = (with_receivers(), WebhookReceiver::start());
    let mut with_hook = params("t", "hello");
    with_hook["pushNotification"] = json!({"url": receiver.url("/hook"), "token": "secret"});
    let task = result(fixture.rpc(RPC, "tasks/send", with_hook.clone()));
    assert_eq!(task["status"]["state"], "completed", "{task}");
    assert!(!task.to_string().contains("secret"), "{task}");
    let requests = receiver.until(is_completed);
    let bodies: Vec<Value> = requests.iter().map(ReceivedRequest::json).collect();
    assert_eq!(states(&bodies), ["working", "completed"]);
    for request in &requests {
        assert_eq!((request.line.as_str(), request.header("authorization")), ("POST /hook HTTP/1.1", "Bearer secret"));
        assert_eq!((&request.json()["id"], request.json().get("kind")), (&json!("t"), None), "{request:?}");
    }
    assert_eq!(bodies[1]["artifacts"], task["artifacts"]);

    for url in ["http://10.0.0.1/hook", "http://[::1]/hook", "http://169.254.169.254/", "file:///etc/passwd"] {
        with_hook["id"] = json!("refused");
        with_hook["pushNotification"]["url"] = json!(url);
        for method in ["tasks/send", "tasks/sendSubscribe"] {
            let reply = fixture.post(RPC, request(method, &with_hook));
            assert!(reply.text().contains("-32602"), "{url} {method}: {}", reply.text());
        }
        assert_eq!(
            fixture.rpc(RPC, "tasks/get", json!({"id": "refused"}))["error"]["code"],
            -32001,
            "nothing was made"
        );
    }
}

/// The `metadata` of `tasks/send` is kept with the task, byte for byte, and comes with every answer
#[test]
fn s3_21_metadata_stays_with_the_task() {
    let fixture = ServerFixture::new();
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tasks/send","params":{{"id":"t","message":{{"role":"user","parts":[{{"type":"text","text":"hi"}}]}},"metadata":{EXACT}}}}}"#
    );
    let metadata = format!(r#""metadata":{EXACT}"#);
    let sent = fixture.post_text(RPC, &body).text();
    assert_eq!(sent.matches(&metadata).count(), 1, "{sent}");
    let read = fixture.post(RPC, request("tasks/get", &json!({"id": "t"})));
    assert_eq!(read.text().matches(&metadata).count(), 1, "{}", read.text());
    assert_eq!(read.json()["result"]["metadata"]["b"], 5.0, "it is the task's: {}", read.text());
}

/// `tasks/sendSubscribe` takes what `tasks/send` takes and answers with `text/event-stream`
#[test]
fn s3_22_a_send_can_be_streamed() {
    let fixture = ServerFixture::new();
    let full = |id: &str| {
        let mut params = params(id, "hello");
        params["sessionId"] = json!("session-xyz");
        params["historyLength"] = json!(5);
        params["metadata"] = json!({"priority": "high"});
        params
    };
    let reply = fixture.post(RPC, request("tasks/sendSubscribe", &full("streamed")));
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("text/event-stream")), "{}", reply.text());
    assert!(reply.text().contains("completed"), "{}", reply.text());
    // Both make the same task.
    let plain = |mut task: Value| {
        for own in ["/id", "/status/timestamp", "/artifacts/0/id"] {
            let value = task.pointer_mut(own).unwrap().take();
            assert!(value.is_string(), "{own}: {value}");
        }
        task
    };
    let sent = result(fixture.rpc(RPC, "tasks/send", full("sent")));
    assert_eq!(plain(get(&fixture, "streamed")), plain(sent));
}

/// Every frame is `{jsonrpc, id, result}` with the id of the request; the result is `{id, status, final}` or
/// `{id, artifact}`, and nothing has a `kind`
#[test]
fn s3_23_frames_are_answers_with_a_status_or_an_artifact() {
    let fixture = ServerFixture::new();
    let frames = subscribe(&fixture, "t", "stream 3 1").rest().unwrap();
    let mut shapes = Vec::new();
    for frame in &frames {
        let envelope = frame.json();
        assert_eq!(keys(&envelope), ["id", "jsonrpc", "result"], "{envelope}");
        assert_eq!((&envelope["jsonrpc"], &envelope["id"]), (&json!("2.0"), &json!("req-001")));
        assert!(!frame.data.contains("\"kind\""), "{envelope}");
        assert_eq!(envelope["result"]["id"], "t", "{envelope}");
        shapes.push(keys(&envelope["result"]).join(" "));
    }
    let (status, artifact) = ("final id status", "artifact id");
    // The last one also has what was made (S3-24).
    assert_eq!(shapes, [status, status, artifact, artifact, artifact, "artifacts final id status"]);
    let events = payloads(&frames);
    assert_eq!(states(&events), ["submitted", "working", "completed"]);
    let finals: Vec<&Value> = events.iter().map(|event| &event["final"]).filter(|last| !last.is_null()).collect();
    assert_eq!(finals, [&json!(false), &json!(false), &json!(true)]);
    for (place, event) in events[2..5].iter().enumerate() {
        let artifact = &event["artifact"];
        assert_eq!(artifact["parts"], json!([{"type": "text", "text": format!("chunk {}\n", place + 1)}]));
        assert_eq!(artifact["index"], 0, "one artifact, in pieces");
        let shown = (artifact["append"] == true, artifact["lastChunk"] == true);
        assert_eq!(shown, (place > 0, place == 2), "{artifact}");
    }
}

/// The last frame of a stream has the state completed and all artifacts; then the stream ends
#[test]
fn s3_24_the_last_frame_has_the_artifacts() {
    let fixture = ServerFixture::new();
    for (id, text, made) in [("t", "stream 3 1", "chunk 1\nchunk 2\nchunk 3\n"), ("u", "hello", "echo: hello")] {
        // It reads to the proper end of the stream.
        let frames = subscribe(&fixture, id, text).rest().unwrap();
        let last = frames.last().unwrap().payload();
        assert_eq!((&last["status"]["state"], &last["final"]), (&json!("completed"), &json!(true)), "{last}");
        let artifacts = last["artifacts"].as_array().unwrap_or_else(|| panic!("{last}"));
        assert_eq!(artifacts.len(), 1, "{last}");
        assert_eq!(artifacts[0]["parts"], json!([{"type": "text", "text": made}]));
        assert_eq!(last["artifacts"], get(&fixture, id)["artifacts"]);
        let others = &frames[..frames.len() - 1];
        assert!(others.iter().all(|frame| frame.payload().get("artifacts").is_none()), "{others:?}");
    }
}

/// `historyLength` of `tasks/get` gives so many of the newest messages, 0 none; without it all are there
#[test]
fn s3_25_history_is_as_long_as_asked_for() {
    let fixture = ServerFixture::new();
    for text in ["ask Which day?", "ask Which hour?", "Friday at noon"] {
        send(&fixture, "t", text);
    }
    let all = [
        "user: ask Which day?",
        "agent: Which day?",
        "user: ask Which hour?",
        "agent: Which hour?",
        "user: Friday at noon",
    ];
    let read = |params: Value| said(&result(fixture.rpc(RPC, "tasks/get", params)));
    assert_eq!(read(json!({"id": "t"})), all);
    for (length, from) in [(1, 4), (4, 1), (5, 0), (9, 0)] {
        assert_eq!(read(json!({"id": "t", "historyLength": length})), all[from..], "{length}");
    }
    assert!(read(json!({"id": "t", "historyLength": 0})).is_empty());
}

/// `tasks/pushNotification/set` answers with the id of the task and the webhook, without its token, and what happens next is
/// posted to it
#[test]
fn s3_26_a_webhook_is_set_and_gets_what_follows() {
    let (fixture, receiver) = (with_receivers(), WebhookReceiver::start());
    assert_eq!(send(&fixture, "t", "ask Which day?")["status"]["state"], "input-required");
    let config = json!({"url": receiver.url("/hook"), "token": "secret"});
    let set =
        |id: &str| fixture.rpc(RPC, "tasks/pushNotification/set", json!({"id": id, "pushNotificationConfig": config}));
    let answer = set("t");
    assert!(!answer.to_string().contains("secret"), "{answer}");
    let answer = result(answer);
    assert_eq!((&answer["id"], &answer["pushNotificationConfig"]["url"]), (&json!("t"), &config["url"]), "{answer}");
    assert_eq!(set("ghost")["error"]["code"], -32001);

    let task = send(&fixture, "t", "Friday");
    assert_eq!(task["status"]["state"], "completed", "{task}");
    let requests = receiver.until(is_completed);
    let bodies: Vec<Value> = requests.iter().map(ReceivedRequest::json).collect();
    assert_eq!(states(&bodies), ["working", "completed"]);
    assert!(requests.iter().all(|request| request.header("authorization") == "Bearer secret"), "{requests:?}");
    assert!(bodies.iter().all(|body| body["id"] == "t"), "{bodies:?}");
    assert_eq!(bodies[1]["artifacts"], task["artifacts"]);
}

/// `tasks/pushNotification/get` gives the webhook of a task without its token; an unknown task is -32001
#[test]
fn s3_27_a_webhook_can_be_read() {
    let fixture = with_receivers();
    send(&fixture, "t", "ask Which day?");
    let config = json!({"url": "http://127.0.0.1:8080/hook", "token": "secret"});
    let set = fixture.rpc(RPC, "tasks/pushNotification/set", json!({"id": "t", "pushNotificationConfig": config}));
    let read = fixture.rpc(RPC, "tasks/pushNotification/get", json!({"id": "t"}));
    assert!(!read.to_string().contains("secret"), "{read}");
    let read = result(read);
    assert_eq!((&read["id"], &read["pushNotificationConfig"]["url"]), (&json!("t"), &config["url"]), "{read}");
    assert_eq!(read, result(set), "both answer with the same");
    let unknown = fixture.rpc(RPC, "tasks/pushNotification/get", json!({"id": "ghost"}));
    assert_eq!(unknown["error"]["code"], -32001, "{unknown}");
}

/// After a stream `tasks/get` has the whole task: state, history and artifacts
#[test]
fn s3_28_after_a_stream_the_task_is_whole() {
    let fixture = ServerFixture::new();
    subscribe(&fixture, "t", "ask How many?").rest().unwrap();
    let events = payloads(&subscribe(&fixture, "t", "stream 3 1").rest().unwrap());
    let task = get(&fixture, "t");
    assert_eq!(task["status"]["state"], "completed");
    assert_eq!(said(&task), ["user: ask How many?", "agent: How many?", "user: stream 3 1"]);
    let streamed: String = events.iter().filter_map(|event| event["artifact"]["parts"][0]["text"].as_str()).collect();
    assert_eq!(streamed, "chunk 1\nchunk 2\nchunk 3\n");
    assert_eq!(task["artifacts"].as_array().map(Vec::len), Some(1), "{task}");
    assert_eq!(task["artifacts"][0]["parts"], json!([{"type": "text", "text": streamed}]));
}

/// An unknown task is the error -32001, `Task not found`, with its id in `data`
#[test]
fn s3_29_an_unknown_task_is_named_in_the_error() {
    let fixture = ServerFixture::new();
    for method in ["tasks/get", "tasks/cancel"] {
        let answer = fixture.rpc(RPC, method, json!({"id": "task-unknown"}));
        let error = json!({"code": -32001, "message": "Task not found", "data": {"taskId": "task-unknown"}});
        assert_eq!(answer, json!({"jsonrpc": "2.0", "id": "r", "error": error}), "{method}");
    }
}

/// Bad JSON is -32700, no method -32600, an unknown method -32601, no `id` in the params -32602, and a failure of the
/// server itself -32603
#[test]
fn s3_30_errors_have_the_codes_of_json_rpc() {
    let folder = tempfile::tempdir().unwrap();
    let options = SabirOptions::new(SABIR, folder.path());
    let mut server = options.start();
    let post = |server: &SabirProcess, body: &str| {
        let reply = server.http().exchange("POST", RPC, &[], body.as_bytes()).unwrap();
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()
    };
    let message = json!({"role": "user", "parts": [{"type": "text", "text": "hi"}]});
    for (body, id, code) in [
        ("{not json".to_owned(), Value::Null, -32700),
        (json!({"jsonrpc": "2.0", "id": "req-001", "params": {"id": "t"}}).to_string(), json!("req-001"), -32600),
        (request("tasks/nope", &json!({"id": "t"})).to_string(), json!("req-001"), -32601),
        (request("tasks/send", &json!({"message": message})).to_string(), json!("req-001"), -32602),
        (request("tasks/get", &json!({})).to_string(), json!("req-001"), -32602),
        (request("tasks/cancel", &json!({})).to_string(), json!("req-001"), -32602),
    ] {
        let answer = post(&server, &body);
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &json!(code)), "{body}: {answer}");
        assert!(answer["error"]["message"].is_string() && answer.get("result").is_none(), "{answer}");
    }

    for (id, text) in [("whole", "hello"), ("damaged", "to be damaged")] {
        post(&server, &request("tasks/send", &params(id, text)).to_string());
    }
    server.terminate();
    server.wait(Duration::from_secs(20));
    damage(&folder.path().join("sabir.db"), "echo: to be damaged");
    let server = options.start();
    // Its events cannot be read, which is our failure; the task itself is shown as failed.
    let body = request("tasks/resubscribe", &json!({"id": "damaged"})).to_string();
    let reply = server.http().exchange("POST", RPC, &[("last-event-id", "0")], body.as_bytes()).unwrap();
    let frames = reply.text();
    let last = frames.lines().filter_map(|line| line.strip_prefix("data:")).next_back().expect("a frame comes");
    let answer: Value = serde_json::from_str(last).unwrap();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("req-001"), &json!(-32603)), "{frames}");
    assert!(!answer.to_string().contains("echo:"), "nothing from inside is told: {answer}");
    let answer = post(&server, &request("tasks/get", &json!({"id": "damaged"})).to_string());
    assert_eq!(answer["result"]["status"]["state"], "failed", "{answer}");
    let answer = post(&server, &request("tasks/get", &json!({"id": "whole"})).to_string());
    assert_eq!(answer["result"]["status"]["state"], "completed", "the rest still works: {answer}");
}

/// Makes what is stored with this text unreadable, as a bad disk would.
fn damage(file: &Path, text: &str) {
    let mut bytes = std::fs::read(file).unwrap();
    let at =
        bytes.windows(text.len()).position(|window| window == text.as_bytes()).expect("it is stored as it was said");
    // The quote in front of it.
    bytes[at - 1] = b'x';
    std::fs::write(file, bytes).unwrap();
}

/// `tasks/cancel` of a task that is over is -32002 and changes nothing
#[test]
fn s3_31_a_finished_task_cannot_be_canceled() {
    let fixture = ServerFixture::new();
    for (id, text) in [("done", "hello"), ("failed", "fail badly")] {
        let task = send(&fixture, id, text);
        let refused = fixture.rpc(RPC, "tasks/cancel", json!({"id": id}));
        let expected = json!({"code": -32002, "message": "Task cannot be canceled", "data": {"taskId": id}});
        assert_eq!(refused["error"], expected, "{refused}");
        assert_eq!(get(&fixture, id), task, "nothing changes");
    }
}

/// With `push.enabled = false` the push methods of v0.1, and a webhook on `tasks/send`, are -32003
#[test]
fn s3_32_without_push_webhooks_are_refused() {
    let fixture = ServerFixture::configured("[push]\nenabled = false\n");
    send(&fixture, "t", "hello");
    let hook = json!({"url": "https://hooks.example/a2a", "token": "secret"});
    let mut inline = params("inline", "hello");
    inline["pushNotification"] = hook.clone();
    for (method, params) in [
        ("tasks/pushNotification/set", json!({"id": "t", "pushNotificationConfig": hook})),
        ("tasks/pushNotification/get", json!({"id": "t"})),
        ("tasks/send", inline),
    ] {
        let error = &fixture.rpc(RPC, method, params)["error"];
        assert_eq!(error["code"], -32003, "{method}: {error}");
        assert_eq!(error["message"], "Push Notification is not supported", "{method}");
    }
    assert_eq!(fixture.rpc(RPC, "tasks/get", json!({"id": "inline"}))["error"]["code"], -32001, "nothing was made");
}
