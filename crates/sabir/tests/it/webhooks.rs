//! Webhooks of the real program, with a real receiver on this machine.

use std::process::{Output, Stdio};
use std::time::Duration;

use sabir_testkit::process::{SabirOptions, SabirProcess};
use serde_json::{Value, json};

use crate::SABIR;
use crate::server_fixture::{ServerFixture, v1_message, v03_message};
use crate::webhook_receiver::{ReceivedRequest, WebhookReceiver};

const LOOPBACK: (&str, &str) = ("PUSH_NOTIFICATION_ALLOWED_CIDRS", "127.0.0.0/8");
const RPC: &str = "/a2a/jsonrpc";

fn fixture() -> ServerFixture {
    ServerFixture::with(|options| options.variable(LOOPBACK.0, LOOPBACK.1))
}

/// A 0.3 message that brings its webhook.
fn v03_with_webhook(text: &str, config: Value) -> Value {
    let mut params = v03_message(text);
    params["configuration"] = json!({"pushNotificationConfig": config});
    params
}

fn set(fixture: &ServerFixture, task: &Value, config: Value) -> Value {
    let params = json!({"taskId": task, "pushNotificationConfig": config});
    fixture.rpc(RPC, "tasks/pushNotificationConfig/set", params)
}

/// The state that a body tells of, in any dialect.
fn state(request: &ReceivedRequest) -> String {
    let body = request.json();
    let places = ["/status/state", "/statusUpdate/status/state", "/task/status/state"];
    let found = places.iter().find_map(|place| body.pointer(place)?.as_str());
    found.unwrap_or_else(|| panic!("{body}")).to_owned()
}

fn is_over(request: &ReceivedRequest) -> bool {
    ["completed", "TASK_STATE_COMPLETED"].contains(&state(request).as_str())
}

#[test]
fn a_webhook_of_a_message_gets_its_deliveries_in_the_dialect_of_the_message() {
    let fixture = fixture();
    let receiver = WebhookReceiver::start();

    let authentication = json!({"scheme": "Basic", "credentials": "Y3I="});
    let mut v1 = v1_message("hello");
    v1["configuration"] = json!({"taskPushNotificationConfig":
        {"url": receiver.url("/v1?a=b"), "token": "t1", "authentication": authentication}});
    fixture.ask("POST", "/message:send", &[("A2A-Version", "1.0")], &v1);
    let v1 = receiver.until(is_over);
    let states: Vec<String> = v1.iter().map(state).collect();
    assert_eq!(states, ["TASK_STATE_WORKING", "TASK_STATE_COMPLETED"]);
    for request in &v1 {
        assert_eq!(request.line, "POST /v1?a=b HTTP/1.1");
        for (name, expected) in [
            ("content-type", "application/a2a+json"),
            ("a2a-version", "1.0"),
            ("authorization", "Basic Y3I="),
            ("x-a2a-notification-token", "t1"),
            ("a2a-notification-token", "t1"),
            ("webhook-signature", ""),
            ("sabir-signature", ""),
        ] {
            assert_eq!(request.header(name), expected, "{name}");
        }
        assert!(request.header("webhook-id").starts_with("msg_"));
    }
    assert_ne!(v1[0].header("webhook-id"), v1[1].header("webhook-id"));
    assert_eq!(v1[1].json()["task"]["artifacts"][0]["parts"][0]["text"], "echo: hello");

    let config = json!({"url": receiver.url("/v03"), "token": "t3"});
    fixture.rpc(RPC, "message/send", v03_with_webhook("again", config));
    let v03 = receiver.until(is_over);
    let states: Vec<String> = v03.iter().map(state).collect();
    assert_eq!(states, ["working", "completed"]);
    for request in &v03 {
        let headers = ["content-type", "authorization", "x-a2a-notification-token"].map(|name| request.header(name));
        assert_eq!((request.line.as_str(), headers), ("POST /v03 HTTP/1.1", ["application/json", "Bearer t3", "t3"]));
    }
    assert_eq!(v03[1].json()["artifacts"][0]["parts"][0]["text"], "echo: again");
    assert!(receiver.rest().is_empty());
}

#[test]
fn a_webhook_that_is_set_after_the_end_gets_the_terminal_state() {
    let fixture = fixture();
    let receiver = WebhookReceiver::start();
    let task = fixture.send("hello")["id"].take();
    let answer = set(&fixture, &task, json!({"id": "late", "url": receiver.url("/"), "token": "secret-token"}));
    assert_eq!(answer["result"]["pushNotificationConfig"]["id"], "late", "{answer}");
    assert!(!answer.to_string().contains("secret-token"));
    let request = receiver.next();
    assert_eq!((state(&request).as_str(), &request.json()["id"]), ("completed", &task));
    // Everything before its end would have come first.
    let other = fixture.send("other")["id"].take();
    set(&fixture, &other, json!({"url": receiver.url("/")}));
    assert_eq!(receiver.next().json()["id"], other);
}

