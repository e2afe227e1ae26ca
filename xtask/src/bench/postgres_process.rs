//! The durable Postgres of the test kit as a process of its own, and what all its processes have used.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::command;

const STOP_LIMIT: Duration = Duration::from_secs(30);

pub struct PostgresProcess {
    child: Child,
    /// It ends when this is closed.
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    /// The parent of all processes of the server.
    postmaster: u64,
}

impl PostgresProcess {
    pub fn start(mut command: Command) -> Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let orders = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let mut postgres = Self { child, orders, answers, postmaster: 0 };
        let told =
            postgres.answer().context("Postgres did not start; is it installed? apt-get install -y postgresql")?;
        postgres.postmaster = told["pid"].as_u64().context("Postgres did not say which process it is")?;
        Ok(postgres)
    }

    /// The URL of a new database.
    pub fn database(&mut self) -> Result<String> {
        writeln!(self.orders.as_mut().context("Postgres has been stopped")?)?;
        let told = self.answer()?;
        Ok(told["url"].as_str().context("no URL of a database")?.to_owned())
    }

    fn answer(&mut self) -> Result<Value> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        serde_json::from_str(&line).with_context(|| format!("no JSON: {line}"))
    }

    /// What its processes have used so far.
    pub fn used(&self) -> UsedByPostgres {
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u64>().ok());
        let ours = pids.filter(|pid| *pid == self.postmaster || parent(*pid) == Some(self.postmaster));
        UsedByPostgres(ours.filter_map(|pid| Some((pid, scheduled(pid)?))).collect())
    }

    pub fn stop(mut self) -> Result<()> {
        drop(self.orders.take());
        match command::wait(&mut self.child, Instant::now() + STOP_LIMIT)? {
            Some(_) => Ok(()),
            None => bail!("Postgres still ran {} s after it was stopped", STOP_LIMIT.as_secs()),
        }
    }
}

impl Drop for PostgresProcess {
    fn drop(&mut self) {
        // It deletes its folder when its input ends, so it is not killed.
        drop(self.orders.take());
        let _ = command::wait(&mut self.child, Instant::now() + STOP_LIMIT);
    }
}

/// Nanoseconds by process.
pub struct UsedByPostgres(HashMap<u64, u64>);

impl UsedByPostgres {
    /// Processes that have ended since are not counted; connections of servers stay open.
    pub fn since(&self, earlier: &UsedByPostgres) -> Duration {
        let used = self.0.iter().map(|(pid, now)| now.saturating_sub(earlier.0.get(pid).copied().unwrap_or_default()));
        Duration::from_nanos(used.sum())
    }
}

fn parent(pid: u64) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    text.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

fn scheduled(pid: u64) -> Option<u64> {
    fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?.split(' ').next()?.parse().ok()
}
