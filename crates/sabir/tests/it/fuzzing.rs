//! Malformed input never panics, never hangs, and always gets an error in the dialect of its surface.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use sabir_testkit::http::{Http, HttpReply};
use sabir_testkit::process::{SabirOptions, SabirProcess};
use serde_json::{Value, json};

use crate::SABIR;

/// One server for all cases of a test; whatever a case does to it must not hurt the next.
struct Target {
    server: SabirProcess,
    _folder: tempfile::TempDir,
}

impl Target {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Sends that are valid by accident must not take long.
        let options = SabirOptions::new(SABIR, folder.path())
            .variable("SABIR_SEND_MAX_WAIT", "1s")
            .variable("SABIR_SERVER_BODY_LIMIT", "1MiB");
        Self { server: options.start(), _folder: folder }
    }

    fn ask(&self, verb: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> HttpReply {
        let start = Instant::now();
        let mut http = Http::connect(self.server.address).expect("the server is alive");
        let reply = http.exchange(verb, path, headers, body).expect("the server answers");
        assert!(start.elapsed() < Duration::from_secs(10), "it took {:?}", start.elapsed());
        reply
    }

    /// Runs many cases against this one server.
    fn check<S: Strategy>(&self, cases: &S, check: impl Fn(&Self, S::Value)) {
        let config = ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() };
        let result = TestRunner::new(config).run(cases, |case| {
            check(self, case);
            Ok(())
        });
        if let Err(failure) = result {
            panic!("{failure}");
        }
    }
}

/// What every JSON-RPC answer must be.
fn check_rpc(reply: &HttpReply) {
    if reply.header("content-type") == Some("text/event-stream") {
        return;
    }
    let answer = reply.json();
    assert_eq!(answer["jsonrpc"], "2.0", "{answer}");
    assert!(answer.get("id").is_some(), "{answer}");
    assert!(answer.get("result").is_some() != answer.get("error").is_some(), "{answer}");
    if let Some(error) = answer.get("error") {
        let code = error["code"].as_i64().unwrap_or_default();
        assert!((-32768..=-32000).contains(&code), "{answer}");
        assert_ne!(code, -32603, "the caller is at fault: {answer}");
        assert!(error["message"].is_string(), "{answer}");
    }
}

fn methods() -> impl Strategy<Value = String> {
    let known = [
        "SendMessage",
        "SendStreamingMessage",
        "GetTask",
        "ListTasks",
        "CancelTask",
        "SubscribeToTask",
        "CreateTaskPushNotificationConfig",
        "GetExtendedAgentCard",
        "message/send",
        "message/stream",
        "tasks/get",
        "tasks/cancel",
        "tasks/resubscribe",
        "tasks/pushNotificationConfig/list",
        "tasks/send",
        "tasks/sendSubscribe",
        "tasks/pushNotification/set",
        "agent/getAuthenticatedExtendedCard",
    ];
    prop_oneof![prop::sample::select(known.to_vec()).prop_map(String::from), ".{0,20}"]
}

/// Any JSON, biased to the words of the protocol.
fn any_json() -> impl Strategy<Value = Value> {
    let names = [
        "message",
        "messageId",
        "role",
        "parts",
        "text",
        "kind",
        "type",
        "file",
        "bytes",
        "uri",
        "data",
        "raw",
        "url",
        "metadata",
        "id",
        "taskId",
        "contextId",
        "sessionId",
        "pushNotification",
        "configuration",
        "historyLength",
        "pageSize",
        "pageToken",
        "status",
        "tenant",
        "content",
        "blocking",
        "returnImmediately",
        "referenceTaskIds",
        "extensions",
        "mediaType",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        prop::sample::select(vec!["ROLE_USER", "user", "text", "tasks/x", "TASK_STATE_WORKING", "AAAA"])
            .prop_map(Value::from),
    ];
    let name = prop_oneof![4 => prop::sample::select(names.to_vec()).prop_map(String::from), 1 => ".{0,8}"];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((name.clone(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn header_value() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "",
            "1.0",
            "0.3",
            "0.2",
            "0.1",
            "2.0",
            "latest",
            "1",
            "1.0.0.0",
            "-1",
            "0",
            "99999999999999999999"
        ])
        .prop_map(String::from),
        "[ -~]{0,40}",
    ]
}

fn mounts() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "/",
        "/a2a",
        "/a2a/jsonrpc",
        "/v1/a2a",
        "/a2a/v1",
        "/a2a/v0.3",
        "/a2a/v0.1",
        "/agents/demo/",
        "/agents/demo/a2a/v1",
    ])
}

#[test]
fn any_bytes_are_answered_on_every_mount() {
    let cases = (mounts(), prop::collection::vec(any::<u8>(), 1..300));
    Target::new().check(&cases, |target, (path, body)| check_rpc(&target.ask("POST", path, &[], &body)));
}

#[test]
fn any_params_are_answered() {
    let headers = (header_value(), header_value(), header_value());
    let cases = (mounts(), methods(), any_json(), any_json(), headers);
    Target::new().check(&cases, |target, (path, method, params, id, (version, last, key))| {
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string();
        let headers = [("A2A-Version", version.as_str()), ("Last-Event-ID", &last), ("Idempotency-Key", &key)];
        check_rpc(&target.ask("POST", path, &headers, body.as_bytes()));
    });
}