#[test]
fn deliveries_survive_kill_9_and_keep_their_ids() {
    let receiver = WebhookReceiver::start();
    let folder = tempfile::tempdir().unwrap();
    let options = SabirOptions::new(SABIR, folder.path()).variable(LOOPBACK.0, LOOPBACK.1);
    receiver.answer(0);
    let server = options.start();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "message/send",
        "params": v03_with_webhook("hello", json!({"url": receiver.url("/"), "token": "t"}))});
    let answer = server.http().exchange("POST", RPC, &[], body.to_string().as_bytes()).unwrap().json();
    assert_eq!(answer["result"]["status"]["state"], "completed", "{answer}");
    let refused = receiver.next();
    server.kill();

    let before = receiver.rest();
    receiver.answer(200);
    let _server = options.start();
    let delivered = receiver.until(is_over);
    let states: Vec<String> = delivered.iter().map(state).collect();
    assert_eq!(states, ["working", "completed"]);
    assert_eq!(delivered[0].header("webhook-id"), refused.header("webhook-id"));
    assert!(before.iter().all(|request| state(request) == "working"), "one after the other: {before:?}");
    assert_eq!(delivered[1].header("authorization"), "Bearer t");
}

#[test]
fn a_failing_receiver_gets_the_same_delivery_again() {
    let fixture = fixture();
    let receiver = WebhookReceiver::start();
    receiver.answer(503);
    fixture.rpc(RPC, "message/send", v03_with_webhook("hello", json!({"url": receiver.url("/")})));
    let first = receiver.next();
    receiver.answer(204);
    let rest = receiver.until(is_over);
    assert!(rest.iter().any(|request| request.header("webhook-id") == first.header("webhook-id")));
    assert_eq!(state(&first), "working");
}

#[test]
fn what_is_not_public_is_refused_unless_it_is_allowed() {
    let receiver = WebhookReceiver::start();
    let port = receiver.address.port();
    for (variable, host, is_accepted) in [
        (("LANG", "C"), "127.0.0.1", false),
        (("LANG", "C"), "localhost", false),
        (("LANG", "C"), "[::1]", false),
        (("LANG", "C"), "169.254.169.254", false),
        (LOOPBACK, "127.0.0.1", true),
        (LOOPBACK, "192.168.1.1", false),
        (("PUSH_NOTIFICATION_ALLOWED_HOSTS", "localhost, hook-a"), "localhost", true),
        (("PUSH_NOTIFICATION_ALLOWED_HOSTS", "localhost, hook-a"), "127.0.0.1", false),
        (("SABIR_PUSH_ALLOW_HOSTS", "127.0.0.1"), "127.0.0.1", true),
    ] {
        let fixture = ServerFixture::with(|options| options.variable(variable.0, variable.1));
        let url = format!("http://{host}:{port}/");
        let task = fixture.send("hello")["id"].take();
        let answer = set(&fixture, &task, json!({"url": url}));
        assert_eq!(answer.get("result").is_some(), is_accepted, "{variable:?} {host}: {answer}");
        let inline = fixture.rpc(RPC, "message/send", v03_with_webhook("x", json!({"url": url})));
        assert_eq!(inline.get("result").is_some(), is_accepted, "{variable:?} {host}: {inline}");
        if !is_accepted {
            assert_eq!(answer["error"]["code"], -32602, "{answer}");
            assert!(answer.to_string().contains("url is refused: the host"), "{answer}");
            let stored = fixture.rpc(RPC, "tasks/pushNotificationConfig/list", json!({"id": task}));
            assert_eq!(stored["result"], json!([]), "{stored}");
        }
    }
}

/// The program, which should not start.
fn refused_start(name: &str, value: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let options = SabirOptions::new(SABIR, folder.path()).variable(name, value);
    options.command().stderr(Stdio::piped()).output().unwrap()
}

#[test]
fn a_malformed_setting_stops_the_start_and_is_named() {
    for (name, value, named) in [
        (
            "PUSH_NOTIFICATION_ALLOWED_CIDRS",
            "10.0.0.0/8,10.0.0.0/40",
            "PUSH_NOTIFICATION_ALLOWED_CIDRS holds \"10.0.0.0/40\"",
        ),
        ("PUSH_NOTIFICATION_ALLOWED_HOSTS", "a,b c", "PUSH_NOTIFICATION_ALLOWED_HOSTS holds \"b c\""),
        ("SABIR_PUSH_ALLOW_CIDRS", "ten", "SABIR_PUSH_ALLOW_CIDRS is \"ten\""),
        ("SABIR_STORE_KEY", "sabir-key-123", "SABIR_STORE_KEY does not fit"),
    ] {
        let output = refused_start(name, value);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(named) && !stderr.contains("sabir-key-123"), "{stderr}");
    }
}

