//! SIGTERM: runs may finish, the rest is settled, and the program ends with 0.

use std::time::{Duration, Instant};

use sabir_testkit::process::Options;
use sabir_testkit::sse;
use serde_json::json;

use crate::SABIR;

fn send(words: &str, method: &str) -> String {
    let message = json!({"messageId": words, "role": "ROLE_USER", "parts": [{"text": words}]});
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"message": message}}).to_string()
}

const V1: (&str, &str) = ("A2A-Version", "1.0");

#[test]
fn a_run_that_finishes_in_time_is_completed_and_its_caller_answered() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Options::new(SABIR, folder.path()).start();
    let mut blocking = server.http();
    blocking.send("POST", "/", &[V1], send("slow 1 hello", "SendMessage").as_bytes()).unwrap();
    let stream = send("stream 20 50", "SendStreamingMessage");
    let opened = sse::open(server.address, "POST", "/", &[V1], stream.as_bytes()).unwrap();
    let mut stream = opened.unwrap_or_else(|reply| panic!("{}", reply.text()));
    stream.next_frame().unwrap();
    std::thread::sleep(Duration::from_millis(200));
    server.terminate();
    let reply = blocking.receive().unwrap().json();
    assert_eq!(reply["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    let frames = stream.rest().unwrap();
    assert_eq!(frames.last().unwrap().payload()["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(server.wait(Duration::from_secs(15)).code(), Some(0));
}

#[test]
fn what_does_not_finish_is_settled_and_waiting_tasks_do_not_hold_it() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::new(SABIR, folder.path()).variable("SABIR_SERVER_GRACE", "1s");
    let mut server = options.start();
    let waiting = server.rpc(
        "SendMessage",
        json!({"message": {"messageId": "a", "role": "ROLE_USER", "parts": [{"text": "ask which?"}]}}),
    );
    let waiting = waiting["result"]["task"]["id"].as_str().unwrap().to_owned();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SubscribeToTask", "params": {"id": waiting}}).to_string();
    let opened = sse::open(server.address, "POST", "/", &[V1], body.as_bytes()).unwrap();
    let mut watching = opened.unwrap_or_else(|reply| panic!("{}", reply.text()));
    let idle = server.http();
    let opened =
        sse::open(server.address, "POST", "/", &[V1], send("slow 60 hello", "SendStreamingMessage").as_bytes());
    let mut running = opened.unwrap().unwrap_or_else(|reply| panic!("{}", reply.text()));
    let task = running.next_frame().unwrap().unwrap().payload()["task"]["id"].as_str().unwrap().to_owned();
    let start = Instant::now();
    server.terminate();
    let last = running.rest().unwrap().pop().unwrap().payload();
    assert_eq!(last["statusUpdate"]["status"]["state"], "TASK_STATE_FAILED", "{last}");
    watching.rest().unwrap();
    assert_eq!(server.wait(Duration::from_secs(15)).code(), Some(0));
    assert!(start.elapsed() < Duration::from_secs(5), "it took {:?}", start.elapsed());
    drop(idle);

    let server = options.start();
    for (id, expected) in [(&task, "TASK_STATE_FAILED"), (&waiting, "TASK_STATE_INPUT_REQUIRED")] {
        assert_eq!(server.rpc("GetTask", json!({"id": id}))["result"]["status"]["state"], expected);
    }
}

#[test]
fn an_idle_server_stops_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Options::new(SABIR, folder.path()).start();
    let idle = server.http();
    let start = Instant::now();
    server.terminate();
    assert_eq!(server.wait(Duration::from_secs(5)).code(), Some(0));
    assert!(start.elapsed() < Duration::from_secs(2));
    drop(idle);
}

#[test]
fn a_second_signal_ends_it_now() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::new(SABIR, folder.path());
    let mut server = options.start();
    let mut blocking = server.http();
    blocking.send("POST", "/", &[V1], send("slow 60 hello", "SendMessage").as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    let start = Instant::now();
    server.terminate();
    std::thread::sleep(Duration::from_millis(300));
    server.terminate();
    assert_eq!(blocking.receive().unwrap().json()["result"]["task"]["status"]["state"], "TASK_STATE_FAILED");
    assert_eq!(server.wait(Duration::from_secs(5)).code(), Some(0));
    assert!(start.elapsed() < Duration::from_secs(4), "it took {:?}", start.elapsed());
}
