//! Servers on a Postgres that flushes every commit: what a send and an event cost a server, how soon a reader at another server
//! gets an event, and what more servers bring.
//!
//! Postgres is on the generator's core, so that the server's core has nothing else to do. For the rates nothing is pinned:
//! servers, Postgres and generators share the machine, and what each of them used says who is the bound.

use std::thread;

use anyhow::{Result, anyhow};

use crate::bench::generator::{self, Figures};
use crate::bench::machine::Core;
use crate::bench::measured_server::{self, MeasuredServer};
use crate::bench::postgres_process::PostgresProcess;
use crate::bench::rows::{Bench, at_most};
use crate::bench::table::TargetVerdict;

const SEND_MICROS: f64 = 70.0;
const EVENT_MICROS: f64 = 5.0;
const WAKE_UP_P50_MILLIS: f64 = 15.0;
const WAKE_UP_P99_MILLIS: f64 = 60.0;
/// Of all servers together.
const RATE_CONNECTIONS: usize = 96;

impl Bench {
    pub fn postgres(&mut self) -> Result<()> {
        let mut postgres = PostgresProcess::start(self.machine.command(Core::Generator, &self.postgres))?;
        self.sends_to_postgres(&mut postgres)?;
        self.wake_ups(&mut postgres)?;
        postgres.stop()?;

        let mut postgres = PostgresProcess::start(std::process::Command::new(&self.postgres))?;
        for nodes in 1..=3 {
            self.rate_of_nodes(&mut postgres, nodes)?;
        }
        postgres.stop()
    }

    fn sends_to_postgres(&mut self, postgres: &mut PostgresProcess) -> Result<()> {
        let server = self.node(&postgres.database()?, "one", Pinned::ToItsCore)?;
        for connections in [1, 16, 64] {
            let words = format!("--connections {connections}");
            let all: Result<Vec<Figures>> = (0..self.rounds).map(|_| self.once(&server, &words)).collect();
            let all = all?;
            let (cpu, p50) = (median(&all, |figures| figures.cpu), median(&all, |figures| figures.p50));
            // A fixed number has no warm-up, which Postgres would be charged for.
            let count = (median(&all, |figures| figures.per_second) * self.seconds) as u64 + 1;
            let before = postgres.used();
            self.once(&server, &format!("{words} --count {count}"))?;
            let database = postgres.used().since(&before).as_secs_f64() * 1e6 / count as f64;
            let plural = if connections == 1 { "" } else { "s" };
            let name = format!("send, {connections} connection{plural}, Postgres");
            let printed = format!("{cpu:.1} us; Postgres {database:.0} us");
            let ratio = self.ratio(cpu);
            match connections {
                1 => self.put(&name, "", format!("{printed}; p50 {p50:.0} us"), ratio, TargetVerdict::Told),
                _ => self.put(&name, &format!("<= {SEND_MICROS:.0} us"), printed, ratio, at_most(cpu, SEND_MICROS)),
            }
        }
        for chunks in [100, 1000] {
            let words = format!("--workload stream --chunks {chunks} --connections 16");
            let all: Result<Vec<Figures>> = (0..self.rounds).map(|_| self.once(&server, &words)).collect();
            let cpu = median(&all?, |figures| figures.cpu);
            let target = format!("<= {EVENT_MICROS:.0} us per event");
            let printed = format!("{cpu:.2} us per event");
            self.put(
                &format!("stream of {chunks} chunks, Postgres"),
                &target,
                printed,
                None,
                at_most(cpu, EVENT_MICROS),
            );
        }
        server.stop()
    }

    /// One task, where each event is alone, and sixteen at the same time, whose wake-ups share notices.
    fn wake_ups(&mut self, postgres: &mut PostgresProcess) -> Result<()> {
        let database = postgres.database()?;
        let (one, two) =
            (self.node(&database, "one", Pinned::ToItsCore)?, self.node(&database, "two", Pinned::ToItsCore)?);
        for tasks in [1, 16] {
            let words = format!("--workload wake-up --connections {tasks} --other {}", two.url);
            let all: Result<Vec<Figures>> = (0..self.rounds).map(|_| self.once(&one, &words)).collect();
            let all = all?;
            let plural = if tasks == 1 { "" } else { "s" };
            let name = format!("wake-up of a reader on another node, {tasks} task{plural}");
            for (which, millis, most) in [
                ("p50", median(&all, |figures| figures.p50) / 1e3, WAKE_UP_P50_MILLIS),
                ("p99", median(&all, |figures| figures.p99) / 1e3, WAKE_UP_P99_MILLIS),
            ] {
                let printed = format!("{millis:.1} ms");
                self.put(
                    &format!("{name}: {which}"),
                    &format!("<= {most:.0} ms"),
                    printed,
                    None,
                    at_most(millis, most),
                );
            }
        }
        one.stop()?;
        two.stop()
    }

