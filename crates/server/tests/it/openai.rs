//! Chat completions over HTTP: who may call, headers, streams, and what is refused before a body is read.

use std::sync::Arc;
use std::time::Duration;

use sabir_engine::{Builder, CallerLimits, EngineSettings};
use sabir_server::{AuthSettings, CorsSettings, Credential, Digest, Grant, OpenAi, ServerSettings};
use sabir_store::MemoryStore;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::{ask, serve, serve_engine, serve_with, until};

const CHAT: &str = "/v1/chat/completions";

fn message(text: &str) -> String {
    json!({"model": "demo", "messages": [{"role": "user", "content": text}]}).to_string()
}

fn streamed(text: &str) -> String {
    json!({"model": "demo", "stream": true, "messages": [{"role": "user", "content": text}]}).to_string()
}

#[tokio::test]
async fn a_message_is_answered_as_json_or_as_it_grows() {
    let served = serve().await;
    let told = ask(served.address, "POST", CHAT, &[("X-Sabir-Context", "c1")], &message("hello")).await;
    assert!(told.head.contains("content-type: application/json"), "{}", told.head);
    assert!(told.head.contains("x-sabir-context: c1") && told.head.contains("x-sabir-task: "), "{}", told.head);
    assert_eq!(told.json()["choices"][0]["message"]["content"], "echo: hello");
    let told = ask(served.address, "POST", CHAT, &[], &streamed("stream 3 0")).await;
    assert!(told.head.contains("content-type: text/event-stream"), "{}", told.head);
    assert!(told.head.contains("x-sabir-context: ") && told.head.contains("x-sabir-task: "), "{}", told.head);
    let events: Vec<&str> = told.body.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    let (done, chunks) = events.split_last().unwrap();
    assert_eq!(*done, "[DONE]");
    let chunks: Vec<Value> = chunks.iter().map(|data| serde_json::from_str(data).unwrap()).collect();
    let text: String = chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(text, "chunk 1\nchunk 2\nchunk 3\n");
}

#[tokio::test]
async fn agents_are_listed_as_models() {
    let served = serve().await;
    let told = ask(served.address, "GET", "/v1/models", &[], "").await;
    assert_eq!((told.status, &told.json()["data"][0]["id"]), (200, &json!("demo")));
    for path in ["/v1/models/demo", "/v1/models/sabir/demo", "/v1/models/sabir%2Fdemo"] {
        let told = ask(served.address, "GET", path, &[], "").await;
        assert_eq!((told.status, &told.json()["id"]), (200, &json!("demo")), "{path}");
    }
    let told = ask(served.address, "GET", "/v1/models/nobody", &[], "").await;
    assert_eq!((told.status, &told.json()["error"]["code"]), (404, &json!("model_not_found")));
}

