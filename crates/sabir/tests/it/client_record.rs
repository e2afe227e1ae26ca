//! Clients that write down everything they are told, and the checks that a server still knows all of it after a kill.
//!
//! The log must hold every frame under the same number and byte for byte; every stream that broke must continue exactly where
//! it broke; a task that was acknowledged is never lost; and no task may be left working with nobody at work.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use sabir_testkit::http::Http;
use sabir_testkit::process::SabirProcess;
use sabir_testkit::sse;
use serde_json::{Value, json};

const CLIENTS: usize = 6;

/// What clients were told: frames by task and number, and states by task.
#[derive(Default)]
pub struct ClientRecord {
    frames: BTreeMap<String, BTreeMap<u64, String>>,
    states: BTreeMap<String, String>,
}

/// Clients at work.
pub struct Clients {
    record: Arc<Mutex<ClientRecord>>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// How much was checked.
#[derive(Debug, Default)]
pub struct Checked {
    pub tasks: usize,
    pub frames: usize,
    /// Streams that had broken in the middle.
    pub resumed: usize,
}

impl Clients {
    /// Each client sends one message after the other to one of these servers.
    pub fn start(servers: &[SocketAddr], round: u64) -> Self {
        let (record, stop) = (Arc::new(Mutex::new(ClientRecord::default())), Arc::new(AtomicBool::new(false)));
        let count = Arc::new(AtomicU64::new(0));
        let start = |client: usize| {
            let (record, stop, count, address) =
                (record.clone(), stop.clone(), count.clone(), servers[client % servers.len()]);
            std::thread::spawn(move || {
                while !stop.load(Ordering::SeqCst) {
                    let number = count.fetch_add(1, Ordering::SeqCst);
                    // The server may die in the middle of this; whatever was told before counts.
                    let _ = one_exchange(address, client as u64, round * 1_000_000 + number, &record);
                }
            })
        };
        let threads = (0..CLIENTS).map(start).collect();
        Self { record, stop, threads }
    }

