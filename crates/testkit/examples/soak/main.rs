//! A soak run: mixed traffic in every dialect against a server that is killed and started again, and then every
//! promise is checked against what clients were told. A part of the time the disk is full now and then.
//!
//! `cargo xtask soak` builds the server and runs this.

mod phase;
mod scenarios;
mod small_disk;

mod agents;
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

use crate::phase::Phase;
use crate::small_disk::SmallDisk;
use crate::upstreams::Upstreams;

const HELP: &str = "usage: soak --sabir PATH [--minutes N] [--seed N]";

/// The part of the time in which the disk is full now and then.
const FULL_DISK_SHARE: f64 = 0.15;

struct Arguments {
    sabir: PathBuf,
    time: Duration,
    seed: u64,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some(arguments) = arguments(&words) else {
        eprintln!("{HELP}");
        return ExitCode::from(2);
    };
    if let Some(code) = small_disk::run_where_one_can_be_made() {
        return code;
    }
    println!("soaking for {:.1} min with --seed {}", arguments.time.as_secs_f64() / 60.0, arguments.seed);
    let folder = tempfile::tempdir().expect("there is room for a store");
    soak(&arguments, folder.path());
    if promise::breaks() > 0 {
        println!("the server's logs and its first store are kept in {}", folder.keep().display());
    }
    if promise::print() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn arguments(words: &[String]) -> Option<Arguments> {
    let random = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.subsec_nanos());
    let mut arguments = Arguments { sabir: PathBuf::new(), time: Duration::from_secs(60), seed: random.into() };
    for pair in words.chunks(2) {
        let [name, value] = pair else { return None };
        match name.as_str() {
            // The server is started in another folder.
            "--sabir" => arguments.sabir = std::path::absolute(value).ok()?,
            "--minutes" => {
                let minutes: f64 = value.parse().ok().filter(|minutes| (0.05..=10_000.0).contains(minutes))?;
                arguments.time = Duration::from_secs_f64(minutes * 60.0);
            }
            "--seed" => arguments.seed = value.parse().ok()?,
            _ => return None,
        }
    }
    (!arguments.sabir.as_os_str().is_empty()).then_some(arguments)
}

fn soak(arguments: &Arguments, folder: &Path) {
    let make = |name: &str, upstreams: &Upstreams| {
        let folder = folder.join(name);
        fs::create_dir(&folder).expect("a new folder can be made");
        agents::set_up(&folder, upstreams).expect("the agents can be set up");
        folder
    };
    let Arguments { sabir, time, seed } = arguments;
    let full_disk_time = time.mul_f64(FULL_DISK_SHARE);

    let upstreams = Upstreams::start(*seed);
    let folder = make("restarts", &upstreams);
    let store = folder.join("sabir.db");
    let phase = Phase { name: "restarts", sabir, folder: &folder, store: &store, upstreams: &upstreams, seed: *seed };
    phase.run(|traffic| scenarios::restart_often(traffic, *time - full_disk_time, *seed));

    let seed = seed.wrapping_add(1);
    let upstreams = Upstreams::start(seed);
    let folder = make("full-disk", &upstreams);
    match SmallDisk::make(&folder.join("disk")) {
        Ok(disk) => {
            let store = disk.folder.join("sabir.db");
            let phase = Phase { name: "full disk", sabir, folder: &folder, store: &store, upstreams: &upstreams, seed };
            phase.run(|traffic| scenarios::fill_disk_often(traffic, &disk, full_disk_time, seed));
        }
        Err(reason) => promise::skip(&[&promise::FULL, &promise::ROOM], &reason),
    }
}
