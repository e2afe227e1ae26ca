//! A front: the real program with an agent `friend` that stands for a remote one, and its callers of 1.0.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sabir_testkit::process::{SabirOptions, SabirProcess};
use sabir_testkit::remote::{Operation, RemoteAgent, RemoteTask};
use sabir_testkit::sse::{self, Events, SseFrame};
use serde_json::{Value, json};

use crate::SABIR;

/// For what should happen at once, on a machine that has other things to do.
pub const LIMIT: Duration = Duration::from_secs(20);
const V1: (&str, &str) = ("A2A-Version", "1.0");

pub struct Front {
    options: SabirOptions,
    server: Option<SabirProcess>,
    _folder: tempfile::TempDir,
}

/// The table of an agent in the configuration.
pub fn a2a(id: &str, url: &str, more: &str) -> String {
    format!("[[agent]]\nid = \"{id}\"\nkind = \"a2a\"\nurl = \"{url}\"\n{more}\n")
}

impl Front {
    pub fn of(agent: &RemoteAgent) -> Self {
        Self::with(agent, "")
    }

    /// With more settings of the agent, and of the server behind them.
    pub fn with(agent: &RemoteAgent, settings: &str) -> Self {
        Self::configured(&a2a("friend", &agent.url(), settings))
    }

    pub fn configured(toml: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("sabir.toml"), toml).unwrap();
        let options = SabirOptions::new(SABIR, folder.path())
            .variable("SABIR_SERVER_GRACE", "1s")
            // What a killed process has written is there; nobody pulls the plug.
            .variable("SABIR_STORE_DURABILITY", "process")
            .variable("PUSH_NOTIFICATION_ALLOWED_CIDRS", "127.0.0.0/8");
        let server = Some(options.start());
        Self { options, server, _folder: folder }
    }

    pub fn server(&self) -> &SabirProcess {
        self.server.as_ref().expect("it runs")
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        self.server.take().expect("it runs").kill();
    }

    /// SIGTERM, and waits for the end.
    pub fn stop(&mut self) {
        let mut server = self.server.take().expect("it runs");
        server.terminate();
        assert_eq!(server.wait(LIMIT).code(), Some(0));
    }

    pub fn start(&mut self) {
        self.server = Some(self.options.start());
    }

    pub fn rpc(&self, method: &str, params: Value) -> Value {
        self.ask("/", &[], method, params)
    }

    pub fn ask(&self, path: &str, headers: &[(&str, &str)], method: &str, params: Value) -> Value {
        let headers = [&[V1][..], headers].concat();
        let mut http = self.server().http();
        http.give_up_after(LIMIT * 2);
        http.exchange("POST", path, &headers, request(method, params).as_bytes()).expect("it answers").json()
    }

    /// Sends a message, and waits until the task has ended or asks.
    pub fn send(&self, text: &str) -> Value {
        task_in(self.rpc("SendMessage", message(text)))
    }

    /// Sends a message and does not wait. The id of the task.
    pub fn begin(&self, text: &str) -> String {
        id_of(&task_in(self.rpc("SendMessage", at_once(message(text)))))
    }

    /// Sends a message to a task, and waits like `send`.
    pub fn answer(&self, task: &str, text: &str) -> Value {
        task_in(self.rpc("SendMessage", message_to(task, text)))
    }

    /// The same without waiting.
    pub fn answer_at_once(&self, task: &str, text: &str) -> Value {
        task_in(self.rpc("SendMessage", at_once(message_to(task, text))))
    }

    pub fn task(&self, id: &str) -> Value {
        let answer = self.rpc("GetTask", json!({"id": id}));
        answer["result"].as_object().unwrap_or_else(|| panic!("{answer}"));
        answer["result"].clone()
    }

    /// The whole answer.
    pub fn cancel(&self, id: &str) -> Value {
        self.rpc("CancelTask", json!({"id": id}))
    }

    /// Waits until the task is like this, as `say` says it.
    pub fn until(&self, id: &str, is_so: impl Fn(&str) -> bool) -> String {
        let start = Instant::now();
        loop {
            let said = say(&self.task(id));
            if is_so(&said) {
                return said;
            }
            assert!(start.elapsed() < LIMIT, "waited in vain: {said}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits for the end of the task.
    pub fn until_over(&self, id: &str) -> String {
        self.until(id, is_over)
    }

    pub fn stream(&self, text: &str) -> Events {
        self.open("/", &[], "SendStreamingMessage", message(text))
    }

    /// The events after this one.
    pub fn subscribe(&self, id: &str, after: u64) -> Events {
        self.open("/", &[("Last-Event-ID", &after.to_string())], "SubscribeToTask", json!({"id": id}))
    }

    pub fn open(&self, path: &str, headers: &[(&str, &str)], method: &str, params: Value) -> Events {
        let headers = [&[V1][..], headers].concat();
        let body = request(method, params);
        let opened = sse::open(self.server().address, "POST", path, &headers, body.as_bytes()).unwrap();
        let mut events = opened.unwrap_or_else(|reply| panic!("{}", reply.text()));
        events.give_up_after(LIMIT * 2);
        events
    }
}

fn request(method: &str, params: Value) -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
}

pub fn message(text: &str) -> Value {
    static COUNT: AtomicU64 = AtomicU64::new(1);
    let id = format!("m{}", COUNT.fetch_add(1, Ordering::Relaxed));
    json!({"message": {"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}]}})
}

fn message_to(task: &str, text: &str) -> Value {
    let mut params = message(text);
    params["message"]["taskId"] = json!(task);
    params
}

pub fn at_once(mut params: Value) -> Value {
    params["configuration"] = json!({"returnImmediately": true});
    params
}

pub fn task_in(answer: Value) -> Value {
    assert!(answer["result"]["task"].is_object(), "{answer}");
    answer["result"]["task"].clone()
}

pub fn id_of(task: &Value) -> String {
    task["id"].as_str().unwrap_or_else(|| panic!("{task}")).to_owned()
}

/// A task in a few words: `completed "text of all artifacts" (text of the status)`.
pub fn say(task: &Value) -> String {
    let state = task["status"]["state"].as_str().unwrap_or_default().trim_start_matches("TASK_STATE_");
    let state = state.to_lowercase().replace('_', "-");
    let texts = |parts: &Value| -> String {
        parts.as_array().into_iter().flatten().filter_map(|part| part["text"].as_str()).collect()
    };
    let made: String = task["artifacts"].as_array().into_iter().flatten().map(|made| texts(&made["parts"])).collect();
    let words = texts(&task["status"]["message"]["parts"]);
    let words = if words.is_empty() { String::new() } else { format!(" ({words})") };
    format!("{state} {made:?}{words}")
}

pub fn is_over(said: &str) -> bool {
    ["completed", "failed", "rejected", "canceled"].iter().any(|state| said.starts_with(state))
}

/// What a caller has who reads a stream: the task that its frames make, as `say` says it. Each number is there once and
/// none is missing.
#[derive(Default)]
pub struct Reader {
    pub last: u64,
    pub text: String,
    pub end: Option<String>,
}

impl Reader {
    /// Reads to the end of the stream.
    pub fn finish(mut self, events: &mut Events) -> String {
        while let Some(frame) = events.next_frame().expect("the stream does not break") {
            self.take(&frame);
        }
        format!("{} {:?}", self.end.unwrap_or_else(|| "nothing".to_owned()), self.text)
    }

    /// Reads until the text has so many lines.
    pub fn read_lines(&mut self, events: &mut Events, lines: usize) {
        while self.text.lines().count() < lines {
            let frame = events.next_frame().expect("the stream does not break").expect("there is more");
            self.take(&frame);
        }
    }

    pub fn take(&mut self, frame: &SseFrame) {
        let number = frame.id.expect("every frame has a number");
        assert_eq!(number, self.last + 1, "numbers have no gaps: {}", frame.data);
        self.last = number;
        let payload = frame.payload();
        let update = &payload["artifactUpdate"];
        if update.is_object() {
            if update["append"] != true {
                self.text.clear();
            }
            let parts = update["artifact"]["parts"].as_array().expect("an artifact has parts");
            self.text.extend(parts.iter().filter_map(|part| part["text"].as_str()));
        }
        if let Some(state) = payload["statusUpdate"]["status"]["state"].as_str() {
            self.end = Some(state.trim_start_matches("TASK_STATE_").to_lowercase());
        }
    }
}

/// The one task that the remote agent has.
pub fn only_task(agent: &RemoteAgent) -> RemoteTask {
    assert!(agent.tasks().wait_until(LIMIT, |tasks| !tasks.is_empty()), "the remote agent gets a task");
    let mut tasks = agent.tasks().all();
    assert_eq!(tasks.len(), 1, "the remote agent has one task");
    tasks.remove(0)
}

/// How many messages were sent to the remote agent.
pub fn sends(agent: &RemoteAgent) -> usize {
    agent.count(Operation::Send) + agent.count(Operation::Stream)
}

/// Does this for each row at once, and tells of all that failed.
pub fn for_each<T: Sync>(rows: &[T], name: impl Fn(&T) -> String + Sync, check: impl Fn(&T) + Sync) {
    let failed: Vec<String> = std::thread::scope(|scope| {
        let running: Vec<_> = rows.iter().map(|row| (row, scope.spawn(|| check(row)))).collect();
        running.into_iter().filter_map(|(row, thread)| thread.join().is_err().then(|| name(row))).collect()
    });
    assert!(failed.is_empty(), "failed:\n{}", failed.join("\n"));
}
