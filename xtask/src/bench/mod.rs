//! `cargo xtask bench`: the real server against its targets, beside a floor, and the page that shows it.
//!
//! The figure that counts is the processor time of the server per operation, with the server on one core and the
//! load generator on another. It is stable where wall time is not. Each row is measured several times and the least
//! disturbed time is taken.

mod against;
mod front;
mod generator;
mod grpc;
mod machine;
mod measured_server;
mod observed;
mod page;
mod postgres;
mod postgres_process;
mod reads;
mod rows;
mod sends;
mod streams;
mod table;

use std::path::Path;

use anyhow::{Result, bail};

use crate::command;
use crate::workspace::Workspace;

use machine::BenchMachine;
use rows::Bench;

pub const HELP: &str = "\
  cargo xtask bench           measure everything and write the results into docs/internals/performance.md (minutes)
  cargo xtask bench NAME...   only the groups with these names, printed and not written
  cargo xtask bench --quick   one short round of each, without a million tasks, printed and not written
  cargo xtask bench --against BINARY   another build of sabir beside this one, in turns; shows differences of a few percent
";

pub fn run(workspace: &Workspace, words: &[&str]) -> Result<()> {
    let mut words = words.to_vec();
    let against = match words.iter().position(|word| *word == "--against") {
        Some(place) if place + 1 < words.len() => words.drain(place..place + 2).nth(1),
        Some(_) => bail!("--against takes the binary to compare with"),
        None => None,
    };
    let (flags, names): (Vec<&str>, Vec<&str>) = words.into_iter().partition(|word| word.starts_with('-'));
    if let Some(unknown) = flags.iter().find(|flag| **flag != "--quick") {
        bail!("`{unknown}` is no flag of bench; there are --quick and --against BINARY");
    }
    if let Some(unknown) = names.iter().find(|name| !rows::GROUPS.contains(name)) {
        bail!("`{unknown}` is no group of bench; there are: {}", rows::GROUPS.join(", "));
    }
    let is_quick = flags.contains(&"--quick");
    println!("==> building the server, the generator (which is `sabir bench`) and the floor");
    // One after the other: built together, the server would get the features that only the floor asks for.
    command::shown(workspace.cargo().args(["build", "--release", "--package", "sabir"]))?;
    command::shown(workspace.cargo().args(["build", "--release", "--package", "sabir-bench", "--example", "floor"]))?;
    if names.is_empty() || names.contains(&"postgres") {
        command::shown(workspace.cargo().args([
            "build",
            "--package",
            "sabir-testkit",
            "--example",
            "durable_postgres",
        ]))?;
    }

    let machine = BenchMachine::look();
    println!("{machine}");
    let mut bench = Bench::new(workspace, machine, is_quick)?;
    if let Some(other) = against {
        if !names.is_empty() {
            bail!("--against has rows of its own; leave the groups out: {}", names.join(", "));
        }
        return against::run(&bench, Path::new(other), is_quick);
    }
    for group in rows::GROUPS.iter().filter(|group| names.is_empty() || names.contains(group)) {
        println!("==> {group}");
        bench.group(group);
    }
    let Bench { machine, rows, .. } = &bench;
    println!("\n{}", table::text(rows));
    if names.is_empty() && !is_quick {
        page::write(workspace, machine, rows)?;
    }
    let failed = rows.iter().filter(|row| row.is_failure()).count();
    if failed > 0 {
        bail!("{failed} rows could not be measured, or had wrong replies");
    }
    Ok(())
}
