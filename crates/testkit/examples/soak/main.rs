//! A soak run: mixed traffic in every dialect against a server that is killed and started again, and then every
//! promise is checked against what clients were told.
//!
//! `cargo xtask soak` builds the server and runs this.

mod client;
mod habits;
mod ledger;
mod lives;
mod pools;
mod promise;
mod random;
mod sampler;
mod story;
mod tongue;
mod verify;

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::client::Client;
use crate::ledger::Ledger;
use crate::lives::{How, Lives};
use crate::pools::Pools;
use crate::random::Random;
use crate::sampler::Sampler;
use crate::verify::Checker;

const CLIENTS: u64 = 40;
const HELP: &str = "usage: soak --sabir PATH [--minutes N] [--seed N]";

struct Arguments {
    sabir: String,
    time: Duration,
    seed: u64,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some(arguments) = arguments(&words) else {
        eprintln!("{HELP}");
        return ExitCode::from(2);
    };
    println!("soaking for {:.1} min with --seed {}", arguments.time.as_secs_f64() / 60.0, arguments.seed);
    let folder = tempfile::tempdir().expect("there is room for a store");
    soak(&arguments, folder.path());
    if promise::breaks() > 0 {
        println!("the server's log and store are kept in {}", folder.keep().display());
    }
    if promise::print() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn arguments(words: &[String]) -> Option<Arguments> {
    let random = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.subsec_nanos());
    let mut arguments = Arguments { sabir: String::new(), time: Duration::from_secs(60), seed: random.into() };
    for pair in words.chunks(2) {
        let [name, value] = pair else { return None };
        match name.as_str() {
            "--sabir" => arguments.sabir = value.clone(),
            "--minutes" => {
                let minutes: f64 = value.parse().ok().filter(|minutes| (0.05..=10_000.0).contains(minutes))?;
                arguments.time = Duration::from_secs_f64(minutes * 60.0);
            }
            "--seed" => arguments.seed = value.parse().ok()?,
            _ => return None,
        }
    }
    (!arguments.sabir.is_empty()).then_some(arguments)
}

fn soak(arguments: &Arguments, folder: &Path) {
    let (ledger, pools, sampler) = (Ledger::default(), Pools::default(), Sampler::default());
    let lives = Lives::new(&arguments.sabir, folder);
    thread::scope(|scope| {
        scope.spawn(|| sampler.run(&lives));
        scope.spawn(|| report(&lives, &ledger, &sampler));
        let mut clients = Vec::new();
        for number in 0..CLIENTS {
            let name = format!("{:x}-{number}", arguments.seed);
            let random = Random::new(arguments.seed ^ ((number + 1) << 32));
            let (lives, ledger, pools) = (&lives, &ledger, &pools);
            let mut client = Client { lives, ledger, pools, random, name, count: 0, connection: None };
            clients.push(scope.spawn(move || client.live()));
        }
        let began = Instant::now();
        die_often(&lives, began + arguments.time.mul_f64(0.7), arguments.seed);
        // The last life is a long one, and shows what grows.
        let server = lives.start();
        let at_start = sampler::sample(server.pid().into());
        thread::sleep((began + arguments.time).saturating_duration_since(Instant::now()));
        lives.is_over.store(true, Ordering::SeqCst);
        for client in clients {
            client.join().expect("clients do not panic");
        }
        sampler.check_life(server.pid().into(), at_start);
        lives.end(server, How::Stopped);
    });
    let books = ledger.books();
    let server = lives.start();
    {
        let ends = lives.ends.lock().expect("nobody panics over it").clone();
        println!(
            "{} tasks and {} frames seen, {} lives; at most {} MiB; checking",
            books.tasks.len(),
            books.frames,
            ends.len(),
            sampler.most().map_or(0, |sample| sample.resident >> 20)
        );
        Checker { address: server.address, books: &books, ends: &ends, seed: arguments.seed }.check();
    }
    lives.end(server, How::Stopped);
    check_log(&lives.log);
}

/// Lives of random lengths, most of which end by `kill -9`.
fn die_often(lives: &Lives, until: Instant, seed: u64) {
    let mut random = Random::new(seed);
    while Instant::now() < until {
        let server = lives.start();
        let time = random.weighted(&[(3, (20, 500)), (4, (500, 3000)), (2, (3000, 8000))]);
        thread::sleep(Duration::from_millis(random.between(time.0, time.1)).min(until - Instant::now()));
        let how = if random.percent(75) { How::Killed } else { How::Stopped };
        lives.end(server, how);
        thread::sleep(Duration::from_millis(random.between(0, 100)));
    }
}

/// A line on a terminal that says how far it is.
fn report(lives: &Lives, ledger: &Ledger, sampler: &Sampler) {
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
            let ends = lives.ends.lock().expect("nobody panics over it").len();
            let most = sampler.most().map_or(0, |sample| sample.resident >> 20);
            let (seconds, breaks) = (began.elapsed().as_secs(), promise::breaks());
            let _ = write!(
                terminal,
                "\r{seconds} s: {tasks} tasks, {frames} frames, {ends} ends of the server, {most} MiB, {breaks} faults "
            );
        }
    }
    let _ = writeln!(terminal);
}

/// The server's log has no error in it.
fn check_log(log: &Path) {
    let text = std::fs::read(log).unwrap_or_default();
    for line in String::from_utf8_lossy(&text).lines() {
        let is_bad = line.contains("ERROR") || line.contains("panicked");
        promise::QUIET.check(!is_bad, || line.to_owned());
    }
}
