//! What is measured, against which targets.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::bench::generator::{self, Figures};
use crate::bench::machine::{BenchMachine, Core};
use crate::bench::measured_server::{self, Folder, MeasuredServer, StoreDurability};
use crate::bench::table::{Row, TargetVerdict};
use crate::workspace::Workspace;

pub const GROUPS: [&str; 17] = [
    "send",
    "webhook",
    "stored-first",
    "front",
    "observed",
    "dialects",
    "grpc",
    "get",
    "stream",
    "fanout",
    "stalled",
    "open-streams",
    "http2",
    "list-running",
    "many-tasks",
    "postgres",
    "start",
];

pub struct Bench {
    pub machine: BenchMachine,
    pub rows: Vec<Row>,
    pub sabir: PathBuf,
    floor: PathBuf,
    /// The Postgres of the test kit as a program.
    pub postgres: PathBuf,
    pub folder: Folder,
    pub rounds: usize,
    pub seconds: f64,
    pub sizes: &'static [u64],
    starts: usize,
    /// Processor time of the floor per request at 16 connections, once it is known.
    pub floor_cpu: Option<f64>,
}

impl Bench {
    pub fn new(workspace: &Workspace, machine: BenchMachine, is_quick: bool) -> Result<Bench> {
        let release = workspace.target.join("release");
        Ok(Bench {
            machine,
            rows: vec![],
            sabir: release.join("sabir"),
            floor: release.join("examples").join("floor"),
            postgres: workspace.target.join("debug").join("examples").join("durable_postgres"),
            folder: Folder::new(&workspace.target)?,
            rounds: if is_quick { 1 } else { 3 },
            seconds: if is_quick { 1.0 } else { 3.0 },
            sizes: if is_quick { &[10_000, 100_000] } else { &[10_000, 100_000, 1_000_000] },
            starts: 20,
            floor_cpu: None,
        })
    }

    /// Measures a group of rows. What goes wrong becomes a row, and the rest still runs.
    pub fn group(&mut self, name: &str) {
        let measured = match name {
            "send" => self.send(),
            "webhook" => self.webhook(),
            "stored-first" => self.stored_first(),
            "front" => self.front(),
            "observed" => self.observed(),
            "dialects" => self.dialects(),
            "grpc" => self.grpc(),
            "get" => self.get(),
            "stream" => self.stream(),
            "fanout" => self.fanout(),
            "stalled" => self.stalled(),
            "open-streams" => self.open_streams(),
            "http2" => self.http2(),
            "list-running" => self.list_running(),
            "many-tasks" => self.many_tasks(),
            "postgres" => self.postgres(),
            _ => self.start(),
        };
        if let Err(error) = measured {
            let measured = format!("{error:#}");
            self.put(name, "", measured, None, TargetVerdict::Failed);
        }
    }

    fn start(&mut self) -> Result<()> {
        let store = self.folder.fresh("start");
        let start = || -> Result<(Duration, MeasuredServer)> {
            // Not pinned: `taskset` would be a part of the time.
            let command =
                measured_server::serve(std::process::Command::new(&self.sabir), &store, StoreDurability::Full);
            let began = Instant::now();
            let server = MeasuredServer::start(command, &self.log())?;
            server.card()?;
            Ok((began.elapsed(), server))
        };
        let (first, server) = start()?;
        server.stop()?;
        let mut times = vec![];
        for _ in 0..self.starts {
            let (time, server) = start()?;
            times.push(time.as_secs_f64() * 1e3);
            server.stop()?;
        }
        times.sort_by(f64::total_cmp);
        let p50 = times[times.len() / 2];
        let (_, server) = start()?;
        std::thread::sleep(Duration::from_millis(300));
        let idle = server.resident()? as f64 / 1e6;
        server.stop()?;
        let size = std::fs::metadata(&self.sabir)?.len() as f64 / 1e6;

        let printed = format!("{p50:.1} ms");
        self.put("start: exec to a served card, p50", "<= 5 ms", printed, None, at_most(p50, 5.0));
        let printed = format!("{:.1} ms", first.as_secs_f64() * 1e3);
        self.put("first start, with a new store", "", printed, None, TargetVerdict::Told);
        self.put("idle RSS", "<= 8 MB", format!("{idle:.1} MB"), None, at_most(idle, 8.0));
        self.put("binary", "as small as its parts allow", format!("{size:.1} MB"), None, TargetVerdict::Told);
        Ok(())
    }

