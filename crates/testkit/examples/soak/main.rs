//! A soak run: mixed traffic in every dialect against a server that is killed and started again, and then every
//! promise is checked against what clients were told. A part of the time the disk is full now and then.
//!
//! `cargo xtask soak` builds the server and runs this.

mod phase;
mod scenarios;
mod small_disk;

mod agents;
mod nodes;
mod sampler;
mod server_processes;
mod upstream_faults;
mod upstreams;
mod webhook_receiver;

mod client;
mod client_actions;
mod dialect_client;
mod follow_up;
mod pools;
mod random;
mod webhook_actions;

mod ledger;
mod promise;

mod check_fronts;
mod check_program;
mod check_webhooks;
mod checker;
mod checker_connection;
mod front_log;
mod interruptions;
mod log_parser;
mod made_text;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::nodes::Nodes;
use crate::phase::Phase;
use crate::server_processes::ServerStore;
use crate::small_disk::SmallDisk;
use crate::upstreams::Upstreams;

const HELP: &str = "usage: soak --sabir PATH [--minutes N] [--seed N] [--store sqlite|postgres [--nodes N]]";

/// The part of the time in which the disk is full now and then.
const FULL_DISK_SHARE: f64 = 0.15;

struct Arguments {
    sabir: PathBuf,
    time: Duration,
    seed: u64,
    /// How many nodes share a Postgres; none with SQLite.
    nodes: Option<usize>,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some(arguments) = arguments(&words) else {
        eprintln!("{HELP}");
        return ExitCode::from(2);
    };
    if let Some(code) = arguments.nodes.is_none().then(small_disk::run_where_one_can_be_made).flatten() {
        return code;
    }
    println!("soaking for {:.1} min with --seed {}", arguments.time.as_secs_f64() / 60.0, arguments.seed);
    let folder = tempfile::tempdir().expect("there is room for a store");
    match arguments.nodes {
        Some(count) => soak_nodes(&arguments, count, folder.path()),
        None => soak(&arguments, folder.path()),
    }
    if promise::breaks() > 0 {
        println!("the server's logs and its first store are kept in {}", folder.keep().display());
    }
    if promise::print() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn arguments(words: &[String]) -> Option<Arguments> {
    let random = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.subsec_nanos());
    let mut arguments =
        Arguments { sabir: PathBuf::new(), time: Duration::from_secs(60), seed: random.into(), nodes: None };
    let (mut is_postgres, mut nodes) = (false, None);
    for pair in words.chunks(2) {
        let [name, value] = pair else { return None };
        match name.as_str() {
            // The server is started in another folder.
            "--sabir" => arguments.sabir = std::path::absolute(value).ok()?,
            "--minutes" => {
                let minutes: f64 = value.parse().ok().filter(|minutes| (0.05..=10_000.0).contains(minutes))?;
                arguments.time = Duration::from_secs_f64(minutes * 60.0);
            }
            "--store" => {
                is_postgres = matches!(value.as_str(), "sqlite" | "postgres").then_some(value == "postgres")?
            }
            "--nodes" => nodes = Some(value.parse().ok().filter(|nodes| (2..=20).contains(nodes))?),
            "--seed" => arguments.seed = value.parse().ok()?,
            _ => return None,
        }
    }
    if nodes.is_some() && !is_postgres {
        return None;
    }
    arguments.nodes = is_postgres.then(|| nodes.unwrap_or(3));
    (!arguments.sabir.as_os_str().is_empty()).then_some(arguments)
}

/// The folder of a phase, with its agents.
fn make(folder: &Path, name: &str, upstreams: &Upstreams) -> PathBuf {
    let folder = folder.join(name);
    fs::create_dir(&folder).expect("a new folder can be made");
    agents::set_up(&folder, upstreams).expect("the agents can be set up");
    folder
}

/// Nodes that end one after the other. Their disk is the database's, so it is not filled.
fn soak_nodes(Arguments { sabir, time, seed, .. }: &Arguments, count: usize, folder: &Path) {
    promise::skip(&[&promise::FULL, &promise::ROOM], "the store is a Postgres");
    promise::skip(&[&promise::SWEPT], "the nodes keep all tasks");
    let nodes = Nodes::new(count).expect("Postgres is installed: apt-get install -y postgresql");
    let upstreams = Upstreams::start(*seed);
    let folder = make(folder, "nodes", &upstreams);
    let phase = Phase { name: "nodes", sabir, folder: &folder, upstreams: &upstreams, seed: *seed };
    phase.run(ServerStore::Shared(Box::new(nodes)), |traffic| scenarios::restart_nodes_often(traffic, *time, *seed));
}

fn soak(Arguments { sabir, time, seed, .. }: &Arguments, folder: &Path) {
    let full_disk_time = time.mul_f64(FULL_DISK_SHARE);

    let upstreams = Upstreams::start(*seed);
    let restarts_folder = make(folder, "restarts", &upstreams);
    let store = ServerStore::File(restarts_folder.join("sabir.db"));
    let phase = Phase { name: "restarts", sabir, folder: &restarts_folder, upstreams: &upstreams, seed: *seed };
    phase.run(store, |traffic| scenarios::restart_often(traffic, *time - full_disk_time, *seed));

    let seed = seed.wrapping_add(1);
    let upstreams = Upstreams::start(seed);
    let folder = make(folder, "full-disk", &upstreams);
    match SmallDisk::make(&folder.join("disk")) {
        Ok(disk) => {
            let store = ServerStore::File(disk.folder.join("sabir.db"));
            let phase = Phase { name: "full disk", sabir, folder: &folder, upstreams: &upstreams, seed };
            phase.run(store, |traffic| scenarios::fill_disk_often(traffic, &disk, full_disk_time, seed));
        }
        Err(reason) => promise::skip(&[&promise::FULL, &promise::ROOM], &reason),
    }
}
