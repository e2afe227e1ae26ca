//! Large tasks and many readers: what is shared, what is counted, and what happens when it is too much.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2 as client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use sabir_server::{ServerSettings, Timeouts};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::{Served, serve_with, until};

const SIZE: usize = 2_000_000;
const HEAD: &str = "Host: x\r\nA2A-Version: 1.0\r\n";

fn roomy(settings: ServerSettings) -> ServerSettings {
    ServerSettings { body_limit: 2 * SIZE, memory: 3 * SIZE, ..settings }
}

/// A connection whose client has little room for what it does not read.
async fn open(address: SocketAddr, request: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(16 * 1024).unwrap();
    let mut stream = socket.connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

async fn exchange(address: SocketAddr, request: &str) -> String {
    let request = request.replacen("Host: x\r\n", "Host: x\r\nConnection: close\r\n", 1);
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

/// A task with a large message; its id.
async fn large_task(served: &Served, words: &str) -> String {
    let text = format!("{words} {}", "x".repeat(SIZE));
    let body = format!(
        r#"{{"message":{{"messageId":"m","role":"ROLE_USER","parts":[{{"text":"{text}"}}]}},"configuration":{{"returnImmediately":true,"historyLength":0}}}}"#
    );
    let length = body.len();
    let request = format!("POST /message:send HTTP/1.1\r\n{HEAD}Content-Length: {length}\r\n\r\n{body}");
    let answer = exchange(served.address, &request).await;
    let id = answer.split_once(r#""id":""#).and_then(|(_, rest)| rest.split_once('"'));
    let id = id.unwrap_or_else(|| panic!("{answer}")).0.to_owned();
    // It is at rest, or at work for long.
    until_state(served, &id, if words == "slow 60" { "WORKING" } else { "REQUIRED" }).await;
    id
}

async fn until_state(served: &Served, id: &str, state: &str) {
    for _ in 0..1000 {
        let request = format!("GET /tasks/{id}?historyLength=0 HTTP/1.1\r\n{HEAD}\r\n");
        if exchange(served.address, &request).await.contains(state) {
            return;
        }
    }
    panic!("{id} does not come to be {state}");
}

fn get(id: &str) -> String {
    format!("GET /tasks/{id} HTTP/1.1\r\n{HEAD}\r\n")
}

fn subscribe(id: &str) -> String {
    format!("POST /tasks/{id}:subscribe HTTP/1.1\r\n{HEAD}Content-Length: 0\r\n\r\n")
}

#[tokio::test]
async fn readers_of_one_task_share_its_bytes() {
    let served = serve_with(roomy).await;
    let id = large_task(&served, "slow 60").await;
    let before = served.app.large_encodings();
    let stream = TcpStream::connect(served.address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (mut sender, connection) = client::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(2000)
        .handshake::<_, Full<Bytes>>(TokioIo::new(stream))
        .await
        .unwrap();
    let connection = tokio::spawn(connection);
    let mut unread = Vec::new();
    for _ in 0..300 {
        let request = http::Request::get(format!("http://localhost/tasks/{id}")).header("a2a-version", "1.0");
        let response = sender.send_request(request.body(Full::default()).unwrap()).await.unwrap();
        assert_eq!(response.status(), 200);
        unread.push(response);
    }
    assert_eq!(served.app.large_encodings() - before, 1, "300 replies are one spelling");
    let reserved = served.app.reserved_memory();
    assert!((SIZE..SIZE + 10_000).contains(&reserved), "{reserved} bytes are reserved");
    let whole = unread.pop().unwrap().into_body().collect().await.unwrap().to_bytes();
    assert!(whole.len() > SIZE && whole.ends_with(b"}"), "{} bytes", whole.len());
    drop(unread);
    drop(sender);
    connection.abort();
    until(|| served.app.reserved_memory() == 0).await;
}

#[tokio::test]
async fn beyond_the_memory_limit_requests_get_retry_after() {
    let served = serve_with(roomy).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(large_task(&served, "ask").await);
    }
    let mut unread = Vec::new();
    for (id, reserved) in ids.iter().zip([SIZE, 2 * SIZE]) {
        unread.push(open(served.address, &get(id)).await);
        until(|| served.app.reserved_memory() >= reserved).await;
    }
    let encoded_tasks = served.app.large_encodings();
    let list = format!("GET /tasks HTTP/1.1\r\n{HEAD}\r\n");
    for request in [get(&ids[2]), subscribe(&ids[2]), list] {
        let refused = exchange(served.address, &request).await;
        assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("retry-after: "), "{refused}");
        assert!(refused.contains("RESOURCE_EXHAUSTED"), "{refused}");
    }
    assert_eq!(served.app.large_encodings(), encoded_tasks, "a refusal does not do the work first");
    assert!(exchange(served.address, &format!("GET /healthz HTTP/1.1\r\n{HEAD}\r\n")).await.contains("200 OK"));
    drop(unread);
    until(|| served.app.reserved_memory() == 0).await;
    assert!(exchange(served.address, &get(&ids[2])).await.starts_with("HTTP/1.1 200"));
    until(|| served.app.reserved_memory() == 0).await;
}

#[tokio::test]
async fn a_reply_that_nobody_reads_is_dropped() {
    let timeouts = Timeouts { reply: Duration::from_millis(200), ..Timeouts::default() };
    let served = serve_with(|settings| ServerSettings { timeouts, ..roomy(settings) }).await;
    let id = large_task(&served, "slow 60").await;
    let mut unread = open(served.address, &get(&id)).await;
    until(|| served.app.reserved_memory() > 0).await;
    until(|| served.app.reserved_memory() == 0).await;
    let mut rest = Vec::new();
    let _ = unread.read_to_end(&mut rest).await;
    assert!(rest.len() < SIZE, "{} bytes came", rest.len());
}

#[tokio::test]
async fn subscribers_share_the_snapshot_and_release_it_while_idle() {
    let timeouts = Timeouts { reply: Duration::from_millis(300), ..Timeouts::default() };
    let served = serve_with(|settings| ServerSettings { timeouts, ..roomy(settings) }).await;
    let id = large_task(&served, "slow 60").await;
    let before = served.app.large_encodings();
    let mut asleep = Vec::new();
    for _ in 0..50 {
        asleep.push(open(served.address, &subscribe(&id)).await);
    }
    until(|| served.app.reserved_memory() > 0).await;
    until(|| served.app.reserved_memory() == 0).await;
    let encoded_tasks = served.app.large_encodings() - before;
    assert!(encoded_tasks <= 2, "{encoded_tasks} spellings for 50 subscribers");
    // Those who wake up find everything in its place.
    for mut awake in asleep.into_iter().take(2) {
        let mut seen = Vec::new();
        let mut buffer = vec![0; 256 * 1024];
        while !seen.ends_with(b"\n\n\r\n") {
            let read = awake.read(&mut buffer).await.unwrap();
            assert_ne!(read, 0, "the stream was dropped after {} bytes", seen.len());
            seen.extend_from_slice(&buffer[..read]);
        }
        let text = seen.iter().filter(|byte| **byte == b'x').count();
        assert!(text >= SIZE, "{text} of {SIZE}");
    }
}

#[tokio::test]
async fn large_events_count_against_the_memory_limit_and_can_be_read_later() {
    let served = serve_with(roomy).await;
    let id = large_task(&served, "ask").await;
    let replay = format!("POST /tasks/{id}:subscribe HTTP/1.1\r\n{HEAD}Last-Event-ID: 0\r\nContent-Length: 0\r\n\r\n");
    let asleep = open(served.address, &replay).await;
    until(|| served.app.reserved_memory() > 2 * SIZE).await;
    let broken = exchange(served.address, &replay).await;
    assert!(broken.contains("event: error") && broken.contains("RESOURCE_EXHAUSTED"), "{broken}");
    drop(asleep);
    until(|| served.app.reserved_memory() == 0).await;
    let mut awake = open(served.address, &replay).await;
    let mut seen = Vec::new();
    let mut buffer = vec![0; 256 * 1024];
    while !seen.windows(14).any(|text| text == b"INPUT_REQUIRED") {
        let read = awake.read(&mut buffer).await.unwrap();
        assert_ne!(read, 0, "the stream ended after {} bytes", seen.len());
        seen = [&seen[seen.len().saturating_sub(20)..], &buffer[..read]].concat();
    }
}