    /// Sends until so many tasks more are there.
    pub fn fill(&self, server: &MeasuredServer, count: u64) -> Result<()> {
        generator::once(&self.machine, &self.sabir, server, &format!("--connections 64 --count {count}")).map(drop)
    }

    /// The best of each server, measured in turns.
    pub fn in_turns<const N: usize>(&self, servers: [&MeasuredServer; N], words: &str) -> Result<[Figures; N]> {
        let mut all = [const { vec![] }; N];
        for _ in 0..self.rounds {
            for (server, figures) in servers.iter().zip(&mut all) {
                figures.push(self.once(server, words)?);
            }
        }
        let best: Option<Vec<Figures>> = all.iter().map(|figures| generator::best(figures)).collect();
        let best = best.context("no round")?;
        Ok(std::array::from_fn(|place| best[place]))
    }

    pub fn best(&self, server: &MeasuredServer, words: &str) -> Result<Figures> {
        let all: Result<Vec<Figures>> = (0..self.rounds).map(|_| self.once(server, words)).collect();
        generator::best(&all?).context("no round")
    }

    pub fn once(&self, server: &MeasuredServer, words: &str) -> Result<Figures> {
        let words = format!("{words} --seconds {}", self.seconds);
        let figures = generator::once(&self.machine, &self.sabir, server, &words)?;
        println!("    {words}: {:.2} us, {:.0}/s, p50 {:.0} us", figures.cpu, figures.per_second, figures.p50);
        Ok(figures)
    }

    pub fn floor(&self) -> Result<MeasuredServer> {
        MeasuredServer::start(self.machine.command(Core::Server, &self.floor), &self.log())
    }

    pub fn server(&self, store: &Path, durability: StoreDurability) -> Result<MeasuredServer> {
        MeasuredServer::start(
            measured_server::serve(self.machine.command(Core::Server, &self.sabir), store, durability),
            &self.log(),
        )
    }

    pub fn log(&self) -> PathBuf {
        self.folder.0.join("server.log")
    }

    pub fn ratio(&self, cpu: f64) -> Option<f64> {
        self.floor_cpu.map(|floor| cpu / floor)
    }

    pub fn cpu(&mut self, workload: &str, figures: Figures, target: f64) {
        let ratio = self.ratio(figures.cpu);
        let printed = format!("{:.1} us", figures.cpu);
        self.put(workload, &format!("<= {target:.0} us"), printed, ratio, at_most(figures.cpu, target));
    }

    pub fn put(&mut self, workload: &str, target: &str, measured: String, ratio: Option<f64>, verdict: TargetVerdict) {
        println!("  {workload}: {measured}");
        self.rows.push(Row { workload: workload.to_owned(), target: target.to_owned(), measured, ratio, verdict });
    }
}

/// A figure beside another of the same kind.
pub fn compare(value: f64, other: f64, unit: &str) -> String {
    format!("{value:.1} {unit}, {:+.0} % to {other:.1} {unit}", (value / other - 1.0) * 100.0)
}

pub fn at_most(value: f64, target: f64) -> TargetVerdict {
    if value <= target { TargetVerdict::Met } else { TargetVerdict::Missed }
}

pub fn at_least(value: f64, target: f64) -> TargetVerdict {
    if value >= target { TargetVerdict::Met } else { TargetVerdict::Missed }
}