#[test]
fn secrets_are_in_no_file_where_there_is_a_key() {
    let key = format!("sabir-key-{}", "5a".repeat(32));
    for (key, is_readable) in [(None, true), (Some(key), false)] {
        let receiver = WebhookReceiver::start();
        let folder = tempfile::tempdir().unwrap();
        let mut options = SabirOptions::new(SABIR, folder.path()).variable(LOOPBACK.0, LOOPBACK.1);
        if let Some(key) = &key {
            options = options.variable("SABIR_STORE_KEY", key);
        }
        let log = folder.path().join("log");
        let mut server = options.start_with(std::fs::File::create(&log).unwrap().into());
        let config = json!({"url": receiver.url("/"), "token": "token-of-the-webhook"});
        let body =
            json!({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": v03_with_webhook("x", config)});
        server.http().exchange("POST", RPC, &[], body.to_string().as_bytes()).unwrap();
        assert!(
            receiver
                .until(is_over)
                .iter()
                .all(|request| request.header("authorization") == "Bearer token-of-the-webhook")
        );
        end(&mut server);
        let files = std::fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.path());
        let (logs, stored): (Vec<_>, Vec<_>) = files.filter(|path| path.is_file()).partition(|path| *path == log);
        let holds = |path: &std::path::PathBuf, text: &str| {
            let bytes = std::fs::read(path).unwrap();
            bytes.windows(text.len()).any(|window| window == text.as_bytes())
        };
        assert_eq!(stored.iter().any(|path| holds(path, "token-of-the-webhook")), is_readable);
        assert!(logs.iter().all(|path| holds(path, "webhook delivered") && !holds(path, "token-of-the-webhook")));
    }
}

fn end(server: &mut SabirProcess) {
    server.terminate();
    assert!(server.wait(Duration::from_secs(20)).success());
}

/// A delivery that hangs does not hold the server, and is repeated after the next start.
#[test]
fn a_stop_waits_for_deliveries_only_so_long() {
    // It accepts connections and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let fixture = ServerFixture::with(|options| {
        options
            .variable(LOOPBACK.0, LOOPBACK.1)
            .variable("SABIR_SERVER_GRACE", "3s")
            .variable("SABIR_PUSH_TIMEOUT", "1h")
    });
    fixture.rpc(RPC, "message/send", v03_with_webhook("hello", json!({"url": url})));
    let connection = silent.accept().unwrap();
    let ServerFixture { mut server, .. } = fixture;
    end(&mut server);
    drop(connection);
}

#[test]
fn deliveries_are_signed_where_a_secret_or_a_key_is_configured() {
    let receiver = WebhookReceiver::start();
    let fixture = ServerFixture::with(|options| {
        let key = format!("sabir-signing-key-{}", "07".repeat(32));
        let options = options.variable(LOOPBACK.0, LOOPBACK.1).variable("SABIR_PUSH_SIGNING_KEY", &key);
        options.variable("SABIR_PUSH_HMAC_SECRET", "a shared secret of some length")
    });
    fixture.rpc(RPC, "message/send", v03_with_webhook("hello", json!({"url": receiver.url("/")})));
    for request in receiver.until(is_over) {
        assert!(request.header("webhook-signature").starts_with("v1,"), "{request:?}");
        assert!(request.header("sabir-signature").contains(".."), "{request:?}");
    }
}

#[test]
fn the_public_key_is_served_where_deliveries_are_signed() {
    let key = format!("sabir-signing-key-{}", "07".repeat(32));
    for (key, enabled, status) in [(Some(&key), "true", 200), (Some(&key), "false", 404), (None, "true", 404)] {
        let fixture = ServerFixture::with(|options| {
            let options = options.variable("SABIR_PUSH_ENABLED", enabled);
            key.into_iter().fold(options, |options, key| options.variable("SABIR_PUSH_SIGNING_KEY", key))
        });
        assert_eq!(fixture.get("/.well-known/jwks.json").status, status, "{key:?} {enabled}");
    }
}

#[test]
fn only_ports_that_are_allowed() {
    let receiver = WebhookReceiver::start();
    let (url, other) = (receiver.url("/"), "http://127.0.0.1:9/".to_owned());
    let port = url.trim_end_matches('/').rsplit(':').next().unwrap().to_owned();
    for (ports, url, is_accepted) in
        [(port.as_str(), &url, true), (&port, &other, false), ("safe", &url, true), ("safe", &other, false)]
    {
        let fixture =
            ServerFixture::with(|options| options.variable(LOOPBACK.0, LOOPBACK.1).variable("SABIR_PUSH_PORTS", ports));
        let task = fixture.send("hello")["id"].take();
        let answer = set(&fixture, &task, json!({"url": url}));
        assert_eq!(answer.get("result").is_some(), is_accepted, "{ports} {url}: {answer}");
    }
}
