//! Nodes with a configuration each on a database of their own.

use std::fs;
use std::time::{Duration, Instant};

use sabir_testkit::http::Http;
use sabir_testkit::postgres::{Postgres, report_skipped};
use sabir_testkit::process::{SabirOptions, SabirProcess};
use sabir_testkit::sse;
use serde_json::{Value, json};

use crate::SABIR;
use crate::client_record;
pub use crate::client_record::request;

pub struct ClusterFixture {
    pub nodes: Vec<Option<SabirProcess>>,
    pub url: String,
    toml: String,
    /// More lines of the section `cluster`.
    cluster: String,
    pub folder: tempfile::TempDir,
}

pub const DEMO: &str = "[[agent]]\nid = \"demo\"\nkind = \"demo\"\n";

/// For what happens at all, however busy the machine is.
pub const LIMIT: Duration = Duration::from_secs(60);

impl ClusterFixture {
    /// Nodes with the demo agent, on the Postgres that all tests of this process share. `None`: there is no Postgres here.
    pub fn demo(nodes: usize) -> Option<Self> {
        Self::with(nodes, DEMO)
    }

    /// Nodes with this configuration. With a grace time shorter than the usual one, a busy machine would also take live nodes for
    /// dead.
    pub fn with(nodes: usize, toml: &str) -> Option<Self> {
        Self::with_cluster(nodes, toml, "")
    }

    /// The same with these lines in the section `cluster`.
    pub fn with_cluster(nodes: usize, toml: &str, cluster: &str) -> Option<Self> {
        let Some(postgres) = Postgres::shared() else {
            report_skipped(1);
            return None;
        };
        Some(Self::on_with(&postgres.fresh_database(), nodes, toml, cluster))
    }

    pub fn on(url: &str, nodes: usize, toml: &str) -> Self {
        Self::on_with(url, nodes, toml, "")
    }

    /// On this database, with these lines in the section `cluster`.
    pub fn on_with(url: &str, nodes: usize, toml: &str, cluster: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (url, toml, cluster) = (url.to_owned(), toml.to_owned(), cluster.to_owned());
        let mut cluster = Self { nodes: Vec::new(), url, toml, cluster, folder };
        for node in 0..nodes {
            cluster.nodes.push(None);
            cluster.start(node);
        }
        cluster
    }

    /// With a further node of this name.
    pub fn with_node(mut self, name: &str) -> Self {
        self.nodes.push(None);
        self.start_as(self.nodes.len() - 1, name);
        self
    }

    /// Starts a node, for the first time or again.
    pub fn start(&mut self, node: usize) {
        self.start_as(node, &format!("n{node}"));
    }

    fn start_as(&mut self, node: usize, name: &str) {
        self.nodes[node] = Some(self.options(name).start());
    }

    /// How the node of this name is started.
    pub fn options(&self, name: &str) -> SabirOptions {
        let folder = self.folder.path().join(name);
        fs::create_dir_all(&folder).unwrap();
        let toml = format!("{}\n[cluster]\nnode_name = {name:?}\n{}\n", self.toml, self.cluster);
        fs::write(folder.join("sabir.toml"), toml).unwrap();
        let mut options = SabirOptions::new(SABIR, &folder);
        options.store = self.url.clone();
        let home = folder.display().to_string();
        options.variable("HOME", &home).variable("XDG_STATE_HOME", &home).variable("XDG_DATA_HOME", &home)
    }

    pub fn node(&self, node: usize) -> &SabirProcess {
        self.nodes[node].as_ref().expect("the node runs")
    }

    /// `kill -9`.
    pub fn kill(&mut self, node: usize) {
        self.nodes[node].take().expect("the node runs").kill();
    }

    pub fn rpc(&self, node: usize, method: &str, params: Value) -> Value {
        self.node(node).rpc(method, params)
    }

    /// Sends a text, answers at once or when the task is at rest. The task.
    pub fn send(&self, node: usize, text: &str, more: Value) -> Value {
        let answer = self.rpc(node, "SendMessage", message(text, more));
        assert!(answer["result"]["task"].is_object(), "{answer}");
        answer["result"]["task"].clone()
    }

    /// A task that works now.
    pub fn working(&self, node: usize, text: &str, more: Value) -> String {
        let mut more = more;
        more["configuration"] = json!({"returnImmediately": true});
        let id = id_of(&self.send(node, text, more));
        self.until_state(node, &id, "TASK_STATE_WORKING");
        id
    }

    pub fn state(&self, node: usize, task: &str) -> String {
        let answer = self.rpc(node, "GetTask", json!({"id": task}));
        answer["result"]["status"]["state"].as_str().unwrap_or_default().to_owned()
    }

