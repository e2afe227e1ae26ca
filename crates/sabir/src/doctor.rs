//! `sabir doctor`: looks at everything that a server needs, and says what is wrong and what to do about it.
//!
//! Each check runs on a thread of its own and has a time limit, so that something that does not answer (a dead network file
//! system, a database behind a firewall) is a finding and not the end of the command. No check changes anything.

mod agents;
mod certificates;
mod clock;
mod configuration;
mod finding;
mod limits;
mod port_owner;
mod ports;
mod server;
mod store;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::address_file::{self, ServerAddress};
use crate::cli::DoctorOptions;
use crate::config::{LoadedConfig, Problems};
use crate::hosting::Surroundings;

pub use finding::Report;
use finding::{Area, Finding};

/// What is looked at.
struct Subject {
    loaded: LoadedConfig,
    surroundings: Surroundings,
    options: DoctorOptions,
    /// The server that runs with the store of the configuration.
    running: Option<ServerAddress>,
    /// Its process, if it can be seen.
    pid: Option<u32>,
}

/// Looks at a configuration and all that it needs. `prepare` makes what agents need of this machine.
pub fn run(
    options: &DoctorOptions,
    loaded: Result<LoadedConfig, Problems>,
    prepare: impl FnOnce(&LoadedConfig) -> anyhow::Result<Surroundings>,
) -> anyhow::Result<Report> {
    let limit = Duration::from_secs(options.timeout);
    let loaded = match loaded {
        Ok(loaded) => loaded,
        Err(Problems(problems)) => {
            let mut findings = configuration::unreadable(&problems);
            findings.extend(run_checks(vec![Check::new(Area::Clock, limit, clock::check)]));
            return Ok(Report { findings });
        }
    };
    let surroundings = prepare(&loaded)?;
    let running = loaded.config.store.local_file().as_deref().and_then(address_file::read);
    let pid = running.as_ref().and_then(|running| port_owner::of_url(&running.url)).map(|owner| owner.pid);
    let subject = Arc::new(Subject { loaded, surroundings, options: options.clone(), running, pid });
    let check = |area: Area, check: fn(&Subject) -> Vec<Finding>| {
        let subject = subject.clone();
        Check::new(area, limit, move || check(&subject))
    };
    let mut checks = vec![
        check(Area::Configuration, configuration::check),
        check(Area::Store, store::check),
        check(Area::Ports, ports::check),
        Check::new(Area::Clock, limit, clock::check),
        check(Area::Limits, limits::check),
        check(Area::Certificates, certificates::check),
        check(Area::Server, server::check),
    ];
    for place in 0..subject.loaded.config.all_agents().count() {
        let subject = subject.clone();
        checks.push(Check::new(Area::Agents, limit, move || agents::check(&subject, place)));
    }
    if options.ask_agents {
        let subject = subject.clone();
        checks.push(Check::new(Area::Agents, limit + agents::ASKING, move || agents::ask(&subject)));
    }
    Ok(Report { findings: run_checks(checks) })
}

/// One check, and how long it may take.
struct Check {
    area: Area,
    limit: Duration,
    work: Box<dyn FnOnce() -> Vec<Finding> + Send>,
}

impl Check {
    fn new(area: Area, limit: Duration, work: impl FnOnce() -> Vec<Finding> + Send + 'static) -> Self {
        Self { area, limit, work: Box::new(work) }
    }
}

/// All at the same time; their findings in the order of the areas. A check that takes too long is left alone: it ends with the
/// process.
fn run_checks(checks: Vec<Check>) -> Vec<Finding> {
    let start = Instant::now();
    let running: Vec<(Area, Duration, Receiver<Vec<Finding>>)> = checks
        .into_iter()
        .map(|Check { area, limit, work }| {
            let (sender, receiver) = channel();
            thread::spawn(move || drop(sender.send(work())));
            (area, limit, receiver)
        })
        .collect();
    let mut findings = Vec::new();
    for (area, limit, receiver) in running {
        match receiver.recv_timeout(limit.saturating_sub(start.elapsed())) {
            Ok(found) => findings.extend(found),
            Err(RecvTimeoutError::Timeout) => {
                let what = format!("this check did not end within {} seconds", limit.as_secs());
                findings.push(Finding::problem(area, what, "see what it waits for, or give it longer with --timeout"));
            }
            Err(RecvTimeoutError::Disconnected) => {
                findings.push(Finding::problem(area, "this check broke off", "please report this as a bug"));
            }
        }
    }
    findings.sort_by_key(|finding| finding.area);
    findings
}