    /// Waits for the ends of their exchanges.
    pub fn stop(self) -> ClientRecord {
        self.stop.store(true, Ordering::SeqCst);
        for client in self.threads {
            client.join().unwrap();
        }
        Arc::into_inner(self.record).unwrap().into_inner().unwrap()
    }
}

fn one_exchange(address: SocketAddr, client: u64, number: u64, record: &Mutex<ClientRecord>) -> std::io::Result<()> {
    let (words, is_stream, is_immediate) = match (client + number) % 6 {
        0 => ("stream 200 1", true, false),
        1 => ("stream 40 0", true, false),
        2 => ("hello", false, false),
        3 => ("slow 0.05 hello", false, true),
        4 => ("ask which?", false, false),
        _ => ("ask which?", true, false),
    };
    let method = if is_stream { "SendStreamingMessage" } else { "SendMessage" };
    let message = json!({"messageId": format!("k{number}"), "role": "ROLE_USER", "parts": [{"text": words}]});
    let params = json!({"message": message, "configuration": {"returnImmediately": is_immediate}});
    let body = request(method, params);
    if !is_stream {
        let reply = Http::connect(address)?.exchange("POST", "/", &[("A2A-Version", "1.0")], body.as_bytes())?;
        let answer: Value = serde_json::from_slice(&reply.body).map_err(std::io::Error::other)?;
        let task = &answer["result"]["task"];
        if let (Some(id), Some(state)) = (task["id"].as_str(), task["status"]["state"].as_str()) {
            record.lock().unwrap().states.insert(id.to_owned(), state.to_owned());
        }
        return Ok(());
    }
    let Ok(mut events) = sse::open(address, "POST", "/", &[("A2A-Version", "1.0")], body.as_bytes())? else {
        return Ok(());
    };
    while let Some(frame) = events.next_frame()? {
        let seq = frame.id.expect("every frame has a number");
        let payload = frame.payload();
        let event = payload.as_object().and_then(|payload| payload.values().next()).cloned().unwrap_or_default();
        let task = event["taskId"].as_str().or(event["id"].as_str()).expect("every frame names its task").to_owned();
        let before = record.lock().unwrap().frames.entry(task.clone()).or_default().insert(seq, frame.data);
        assert_eq!(before, None, "event {seq} of {task} came twice");
    }
    Ok(())
}

impl ClientRecord {
    /// This server knows all of it.
    pub fn check(&self, server: &SabirProcess, round: u64) -> Checked {
        let mut checked = Checked { tasks: self.frames.len() + self.states.len(), ..Checked::default() };
        for (task, seen) in &self.frames {
            checked.resumed += check_stream(server, task, seen, round);
            checked.frames += seen.len();
        }
        for (task, state) in &self.states {
            check_state(server, task, state, round);
        }
        check_nobody_is_left(server, round);
        checked
    }
}

impl std::ops::AddAssign for Checked {
    fn add_assign(&mut self, other: Self) {
        self.tasks += other.tasks;
        self.frames += other.frames;
        self.resumed += other.resumed;
    }
}

/// The log holds what was seen, and what follows continues from there. Returns 1 if the stream had broken.
fn check_stream(server: &SabirProcess, task: &str, seen: &BTreeMap<u64, String>, round: u64) -> usize {
    let all = events(server, task, 0);
    let numbers: Vec<u64> = all.iter().map(|(seq, _)| *seq).collect();
    assert_eq!(numbers, (1..=all.len() as u64).collect::<Vec<_>>(), "round {round}: {task} has no gaps");
    for (seq, data) in seen {
        let stored = &all.get(*seq as usize - 1).unwrap_or_else(|| panic!("round {round}: {task} lost event {seq}")).1;
        assert_eq!(stored, data, "round {round}: event {seq} of {task} is the same as before");
    }
    let last = *seen.keys().last().expect("something was seen");
    // A task that waits for its caller keeps the stream open for who has seen all of it.
    let waits_for_more = last == all.len() as u64 && state_of(server, task) == "TASK_STATE_INPUT_REQUIRED";
    if waits_for_more {
        return 0;
    }
    let rest = events(server, task, last);
    assert_eq!(rest, all[last as usize..], "round {round}: {task} continues after {last}");
    usize::from(!rest.is_empty())
}

/// All events of a task after a number; waits until its run is settled.
pub fn events(server: &SabirProcess, task: &str, after: u64) -> Vec<(u64, String)> {
    let body = request("SubscribeToTask", json!({"id": task}));
    let after = after.to_string();
    let headers = [("A2A-Version", "1.0"), ("Last-Event-ID", after.as_str())];
    let opened = sse::open(server.address, "POST", "/", &headers, body.as_bytes()).unwrap();
    let mut events = opened.unwrap_or_else(|reply| panic!("{task}: {}", reply.text()));
    let frames = events.rest().unwrap();
    frames.into_iter().map(|frame| (frame.id.unwrap(), frame.data)).collect()
}

fn check_state(server: &SabirProcess, task: &str, acknowledged: &str, round: u64) {
    let expected: &[&str] = match acknowledged {
        "TASK_STATE_COMPLETED" => &["TASK_STATE_COMPLETED"],
        "TASK_STATE_INPUT_REQUIRED" => &["TASK_STATE_INPUT_REQUIRED"],
        // It was queued or running: it runs now, or it was interrupted.
        _ => &["TASK_STATE_COMPLETED", "TASK_STATE_FAILED"],
    };
    server.until("the task settles", |server| {
        let state = state_of(server, task);
        assert_ne!(state, "", "round {round}: {task} was acknowledged as {acknowledged} and is gone");
        expected.contains(&state.as_str()).then_some(())
    });
}

fn check_nobody_is_left(server: &SabirProcess, round: u64) {
    for state in ["TASK_STATE_WORKING", "TASK_STATE_SUBMITTED"] {
        server.until("no task is left at work", |server| {
            let answer = server.rpc("ListTasks", json!({"status": state}));
            let total = answer["result"]["totalSize"].as_u64();
            assert!(total.is_some(), "round {round}: {answer}");
            (total == Some(0)).then_some(())
        });
    }
}

fn state_of(server: &SabirProcess, task: &str) -> String {
    let answer = server.rpc("GetTask", json!({"id": task}));
    answer["result"]["status"]["state"].as_str().unwrap_or_default().to_owned()
}

/// Always the same id, so that frames can be compared byte for byte.
pub fn request(method: &str, params: Value) -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
}