    pub fn until_state(&self, node: usize, task: &str, state: &str) {
        let began = Instant::now();
        let mut last = String::new();
        while began.elapsed() < LIMIT {
            last = self.state(node, task);
            if last == state {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("{task} is {last}, not {state}: {}", self.rpc(node, "GetTask", json!({"id": task})));
    }

    /// Cancels a task through any node; returns when its run has stopped.
    #[track_caller]
    pub fn cancel(&self, node: usize, task: &str) {
        let answer = self.rpc(node, "CancelTask", json!({"id": task}));
        assert_eq!(answer["result"]["status"]["state"], "TASK_STATE_CANCELED", "{answer}");
    }

    /// How many tasks are in a state at one moment.
    pub fn total(&self, node: usize, state: &str) -> u64 {
        let answer = self.rpc(node, "ListTasks", json!({"status": state}));
        answer["result"]["totalSize"].as_u64().unwrap_or_else(|| panic!("{answer}"))
    }

    /// Waits until a task works for the second time: another node has taken it over and runs it again.
    pub fn until_works_again(&self, node: usize, task: &str) {
        let mut events = self.subscribe(node, task, Some(0));
        events.give_up_after(LIMIT);
        let mut runs = 0;
        while runs < 2 {
            let frame = events.next_frame().unwrap().unwrap_or_else(|| panic!("{task} is over after {runs} runs"));
            runs += usize::from(frame.data.contains("TASK_STATE_WORKING"));
        }
    }

    /// A stream of the events after a number.
    pub fn subscribe(&self, node: usize, task: &str, after: Option<u64>) -> sse::Events {
        let body = request("SubscribeToTask", json!({"id": task}));
        let after = after.map(|after| after.to_string());
        let mut headers = vec![("A2A-Version", "1.0")];
        headers.extend(after.as_deref().map(|after| ("Last-Event-ID", after)));
        let opened = sse::open(self.node(node).address, "POST", "/", &headers, body.as_bytes()).unwrap();
        opened.unwrap_or_else(|reply| panic!("{task}: {}", reply.text()))
    }

    /// All events of a task after a number, to the end of its run.
    pub fn events(&self, node: usize, task: &str, after: u64) -> Vec<(u64, String)> {
        client_record::events(self.node(node), task, after)
    }

    /// How many transactions the database has had.
    pub fn transactions(&self) -> u64 {
        let sql = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()";
        self.execute(sql).parse().expect("a number")
    }

    /// Runs SQL behind the back of the nodes, on the Postgres that all tests share.
    pub fn execute(&self, sql: &str) -> String {
        Postgres::shared().expect("the nodes use it").execute(&self.url, sql)
    }

    /// Runs SQL again and again until it prints what is expected.
    pub fn until_row(&self, what: &str, sql: &str, expected: &str) {
        let began = Instant::now();
        loop {
            let row = self.execute(sql);
            if row == expected {
                return;
            }
            assert!(began.elapsed() < LIMIT, "waited in vain: {what}: {row:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub fn http(&self, node: usize) -> Http {
        self.node(node).http()
    }
}

/// A message with a fresh id, and what else the request has: members of the message in `message`.
pub fn message(text: &str, mut more: Value) -> Value {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let id = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let mut message = json!({"messageId": format!("m{id}"), "role": "ROLE_USER", "parts": [{"text": text}]});
    if let Some(members) = more["message"].as_object() {
        for (name, value) in members {
            message[name] = value.clone();
        }
    }
    if more.is_null() {
        more = json!({});
    }
    more["message"] = message;
    more
}

/// Looks again and again until it is so.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < LIMIT, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A frame with its number, to be compared byte for byte.
pub fn numbered(frame: sse::SseFrame) -> (u64, String) {
    (frame.id.expect("every frame has a number"), frame.data)
}

pub fn id_of(task: &Value) -> String {
    task["id"].as_str().unwrap_or_else(|| panic!("{task}")).to_owned()
}

/// The error of a server that does not start.
pub fn refusal(options: &SabirOptions) -> String {
    let log = options.folder.join("refusal.log");
    let mut server = options.command().stderr(fs::File::create(&log).unwrap()).spawn().unwrap();
    let began = Instant::now();
    let status = loop {
        if let Some(status) = server.try_wait().unwrap() {
            break status;
        }
        if began.elapsed() > LIMIT {
            server.kill().unwrap();
            server.wait().unwrap();
            panic!("it runs: {}", fs::read_to_string(&log).unwrap());
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let errors = fs::read_to_string(&log).unwrap();
    assert_eq!(status.code(), Some(1), "{errors}");
    errors
}

/// The text of the last status message.
pub fn status_text(task: &Value) -> String {
    task["status"]["message"]["parts"][0]["text"].as_str().unwrap_or_default().to_owned()
}
