//! Several nodes of the real program on one Postgres, behind the balancer, that together look like one `sabir serve`.
//!
//! It takes the arguments of `sabir serve`, prints one JSON line when all nodes are ready, passes signals on to every node, and
//! ends when they have ended. So suites that were written for one server run against three, unchanged.
//!
//! ```text
//! client -> balancer (--listen) -> node n0, n1, n2 (free ports) -> a database of --postgres
//! ```
//!
//! A `Watchdog` kills each node when this process is gone, however it ended.

mod arguments;
mod database;
mod node;

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use rustix::process::getppid;
use sabir_testkit::balancer::{Balanced, Balancer};
use serde_json::{Value, json};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::arguments::{Arguments, HELP};
use crate::database::Database;
use crate::node::{Node, NotStarted};

/// How often it looks whether a node or its own parent is gone.
const LOOK: Duration = Duration::from_millis(20);

fn main() -> ExitCode {
    let Some(arguments) = Arguments::parse(std::env::args().skip(1)) else {
        eprintln!("{HELP}");
        return ExitCode::from(2);
    };
    match run(&arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("cluster: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<ExitCode, String> {
    let database = Database::open(&arguments.postgres, arguments.store.as_deref())?;
    let balanced = if arguments.is_tls { Balanced::Connections } else { Balanced::Requests };
    let listen = |address| {
        Balancer::listen(address, balanced, &[]).map_err(|error| format!("cannot listen on {address}: {error}"))
    };
    let balancers = arguments.listen.iter().copied().map(listen).collect::<Result<Vec<_>, _>>()?;
    let scheme = if arguments.is_tls { "https" } else { "http" };
    let urls: Vec<String> = balancers.iter().map(|balancer| format!("{scheme}://{}", balancer.address())).collect();

    let mut nodes = match start_nodes(arguments, &database, &urls[0]) {
        Ok(nodes) => nodes,
        // It has said why.
        Err(NotStarted::Ended(code)) => return Ok(ExitCode::from(code)),
        Err(NotStarted::Failed(error)) => return Err(error),
    };
    let backends: Vec<_> = nodes.iter().map(Node::address).collect();
    for balancer in &balancers {
        balancer.set_backends(&backends);
    }
    let parent = getppid();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
    runtime.block_on(async {
        let mut signals = Signals::new().map_err(|error| error.to_string())?;
        println!("{}", ready_line(&nodes, &urls));
        let mut is_stopping = false;
        loop {
            tokio::select! {
                name = signals.next() => {
                    is_stopping |= name != "HUP";
                    nodes.iter().for_each(|node| node.signal(name));
                }
                () = tokio::time::sleep(LOOK) => {}
            }
            // The watchdogs end the nodes.
            if getppid() != parent {
                return Err("its parent is gone".to_owned());
            }
            let ended: Vec<(&str, u8)> = nodes.iter_mut().filter_map(Node::ended).collect();
            if let Some((name, code)) = ended.first().filter(|_| !is_stopping) {
                return Err(format!("node {name} ended by itself with {code}"));
            }
            if ended.len() == arguments.nodes {
                let worst = ended.iter().map(|(_, code)| *code).max().unwrap_or_default();
                return Ok(ExitCode::from(worst));
            }
        }
    })
}

/// The first one alone, since it makes the schema, and says what is wrong with the arguments.
fn start_nodes(arguments: &Arguments, database: &Database, url: &str) -> Result<Vec<Node>, NotStarted> {
    let own_url = (arguments.is_public && has_no_public_url(arguments)).then_some(url);
    let folder = |number: usize| database.folder().join(format!("n{number}"));
    let spawn = |number| Node::spawn(arguments, number, &database.url, &folder(number), own_url, database.temporary());
    let mut first = spawn(0)?;
    first.wait_until_ready()?;
    if let Some(authority) = first.ready["ca"].as_str().map(Path::new) {
        for number in 1..arguments.nodes {
            share_certificate(authority, &folder(number)).map_err(|error| NotStarted::Failed(error.to_string()))?;
        }
    }
    let mut nodes = vec![first];
    for number in 1..arguments.nodes {
        nodes.push(spawn(number)?);
    }
    for node in &mut nodes[1..] {
        node.wait_until_ready()?;
    }
    Ok(nodes)
}

/// Whether nobody says under which address clients reach the server, so that the balancer's has to be said.
fn has_no_public_url(arguments: &Arguments) -> bool {
    let mut config = Command::new(&arguments.sabir);
    let shown = config.arg("config").args(&arguments.others).stdin(Stdio::null()).stderr(Stdio::null()).output();
    let text = shown.map(|output| output.stdout).unwrap_or_default();
    let settings: Vec<Value> = serde_json::from_slice(&text).unwrap_or_default();
    let source = settings.iter().find(|row| row["key"] == "server.public_url").map(|row| &row["source"]);
    source.is_none_or(|source| source == "default")
}

/// Nodes with `--dev-tls` would make one each, but clients trust the authority of the first.
fn share_certificate(authority: &Path, folder: &Path) -> std::io::Result<()> {
    let Some(from) = authority.parent() else { return Ok(()) };
    let to = folder.join(from.file_name().unwrap_or_default());
    fs::create_dir_all(&to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

/// That of the first node, with the addresses of the balancer.
fn ready_line(nodes: &[Node], urls: &[String]) -> Value {
    let mut line = nodes[0].ready.clone();
    line["url"] = json!(urls[0]);
    line["urls"] = json!(urls);
    line["card"] = json!(format!("{}/.well-known/agent-card.json", urls[0]));
    line["pid"] = json!(std::process::id());
    line["nodes"] =
        nodes.iter().map(|node| json!({"node": node.name, "url": node.ready["url"], "pid": node.pid()})).collect();
    line
}

/// What is passed on.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "TERM",
            _ = self.interrupt.recv() => "INT",
            _ = self.hang_up.recv() => "HUP",
        }
    }
}
