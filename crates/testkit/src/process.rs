//! The real program as a child process.
//!
//! If `TESTKIT_NODES` is a number, it is that many nodes behind a balancer instead, by the example `cluster`, on the Postgres
//! of `TESTKIT_POSTGRES_URL`. To a test that looks like one server.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::http::{Http, HttpReply};

const START_LIMIT: Duration = Duration::from_secs(60);
/// What the nodes of a cluster may take to be gone after it.
const NODES_LIMIT: Duration = Duration::from_secs(60);

pub struct SabirProcess {
    child: Child,
    pub address: SocketAddr,
    /// The line that it printed when it was ready.
    pub ready: Value,
}

pub struct SabirOptions {
    pub binary: PathBuf,
    /// The command and what follows it at once: `serve`, or `proxy` and a URL.
    pub words: Vec<String>,
    pub store: String,
    pub arguments: Vec<String>,
    pub environment: Vec<(String, String)>,
    pub folder: PathBuf,
    pub is_local: bool,
}

impl SabirOptions {
    /// `sabir serve` on a free port, with its database in this folder.
    pub fn new(binary: &str, folder: &Path) -> Self {
        Self {
            binary: binary.into(),
            words: vec!["serve".to_owned()],
            store: format!("sqlite:{}", folder.join("sabir.db").display()),
            arguments: Vec::new(),
            environment: Vec::new(),
            folder: folder.to_owned(),
            is_local: false,
        }
    }

    /// `sabir proxy` for this URL instead.
    pub fn proxy(mut self, url: &str) -> Self {
        self.words = vec!["proxy".to_owned(), url.to_owned()];
        self
    }

    /// Also as several nodes it has no `public_url`, with which a server tells strangers less. Its cards may name one node.
    pub fn local(mut self) -> Self {
        self.is_local = true;
        self
    }

    pub fn argument(mut self, argument: &str) -> Self {
        self.arguments.push(argument.to_owned());
        self
    }

    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn command(&self) -> Command {
        let mut command = self.program();
        command
            .args(&self.words)
            .args(["--listen", "127.0.0.1:0", "--store", &self.store])
            .args(&self.arguments)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        command
    }

    /// The binary, or what starts several of it. A server whose store is a Postgres already is a node by itself.
    fn program(&self) -> Command {
        let nodes = std::env::var("TESTKIT_NODES").ok().filter(|_| !self.store.starts_with("postgres:"));
        let Some(nodes) = nodes else { return Command::new(&self.binary) };
        let url = std::env::var("TESTKIT_POSTGRES_URL").expect("TESTKIT_NODES needs TESTKIT_POSTGRES_URL");
        let cluster = self.binary.with_file_name("examples").join("cluster");
        assert!(cluster.is_file(), "cargo build --package sabir-testkit --example cluster");
        let mut command = Command::new(cluster);
        command.arg("--sabir").arg(&self.binary).args(["--nodes", &nodes, "--postgres", &url]);
        command.args(self.is_local.then_some("--local")).arg("--");
        command
    }

    /// Starts it and waits until it is ready.
    pub fn start(&self) -> SabirProcess {
        self.start_with(Stdio::inherit())
    }

    /// The same, with its log going elsewhere.
    pub fn start_with(&self, log: Stdio) -> SabirProcess {
        let mut child = self.command().stderr(log).spawn().expect("the program starts");
        let stdout = child.stdout.take().expect("stdout is piped");
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let mut line = String::new();
            let read = BufReader::new(stdout).read_line(&mut line);
            let _ = sender.send(read.map(|_| line));
        });
        let line = receiver.recv_timeout(START_LIMIT).unwrap_or_else(|_| {
            let _ = child.kill();
            panic!("the program did not say within {START_LIMIT:?} that it is ready")
        });
        let line = line.expect("stdout is text");
        let ready: Value = serde_json::from_str(&line).unwrap_or_else(|error| {
            let _ = child.kill();
            panic!("{error}: expected one line of JSON, got {line:?}")
        });
        let url = ready["url"].as_str().expect("the line has a url");
        let address = url.split_once("://").expect("the url is one").1.parse().expect("the url has an address");
        SabirProcess { child, address, ready }
    }
}

impl SabirProcess {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// `kill -9`, and waits until it is gone.
    pub fn kill(mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
        self.wait_for_nodes();
    }

    /// The nodes of a cluster that was killed are killed a moment later.
    fn wait_for_nodes(&self) {
        let start = Instant::now();
        for node in self.ready["nodes"].as_array().into_iter().flatten() {
            // What has ended and is not waited for has no command line any more.
            let command_line = format!("/proc/{}/cmdline", node["pid"]);
            while std::fs::read(&command_line).is_ok_and(|line| !line.is_empty()) {
                if start.elapsed() >= NODES_LIMIT {
                    // During a panic, another one would abort the process before it says which test has failed.
                    assert!(thread::panicking(), "node {node} was killed and still runs after {NODES_LIMIT:?}");
                    return;
                }
                thread::sleep(Duration::from_millis(5));
            }
        }
    }

    /// SIGTERM.
    pub fn terminate(&self) {
        self.signal("TERM");
    }

    /// A signal by its name, such as `HUP`.
    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let status = Command::new("kill").args([&format!("-{name}"), &pid]).status().expect("kill is there");
        assert!(status.success(), "cannot signal {pid}");
    }

    /// Waits for its end.
    pub fn wait(&mut self, limit: Duration) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("it can be waited for") {
                return status;
            }
            assert!(start.elapsed() < limit, "it did not end within {limit:?}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn http(&self) -> Http {
        Http::connect(self.address).expect("it accepts connections")
    }

    pub fn get(&self, path: &str) -> HttpReply {
        self.http().exchange("GET", path, &[], b"").expect("it answers")
    }

    /// A JSON-RPC call of A2A 1.0; the whole answer.
    pub fn rpc(&self, method: &str, params: Value) -> Value {
        let request = serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let body = request.to_string();
        self.http().exchange("POST", "/", &[("A2A-Version", "1.0")], body.as_bytes()).expect("it answers").json()
    }

    /// Resident memory now, in bytes.
    pub fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or("VmRSS: 0 kB");
        line.split_whitespace().nth(1).and_then(|kilobytes| kilobytes.parse::<u64>().ok()).unwrap_or(0) * 1024
    }

    /// Waits until `check` gives something.
    pub fn until<T>(&self, what: &str, mut check: impl FnMut(&Self) -> Option<T>) -> T {
        let start = Instant::now();
        loop {
            if let Some(found) = check(self) {
                return found;
            }
            assert!(start.elapsed() < START_LIMIT, "waited in vain: {what}");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for SabirProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.wait_for_nodes();
    }
}
