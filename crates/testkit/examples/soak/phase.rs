//! One phase of the run: a server and its clients for a while, then the check of everything that clients were told.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use sabir_testkit::process::SabirProcess;

use crate::agents::Records;
use crate::checker::Checker;
use crate::client::Client;
use crate::ledger::Ledger;
use crate::pools::Pools;
use crate::promise;
use crate::random::Random;
use crate::sampler::{Sample, Sampler};
use crate::server_processes::{How, ServerProcesses, ServerStore, Settings};
use crate::upstreams::Upstreams;
use crate::webhook_receiver::WebhookReceivers;

pub const CLIENTS: u64 = 40;

pub struct Phase<'a> {
    pub name: &'static str,
    pub sabir: &'a Path,
    /// Where the server works and its log is.
    pub folder: &'a Path,
    pub upstreams: &'a Upstreams,
    pub seed: u64,
}

/// What the clients of a phase share.
pub struct Traffic<'a> {
    pub processes: &'a ServerProcesses,
    pub ledger: &'a Ledger,
    pub pools: &'a Pools,
    pub sampler: &'a Sampler,
    pub receivers: &'a WebhookReceivers,
}

impl<'a> Traffic<'a> {
    /// One more client. Its names begin with this one.
    pub fn client(&self, name: String, seed: u64) -> Client<'a> {
        let Traffic { processes, ledger, pools, receivers, .. } = *self;
        Client { processes, ledger, pools, receivers, random: Random::new(seed), name, count: 0, connection: None }
    }
}

/// The server process in which the traffic ends, or those of all nodes.
pub struct LastProcess {
    pub servers: Vec<SabirProcess>,
    /// The first one's memory and files at its start.
    pub at_start: Option<Sample>,
}

impl Phase<'_> {
    /// Runs the clients while the scenario decides what becomes of the server.
    pub fn run(&self, store: ServerStore, scenario: impl FnOnce(&Traffic<'_>) -> LastProcess) {
        let (ledger, pools, sampler) = (Ledger::default(), Pools::default(), Sampler::default());
        let processes = ServerProcesses::new(self.sabir, self.folder, store);
        let receivers = WebhookReceivers::start(self.seed);
        let traffic =
            Traffic { processes: &processes, ledger: &ledger, pools: &pools, sampler: &sampler, receivers: &receivers };
        thread::scope(|scope| {
            let _over = processes.over_when_dropped();
            scope.spawn(|| sampler.run(&processes, self.upstreams));
            scope.spawn(|| self.upstreams.run(&processes));
            scope.spawn(|| self.report(&traffic));
            let mut clients = Vec::new();
            for number in 0..CLIENTS {
                let mut client = traffic.client(format!("{:x}-{number}", self.seed), self.seed ^ ((number + 1) << 32));
                clients.push(scope.spawn(move || client.run_until_over()));
            }
            let LastProcess { servers, at_start } = scenario(&traffic);
            processes.is_over.store(true, Ordering::SeqCst);
            for client in clients {
                client.join().expect("clients do not panic");
            }
            sampler.check_process(servers[0].pid().into(), at_start, self.upstreams);
            for server in servers {
                processes.end(server, How::Stopped);
            }
        });
        self.check(&traffic);
        check_log(&traffic);
    }

    fn check(&self, Traffic { processes, ledger, sampler, receivers, .. }: &Traffic<'_>) {
        let entries = ledger.entries();
        let servers = processes.start_all(Settings::PLAIN);
        let all = processes.so_far();
        println!(
            "{}: {} tasks and {} frames seen, {} server processes; at most {} MiB; checking",
            self.name,
            entries.tasks.len(),
            entries.frames,
            all.len() - servers.len(),
            sampler.most().map_or(0, |sample| sample.resident >> 20)
        );
        let (address, _) = processes.server().expect("it is there");
        let records = Records::read(self.folder);
        let (upstreams, seed) = (self.upstreams, self.seed);
        Checker { address, entries: &entries, processes: &all, records, receivers, upstreams, seed }.check();
        for server in servers {
            processes.end(server, How::Stopped);
        }
    }

    /// A line on a terminal that says how far it is.
    fn report(&self, Traffic { processes, ledger, sampler, .. }: &Traffic<'_>) {
        let mut terminal = std::io::stderr();
        if !terminal.is_terminal() {
            return;
        }
        let began = Instant::now();
        let mut ticks = 0;
        while !processes.is_over() {
            thread::sleep(Duration::from_millis(250));
            ticks += 1;
            if ticks % 8 == 0 {
                let (tasks, frames) = {
                    let entries = ledger.entries();
                    (entries.tasks.len(), entries.frames)
                };
                let most = sampler.most().map_or(0, |sample| sample.resident >> 20);
                let (name, seconds, breaks) = (self.name, began.elapsed().as_secs(), promise::breaks());
                let count = processes.so_far().len();
                let _ = write!(
                    terminal,
                    "\r{name}, {seconds} s: {tasks} tasks, {frames} frames, server process {count}, {most} MiB, \
                     {breaks} faults "
                );
            }
        }
        let _ = writeln!(terminal);
    }
}

/// The server's log has no error in it, but for what it must say of a full disk.
fn check_log(Traffic { processes, .. }: &Traffic<'_>) {
    let text = std::fs::read(&processes.log).unwrap_or_default();
    for line in String::from_utf8_lossy(&text).lines() {
        let is_expected = processes.was_full_since(0) && line.contains(" is full");
        let is_bad = (line.contains("ERROR") && !is_expected) || line.contains("panicked");
        promise::QUIET.check(!is_bad, || line.to_owned());
    }
}
