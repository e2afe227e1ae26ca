//! More connections than the system gives files: those who ask something are still answered.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use sabir_testkit::process::{SabirOptions, SabirProcess};
use sabir_testkit::sse;
use serde_json::json;

use crate::SABIR;

const V1: (&str, &str) = ("A2A-Version", "1.0");

/// Sabir with this limit of open files, which it cannot raise.
fn start(folder: &Path, open_files: u32) -> SabirProcess {
    let starter = folder.join("limited");
    std::fs::write(&starter, format!("#!/bin/sh\nulimit -n {open_files}\nexec '{SABIR}' \"$@\"\n")).unwrap();
    std::fs::set_permissions(&starter, std::fs::Permissions::from_mode(0o755)).unwrap();
    SabirOptions::new(starter.to_str().unwrap(), folder).start()
}

/// Whether it answers, long before silent connections are dropped for their silence.
fn is_alive(server: &SabirProcess) -> bool {
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).is_ok() && answer == *b"HTTP/1.1 200"
}

#[test]
fn four_hundred_idle_connections_do_not_block_requests() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), 300);
    let message = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "slow 120 x"}]});
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": {"message": message}});
    let opened = sse::open(server.address, "POST", "/", &[V1], request.to_string().as_bytes()).unwrap();
    let mut watching = opened.unwrap_or_else(|reply| panic!("{}", reply.text()));
    let task = watching.next_frame().unwrap().unwrap().payload()["task"]["id"].as_str().unwrap().to_owned();

    let mut silent = Vec::new();
    for round in 0..8 {
        for _ in 0..50 {
            let mut stream = TcpStream::connect(server.address).unwrap();
            let _ = stream.write_all(b"G");
            silent.push(stream);
        }
        assert!(is_alive(&server), "after {} connections", silent.len());
        let sent = server.rpc(
            "SendMessage",
            json!({"message": {"messageId": format!("{round}"),
            "role": "ROLE_USER", "parts": [{"text": "hello"}]}}),
        );
        assert_eq!(sent["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{sent}");
    }
    let canceled = server.rpc("CancelTask", json!({"id": task}));
    assert_eq!(canceled["result"]["status"]["state"], "TASK_STATE_CANCELED", "{canceled}");
    let last = watching.rest().unwrap().pop().unwrap().payload();
    assert_eq!(last["statusUpdate"]["status"]["state"], "TASK_STATE_CANCELED", "the stream was kept: {last}");
}
