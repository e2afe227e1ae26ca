//! Limits per caller: requests are refused before their body is read, and streams are counted while they are read.

use std::sync::Arc;
use std::time::Duration;

use sabir_engine::{Builder, CallerLimits, EngineSettings};
use sabir_server::{AuthSettings, Credential, Digest, Grant, RequestLimits, ServerSettings};
use sabir_store::MemoryStore;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::{Served, ask, serve_engine, serve_with, until};

fn credential(secret: &str, subject: &str) -> Credential {
    let grant = Grant { subject: subject.into(), tenant: String::new(), scopes: vec!["run".into()] };
    Credential { digest: Digest::of(secret.as_bytes()), grant }
}

fn known() -> AuthSettings {
    AuthSettings {
        tokens: vec![credential("of-alice", "alice"), credential("of-bob", "bob")],
        ..AuthSettings::default()
    }
}

const ALICE: &[(&str, &str)] = &[("Authorization", "Bearer of-alice")];
const BOB: &[(&str, &str)] = &[("Authorization", "Bearer of-bob")];
const WRONG: &[(&str, &str)] = &[("Authorization", "Bearer of-nobody")];

/// Counts the refusals of forty requests that are no JSON; refusals come before the body is read. A slow machine may give
/// some tokens back meanwhile, so the number is not exact.
async fn refused_of_forty(served: &Served, path: &str, headers: &[(&str, &str)], status: u16) -> usize {
    let mut refused = 0;
    for _ in 0..40 {
        let told = ask(served.address, "POST", path, headers, "no JSON at all").await;
        if told.status == 429 {
            assert!(told.head.contains("retry-after: 1"), "{}", told.head);
            assert!(told.body.contains("at most 1 request a second for you; wait, then try again"), "{}", told.body);
            refused += 1;
        } else {
            assert_eq!(told.status, status, "{}", told.body);
        }
    }
    refused
}

#[tokio::test]
async fn each_caller_makes_so_many_requests() {
    let limits = RequestLimits { requests_per_second: Some(1), burst: Some(3) };
    let served = serve_with(|settings| ServerSettings { limits, auth: known(), ..settings }).await;
    assert!((1..=37).contains(&refused_of_forty(&served, "/a2a/jsonrpc", ALICE, 200).await));
    for _ in 0..3 {
        let told = ask(served.address, "POST", "/a2a/jsonrpc", BOB, "no JSON at all").await;
        assert_eq!(told.status, 200, "another caller is not concerned: {}", told.body);
    }
    // Who has no valid credential is counted by its address.
    assert!((1..=37).contains(&refused_of_forty(&served, "/a2a/jsonrpc", WRONG, 401).await));
    assert_eq!(ask(served.address, "GET", "/healthz", &[], "").await.status, 200);
    assert_eq!(ask(served.address, "GET", "/.well-known/agent-card.json", &[], "").await.status, 200);
}

/// A token can be tried at an admin call as well as anywhere.
#[tokio::test]
async fn admin_calls_are_counted_too() {
    let limits = RequestLimits { requests_per_second: Some(1), burst: Some(3) };
    let served = serve_with(|settings| ServerSettings { limits, auth: known(), ..settings }).await;
    for (headers, status) in [(WRONG, 401), (ALICE, 403)] {
        let refused = refused_of_forty(&served, "/admin/v1/audit", headers, status).await;
        assert!((1..=37).contains(&refused), "{refused} with {headers:?}");
    }
}

#[tokio::test]
async fn callers_without_credentials_are_counted_by_their_address() {
    let limits = RequestLimits { requests_per_second: Some(1), burst: None };
    let served = serve_with(|settings| ServerSettings { limits, ..settings }).await;
    assert!((1..=39).contains(&refused_of_forty(&served, "/a2a/jsonrpc", &[], 200).await));
}

async fn open_stream(served: &Served, token: &str) -> (TcpStream, String) {
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": "message/stream", "params": {"message": {
        "messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "stream 1000 600000"}]}}})
    .to_string();
    let mut connection = TcpStream::connect(served.address).await.unwrap();
    let request = format!(
        "POST /a2a/jsonrpc HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut head = vec![0; 2048];
    let read = connection.read(&mut head).await.unwrap();
    (connection, String::from_utf8_lossy(&head[..read]).to_ascii_lowercase())
}

#[tokio::test]
async fn a_stream_counts_until_its_connection_closes() {
    let limits = CallerLimits::default().open_streams(2);
    let settings = EngineSettings { limits, ..EngineSettings::default() };
    let builder = Builder::new(Arc::new(MemoryStore::new())).settings(settings);
    let served = serve_engine(builder, |settings| {
        // Half-closed connections are served, so a reader that is gone is noticed when something is written.
        ServerSettings { auth: known(), keep_alive: Duration::from_millis(20), ..settings }
    })
    .await;
    let (first, head) = open_stream(&served, "of-alice").await;
    assert!(head.starts_with("http/1.1 200"), "{head}");
    let (_second, head) = open_stream(&served, "of-alice").await;
    assert!(head.starts_with("http/1.1 200"), "{head}");
    let (_, head) = open_stream(&served, "of-alice").await;
    assert!(head.starts_with("http/1.1 429") && head.contains("retry-after: 5"), "{head}");
    let (_bob, head) = open_stream(&served, "of-bob").await;
    assert!(head.starts_with("http/1.1 200"), "{head}");
    assert_eq!(served.app.open_streams(), 3);
    drop(first);
    until(|| served.app.open_streams() == 2).await;
    let (_third, head) = open_stream(&served, "of-alice").await;
    assert!(head.starts_with("http/1.1 200"), "{head}");
}