#[test]
fn any_path_and_body_are_answered() {
    let verb = prop::sample::select(vec!["GET", "POST", "DELETE", "PUT", "PATCH", "HEAD"]);
    let prefix =
        prop::sample::select(vec!["", "/a2a/rest", "/v1", "/a2a/rest/v1", "/demo", "/agents/demo", "/agents/x"]);
    let known = vec![
        "/message:send",
        "/message:stream",
        "/tasks",
        "/tasks/x",
        "/tasks/x:cancel",
        "/tasks/x:subscribe",
        "/tasks/:",
        "/tasks/x/pushNotificationConfigs",
        "/tasks/%00",
        "/tasks/%ff",
        "/tasks/%zz",
        "/extendedAgentCard",
        "/agent/authenticatedExtendedCard",
        "/card",
    ];
    let path =
        prop_oneof![prop::sample::select(known).prop_map(String::from), "(/[a-zA-Z0-9:%.~_!$&'()*+,;=@-]{0,10}){1,4}",];
    let known = vec!["?pageSize=150&historyLength=-5", "?status=x", "?A2A-Version=1.0", "?pageToken=%ff"];
    let query = prop_oneof![
        Just(String::new()),
        prop::sample::select(known).prop_map(String::from),
        "\\?[a-zA-Z0-9:%.~_!$&'()*+,;=@/?-]{0,30}",
    ];
    let cases = (verb, prefix, path, query, any_json(), header_value());
    Target::new().check(&cases, |target, (verb, prefix, path, query, body, version)| {
        let place = format!("{prefix}{path}{query}");
        let body = if verb == "POST" { body.to_string() } else { String::new() };
        let reply = target.ask(verb, &place, &[("A2A-Version", version.as_str())], body.as_bytes());
        let is_fine = (200..=599).contains(&reply.status) && reply.status != 500;
        assert!(is_fine, "{} {verb} {place}: {}", reply.status, reply.text());
        if reply.status >= 400 && verb != "HEAD" {
            assert!(reply.json().is_object(), "{verb} {place}: {}", reply.text());
        }
    });
}

#[test]
fn hostile_json_is_refused_with_the_right_code() {
    let target = Target::new();
    let deep = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    let data = |data: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{{"message":{{"messageId":"m","role":"ROLE_USER","parts":[{{"data":{data}}}]}}}}}}"#
        )
    };
    for (body, expected) in [
        (data(&deep(100)).into_bytes(), 0),
        (data(&deep(200)).into_bytes(), -32600),
        (data(&deep(100_000)).into_bytes(), -32600),
        (data("1e400").into_bytes(), 0),
        (data(&"9".repeat(5000)).into_bytes(), 0),
        (data(r#"{"a":1,"a":2}"#).into_bytes(), 0),
        (data(r#""\ud800""#).into_bytes(), 0),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"GetTask\",\"params\":{\"id\":\"\xff\"}}".to_vec(), -32700),
        (br#"{"jsonrpc":"2.0","id":1,"id":2,"method":"GetTask","params":{"id":"x"}}"#.to_vec(), -32600),
        (br#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"x","id":"y"}}"#.to_vec(), -32602),
        (br#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"x","historyLength":1e99}}"#.to_vec(), -32602),
        (
            br#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"x","historyLength":99999999999}}"#.to_vec(),
            -32602,
        ),
        (br#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":[1]}"#.to_vec(), -32602),
        (br#"{"jsonrpc":"2.0","id":{},"method":"GetTask","params":{"id":"x"}}"#.to_vec(), -32600),
        (br#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"\ud800"}}"#.to_vec(), -32602),
        (format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"GetTask"}}"#, "x".repeat(500_000)).into_bytes(), -32600),
        (br#"{"jsonrpc":"2.0","method":"Nothing","params":{"id":"x"}}"#.to_vec(), -32601),
        (br#"{"jsonrpc":"2.0","method":"GetTask","params":{}}"#.to_vec(), -32602),
        (br#"{"jsonrpc":"2.0","method":"GetTask","params":{"id":"x"}}"#.to_vec(), -32600),
        (br#"[{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"x"}}]"#.to_vec(), -32600),
        (br#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"x"#.to_vec(), -32700),
        (b"   ".to_vec(), -32700),
        (b"\xef\xbb\xbf{}".to_vec(), -32700),
    ] {
        let reply = target.ask("POST", "/", &[("A2A-Version", "1.0")], &body);
        let shown = String::from_utf8_lossy(&body[..body.len().min(150)]).into_owned();
        if expected == 0 {
            // What is only carried may be more than this test's own parser can read.
            assert!(reply.text().contains("TASK_STATE_COMPLETED"), "{shown}: {}", reply.text());
            continue;
        }
        let answer = reply.json();
        assert_eq!(answer["error"]["code"].as_i64(), Some(expected), "{shown}: {answer}");
        assert!(reply.body.len() < 10_000, "an error repeats little of its input");
    }
}

#[test]
fn broken_http_does_not_disturb_other_requests() {
    let target = Target::new();
    for raw in [
        &b"GARBAGE\r\n\r\n"[..],
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: nonsense\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nZZZ\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\nContent-Length: 20\r\n\r\n",
        b"\x00\x01\x02\x03\r\n\r\n",
        b"GET /<\"> HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ] {
        let mut http = Http::connect(target.server.address).unwrap();
        http.write_raw(raw).unwrap();
        let reply = http.receive().unwrap_or_else(|error| panic!("{error}: {:?}", String::from_utf8_lossy(raw)));
        assert_eq!(reply.status, 400, "{:?}", String::from_utf8_lossy(raw));
    }
    // HTTP/2 answers in frames that this client cannot read; it must only not hurt.
    let mut http = Http::connect(target.server.address).unwrap();
    http.write_raw(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\ngarbage that is no frame at all").unwrap();
    let _ = http.receive();
    assert_eq!(target.ask("GET", "/healthz", &[], b"").status, 200);
}
