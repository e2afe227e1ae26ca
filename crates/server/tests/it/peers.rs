//! Who asks, directly and through proxies, and how much one of them may have.

use std::time::Duration;

use sabir_server::{AddressRange, PeerLimit, ServerSettings, TrustedProxies};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::{Served, ask, serve_with};

fn limited(most: usize) -> impl FnOnce(ServerSettings) -> ServerSettings {
    move |settings| ServerSettings { per_peer: PeerLimit { most, exempt: Vec::new() }, ..settings }
}

/// A proxy on this machine is trusted.
fn behind_proxy(most: usize) -> impl FnOnce(ServerSettings) -> ServerSettings {
    move |settings| ServerSettings {
        per_peer: PeerLimit { most, exempt: AddressRange::LOOPBACK.to_vec() },
        trusted_proxies: TrustedProxies(AddressRange::LOOPBACK.to_vec()),
        // A stream whose reader is gone is noticed by its next write.
        keep_alive: Duration::from_millis(50),
        ..settings
    }
}

async fn status(served: &Served, headers: &[(&str, &str)]) -> u16 {
    ask(served.address, "GET", "/healthz", headers, "").await.status
}

#[tokio::test]
async fn a_peer_with_too_many_connections_is_told_so_until_some_are_closed() {
    let served = serve_with(limited(3)).await;
    let mut open = Vec::new();
    for _ in 0..3 {
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        // Answered, so it is counted.
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        assert_ne!(stream.read(&mut [0; 1]).await.unwrap(), 0);
        open.push(stream);
    }
    for _ in 0..3 {
        let told = ask(served.address, "GET", "/healthz", &[], "").await;
        assert_eq!(told.status, 429);
        assert!(told.head.contains("retry-after: 1"), "{}", told.head);
        assert!(told.body.contains("Too many connections come from your address"), "{}", told.body);
    }
    drop(open.pop());
    // Until the server has noticed.
    while status(&served, &[]).await != 200 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn exempt_peers_have_no_limit_of_connections() {
    let served = serve_with(|settings| ServerSettings {
        per_peer: PeerLimit { most: 1, exempt: AddressRange::LOOPBACK.to_vec() },
        ..settings
    })
    .await;
    let mut open = Vec::new();
    for _ in 0..10 {
        open.push(TcpStream::connect(served.address).await.unwrap());
        assert_eq!(status(&served, &[]).await, 200);
    }
}

/// Opens a stream for this forwarded peer and waits until it has begun.
async fn watch(served: &Served, peer: &str) -> TcpStream {
    let body = r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"slow 60 x"}]}}"#;
    let request = format!(
        "POST /message:stream HTTP/1.1\r\nHost: x\r\nA2A-Version: 1.0\r\nX-Forwarded-For: {peer}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut start = [0; 12];
    stream.read_exact(&mut start).await.unwrap();
    assert_eq!(&start, b"HTTP/1.1 200");
    stream
}

#[tokio::test]
async fn behind_a_proxy_the_requests_of_each_forwarded_peer_are_counted() {
    let served = serve_with(behind_proxy(2)).await;
    let first = watch(&served, "192.0.2.1").await;
    let _second = watch(&served, "192.0.2.1").await;
    let told = ask(served.address, "GET", "/healthz", &[("X-Forwarded-For", "192.0.2.1")], "").await;
    assert_eq!(told.status, 429);
    assert!(told.head.contains("retry-after: 1") && told.body.contains("Too many requests"), "{}", told.body);
    // What stands before the proxy's own word does not help, and others are not in the way.
    assert_eq!(status(&served, &[("X-Forwarded-For", "192.0.2.7, 192.0.2.1")]).await, 429);
    assert_eq!(status(&served, &[("X-Forwarded-For", "192.0.2.2")]).await, 200);
    assert_eq!(status(&served, &[]).await, 200);
    drop(first);
    while status(&served, &[("X-Forwarded-For", "192.0.2.1")]).await != 200 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn forwarding_headers_count_only_from_trusted_proxies() {
    let (behind, direct) = (serve_with(behind_proxy(100)).await, crate::serve().await);
    for (served, headers, expected) in [
        (&behind, &[("X-Forwarded-For", "192.0.2.1"), ("X-Forwarded-Proto", "https")][..], "https://agents.example/"),
        (&behind, &[("Forwarded", "for=192.0.2.1;proto=https")], "https://agents.example/"),
        (&behind, &[("X-Forwarded-Proto", "http")], "http://agents.example/"),
        (&behind, &[], "http://agents.example/"),
        (&direct, &[("X-Forwarded-For", "192.0.2.1"), ("X-Forwarded-Proto", "https")], "http://agents.example/"),
    ] {
        let headers: Vec<_> = headers.iter().copied().chain([("Host", "agents.example")]).collect();
        let card = ask(served.address, "GET", "/.well-known/agent-card.json", &headers, "").await.json();
        assert!(card["url"].as_str().unwrap().starts_with(expected), "{headers:?}: {}", card["url"]);
    }
    // Nobody becomes a program of this machine by a header.
    let told = ask(behind.address, "GET", "/admin/v1/deliveries", &[("X-Forwarded-For", "127.0.0.1")], "").await;
    assert_eq!(told.status, 403, "{}", told.body);
}
