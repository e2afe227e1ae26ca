//! MCP over HTTP: who may call, what goes over the wire, and what is refused before a message is read.

use std::time::Duration;

use sabir_server::{AuthSettings, Credential, Digest, Grant, ServerSettings};
use serde_json::{Value, json};

use crate::{ask, serve, serve_with};

const EVENTS: (&str, &str) = ("Accept", "application/json, text/event-stream");

fn call(message: &str) -> String {
    let params = json!({"name": "ask_agent", "arguments": {"message": message}, "_meta": {"progressToken": 1}});
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string()
}

#[tokio::test]
async fn a_call_is_answered_as_events_or_as_json() {
    let served = serve().await;
    let told = ask(served.address, "POST", "/mcp", &[], &call("hello")).await;
    assert!(told.head.contains("content-type: application/json"), "{}", told.head);
    assert_eq!(told.json()["result"]["content"][0]["text"], "echo: hello");
    let told = ask(served.address, "POST", "/mcp", &[EVENTS], &call("stream 3 0")).await;
    assert!(told.head.contains("content-type: text/event-stream"), "{}", told.head);
    let data = told.body.lines().filter_map(|line| line.strip_prefix("data: "));
    let messages: Vec<Value> = data.map(|data| serde_json::from_str(data).unwrap()).collect();
    let (last, before) = messages.split_last().unwrap();
    assert_eq!(last["result"]["structuredContent"]["state"], "completed");
    assert!(before.iter().all(|message| message["method"] == "notifications/progress"), "{messages:?}");
}

#[tokio::test]
async fn what_is_no_post_is_refused() {
    let served = serve().await;
    for (verb, headers, body, status) in [
        ("GET", &[][..], "", 405),
        ("PUT", &[], "{}", 405),
        ("DELETE", &[("Mcp-Session-Id", "2025-11-25.plain.0000000000000001")], "", 204),
        ("DELETE", &[("Mcp-Session-Id", "nobody's")], "", 404),
        ("POST", &[("Mcp-Session-Id", "nobody's")], "{}", 404),
        ("POST", &[("Origin", "https://evil.example")], "{}", 403),
        ("POST", &[], "{", 400),
        ("POST", &[], r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, 202),
    ] {
        let told = ask(served.address, verb, "/mcp", headers, body).await;
        assert_eq!(told.status, status, "{verb} {headers:?} {body}: {}", told.body);
        if status == 405 {
            assert!(told.head.contains("allow: post, delete"), "{}", told.head);
        }
    }
}

#[tokio::test]
async fn a_session_that_is_none_starts_nothing() {
    let served = serve().await;
    let long = format!("2025-11-25.plain.{}", "0".repeat(4000));
    let oldest = ("Mcp-Session-Id", "2024-11-05.plain.0000000000000001");
    let stdio = ("Sabir-Mcp-Transport", "stdio");
    for (headers, status) in [
        (&[("Mcp-Session-Id", "2025-11-25.plain.0000000000000001")][..], 200),
        (&[("Mcp-Session-Id", "")], 404),
        (&[("Mcp-Session-Id", "2025-11-25")], 404),
        (&[("Mcp-Session-Id", "2025-11-25.plain.000000000000000g")], 404),
        (&[("Mcp-Session-Id", "2099-01-01.plain.0000000000000001")], 404),
        (&[("Mcp-Session-Id", "é")], 404),
        (&[("Mcp-Session-Id", &long)], 404),
        (&[("Mcp-Session-Id", "2025-11-25.plain.0000000000000001"), ("Mcp-Session-Id", "x")], 400),
        // That version has another HTTP.
        (&[oldest], 404),
        (&[oldest, stdio], 200),
        (&[oldest, stdio, ("Mcp-Protocol-Version", "2024-11-05")], 200),
        (&[("Mcp-Protocol-Version", "2024-11-05")], 400),
        (&[oldest, ("Sabir-Mcp-Transport", "http")], 404),
        (&[oldest, stdio, stdio], 400),
    ] {
        let told = ask(served.address, "POST", "/mcp", headers, &call("hello")).await;
        assert_eq!(told.status, status, "{headers:?}: {}", told.body);
        let code = told.json()["error"]["code"].as_i64();
        assert_eq!(code.is_some(), status != 200, "{headers:?}: {}", told.body);
    }
    let listed = ask(served.address, "GET", "/tasks?pageSize=100", &[("A2A-Version", "1.0")], "").await;
    assert_eq!(listed.json()["totalSize"], 3, "{}", listed.body);
}

#[tokio::test]
async fn callers_show_their_credentials() {
    let grant = Grant { subject: "alice".into(), tenant: String::new(), scopes: vec!["run".into()] };
    let credential = Credential { digest: Digest::of(b"secret"), grant };
    let auth = AuthSettings { tokens: vec![credential], ..AuthSettings::default() };
    let served = serve_with(|settings| ServerSettings { auth, ..settings }).await;
    let refused = ask(served.address, "POST", "/mcp", &[], &call("hello")).await;
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (401, &json!(-32600)), "{}", refused.body);
    assert!(
        refused.head.contains("resource_metadata=\"http://localhost/.well-known/oauth-protected-resource/mcp\""),
        "{}",
        refused.head
    );
    let metadata = ask(served.address, "GET", "/.well-known/oauth-protected-resource/mcp", &[], "").await;
    assert_eq!(metadata.json()["resource"], "http://localhost/mcp");
    let token = ("Authorization", "Bearer secret");
    let told = ask(served.address, "POST", "/mcp", &[token], &call("hello")).await;
    assert_eq!(told.json()["result"]["content"][0]["text"], "echo: hello");
}

#[tokio::test]
async fn a_door_that_is_closed_is_not_there() {
    let served = serve_with(|settings| ServerSettings { mcp: None, ..settings }).await;
    assert_eq!(ask(served.address, "POST", "/mcp", &[], &call("hello")).await.status, 404);
}

#[tokio::test]
async fn a_silent_call_is_kept_alive() {
    let served = serve_with(|settings| ServerSettings { keep_alive: Duration::from_millis(20), ..settings }).await;
    let told = ask(served.address, "POST", "/mcp", &[EVENTS], &call("slow 1 hello")).await;
    assert!(told.body.contains(": keep-alive\n\n"), "{}", told.body);
}
