//! SIGTERM: runs may finish, the rest is settled, and the program ends with 0.

use std::time::{Duration, Instant};

use sabir_testkit::process::{SabirOptions, SabirProcess};
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
    let mut server = SabirOptions::new(SABIR, folder.path()).start();
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
fn runs_that_do_not_finish_are_settled_and_waiting_tasks_do_not_delay_the_shutdown() {
    let folder = tempfile::tempdir().unwrap();
    let options = SabirOptions::new(SABIR, folder.path()).variable("SABIR_SERVER_GRACE", "1s");
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
    let mut server = SabirOptions::new(SABIR, folder.path()).start();
    let idle = server.http();
    let start = Instant::now();
    server.terminate();
    assert_eq!(server.wait(Duration::from_secs(5)).code(), Some(0));
    assert!(start.elapsed() < Duration::from_secs(2));
    drop(idle);
}

#[test]
fn a_second_signal_ends_the_server_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let options = SabirOptions::new(SABIR, folder.path());
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

/// Starts a run and returns its task and its stream.
fn start_run(server: &SabirProcess, words: &str) -> (String, sse::Events) {
    let opened = sse::open(server.address, "POST", "/", &[V1], send(words, "SendStreamingMessage").as_bytes()).unwrap();
    let mut events = opened.unwrap_or_else(|reply| panic!("{}", reply.text()));
    let task = events.next_frame().unwrap().unwrap().payload()["task"]["id"].as_str().unwrap().to_owned();
    (task, events)
}

#[test]
fn during_shutdown_reads_are_answered_and_new_runs_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = SabirOptions::new(SABIR, folder.path()).variable("SABIR_SERVER_GRACE", "60s").start();
    let (task, mut events) = start_run(&server, "slow 120 x");
    server.terminate();
    let is_stopping = |server: &SabirProcess| (server.get("/readyz").status == 503).then_some(());
    server.until("/readyz says that it stops", is_stopping);
    assert_eq!(server.get("/healthz").status, 200);
    assert_eq!(server.get("/.well-known/agent-card.json").status, 200);
    let refused = server.http().exchange("POST", "/", &[V1], send("new", "SendMessage").as_bytes()).unwrap();
    assert_eq!(refused.status, 503, "{}", refused.text());
    assert!(refused.header("retry-after").is_some());
    assert_eq!(server.rpc("GetTask", json!({"id": task}))["result"]["status"]["state"], "TASK_STATE_WORKING");
    let start = Instant::now();
    assert_eq!(server.rpc("CancelTask", json!({"id": task}))["result"]["status"]["state"], "TASK_STATE_CANCELED");
    let last = events.rest().unwrap().pop().unwrap().payload();
    assert_eq!(last["statusUpdate"]["status"]["state"], "TASK_STATE_CANCELED", "{last}");
    assert_eq!(server.wait(Duration::from_secs(30)).code(), Some(0));
    assert!(start.elapsed() < Duration::from_secs(30), "nothing is left to wait for");
}

#[test]
fn a_drain_keeps_an_idle_server_answering() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = SabirOptions::new(SABIR, folder.path()).variable("SABIR_SERVER_DRAIN", "2s").start();
    let start = Instant::now();
    server.terminate();
    server.until("/readyz says that it stops", |server| (server.get("/readyz").status == 503).then_some(()));
    assert_eq!(server.get("/healthz").status, 200);
    assert_eq!(server.wait(Duration::from_secs(30)).code(), Some(0));
    assert!(start.elapsed() >= Duration::from_secs(2), "it took {:?}", start.elapsed());
}

#[test]
fn the_grace_period_is_kept_when_runs_are_requeued() {
    for recovery in ["fail", "requeue"] {
        let folder = tempfile::tempdir().unwrap();
        let options = SabirOptions::new(SABIR, folder.path())
            .variable("SABIR_SERVER_GRACE", "3s")
            .variable("SABIR_RECOVERY_RUNNING", recovery);
        let mut server = options.start();
        let (_, _events) = start_run(&server, "slow 120 x");
        let start = Instant::now();
        server.terminate();
        assert_eq!(server.wait(Duration::from_secs(30)).code(), Some(0));
        // A second for a machine that has other things to do.
        assert!(start.elapsed() < Duration::from_secs(4), "{recovery}: it took {:?}", start.elapsed());
    }
}

#[test]
fn the_grace_period_is_kept_while_a_program_floods() {
    let line = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"y"}]}}"#;
    for (kind, words) in [("command", "y"), ("generic", line)] {
        for ignores in ["", "trap '' TERM\n"] {
            let folder = tempfile::tempdir().unwrap();
            let program = folder.path().join("flood");
            std::fs::write(&program, format!("#!/bin/sh\n{ignores}yes '{words}'\n")).unwrap();
            std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
            let config = format!(
                "[[agent]]\nid = \"flood\"\nkind = \"{kind}\"\ncommand = [{program:?}]\nmax_output = \"100GiB\"\n"
            );
            std::fs::write(folder.path().join("sabir.toml"), config).unwrap();
            let log = folder.path().join("log");
            let options = SabirOptions::new(SABIR, folder.path()).variable("SABIR_SERVER_GRACE", "5s");
            let mut server = options.start_with(std::fs::File::create(&log).unwrap().into());
            // More than there are threads.
            let _floods = [1, 2, 3, 4].map(|number| start_run(&server, &format!("go {number}")));
            // Until a good deal of it is stored.
            let stored = folder.path().join("sabir.db");
            server.until("the flood", |_| (std::fs::metadata(&stored).ok()?.len() > 16 << 20).then_some(()));
            let start = Instant::now();
            server.terminate();
            assert_eq!(server.wait(Duration::from_secs(60)).code(), Some(0));
            // Some seconds for a machine that has other things to do.
            assert!(start.elapsed() < Duration::from_secs(8), "{kind} {ignores:?}: it took {:?}", start.elapsed());
            let log = std::fs::read_to_string(&log).unwrap();
            assert!(!log.contains("could not be settled"), "{kind} {ignores:?}: {log}");
        }
    }
}

#[test]
fn a_second_ctrl_c_ends_the_server_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = SabirOptions::new(SABIR, folder.path()).variable("SABIR_SERVER_GRACE", "1h").start();
    let (_, _events) = start_run(&server, "slow 120 x");
    server.signal("INT");
    server.until("/readyz says that it stops", |server| (server.get("/readyz").status == 503).then_some(()));
    server.signal("INT");
    assert_eq!(server.wait(Duration::from_secs(30)).code(), Some(130));
}

#[test]
fn sighup_without_a_terminal_stops_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let starter = folder.path().join("detached");
    std::fs::write(&starter, format!("#!/bin/sh\nexec setsid '{SABIR}' \"$@\"\n")).unwrap();
    std::fs::set_permissions(&starter, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let log = folder.path().join("log");
    let options = SabirOptions::new(starter.to_str().unwrap(), folder.path());
    let mut server = options.start_with(std::fs::File::create(&log).unwrap().into());
    server.signal("HUP");
    server.until("it says that nothing is reloaded", |_| {
        std::fs::read_to_string(&log).unwrap().contains("tokens and API keys were reloaded").then_some(())
    });
    assert_eq!(server.get("/readyz").status, 200);
    server.terminate();
    assert_eq!(server.wait(Duration::from_secs(30)).code(), Some(0));
}
