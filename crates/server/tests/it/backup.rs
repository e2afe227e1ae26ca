//! A backup at the pace of its reader: one that takes nothing loses its backup, and everybody else goes on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sabir_engine::Builder;
use sabir_server::{ServerSettings, Timeouts};
use sabir_store::{Durability, MemoryStore, SqliteStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;

use crate::{Served, ask, serve_engine};

const PATH: &str = "/admin/v1/store/backup";
const PATIENCE: Duration = Duration::from_millis(500);

fn impatient(settings: ServerSettings) -> ServerSettings {
    let timeouts = Timeouts { reply: PATIENCE, ..Timeouts::default() };
    ServerSettings { timeouts, body_limit: 8 << 20, ..settings }
}

async fn send(served: &Served, text: &str) {
    let body = format!(r#"{{"message":{{"messageId":"m","role":"ROLE_USER","parts":[{{"text":"{text}"}}]}}}}"#);
    let told = ask(served.address, "POST", "/message:send", &[("A2A-Version", "1.0")], &body).await;
    assert_eq!(told.status, 200, "{}", told.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_takes_nothing_loses_its_backup() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&folder.path().join("sabir.db"), Durability::Process).unwrap();
    let served = serve_engine(Builder::new(Arc::new(store)), impatient).await;
    // More than the buffers of a connection hold.
    let text = "x".repeat(2 << 20);
    for _ in 0..8 {
        send(&served, &text).await;
    }
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(16 * 1024).unwrap();
    let mut slow = socket.connect(served.address).await.unwrap();
    // Before the backup begins: it keeps its place at least until `PATIENCE` has passed since then.
    let start = Instant::now();
    slow.write_all(format!("GET {PATH} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").as_bytes())
        .await
        .unwrap();
    let mut head = [0; 12];
    slow.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 200");
    assert!(is_taken(&served).await || start.elapsed() >= PATIENCE, "there is one backup at a time");
    // Its place is free again when its time is over, though the connection is still open.
    while ask(served.address, "HEAD", PATH, &[], "").await.status != 405 || is_taken(&served).await {
        assert!(start.elapsed() < Duration::from_secs(60));
        send(&served, "meanwhile").await;
    }
    assert!(start.elapsed() >= PATIENCE, "{:?}", start.elapsed());
    // What the slow one gets, if it reads after all, has no end.
    let mut rest = Vec::new();
    let _ = tokio::time::timeout(Duration::from_secs(60), slow.read_to_end(&mut rest)).await;
    assert!(rest.len() < 16 << 20, "{}", rest.len());
}

/// Whether another backup is under way.
async fn is_taken(served: &Served) -> bool {
    let mut stream = tokio::net::TcpStream::connect(served.address).await.unwrap();
    let request = format!("GET {PATH} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = [0; 12];
    stream.read_exact(&mut head).await.unwrap();
    &head == b"HTTP/1.1 409"
}

#[tokio::test]
async fn tasks_in_memory_have_no_backup() {
    let served = serve_engine(Builder::new(Arc::new(MemoryStore::new())), impatient).await;
    let told = ask(served.address, "GET", PATH, &[], "").await;
    assert_eq!((told.status, told.json()["title"].as_str()), (409, Some("Conflict")), "{}", told.body);
}
