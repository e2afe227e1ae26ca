//! Programs on several nodes: a cancel stops the process on the other machine, and no program runs beside its successor.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::fixture::ClusterFixture;
use crate::program_fixture::ProgramFixture;

/// Writes its process id and a counter every 50 ms, into files named after itself.
const COUNTS: &str = "i=0\nwhile true; do i=$((i+1)); echo $i > \"$COUNT_FOLDER/$$\"; sleep 0.05; done\n";

fn counting(more: &str) -> Option<(ClusterFixture, ProgramFixture, tempfile::TempDir)> {
    let (program, counts) = (ProgramFixture::new(COUNTS), tempfile::tempdir().unwrap());
    let folder = counts.path().display();
    let agent = program.agent(
        "prog",
        "command",
        &format!("shared_workspace = \"parallel\"\nenv = {{ COUNT_FOLDER = \"{folder}\" }}\n"),
    );
    let cluster = ClusterFixture::with(2, &format!("{more}\n{agent}"))?;
    Some((cluster, program, counts))
}

/// The counter of each program that has run.
fn counters(folder: &tempfile::TempDir) -> Vec<(u32, u64)> {
    let files = fs::read_dir(folder.path()).unwrap().flatten();
    let mut counters: Vec<(u32, u64)> = files
        .filter_map(|file| {
            let pid = file.file_name().to_str()?.parse().ok()?;
            Some((pid, fs::read_to_string(file.path()).ok()?.trim().parse().ok()?))
        })
        .collect();
    counters.sort_unstable();
    counters
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(20), "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_cancel_stops_the_process_on_the_other_node() {
    let Some((cluster, _program, counts)) = counting("") else { return };
    let id = cluster.working(0, "go", Value::Null);
    until("the program runs", || !counters(&counts).is_empty());
    let (pid, _) = counters(&counts)[0];
    let answer = cluster.rpc(1, "CancelTask", json!({"id": id}));
    assert_eq!(answer["result"]["status"]["state"], "TASK_STATE_CANCELED", "{answer}");
    assert!(!fs::exists(format!("/proc/{pid}")).unwrap(), "the process is gone when the cancel is answered");
}

#[test]
fn the_program_of_a_frozen_node_does_not_run_beside_its_successor() {
    let Some((cluster, _program, counts)) = counting("[recovery]\nrunning = \"requeue\"") else { return };
    let id = cluster.working(0, "go", Value::Null);
    until("the program runs", || counters(&counts).first().is_some_and(|(_, count)| *count > 3));
    let (first, _) = counters(&counts)[0];
    cluster.node(0).signal("STOP");
    until("the other node runs the program", || counters(&counts).len() == 2);
    let count_of = |pid: u32| counters(&counts).into_iter().find(|(known, _)| *known == pid).map(|(_, count)| count);
    let before = count_of(first);
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(count_of(first), before, "the first program has stopped before the second began");
    cluster.node(0).signal("CONT");
    until("the first program is gone", || !fs::exists(format!("/proc/{first}")).unwrap());
    assert_eq!(count_of(first), before, "it never went on");
    let answer = cluster.rpc(0, "CancelTask", json!({"id": id}));
    assert_eq!(answer["result"]["status"]["state"], "TASK_STATE_CANCELED", "{answer}");
}
