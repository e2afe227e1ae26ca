//! The surfaces of the real program, over HTTP as it is.

use sabir_testkit::grpc;
use sabir_testkit::process::SabirOptions;
use serde_json::{Value, json};

use crate::SABIR;
use crate::server_fixture::{ServerFixture, v1_message, v03_message};

const V1: (&str, &str) = ("A2A-Version", "1.0");

#[test]
fn one_task_is_known_in_every_dialect_and_binding() {
    let fixture = ServerFixture::new();
    let made = fixture.rpc("/", "message/send", v03_message("ask Which day?"));
    assert_eq!(made["result"]["status"]["state"], "input-required");
    let id = made["result"]["id"].as_str().unwrap();
    let read = fixture.rpc("/", "GetTask", json!({"id": id}));
    assert_eq!(read["result"]["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    let read = fixture.ask("GET", &format!("/a2a/rest/v1/tasks/{id}"), &[], &Value::Null).json();
    assert_eq!(read["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    assert_eq!(read["status"]["message"]["content"][0]["text"], "Which day?");
    let canceled = fixture.ask("POST", &format!("/tasks/{id}:cancel"), &[V1], &Value::Null);
    assert_eq!((canceled.status, &canceled.json()["status"]["state"]), (200, &json!("TASK_STATE_CANCELED")));
    assert_eq!(canceled.header("content-type"), Some("application/a2a+json"));
    let again = fixture.rpc("/", "tasks/cancel", json!({"id": id}));
    assert_eq!(again["error"]["code"], -32002);
    for (path, headers, status) in [
        (format!("/tasks/{id}:cancel"), &[V1][..], 400),
        (format!("/a2a/rest/tasks/{id}:cancel"), &[], 409),
        (format!("/a2a/rest/v1/tasks/{id}:cancel"), &[], 409),
    ] {
        assert_eq!(fixture.ask("POST", &path, headers, &Value::Null).status, status, "{path}");
    }
}

#[test]
fn a_browser_gets_a_page_that_says_what_this_is() {
    let fixture = ServerFixture::new();
    let page = fixture.ask("GET", "/", &[("Accept", "text/html")], &Value::Null);
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert!(page.text().contains("Sabir demo agent"), "{}", page.text());
    let card = fixture.ask("GET", "/agents/demo/.well-known/agent-card.json", &[], &Value::Null);
    assert_eq!(card.status, 200, "the page leads there");
    assert_eq!(fixture.ask("GET", "/", &[], &Value::Null).header("content-type"), Some("application/problem+json"));
}

#[test]
fn streams_have_numbers_and_the_right_headers() {
    let fixture = ServerFixture::new();
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": "message/stream", "params": v03_message("stream 3 1")});
    let frames = fixture.stream("/a2a/jsonrpc", &[], &body);
    assert_eq!(frames.iter().filter_map(|frame| frame.id).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    let kinds: Vec<Value> = frames.iter().map(|frame| frame.payload()["kind"].clone()).collect();
    assert_eq!(
        kinds,
        ["task", "status-update", "artifact-update", "artifact-update", "artifact-update", "status-update"]
    );
    assert!(frames.iter().all(|frame| frame.json()["id"] == 7 && frame.json()["jsonrpc"] == "2.0"));
    assert_eq!(frames[5].payload()["final"], true);

    let bare = fixture.stream("/a2a/rest/message:stream", &[], &v1_message("stream 1 1"));
    assert!(bare[0].json()["task"].is_object(), "HTTP+JSON frames have no envelope");
    let mut http = fixture.server.http();
    let body = v1_message("stream 1 1").to_string();
    http.send("POST", "/message:stream", &[V1], body.as_bytes()).unwrap();
    let (status, headers) = http.receive_head().unwrap();
    let header = |name: &str| headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    assert_eq!(status, 200);
    assert_eq!(header("content-type"), Some("text/event-stream"));
    assert_eq!(header("cache-control"), Some("no-cache"));
    assert_eq!(header("x-accel-buffering"), Some("no"));
}

#[test]
fn a_silent_stream_gets_keep_alives() {
    let fixture = ServerFixture::with(|options| options.variable("SABIR_SERVER_KEEP_ALIVE", "1s"));
    let mut http = fixture.server.http();
    let body = v1_message("slow 2.5 hello").to_string();
    http.send("POST", "/message:stream", &[V1], body.as_bytes()).unwrap();
    http.receive_head().unwrap();
    let mut text = String::new();
    while let Some(chunk) = http.receive_chunk().unwrap() {
        text.push_str(&String::from_utf8(chunk).unwrap());
    }
    assert_eq!(text.matches(": keep-alive\n\n").count(), 2, "{text}");
    assert!(text.contains("TASK_STATE_COMPLETED"));
}

#[test]
fn bodies_too_large_or_not_json_are_refused_in_the_callers_dialect() {
    let fixture = ServerFixture::with(|options| options.variable("SABIR_SERVER_BODY_LIMIT", "1000"));
    let large = "x".repeat(2000);
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": v03_message(&large)});
    let refused = fixture.ask("POST", "/", &[], &body);
    assert_eq!(refused.status, 413);
    assert!(refused.json()["error"]["code"].is_i64(), "{}", refused.text());
    let refused = fixture.ask("POST", "/message:send", &[V1], &v1_message(&large));
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (413, &json!(413)));
    let refused = fixture.ask("POST", "/v1/message:send", &[], &v1_message(&large));
    assert_eq!(refused.status, 413);
    assert!(refused.json()["code"].is_i64(), "{}", refused.text());
    let refused = fixture.ask("POST", "/message:send", &[], &v1_message(&large));
    assert_eq!((refused.status, refused.header("content-type")), (413, Some("application/problem+json")));

    for (name, value) in [("Content-Type", "text/plain"), ("Content-Encoding", "gzip")] {
        let refused = fixture.ask("POST", "/", &[(name, value)], &json!({}));
        assert_eq!(refused.status, 415, "{name}: {value}");
        assert!(refused.json()["error"].is_object());
    }
    // Chunked, so that the size is not announced.
    let mut http = fixture.server.http();
    http.send("POST", "/", &[("Transfer-Encoding", "chunked"), ("Content-Type", "application/json")], b"").unwrap();
    http.write_raw(format!("7d0\r\n{large}\r\n0\r\n\r\n").as_bytes()).unwrap();
    assert_eq!(http.receive().unwrap().status, 413);
    assert_eq!(fixture.rpc("/", "message/send", v03_message("small"))["result"]["status"]["state"], "completed");
}

#[test]
fn pages_of_other_origins_are_refused_unless_named() {
    let fixture = ServerFixture::new();
    let origin = ("Origin", "https://app.example");
    assert_eq!(fixture.ask("POST", "/message:send", &[origin], &v1_message("x")).status, 403);
    let refused =
        fixture.ask("POST", "/a2a/v0.3", &[origin], &json!({"jsonrpc": "2.0", "id": 1, "method": "message/send"}));
    assert_eq!((refused.status, &refused.json()["error"]["data"]["name"]), (403, &json!("AuthorizationFailed")));
    assert_eq!(
        fixture.ask("GET", "/.well-known/agent-card.json", &[origin], &Value::Null).status,
        200,
        "the card is public"
    );
    assert_eq!(
        fixture.ask("GET", "/.well-known/agent-card.json", &[], &Value::Null).header("access-control-allow-origin"),
        None
    );
    let fixture = ServerFixture::with(|options| options.variable("SABIR_SERVER_CORS_ORIGINS", "https://app.example"));
    let allowed = fixture.ask("POST", "/message:send", &[origin], &v1_message("x"));
    assert_eq!((allowed.status, allowed.header("access-control-allow-origin")), (200, Some("https://app.example")));
    let asked = fixture.ask("OPTIONS", "/", &[origin, ("Access-Control-Request-Method", "POST")], &Value::Null);
    assert_eq!((asked.status, asked.header("access-control-allow-origin")), (204, Some("https://app.example")));
    let other = ("Origin", "https://evil.example");
    assert_eq!(fixture.ask("POST", "/message:send", &[other], &v1_message("x")).status, 403);
}

#[test]
fn cards_are_cached_by_tag_and_can_be_pure() {
    let fixture = ServerFixture::new();
    let card = fixture.ask("GET", "/.well-known/agent-card.json", &[], &Value::Null);
    assert_eq!(card.header("cache-control"), Some("public, max-age=30, must-revalidate"));
    let etag = card.header("etag").unwrap().to_owned();
    assert!(etag.starts_with("W/\"a2a-agents-"), "{etag}");
    assert_eq!(fixture.ask("GET", "/.well-known/agent.json", &[], &Value::Null).body, card.body);
    for (tags, status) in [(etag.as_str(), 304), ("*", 304), (&format!("\"other\", {etag}"), 304), ("\"other\"", 200)] {
        let reply = fixture.ask("GET", "/.well-known/agent-card.json", &[("If-None-Match", tags)], &Value::Null);
        assert_eq!((reply.status, reply.body.is_empty()), (status, status == 304), "{tags}");
        assert!(reply.header("etag").is_some() && reply.header("cache-control").is_some());
    }
    let superset = card.json();
    assert!(superset["supportedInterfaces"].is_array() && superset["url"].is_string());
    let pure = fixture.ask("GET", "/.well-known/agent-card.json", &[V1], &Value::Null).json();
    assert!(pure["supportedInterfaces"].is_array() && pure.get("url").is_none(), "{pure}");
    let old = fixture.ask("GET", "/.well-known/agent-card.json", &[("A2A-Version", "0.3")], &Value::Null).json();
    assert!(old.get("supportedInterfaces").is_none() && old["protocolVersion"] == "0.3.0", "{old}");
    for interface in superset["supportedInterfaces"].as_array().unwrap() {
        let url = interface["url"].as_str().unwrap();
        let path = url.split_once(&fixture.server.address.to_string()).unwrap().1;
        let grpc = |method: &str, message| grpc::call(fixture.server.address, method, &[], &message).code() == Some(0);
        let works =
            match (interface["protocolBinding"].as_str().unwrap(), interface["protocolVersion"].as_str().unwrap()) {
                ("JSONRPC", "1.0") => fixture.rpc(path, "SendMessage", v1_message("hi"))["result"]["task"].is_object(),
                ("JSONRPC", "0.3") => fixture.rpc(path, "message/send", v03_message("hi"))["result"]["kind"] == "task",
                ("HTTP+JSON", "1.0") => {
                    fixture.ask("POST", &format!("{path}/message:send"), &[V1], &v1_message("hi")).status == 200
                }
                ("HTTP+JSON", "0.3") => {
                    let message =
                        json!({"message": {"messageId": "m", "role": "ROLE_USER", "content": [{"text": "hi"}]}});
                    fixture.ask("POST", &format!("{path}/v1/message:send"), &[], &message).status == 200
                }
                ("GRPC", "1.0") => grpc("lf.a2a.v1.A2AService/SendMessage", v1_message("hi")),
                ("GRPC", "0.3") => {
                    let message =
                        json!({"request": {"messageId": "m", "role": "ROLE_USER", "content": [{"text": "hi"}]}});
                    grpc("a2a.v1.A2AService/SendMessage", message)
                }
                other => panic!("unknown interface {other:?}"),
            };
        assert!(works, "{interface} is advertised and works");
    }
}

#[test]
fn an_agent_has_mounts_and_a_card_of_its_own() {
    let fixture = ServerFixture::new();
    let sent = fixture.rpc("/agents/demo/", "SendMessage", v1_message("hi"));
    assert_eq!(sent["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{sent}");
    let card = fixture.ask("GET", "/agents/demo/.well-known/agent-card.json", &[], &Value::Null).json();
    assert_eq!(card["url"], format!("http://{}/agents/demo/a2a/jsonrpc", fixture.server.address));
    let tenant = fixture.ask("POST", "/demo/message:send", &[V1], &v1_message("hi"));
    assert_eq!(tenant.status, 200, "{}", tenant.text());
    let unknown = fixture.ask("POST", "/agents/ghost/a2a", &[], &json!({}));
    assert_eq!(unknown.status, 404);
    assert!(unknown.text().contains("demo"), "{}", unknown.text());
    let unknown = fixture.rpc("/", "SendMessage", json!({"tenant": "ghost", "message": v1_message("x")["message"]}));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
}

#[test]
fn strict_mounts_want_the_dialects_own_spelling() {
    let fixture = ServerFixture::new();
    let sloppy = json!({"message": {"parts": [{"type": "text", "content": "hi"}]}});
    for (path, method, code) in [
        ("/", "message/send", None),
        ("/a2a", "SendMessage", None),
        ("/a2a/v0.3", "message/send", Some(-32602)),
        ("/a2a/v1", "SendMessage", Some(-32602)),
        ("/a2a/v1", "message/send", Some(-32601)),
    ] {
        let answer = fixture.rpc(path, method, sloppy.clone());
        assert_eq!(answer["error"]["code"].as_i64(), code, "{path} {method}: {answer}");
    }
}

#[test]
fn a_repeated_send_with_a_key_makes_one_task() {
    let fixture = ServerFixture::new();
    let key = [V1, ("Idempotency-Key", "k1")];
    let first = fixture.ask("POST", "/message:send", &key, &v1_message("one")).json();
    let again = fixture.ask("POST", "/message:send", &key, &v1_message("two")).json();
    assert_eq!(first, again);
    let frames = fixture.stream("/message:stream", &key, &v1_message("three"));
    assert_eq!(frames.len(), 4, "a repeated stream replays and closes");
    let rest = fixture.stream("/message:stream", &[key[0], key[1], ("Last-Event-ID", "2")], &v1_message("four"));
    assert_eq!(rest, frames[2..]);
}

#[test]
fn raw_json_comes_back_byte_for_byte_even_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let options = SabirOptions::new(SABIR, folder.path());
    let server = options.start();
    let data = r#"{"b":12345678901234567,"a":1e3,"c":5,"d":5.0,"dup":1,"dup":2}"#;
    let body = format!(
        r#"{{"message":{{"messageId":"m","role":"ROLE_USER","parts":[{{"data":{data}}}],"metadata":{data}}},"metadata":{data}}}"#
    );
    let made = server.http().exchange("POST", "/message:send", &[V1], body.as_bytes()).unwrap();
    assert_eq!(made.text().matches(data).count(), 4, "{}", made.text());
    let id = made.json()["task"]["id"].as_str().unwrap().to_owned();
    server.kill();
    let server = options.start();
    let read = server.http().exchange("GET", &format!("/tasks/{id}"), &[V1], b"").unwrap();
    assert_eq!(format!(r#"{{"task":{}}}"#, read.text()), made.text());
}

#[test]
fn bytes_after_the_body_do_not_delay_the_answer() {
    let fixture = ServerFixture::new();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "x"}}).to_string();
    for behind in ["\r\n", "\r\n\r\n", "POST / HT"] {
        let mut http = fixture.server.http();
        http.send("POST", "/", &[V1], body.as_bytes()).unwrap();
        http.write_raw(behind.as_bytes()).unwrap();
        assert_eq!(http.receive().unwrap().json()["error"]["code"], -32001, "{behind:?}");
    }
}

#[test]
fn a_key_that_is_no_text_is_refused_and_a_cursor_is_honoured_on_every_stream() {
    let fixture = ServerFixture::new();
    let mut http = fixture.server.http();
    let body = v1_message("x").to_string();
    let head = format!(
        "POST /message:send HTTP/1.1\r\nHost: localhost\r\nA2A-Version: 1.0\r\nContent-Length: {}\r\n",
        body.len()
    );
    http.write_raw(&[head.as_bytes(), b"Idempotency-Key: k\xe9y\r\n\r\n", body.as_bytes()].concat()).unwrap();
    assert_eq!(http.receive().unwrap().status, 400);

    let asked = fixture.ask("POST", "/message:send", &[V1], &v1_message("ask which?")).json();
    let id = asked["task"]["id"].as_str().unwrap();
    let answer =
        json!({"message": {"messageId": "a", "taskId": id, "role": "ROLE_USER", "parts": [{"text": "friday"}]}});
    let refused = fixture.ask("POST", "/message:stream", &[V1, ("Last-Event-ID", "99")], &answer);
    assert_eq!(refused.status, 400, "{}", refused.text());
    let frames = fixture.stream("/message:stream", &[V1, ("Last-Event-ID", "1")], &answer);
    assert_eq!(frames.iter().filter_map(|frame| frame.id).collect::<Vec<_>>(), [2, 3, 4, 5, 6]);
}

#[test]
fn options_lists_the_allowed_methods_of_a_path() {
    let fixture = ServerFixture::new();
    for (path, expected) in [
        ("/", Some("POST")),
        ("/tasks", Some("GET, HEAD")),
        ("/tasks/t:subscribe", Some("GET, POST")),
        ("/.well-known/agent-card.json", Some("GET, HEAD")),
        ("/healthz", Some("GET, HEAD")),
        ("/v1/a2a/agents/demo/message:send", Some("POST")),
        ("/nowhere", None),
    ] {
        let reply = fixture.ask("OPTIONS", path, &[], &Value::Null);
        assert_eq!(
            (reply.status, reply.header("allow")),
            (if expected.is_some() { 204 } else { 404 }, expected),
            "{path}"
        );
    }
}

#[test]
fn an_unknown_tenant_in_the_query_makes_no_task() {
    let fixture = ServerFixture::with_agents(&["alpha", "beta"]);
    let refused = fixture.ask("POST", "/message:send?tenant=ghost", &[V1], &v1_message("x"));
    assert_eq!(refused.status, 404, "{}", refused.text());
    assert!(refused.text().contains("there is no agent ghost; known: alpha, beta"), "{}", refused.text());
    assert_eq!(fixture.ask("GET", "/tasks", &[V1], &Value::Null).json()["totalSize"], 0);
    let taken = fixture.ask("POST", "/message:send?tenant=beta", &[V1], &v1_message("x"));
    assert_eq!(taken.status, 200, "{}", taken.text());
    assert_eq!(fixture.ask("GET", "/beta/tasks", &[V1], &Value::Null).json()["totalSize"], 1);
}

#[test]
fn an_id_that_ends_like_an_action_names_its_task() {
    let fixture = ServerFixture::new();
    let text = r#"{"id":"abc:cancel","message":{"role":"user","parts":[{"type":"text","text":"hi"}]}}"#;
    let task = fixture.rpc("/", "tasks/send", serde_json::from_str(text).unwrap());
    assert_eq!(task["result"]["id"], "abc:cancel", "{task}");
    let shown = fixture.ask("GET", "/tasks/abc%3Acancel", &[V1], &Value::Null);
    assert_eq!((shown.status, &shown.json()["id"]), (200, &json!("abc:cancel")), "{}", shown.text());
    assert_eq!(fixture.ask("POST", "/tasks/abc%3Acancel:cancel", &[V1], &json!({})).status, 400, "it is finished");
}
