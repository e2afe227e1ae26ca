//! One server and its clients for a while, and then everything that was told is checked.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use sabir_testkit::process::Sabir;

use crate::agents::Records;
use crate::client::Client;
use crate::ledger::Ledger;
use crate::lives::{How, Lives, Settings};
use crate::pools::Pools;
use crate::promise;
use crate::random::Random;
use crate::sampler::{Sample, Sampler};
use crate::verify::Checker;

pub const CLIENTS: u64 = 40;

pub struct Phase<'a> {
    pub name: &'static str,
    pub sabir: &'a Path,
    /// Where the server works and its log is.
    pub folder: &'a Path,
    pub store: &'a Path,
    pub seed: u64,
}

/// What goes on in a phase.
pub struct Traffic<'a> {
    pub lives: &'a Lives,
    pub ledger: &'a Ledger,
    pub pools: &'a Pools,
    pub sampler: &'a Sampler,
}

impl<'a> Traffic<'a> {
    /// One more client. Its names begin with this one.
    pub fn client(&self, name: String, seed: u64) -> Client<'a> {
        let Traffic { lives, ledger, pools, .. } = *self;
        Client { lives, ledger, pools, random: Random::new(seed), name, count: 0, connection: None }
    }
}

/// The life in which the traffic ends.
pub struct LastLife {
    pub server: Sabir,
    /// What it held when it began.
    pub at_start: Option<Sample>,
}

impl Phase<'_> {
    /// Runs the clients while the course decides what becomes of the server.
    pub fn run(&self, course: impl FnOnce(&Traffic<'_>) -> LastLife) {
        let (ledger, pools, sampler) = (Ledger::default(), Pools::default(), Sampler::default());
        let lives = Lives::new(self.sabir, self.folder, self.store);
        let traffic = Traffic { lives: &lives, ledger: &ledger, pools: &pools, sampler: &sampler };
        thread::scope(|scope| {
            let _over = lives.over_when_dropped();
            scope.spawn(|| sampler.run(&lives));
            scope.spawn(|| self.report(&traffic));
            let mut clients = Vec::new();
            for number in 0..CLIENTS {
                let mut client = traffic.client(format!("{:x}-{number}", self.seed), self.seed ^ ((number + 1) << 32));
                clients.push(scope.spawn(move || client.live()));
            }
            let LastLife { server, at_start } = course(&traffic);
            lives.is_over.store(true, Ordering::SeqCst);
            for client in clients {
                client.join().expect("clients do not panic");
            }
            sampler.check_life(server.pid().into(), at_start);
            lives.end(server, How::Stopped);
        });
        self.check(&traffic);
        check_log(&traffic);
    }

    fn check(&self, Traffic { lives, ledger, sampler, .. }: &Traffic<'_>) {
        let books = ledger.books();
        let server = lives.start(Settings::PLAIN);
        let all = lives.so_far();
        println!(
            "{}: {} tasks and {} frames seen, {} lives; at most {} MiB; checking",
            self.name,
            books.tasks.len(),
            books.frames,
            all.len() - 1,
            sampler.most().map_or(0, |sample| sample.resident >> 20)
        );
        let (address, records) = (server.address, Records::read(self.folder));
        Checker { address, books: &books, lives: &all, records, seed: self.seed }.check();
        lives.end(server, How::Stopped);
    }

    /// A line on a terminal that says how far it is.
    fn report(&self, Traffic { lives, ledger, sampler, .. }: &Traffic<'_>) {
        let mut terminal = std::io::stderr();
        if !terminal.is_terminal() {
            return;
        }
        let began = Instant::now();
        let mut ticks = 0;
        while !lives.is_over() {
            thread::sleep(Duration::from_millis(250));
            ticks += 1;
            if ticks % 8 == 0 {
                let (tasks, frames) = {
                    let books = ledger.books();
                    (books.tasks.len(), books.frames)
                };
                let most = sampler.most().map_or(0, |sample| sample.resident >> 20);
                let (name, seconds, breaks) = (self.name, began.elapsed().as_secs(), promise::breaks());
                let count = lives.so_far().len();
                let _ = write!(
                    terminal,
                    "\r{name}, {seconds} s: {tasks} tasks, {frames} frames, life {count} of the server, {most} MiB, \
                     {breaks} faults "
                );
            }
        }
        let _ = writeln!(terminal);
    }
}

/// The server's log has no error in it, but for what it must say of a full disk.
fn check_log(Traffic { lives, .. }: &Traffic<'_>) {
    let text = std::fs::read(&lives.log).unwrap_or_default();
    for line in String::from_utf8_lossy(&text).lines() {
        let is_expected = lives.was_full_since(0) && line.contains(" is full");
        let is_bad = (line.contains("ERROR") && !is_expected) || line.contains("panicked");
        promise::QUIET.check(!is_bad, || line.to_owned());
    }
}
