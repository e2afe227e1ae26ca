//! Readers that are slow, many, or gone: nobody loses an event and the server's memory stays bounded.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use sabir_testkit::process::SabirOptions;
use sabir_testkit::sse::{self, Events};
use serde_json::{Value, json};

use crate::SABIR;

const V1: (&str, &str) = ("A2A-Version", "1.0");
/// What the server may grow by while a reader sleeps: far less than the events that pass.
const BOUND: u64 = 64 * 1024 * 1024;

fn stream(server: &sabir_testkit::process::SabirProcess, words: &str) -> Events {
    let message = json!({"messageId": words, "role": "ROLE_USER", "parts": [{"text": words}]});
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": {"message": message}});
    let opened = sse::open(server.address, "POST", "/", &[V1], request.to_string().as_bytes()).unwrap();
    opened.unwrap_or_else(|reply| panic!("{}", reply.text()))
}

fn task_of(payload: &Value) -> String {
    payload["task"]["id"].as_str().expect("the first frame is the task").to_owned()
}

#[test]
fn a_slow_reader_loses_none_of_a_hundred_thousand_events() {
    const EVENTS: u64 = 100_000;
    let folder = tempfile::tempdir().unwrap();
    let server = SabirOptions::new(SABIR, folder.path()).start();
    let before = server.resident();
    let mut events = stream(&server, &format!("stream {EVENTS} 0"));
    let first = events.next_frame().unwrap().expect("the task comes first");
    let task = task_of(&first.payload());

    let most = Arc::new(AtomicU64::new(0));
    let awake = Arc::new(AtomicBool::new(false));
    let pid = server.pid();
    let watcher = std::thread::spawn({
        let (most, awake) = (most.clone(), awake.clone());
        move || {
            while !awake.load(Ordering::SeqCst) {
                most.fetch_max(resident(pid), Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    });
    std::thread::sleep(Duration::from_secs(10));
    server.until("all events have passed", |server| {
        let answer = server.rpc("GetTask", json!({"id": task, "historyLength": 0}));
        (answer["result"]["status"]["state"] == "TASK_STATE_COMPLETED").then_some(())
    });
    let mut last = first.id.unwrap();
    let mut text = String::new();
    while let Some(frame) = events.next_frame().unwrap() {
        let seq = frame.id.unwrap();
        assert_eq!(seq, last + 1, "no event is missing or out of order");
        last = seq;
        if let Some(chunk) = frame.payload()["artifactUpdate"]["artifact"]["parts"][0]["text"].as_str() {
            text.push_str(chunk);
        }
    }
    awake.store(true, Ordering::SeqCst);
    watcher.join().unwrap();
    assert_eq!(last, EVENTS + 3);
    let expected: String = (1..=EVENTS).map(|i| format!("chunk {i}\n")).collect();
    assert!(text == expected, "the joined text is whole");
    let grown = most.load(Ordering::SeqCst).saturating_sub(before);
    println!("grew by {} KiB", grown / 1024);
    assert!(grown < BOUND, "the server grew by {} MiB", grown / 1024 / 1024);
}

#[test]
fn two_hundred_subscribers_get_the_same_events_in_the_same_order() {
    let folder = tempfile::tempdir().unwrap();
    let server = SabirOptions::new(SABIR, folder.path()).start();
    let mut first = stream(&server, "stream 2000 1");
    let frame = first.next_frame().unwrap().unwrap();
    let task = task_of(&frame.payload());
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "SubscribeToTask", "params": {"id": task}}).to_string();
    let readers: Vec<_> = (0..200)
        .map(|i: u64| {
            let (request, address) = (request.clone(), server.address);
            std::thread::spawn(move || {
                let headers = [V1, ("Last-Event-ID", "0")];
                let opened = sse::open(address, "POST", "/", &headers, request.as_bytes()).unwrap();
                let mut events = opened.unwrap_or_else(|reply| panic!("{}", reply.text()));
                if i.is_multiple_of(20) {
                    std::thread::sleep(Duration::from_millis(500));
                }
                let frames = events.rest().unwrap();
                frames.into_iter().map(|frame| (frame.id.unwrap(), frame.data)).collect::<Vec<_>>()
            })
        })
        .collect();
    let mut expected = vec![(frame.id.unwrap(), frame.data)];
    expected.extend(first.rest().unwrap().into_iter().map(|frame| (frame.id.unwrap(), frame.data)));
    assert_eq!(expected.len(), 2003);
    for reader in readers {
        assert!(reader.join().unwrap() == expected, "every reader sees the same bytes");
    }
}

#[test]
fn a_client_that_disconnects_at_any_point_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let server = SabirOptions::new(SABIR, folder.path()).start();
    for frames in 0..12 {
        let mut events = stream(&server, &format!("stream 10 {frames}"));
        let task = task_of(&events.next_frame().unwrap().unwrap().payload());
        for _ in 0..frames {
            events.next_frame().unwrap();
        }
        drop(events);
        let text = server.until("the task completes", |server| {
            let answer = server.rpc("GetTask", json!({"id": task}));
            let result = &answer["result"];
            (result["status"]["state"] == "TASK_STATE_COMPLETED")
                .then(|| result["artifacts"][0]["parts"][0]["text"].as_str().unwrap_or_default().to_owned())
        });
        assert_eq!(text, (1..=10).map(|i| format!("chunk {i}\n")).collect::<String>(), "after {frames} frames");
    }
    // One that hangs up before its blocking answer, and one in the middle of its request.
    let message = json!({"messageId": "gone", "role": "ROLE_USER", "parts": [{"text": "slow 0.2 gone"}]});
    let request =
        json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}).to_string();
    let mut impatient = server.http();
    impatient.send("POST", "/", &[V1], request.as_bytes()).unwrap();
    // What is not yet stored may go with its caller.
    server.until("the task is made", |server| {
        let answer = server.rpc("ListTasks", json!({"pageSize": 1, "historyLength": 1}));
        (answer["result"]["tasks"][0]["history"][0]["messageId"] == "gone").then_some(())
    });
    drop(impatient);
    server.http().write_raw(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{\"json").unwrap();
    server.until("the task of the one who went completes", |server| {
        let answer = server.rpc("ListTasks", json!({"includeArtifacts": true, "pageSize": 1}));
        (answer["result"]["tasks"][0]["artifacts"][0]["parts"][0]["text"] == "echo: slow 0.2 gone").then_some(())
    });
}

fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or("VmRSS: 0 kB");
    line.split_whitespace().nth(1).and_then(|kilobytes| kilobytes.parse::<u64>().ok()).unwrap_or(0) * 1024
}
