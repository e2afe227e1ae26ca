//! What is measured, against which targets.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::bench::generator::{self, Figures};
use crate::bench::machine::{Core, Machine};
use crate::bench::served::{self, Durability, Folder, Served};
use crate::bench::table::{Row, Verdict};
use crate::workspace::Workspace;

pub const GROUPS: [&str; 8] = ["send", "dialects", "get", "stream", "fanout", "open-streams", "many-tasks", "start"];

pub struct Bench {
    pub machine: Machine,
    pub rows: Vec<Row>,
    sabir: PathBuf,
    floor: PathBuf,
    folder: Folder,
    rounds: usize,
    seconds: f64,
    sizes: &'static [u64],
    starts: usize,
    /// Processor time of the floor per request at 16 connections, once it is known.
    floor_cpu: Option<f64>,
}

impl Bench {
    pub fn new(workspace: &Workspace, machine: Machine, is_quick: bool) -> Result<Bench> {
        let release = workspace.target.join("release");
        Ok(Bench {
            machine,
            rows: vec![],
            sabir: release.join("sabir"),
            floor: release.join("examples").join("floor"),
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
            "dialects" => self.dialects(),
            "get" => self.get(),
            "stream" => self.stream(),
            "fanout" => self.fanout(),
            "open-streams" => self.open_streams(),
            "many-tasks" => self.many_tasks(),
            _ => self.start(),
        };
        if let Err(error) = measured {
            let measured = format!("{error:#}");
            self.put(name, "", measured, None, Verdict::Failed);
        }
    }

    fn send(&mut self) -> Result<()> {
        let floor = self.floor()?;
        for connections in [16, 64] {
            let figures = self.best(&floor, &format!("--connections {connections}"))?;
            let said = format!("{:.1} us, {:.0}/s", figures.cpu, figures.per_second);
            self.put(
                &format!("floor (bare axum, fixed reply), {connections} connections"),
                "",
                said,
                None,
                Verdict::Told,
            );
            if connections == 16 {
                self.floor_cpu = Some(figures.cpu);
            }
        }
        floor.stop()?;
        for (durability, name, sixteen, one) in
            [(Durability::Full, "FULL", 45.0, 350.0), (Durability::Normal, "NORMAL", 38.0, 150.0)]
        {
            let server = self.server(&self.folder.fresh("send"), durability)?;
            let figures = self.best(&server, "--connections 16")?;
            self.cpu(&format!("send, 16 connections, {name}"), figures, sixteen);
            if durability == Durability::Full {
                let figures = self.best(&server, "--connections 64")?;
                self.cpu("send, 64 connections, FULL", figures, 30.0);
                let verdict = at_least(figures.per_second, 30_000.0);
                let said = format!("{:.0}/s", figures.per_second);
                self.put("send, 64 connections, FULL: rate", ">= 30000/s on one core", said, None, verdict);
            }
            let figures = self.best(&server, "--connections 1")?;
            let verdict = at_most(figures.p50, one);
            let said = format!("{:.0} us", figures.p50);
            self.put(&format!("send, 1 connection, {name}: p50"), &format!("<= {one:.0} us"), said, None, verdict);
            server.stop()?;
        }
        Ok(())
    }

    fn dialects(&mut self) -> Result<()> {
        let server = self.server(&self.folder.fresh("dialects"), Durability::Full)?;
        let dialects = ["1.0", "0.3", "0.1", "rest", "gateway"];
        // In turns, so that what disturbs one disturbs all.
        let mut all = [const { vec![] }; 5];
        for _ in 0..self.rounds {
            for (dialect, figures) in dialects.iter().zip(&mut all) {
                figures.push(self.once(&server, &format!("--connections 16 --dialect {dialect}"))?);
            }
        }
        server.stop()?;
        let cpu: Vec<f64> = all.iter().filter_map(|figures| generator::best(figures)).map(|best| best.cpu).collect();
        for (dialect, own) in dialects.iter().zip(&cpu).skip(1) {
            let share = own / cpu[0];
            let said = format!("{own:.1} us, {:+.0} % to {:.1} us", (share - 1.0) * 100.0, cpu[0]);
            let ratio = self.ratio(*own);
            self.put(&format!("send, dialect {dialect}"), "within 20 % of 1.0", said, ratio, at_most(share, 1.2));
        }
        Ok(())
    }

    fn get(&mut self) -> Result<()> {
        let server = self.server(&self.folder.fresh("get"), Durability::Full)?;
        let live = self.best(&server, "--workload get-live --connections 16")?;
        self.cpu("get, live", live, 16.0);
        let stored = self.best(&server, "--workload get --connections 16")?;
        self.cpu("get, from the store", stored, 30.0);
        server.stop()
    }

    fn stream(&mut self) -> Result<()> {
        let server = self.server(&self.folder.fresh("stream"), Durability::Full)?;
        for chunks in [100, 1000] {
            let figures = self.best(&server, &format!("--workload stream --chunks {chunks} --connections 16"))?;
            let said = format!("{:.2} us per event", figures.cpu);
            let target = "<= 4 us per event";
            self.put(&format!("stream of {chunks} chunks"), target, said, None, at_most(figures.cpu, 4.0));
        }
        let figures = self.best(&server, "--workload stream --chunks 100 --connections 1")?;
        let first = figures.first_event_p50.context("no first event in the report")?;
        let said = format!("{first:.0} us");
        self.put("stream, 1 connection: first event p50", "<= 300 us", said, None, at_most(first, 300.0));
        server.stop()
    }

    fn fanout(&mut self) -> Result<()> {
        let server = self.server(&self.folder.fresh("fanout"), Durability::Full)?;
        let figures = self.best(&server, "--workload fanout --readers 200 --chunks 1000")?;
        let said = format!("{:.2} us per delivery, none lost", figures.cpu);
        let verdict = at_most(figures.cpu, 1.5);
        self.put("200 readers of one task, 1000 chunks", "<= 1.5 us per delivery", said, None, verdict);
        server.stop()
    }

    fn open_streams(&mut self) -> Result<()> {
        let server = self.server(&self.folder.fresh("open"), Durability::Full)?;
        // Once: memory that the first streams have left is used again by the next ones.
        let figures = self.once(&server, "--workload open-streams --connections 5000")?;
        let each = figures.rss_per_stream.context("no memory per stream in the report")? as f64 / 1000.0;
        let said = format!("{each:.1} KB, all ended");
        self.put("5000 open streams: RSS each", "<= 20 KB", said, None, at_most(each, 20.0));
        server.stop()
    }

    fn many_tasks(&mut self) -> Result<()> {
        let empty = self.server(&self.folder.fresh("empty"), Durability::Full)?;
        let alone = self.best(&empty, "--connections 16")?;
        empty.stop()?;
        let store = self.folder.fresh("many");
        let mut there = 0;
        let mut first_list = None;
        for size in self.sizes.iter().copied() {
            let began = Instant::now();
            let filler = self.server(&store, Durability::Normal)?;
            self.fill(&filler, size - there)?;
            filler.stop()?;
            there = size;
            println!("    {size} tasks after {:.0} s more", began.elapsed().as_secs_f64());

            let server = self.server(&store, Durability::Full)?;
            let list = self.best(&server, "--workload list --connections 4")?;
            let flat = list.cpu / *first_list.get_or_insert(list.cpu);
            let said = format!("{:.0} us, {flat:.2} times the first", list.cpu);
            let verdict = at_most(list.cpu, 150.0);
            let ratio = self.ratio(list.cpu);
            self.put(&format!("list page of 50, {size} tasks"), "<= 150 us, flat", said, ratio, verdict);
            server.stop()?;
            if size < 100_000 {
                continue;
            }
            let server = self.server(&store, Durability::Full)?;
            let figures = self.best(&server, "--connections 16")?;
            server.stop()?;
            let share = figures.cpu / alone.cpu;
            let said = format!("{:.1} us, {:+.0} % to {:.1} us", figures.cpu, (share - 1.0) * 100.0, alone.cpu);
            let target = "within 10 % of an empty store";
            let ratio = self.ratio(figures.cpu);
            self.put(&format!("send, {size} tasks stored"), target, said, ratio, at_most(share, 1.1));
            let bytes = figures.rss.saturating_sub(alone.rss) as f64 / size as f64;
            let said = format!("{bytes:.0} bytes");
            let name = format!("RSS per stored task, {size} tasks");
            self.put(&name, "<= 100 bytes", said, None, at_most(bytes, 100.0));
        }
        Ok(())
    }

    fn start(&mut self) -> Result<()> {
        let store = self.folder.fresh("start");
        let start = || -> Result<(Duration, Served)> {
            // Not pinned: `taskset` would be a part of the time.
            let command = served::serve(std::process::Command::new(&self.sabir), &store, Durability::Full);
            let began = Instant::now();
            let server = Served::start(command, &self.log())?;
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

        let said = format!("{p50:.1} ms");
        self.put("start: exec to a served card, p50", "<= 5 ms", said, None, at_most(p50, 5.0));
        let said = format!("{:.1} ms", first.as_secs_f64() * 1e3);
        self.put("first start, with a new store", "", said, None, Verdict::Told);
        self.put("idle RSS", "<= 8 MB", format!("{idle:.1} MB"), None, at_most(idle, 8.0));
        self.put("binary", "as small as its parts allow", format!("{size:.1} MB"), None, Verdict::Told);
        Ok(())
    }

    /// Sends until so many tasks more are there.
    fn fill(&self, server: &Served, count: u64) -> Result<()> {
        generator::once(&self.machine, &self.sabir, server, &format!("--connections 64 --count {count}")).map(drop)
    }

    fn best(&self, server: &Served, words: &str) -> Result<Figures> {
        let all: Result<Vec<Figures>> = (0..self.rounds).map(|_| self.once(server, words)).collect();
        generator::best(&all?).context("no round")
    }

    fn once(&self, server: &Served, words: &str) -> Result<Figures> {
        let words = format!("{words} --seconds {}", self.seconds);
        let figures = generator::once(&self.machine, &self.sabir, server, &words)?;
        println!("    {words}: {:.2} us, {:.0}/s, p50 {:.0} us", figures.cpu, figures.per_second, figures.p50);
        Ok(figures)
    }

    fn floor(&self) -> Result<Served> {
        Served::start(self.machine.command(Core::Server, &self.floor), &self.log())
    }

    fn server(&self, store: &Path, durability: Durability) -> Result<Served> {
        Served::start(served::serve(self.machine.command(Core::Server, &self.sabir), store, durability), &self.log())
    }

    fn log(&self) -> PathBuf {
        self.folder.0.join("server.log")
    }

    fn ratio(&self, cpu: f64) -> Option<f64> {
        self.floor_cpu.map(|floor| cpu / floor)
    }

    fn cpu(&mut self, workload: &str, figures: Figures, target: f64) {
        let ratio = self.ratio(figures.cpu);
        let said = format!("{:.1} us", figures.cpu);
        self.put(workload, &format!("<= {target:.0} us"), said, ratio, at_most(figures.cpu, target));
    }

    fn put(&mut self, workload: &str, target: &str, measured: String, ratio: Option<f64>, verdict: Verdict) {
        println!("  {workload}: {measured}");
        self.rows.push(Row { workload: workload.to_owned(), target: target.to_owned(), measured, ratio, verdict });
    }
}

fn at_most(value: f64, target: f64) -> Verdict {
    if value <= target { Verdict::Met } else { Verdict::Missed }
}

fn at_least(value: f64, target: f64) -> Verdict {
    if value >= target { Verdict::Met } else { Verdict::Missed }
}
