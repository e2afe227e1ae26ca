//! Two binaries against each other, in slices of a third of a second.
//!
//! On a machine that others use too, two whole runs of the same binary differ by several percent, so a smaller gain cannot be
//! seen in them. Here the old binary, the new one and the floor are all running, and each is measured for a moment in turn. What
//! disturbs the machine for longer than a moment disturbs all of them, so it leaves the ratios of a round alone; the median of the
//! ratios leaves out the rounds that were disturbed in the middle. An order that changes from round to round takes away what the
//! slice before leaves behind.

use std::path::Path;

use anyhow::{Result, bail};

use crate::bench::generator;
use crate::bench::machine::Core;
use crate::bench::measured_server::{self, MeasuredServer, StoreDurability};
use crate::bench::rows::Bench;

/// The length of a slice, without its warm-up.
const SLICE_SECONDS: f64 = 0.33;
const ROUNDS: usize = 60;
const QUICK_ROUNDS: usize = 12;

/// What is compared: a name, and the words for the generator.
const WORKLOADS: [(&str, &str); 5] = [
    ("send, 1 connection", "--connections 1"),
    ("send, 16 connections", "--connections 16"),
    ("send, 64 connections", "--connections 64"),
    ("stream of 100 chunks, 16 connections", "--workload stream --chunks 100 --connections 16"),
    ("get, from the store, 16 connections", "--workload get --connections 16"),
];
/// The floor has one reply, which is that of a send.
const FLOOR_WORKLOADS: usize = 3;

/// Processor time per operation in one round, in microseconds.
struct Slices {
    old: f64,
    new: f64,
    floor: Option<f64>,
}

/// Compares the release binary of this tree with another one. Prints a table.
pub fn run(bench: &Bench, old: &Path, is_quick: bool) -> Result<()> {
    if !old.is_file() {
        bail!("{} is no file; name the binary to compare with", old.display());
    }
    let rounds = if is_quick { QUICK_ROUNDS } else { ROUNDS };
    let store = |name: &str| bench.folder.fresh(name);
    let start = |binary: &Path, name: &str| {
        let command = bench.machine.command(Core::Server, binary);
        let log = bench.folder.0.join(format!("{name}.log"));
        MeasuredServer::start(measured_server::serve(command, &store(name), StoreDurability::Full), &log)
    };
    let (old, new, floor) = (start(old, "old")?, start(&bench.sabir, "new")?, bench.floor()?);
    println!("{:<40} {:>9} {:>9} {:>8}   {:>9}", "workload", "old", "new", "x floor", "new / old");
    for (place, (name, words)) in WORKLOADS.iter().enumerate() {
        let words = format!("{words} --seconds {SLICE_SECONDS}");
        let cpu = |server: &MeasuredServer| Ok(generator::once(&bench.machine, &bench.sabir, server, &words)?.cpu);
        let mut slices = Vec::with_capacity(rounds);
        for round in 0..rounds {
            let has_floor = place < FLOOR_WORKLOADS;
            slices.push(one_round(round, cpu, &old, &new, has_floor.then_some(&floor))?);
        }
        println!("{}", line(name, &slices));
    }
    old.stop()?;
    new.stop()?;
    floor.stop()
}

/// One slice of each; the old binary is first in every second round.
fn one_round(
    round: usize,
    cpu: impl Fn(&MeasuredServer) -> Result<f64>,
    old: &MeasuredServer,
    new: &MeasuredServer,
    floor: Option<&MeasuredServer>,
) -> Result<Slices> {
    let (old, new) = if round.is_multiple_of(2) {
        let old = cpu(old)?;
        (old, cpu(new)?)
    } else {
        let new = cpu(new)?;
        (cpu(old)?, new)
    };
    Ok(Slices { old, new, floor: floor.map(cpu).transpose()? })
}

fn line(name: &str, slices: &[Slices]) -> String {
    let figure = |of: fn(&Slices) -> f64| quartiles(slices.iter().map(of).collect())[1];
    let floors = quartiles(slices.iter().filter_map(|slice| Some(slice.new / slice.floor?)).collect())[1];
    let floors = if floors.is_nan() { String::new() } else { format!("{floors:.2}") };
    let [low, median, high] = quartiles(slices.iter().map(|slice| slice.new / slice.old).collect());
    let percent = |ratio: f64| format!("{:+.1} %", (ratio - 1.0) * 100.0);
    format!(
        "{name:<40} {:>6.2} us {:>6.2} us {floors:>8}   {:>9}  (half of the rounds: {} to {})",
        figure(|slice| slice.old),
        figure(|slice| slice.new),
        percent(median),
        percent(low),
        percent(high),
    )
}

/// The quartiles of these; none of nothing.
fn quartiles(mut all: Vec<f64>) -> [f64; 3] {
    all.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| {
        let Some(last) = all.len().checked_sub(1) else { return f64::NAN };
        let place = last as f64 * f64::from(quarter) / 4.0;
        let (below, above) = (all[place.floor() as usize], all[place.ceil() as usize]);
        below + (above - below) * place.fract()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_lie_between_neighbours() {
        assert_eq!(quartiles(vec![4.0, 1.0, 2.0, 3.0, 5.0]), [2.0, 3.0, 4.0]);
        assert_eq!(quartiles(vec![1.0, 2.0]), [1.25, 1.5, 1.75]);
        assert_eq!(quartiles(vec![7.0]), [7.0; 3]);
        assert!(quartiles(vec![])[1].is_nan());
    }

    #[test]
    fn a_round_that_was_disturbed_does_not_show() {
        let mut slices: Vec<Slices> = (0..9).map(|_| Slices { old: 50.0, new: 45.0, floor: Some(9.0) }).collect();
        slices.push(Slices { old: 50.0, new: 450.0, floor: Some(9.0) });
        let line = line("send", &slices);
        assert!(line.contains("-10.0 %") && line.contains(" 5.00 "), "{line}");
    }
}
