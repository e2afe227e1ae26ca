//! The host that a request names: pages on foreign names that resolve to this machine get nothing (DNS rebinding).

use sabir_testkit::http::HttpReply;
use sabir_testkit::process::SabirOptions;
use serde_json::{Value, json};

use crate::SABIR;
use crate::server_fixture::{ServerFixture, v1_message};

const V1: (&str, &str) = ("A2A-Version", "1.0");
const EVIL: (&str, &str) = ("Host", "evil.example:41242");

fn detail(reply: &HttpReply) -> String {
    assert!(reply.text().contains("server.allowed_hosts"), "{}", reply.text());
    reply.text()
}

#[test]
fn requests_with_a_foreign_host_are_refused() {
    let fixture = ServerFixture::new();
    let own_page = ("Origin", "http://evil.example:41242");
    for (verb, path) in [
        ("GET", "/.well-known/agent-card.json"),
        ("GET", "/a2a/card"),
        ("GET", "/v1/a2a/agents"),
        ("GET", "/healthz"),
        ("GET", "/readyz"),
        ("GET", "/tasks"),
        ("GET", "/nowhere"),
        ("HEAD", "/tasks"),
        ("OPTIONS", "/"),
        ("POST", "/"),
        ("POST", "/message:send"),
        ("POST", "/v1/a2a/agents/demo/message:send"),
    ] {
        let refused = fixture.ask(verb, path, &[EVIL, own_page], &Value::Null);
        assert_eq!(refused.status, 421, "{verb} {path}: {}", refused.text());
    }
    fixture.ask("POST", "/message:send", &[EVIL, V1], &v1_message("run me"));
    assert_eq!(fixture.rpc("/", "ListTasks", json!({}))["result"]["totalSize"], 0, "no message got through");
}

#[test]
fn the_refusal_speaks_the_dialect_of_path_and_version() {
    let fixture = ServerFixture::new();
    let rpc = fixture.ask("POST", "/", &[EVIL], &json!({"jsonrpc": "2.0", "id": 7, "method": "SendMessage"}));
    let error = rpc.json();
    assert_eq!((&error["id"], &error["error"]["code"]), (&Value::Null, &json!(-32600)), "{error}");
    assert!(error["error"]["data"]["detail"].is_string(), "0.3 without a version: {error}");
    detail(&rpc);
    let rpc = fixture.ask("POST", "/", &[EVIL, V1], &json!({"jsonrpc": "2.0", "id": 7, "method": "SendMessage"}));
    assert!(rpc.json()["error"]["data"][0]["@type"].is_string(), "1.0: {}", detail(&rpc));
    let rest = fixture.ask("GET", "/tasks", &[EVIL, V1], &Value::Null);
    assert_eq!(rest.json()["error"]["code"], 421, "{}", detail(&rest));
    let rest = fixture.ask("GET", "/tasks", &[EVIL], &Value::Null);
    assert_eq!(rest.header("content-type"), Some("application/problem+json"), "{}", detail(&rest));
    let gateway = fixture.ask("GET", "/v1/a2a/agents/demo/tasks/x", &[EVIL], &Value::Null);
    assert!(gateway.json()["error"].is_string(), "{}", detail(&gateway));
}

#[test]
fn a_request_with_two_hosts_is_broken() {
    let fixture = ServerFixture::new();
    for (head, status) in [
        ("GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", "400"),
        ("GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", "400"),
        ("GET http://evil.example/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", "400"),
        ("GET http://localhost/healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n", "400"),
        ("GET http://evil.example/healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n", "421"),
        ("GET http://localhost/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", "200"),
        ("GET /healthz HTTP/1.1\r\n\r\n", "400"),
        ("GET /healthz HTTP/1.0\r\n\r\n", "200"),
        ("GET /readyz HTTP/1.0\r\n\r\n", "200"),
        ("GET /healthz HTTP/1.0\r\nHost: evil.example\r\n\r\n", "421"),
        ("GET /.well-known/agent-card.json HTTP/1.0\r\n\r\n", "400"),
        ("GET /tasks HTTP/1.0\r\n\r\n", "400"),
    ] {
        let mut http = fixture.server.http();
        http.write_raw(head.as_bytes()).unwrap();
        assert_eq!(http.receive_head().unwrap().0.to_string(), status, "{head}");
    }
}

#[test]
fn configured_host_names_are_accepted() {
    let fixture = ServerFixture::with(|options| {
        options
            .variable("SABIR_SERVER_ALLOWED_HOSTS", "agents.internal")
            .variable("SABIR_PUBLIC_URL", "https://agents.example.com:8443/base")
    });
    let machine = std::process::Command::new("uname").arg("-n").output().unwrap();
    let machine = String::from_utf8(machine.stdout).unwrap();
    for host in ["agents.internal:1", "Agents.Example.com", machine.trim(), "127.0.0.1", "[::1]:9", "x.localhost"] {
        assert_eq!(fixture.ask("GET", "/healthz", &[("Host", host)], &Value::Null).status, 200, "{host}");
    }
    assert_eq!(fixture.ask("GET", "/healthz", &[EVIL], &Value::Null).status, 421);
    let fixture = ServerFixture::with(|options| options.variable("SABIR_SERVER_ALLOWED_HOSTS", "*"));
    assert_eq!(fixture.ask("GET", "/healthz", &[EVIL], &Value::Null).status, 200);
}

#[test]
fn an_invalid_allowed_host_is_refused_at_startup() {
    let folder = tempfile::tempdir().unwrap();
    let options =
        SabirOptions::new(SABIR, folder.path()).variable("SABIR_SERVER_ALLOWED_HOSTS", "https://agents.internal");
    let output = options.command().output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{complaint}");
    assert!(complaint.contains("allowed_hosts") || complaint.contains("ALLOWED_HOSTS"), "{complaint}");
}

#[test]
fn responses_that_depend_on_the_origin_have_vary() {
    let card = "/.well-known/agent-card.json";
    let vary = |fixture: &ServerFixture, path: &str, headers: &[(&str, &str)]| {
        let reply = fixture.ask("GET", path, headers, &Value::Null);
        let values: Vec<String> =
            reply.headers.iter().filter(|(name, _)| name == "vary").map(|(_, value)| value.clone()).collect();
        values.join(", ")
    };
    let fixture = ServerFixture::new();
    assert_eq!(vary(&fixture, card, &[]), "A2A-Version");
    let fixture = ServerFixture::with(|options| options.variable("SABIR_SERVER_CORS_ORIGINS", "https://app.example"));
    assert_eq!(vary(&fixture, card, &[]), "A2A-Version, Origin");
    assert_eq!(vary(&fixture, card, &[("Origin", "https://app.example")]), "A2A-Version, Origin");
    assert_eq!(vary(&fixture, "/tasks", &[("Origin", "https://evil.example")]), "Origin");
    assert_eq!(vary(&fixture, "/healthz", &[]), "Origin");
}