    fn rate_of_nodes(&mut self, postgres: &mut PostgresProcess, nodes: usize) -> Result<()> {
        let database = postgres.database()?;
        let servers: Result<Vec<MeasuredServer>> =
            (0..nodes).map(|node| self.node(&database, &format!("node-{node}"), Pinned::Nowhere)).collect();
        let servers = servers?;
        let words = format!("--connections {}", RATE_CONNECTIONS / nodes);
        let warm_up = self.at_once(&servers, &format!("{words} --seconds 1"))?;
        // A fixed number has no warm-up, which Postgres would be charged for.
        let rate: f64 = warm_up.iter().map(|figures| figures.per_second).sum();
        let count = (rate * self.seconds / nodes as f64) as u64 + 1;
        let mut rounds = vec![];
        for _ in 0..self.rounds {
            let before = postgres.used();
            let all = self.at_once(&servers, &format!("{words} --count {count}"))?;
            let of_postgres = postgres.used().since(&before).as_secs_f64() * 1e6 / (count * nodes as u64) as f64;
            let of_nodes = all.iter().map(|figures| figures.cpu).sum::<f64>() / nodes as f64;
            let rate: f64 = all.iter().map(|figures| figures.per_second).sum();
            println!("    {nodes} nodes: {rate:.0}/s, {of_nodes:.1} us, Postgres {of_postgres:.1} us");
            rounds.push([rate, of_nodes, of_postgres]);
        }
        for server in servers {
            server.stop()?;
        }
        let [rate, of_nodes, of_postgres] = [0, 1, 2].map(|column| median(&rounds, |round: &[f64; 3]| round[column]));
        let cores = rate * of_postgres / 1e6;
        let plural = if nodes == 1 { "" } else { "s" };
        let printed =
            format!("{rate:.0}/s; {of_nodes:.1} us of the nodes, {of_postgres:.1} us of Postgres ({cores:.2} cores)");
        let name = format!("sends, {nodes} node{plural}, {RATE_CONNECTIONS} connections");
        self.put(&name, "", printed, None, TargetVerdict::Told);
        Ok(())
    }

    /// A generator for each server, all at the same time.
    fn at_once(&self, servers: &[MeasuredServer], words: &str) -> Result<Vec<Figures>> {
        thread::scope(|scope| {
            let start = |server| scope.spawn(move || generator::unpinned(&self.sabir, server, words));
            let running: Vec<_> = servers.iter().map(start).collect();
            running.into_iter().map(|one| one.join().map_err(|_| anyhow!("a generator broke"))?).collect()
        })
    }

    fn node(&self, database: &str, name: &str, pinned: Pinned) -> Result<MeasuredServer> {
        let command = match pinned {
            Pinned::ToItsCore => self.machine.command(Core::Server, &self.sabir),
            Pinned::Nowhere => std::process::Command::new(&self.sabir),
        };
        let config = self.folder.0.join(format!("{name}.toml"));
        std::fs::write(&config, format!("{DEMO}[cluster]\nnode_name = \"{name}\"\n"))?;
        let mut command = measured_server::serve_store(command, database);
        command.arg("--config").arg(config).env("XDG_STATE_HOME", &self.folder.0);
        MeasuredServer::start(command, &self.folder.0.join(format!("{name}.log")))
    }
}

/// Where a server runs.
#[derive(Clone, Copy)]
enum Pinned {
    ToItsCore,
    Nowhere,
}

const DEMO: &str = "[[agent]]\nid = \"demo\"\nkind = \"demo\"\n";

/// Unlike the least of several times, it does not flatter figures that depend on how three programs share two cores.
fn median<T>(all: &[T], figure: impl Fn(&T) -> f64) -> f64 {
    let mut all: Vec<f64> = all.iter().map(figure).collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
}
