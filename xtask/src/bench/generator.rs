//! One run of `sabir bench`, and what it reports.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::bench::machine::{BenchMachine, Core};
use crate::bench::measured_server::MeasuredServer;
use crate::command;

#[derive(Debug, Clone, Copy)]
pub struct Figures {
    /// Processor time of the server per operation, in microseconds.
    pub cpu: f64,
    pub per_second: f64,
    pub p50: f64,
    pub p99: f64,
    pub first_event_p50: Option<f64>,
    pub rss: u64,
    pub rss_per_stream: Option<u64>,
    /// The rate without those who do not read.
    pub alone_per_second: Option<f64>,
}

/// Runs it with these words; a wrong reply is an error.
pub fn once(machine: &BenchMachine, binary: &Path, server: &MeasuredServer, words: &str) -> Result<Figures> {
    measured(machine.command(Core::Generator, binary), server, words)
}

/// The same on whichever core is free.
pub fn unpinned(binary: &Path, server: &MeasuredServer, words: &str) -> Result<Figures> {
    measured(Command::new(binary), server, words)
}

fn measured(mut command: Command, server: &MeasuredServer, words: &str) -> Result<Figures> {
    command.args(["bench", &server.url, "--pid", &server.pid().to_string()]).args(words.split_whitespace());
    let text = command::output(&mut command)?;
    let report: Value = serde_json::from_str(&text).context("`sabir bench` did not print JSON")?;
    let number = |value: &Value| value.as_f64();
    Ok(Figures {
        cpu: number(&report["server"]["cpu_us_per_operation"]).context("no processor time in the report")?,
        per_second: number(&report["per_second"]).context("no rate in the report")?,
        p50: number(&report["latency_us"]["p50"]).unwrap_or_default(),
        p99: number(&report["latency_us"]["p99"]).unwrap_or_default(),
        first_event_p50: number(&report["first_event_us"]["p50"]),
        rss: report["server"]["rss"].as_u64().context("no memory in the report")?,
        rss_per_stream: report["server"]["rss_per_stream"].as_u64(),
        alone_per_second: number(&report["alone_per_second"]),
    })
}

/// The best figure of each kind, of several runs.
pub fn best(all: &[Figures]) -> Option<Figures> {
    let mut all = all.iter();
    let mut best = *all.next()?;
    for figures in all {
        best.cpu = best.cpu.min(figures.cpu);
        best.per_second = best.per_second.max(figures.per_second);
        best.p50 = best.p50.min(figures.p50);
        best.first_event_p50 = best.first_event_p50.zip(figures.first_event_p50).map(|(one, two)| one.min(two));
        best.rss = figures.rss;
    }
    Some(best)
}
