//! Connections that come in number, do nothing, or leave early.

use std::net::SocketAddr;
use std::time::Duration;

use sabir_server::{ServerSettings, Timeouts};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::serve_with;

/// Long enough for anything that does come.
const PATIENCE: Duration = Duration::from_secs(20);

async fn open(address: SocketAddr, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    stream
}

/// What comes until the server closes the connection.
async fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.expect("the server closes it");
    // A connection that is dropped with unread bytes is reset.
    let _ = read;
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What comes until this text does.
async fn until(stream: &mut TcpStream, text: &str) -> String {
    let mut seen = String::new();
    let mut buffer = vec![0; 64 * 1024];
    while !seen.contains(text) {
        let read = tokio::time::timeout(PATIENCE, stream.read(&mut buffer)).await.expect("something comes").unwrap();
        assert_ne!(read, 0, "it ended after {seen:?}");
        seen.push_str(&String::from_utf8_lossy(&buffer[..read]));
    }
    seen
}

fn post(path: &str, text: &str) -> Vec<u8> {
    let body = format!(r#"{{"message":{{"messageId":"m","role":"ROLE_USER","parts":[{{"text":"{text}"}}]}}}}"#);
    let length = body.len();
    format!("POST {path} HTTP/1.1\r\nHost: x\r\nA2A-Version: 1.0\r\nContent-Length: {length}\r\n\r\n{body}")
        .into_bytes()
}

const HEALTH: &[u8] = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

#[tokio::test]
async fn idle_connections_give_way_to_requests() {
    let served = serve_with(|settings| ServerSettings { max_connections: 8, ..settings }).await;
    let mut watching = open(served.address, &post("/message:stream", "slow 60 x")).await;
    until(&mut watching, "TASK_STATE_WORKING").await;
    let mut silent = Vec::new();
    for _ in 0..40 {
        silent.push(open(served.address, b"G").await);
    }
    for _ in 0..10 {
        let mut asking = open(served.address, HEALTH).await;
        assert!(rest(&mut asking).await.starts_with("HTTP/1.1 200"), "a client with a request is answered");
        silent.push(open(served.address, b"P").await);
    }
    // Most of the silent ones are gone; the one that is being answered is not.
    for stream in &mut silent[..40] {
        assert_eq!(rest(stream).await, "");
    }
    let mut buffer = [0; 1];
    assert!(watching.try_read(&mut buffer).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock));
}

#[tokio::test]
async fn incomplete_request_heads_time_out_before_idle_connections() {
    let timeouts =
        Timeouts { head: Duration::from_millis(200), idle: Duration::from_secs(3600), ..Timeouts::default() };
    let served = serve_with(|settings| ServerSettings { timeouts, ..settings }).await;
    let asks = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
    let mut resting = open(served.address, asks).await;
    until(&mut resting, "\"ok\"}").await;
    for head in ["", "G", "PRI", "GET /healthz HTTP/1.1\r\nHost: x\r\n"] {
        let mut slow = open(served.address, head.as_bytes()).await;
        assert!(!rest(&mut slow).await.contains("HTTP/1.1"), "{head:?}");
    }
    // The others took longer than a head may.
    resting.write_all(asks).await.unwrap();
    until(&mut resting, "\"ok\"}").await;
    resting.write_all(b"GET").await.unwrap();
    assert_eq!(rest(&mut resting).await, "", "the next head is as urgent as the first");
}