#[tokio::test]
async fn what_cannot_be_served_is_refused_in_the_form_of_the_api() {
    let served = serve().await;
    let large = format!(r#"{{"model":"{}"}}"#, "x".repeat(2 * 1024 * 1024));
    for (verb, path, headers, body, status, code) in [
        ("GET", CHAT, &[][..], "", 405, "method_not_allowed"),
        ("POST", "/v1/models", &[], "{}", 405, "method_not_allowed"),
        ("POST", CHAT, &[("Origin", "https://evil.example")], "{}", 403, "permission_denied"),
        ("POST", CHAT, &[("Content-Encoding", "br")], "{}", 415, "unsupported_media_type"),
        ("POST", CHAT, &[("X-Sabir-Context", "a"), ("X-Sabir-Context", "b")], "{}", 400, "invalid_value"),
        ("POST", CHAT, &[("Idempotency-Key", "a"), ("Idempotency-Key", "b")], "{}", 400, "invalid_value"),
        ("POST", CHAT, &[], "{", 400, "invalid_json"),
        ("POST", CHAT, &[], &large, 413, "request_too_large"),
        ("POST", CHAT, &[], &message("fail no luck"), 422, "agent_failed"),
    ] {
        let told = ask(served.address, verb, path, headers, body).await;
        let error = told.json()["error"].clone();
        assert_eq!((told.status, &error["code"]), (status, &json!(code)), "{verb} {path} {headers:?}: {}", told.body);
        assert!(error["message"].as_str().is_some_and(|words| words.len() > 5), "{error}");
        assert_eq!(told.head.contains("allow: "), status == 405, "{}", told.head);
        assert_eq!(told.head.contains("x-should-retry: false"), status == 422, "{}", told.head);
    }
}

#[tokio::test]
async fn callers_show_their_credentials() {
    let grant = Grant { subject: "alice".into(), tenant: String::new(), scopes: vec!["run".into()] };
    let credential = Credential { digest: Digest::of(b"secret"), grant };
    let auth = AuthSettings { tokens: vec![credential], ..AuthSettings::default() };
    let served = serve_with(|settings| ServerSettings { auth, ..settings }).await;
    for (verb, path) in [("POST", CHAT), ("GET", "/v1/models"), ("GET", "/v1/models/demo"), ("DELETE", CHAT)] {
        for headers in [&[][..], &[("Authorization", "Bearer wrong")]] {
            let told = ask(served.address, verb, path, headers, &message("hello")).await;
            assert_eq!((told.status, &told.json()["error"]["code"]), (401, &json!("invalid_api_key")), "{}", told.body);
            assert!(told.head.contains("www-authenticate: "), "{}", told.head);
        }
    }
    let token = ("Authorization", "Bearer secret");
    let told = ask(served.address, "POST", CHAT, &[token], &message("hello")).await;
    assert_eq!(told.json()["choices"][0]["message"]["content"], "echo: hello");
}

#[tokio::test]
async fn a_server_without_credentials_ignores_the_key_that_libraries_must_have() {
    let served = serve().await;
    let told = ask(served.address, "POST", CHAT, &[("Authorization", "Bearer sk-none")], &message("hello")).await;
    assert_eq!(told.json()["choices"][0]["message"]["content"], "echo: hello");
}

#[tokio::test]
async fn pages_of_allowed_origins_may_call_and_read_the_headers() {
    let cors = CorsSettings { origins: vec!["https://chat.example".into()] };
    let served = serve_with(|settings| ServerSettings { cors, ..settings }).await;
    let origin = ("Origin", "https://chat.example");
    let asked = [origin, ("Access-Control-Request-Method", "POST")];
    let told = ask(served.address, "OPTIONS", CHAT, &asked, "").await;
    assert!(told.status == 204 && told.head.contains("x-sabir-context"), "{}", told.head);
    let told = ask(served.address, "POST", CHAT, &[origin], &message("hello")).await;
    let exposed = told.head.lines().find(|line| line.starts_with("access-control-expose-headers")).unwrap();
    assert!(told.status == 200 && exposed.contains("x-sabir-task"), "{}", told.head);
}

#[tokio::test]
async fn a_door_that_is_closed_is_not_there() {
    let served = serve_with(|settings| ServerSettings { openai: OpenAi::Off, ..settings }).await;
    assert_eq!(ask(served.address, "POST", CHAT, &[], &message("hello")).await.status, 404);
    assert_eq!(ask(served.address, "GET", "/v1/models", &[], "").await.status, 404);
}

#[tokio::test]
async fn a_silent_stream_is_kept_alive() {
    let served = serve_with(|settings| ServerSettings { keep_alive: Duration::from_millis(20), ..settings }).await;
    let told = ask(served.address, "POST", CHAT, &[], &streamed("slow 1 hello")).await;
    assert!(told.body.contains(": keep-alive\n\n") && told.body.contains("data: [DONE]\n\n"), "{}", told.body);
}

#[tokio::test]
async fn a_program_that_hangs_up_leaves_nothing_open() {
    let limits = CallerLimits::default().open_streams(2);
    let builder = Builder::new(Arc::new(MemoryStore::new()));
    let builder = builder.settings(EngineSettings { limits, ..EngineSettings::default() });
    let grant = Grant { subject: "alice".into(), tenant: String::new(), scopes: vec!["run".into()] };
    let credential = Credential { digest: Digest::of(b"secret"), grant };
    let auth = AuthSettings { tokens: vec![credential], ..AuthSettings::default() };
    // Half-closed connections are served, so a reader that is gone is noticed when something is written.
    let keep_alive = Duration::from_millis(20);
    let served = serve_engine(builder, |settings| ServerSettings { auth, keep_alive, ..settings }).await;
    let body = streamed("slow 600 hello");
    let head = format!("POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\n");
    let request = format!("{head}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    for _ in 0..3 {
        let mut socket = tokio::net::TcpStream::connect(served.address).await.unwrap();
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut start = [0; 12];
        socket.read_exact(&mut start).await.unwrap();
        assert_eq!(&start, b"HTTP/1.1 200");
        assert_eq!(served.app.open_streams(), 1);
        drop(socket);
        until(|| served.app.open_streams() == 0).await;
    }
}