#[tokio::test]
async fn an_idle_connection_is_closed_after_its_timeout() {
    let timeouts = Timeouts { idle: Duration::from_millis(200), ..Timeouts::default() };
    let served = serve_with(|settings| ServerSettings { timeouts, ..settings }).await;
    let mut resting = open(served.address, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert!(rest(&mut resting).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn a_half_closed_connection_still_gets_its_response() {
    let served = crate::serve().await;
    for (request, expected) in [
        (HEALTH.to_vec(), "\"ok\""),
        (post("/message:send", "slow 0.2 x"), "TASK_STATE_COMPLETED"),
        (post("/message:stream", "stream 3 50"), "TASK_STATE_COMPLETED"),
    ] {
        let mut stream = open(served.address, &request).await;
        stream.shutdown().await.unwrap();
        let answer = rest(&mut stream).await;
        assert!(answer.contains(expected), "{answer}");
    }
}

#[tokio::test]
async fn a_body_must_come_at_a_reasonable_pace() {
    let timeouts = Timeouts { body: Duration::from_millis(200), ..Timeouts::default() };
    let served = serve_with(|settings| ServerSettings { timeouts, ..settings }).await;
    let head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n";
    let mut stopped = open(served.address, &[head, &[b'['; 500_000][..]].concat()).await;
    let refused = until(&mut stopped, "too slowly").await;
    assert!(refused.starts_with("HTTP/1.1 400"), "{refused}");
    let stream = open(served.address, head).await;
    let (mut reading, mut writing) = stream.into_split();
    let dripping = tokio::spawn(async move {
        while writing.write_all(b"[").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let mut answer = [0; 12];
    reading.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 400", "a byte now and then is not enough");
    drop(reading);
    dripping.abort();
}

#[tokio::test]
async fn a_client_that_writes_everything_first_reads_the_refusal() {
    let served = crate::serve().await;
    let large = vec![b'x'; 30 * 1024 * 1024];
    let length = large.len();
    for (request, status) in [
        (format!("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n"), "413"),
        (format!("POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n"), "404"),
        (format!("POST / HTTP/1.1\r\nHost: x\r\nHost: x\r\nContent-Length: {length}\r\n\r\n"), "400"),
        (format!("POST / HTTP/1.1\r\nHost: x\r\nOrigin: null\r\nContent-Length: {length}\r\n\r\n"), "403"),
        (format!("POST / HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\r\n"), "415"),
        (format!("GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n"), "200"),
    ] {
        let mut stream = open(served.address, request.as_bytes()).await;
        stream.write_all(&large).await.unwrap_or_else(|error| panic!("{status}: {error}"));
        let answer = until(&mut stream, "\r\n\r\n").await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{request}: {answer}");
    }
    // Chunked, so that the size shows only on the way.
    let chunked = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut stream = open(served.address, chunked).await;
    for chunk in large.chunks(1024 * 1024) {
        stream.write_all(format!("{:x}\r\n", chunk.len()).as_bytes()).await.unwrap();
        stream.write_all(chunk).await.unwrap();
        stream.write_all(b"\r\n").await.unwrap();
    }
    stream.write_all(b"0\r\n\r\n").await.unwrap();
    assert!(until(&mut stream, "\r\n\r\n").await.starts_with("HTTP/1.1 413"));
}

#[tokio::test]
async fn expect_100_continue_is_refused_before_the_body() {
    let served = crate::serve().await;
    let head = b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 30000000\r\n\r\n";
    let mut stream = open(served.address, head).await;
    let answer = rest(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
}

#[tokio::test]
async fn request_bodies_count_against_the_memory_limit() {
    const SIZE: usize = 900_000;
    let served = serve_with(|settings| ServerSettings { memory: 2 * SIZE + SIZE / 2, ..settings }).await;
    let head = format!("POST /message:send HTTP/1.1\r\nHost: x\r\nA2A-Version: 1.0\r\nContent-Length: {SIZE}\r\n\r\n");
    let message = br#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hello"}]}}"#;
    let mut body = vec![b' '; SIZE];
    body[..message.len()].copy_from_slice(message);
    let mut held = Vec::new();
    for held_before in 0..2 {
        held.push(open(served.address, &[head.as_bytes(), &body[1..]].concat()).await);
        crate::until(|| served.app.reserved_memory() >= (held_before + 1) * (SIZE - 1)).await;
    }
    for _ in 0..3 {
        let mut refused = open(served.address, &[head.as_bytes(), &body[1..]].concat()).await;
        let answer = until(&mut refused, "RESOURCE_EXHAUSTED").await;
        assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("retry-after: "), "{answer}");
    }
    let mut small = open(served.address, &post("/message:send", "hello")).await;
    until(&mut small, "TASK_STATE_COMPLETED").await;
    // One goes on, the other gives up.
    held[0].write_all(b" ").await.unwrap();
    assert!(until(&mut held[0], "\r\n\r\n").await.starts_with("HTTP/1.1 "));
    held.clear();
    crate::until(|| served.app.reserved_memory() == 0).await;
}
