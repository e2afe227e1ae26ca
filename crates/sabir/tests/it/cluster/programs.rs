//! Programs on several nodes: a cancel stops the process on the other machine, and no program runs beside its successor.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use super::fixture::{ClusterFixture, LIMIT, until};
use crate::program_fixture::ProgramFixture;

/// Writes its process id and a counter every 50 ms, into files named after itself. A file is never seen half written.
const COUNTS: &str = r#"i=0
while true; do
    i=$((i+1)); echo $i > "$COUNT_FOLDER/next $$"; mv "$COUNT_FOLDER/next $$" "$COUNT_FOLDER/$$"; sleep 0.05
done
"#;

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

/// When a node has left, others may run its tasks at once. The program stops its guard, so SIGKILL reaches it late.
#[test]
fn a_program_that_outlives_its_turn_does_not_run_beside_its_successor() {
    let runs = ProgramRuns::new("kill -STOP $PPID");
    let toml = format!("[server]\ngrace = \"1s\"\n{}", runs.toml());
    let Some(mut cluster) = ClusterFixture::with(2, &toml) else { return };
    let id = cluster.working(0, "go", Value::Null);
    let first = runs.until_runs(1);
    let mut node = cluster.nodes[0].take().unwrap();
    node.terminate();
    runs.until_runs(2);
    assert!(node.wait(LIMIT).success());
    let left = cluster.execute("SELECT extract(epoch FROM ended) FROM nodes WHERE name = 'n0'");
    let left = Duration::from_secs_f64(left.parse().expect("the node has left"));
    assert!(runs.last(first) < left, "it ran {:?} after its node had left", runs.last(first) - left);
    runs.end();
    cluster.until_state(1, &id, "TASK_STATE_COMPLETED");
    runs.assert_none_overlap();
}

/// A program that records when it runs, until all are told to end.
const RECORDS: &str = r#"record() { echo "$$ $(date +%s%N)" >> "$RUNS"; }
trap "$ON_TERM" TERM
while [ ! -e "$RUNS.end" ]; do record; echo "by-$$."; sleep 0.05; done
echo done
"#;

/// The processes of that program, on all nodes.
pub(super) struct ProgramRuns(ProgramFixture, String);

impl ProgramRuns {
    /// `on_term` is the program's handler of SIGTERM, in the words of the shell.
    pub(super) fn new(on_term: &str) -> Self {
        Self(ProgramFixture::new(RECORDS), on_term.to_owned())
    }

    /// Its agent, whose tasks run again when they are taken over.
    pub(super) fn toml(&self) -> String {
        let (runs, on_term) = (self.0.path("runs"), &self.1);
        let more = format!("shared_workspace = \"parallel\"\nenv = {{ RUNS = {runs:?}, ON_TERM = {on_term:?} }}\n");
        format!("[recovery]\nrunning = \"requeue\"\n{}", self.0.agent("prog", "command", &more))
    }

    /// Lets all programs end, those too that are started later.
    pub(super) fn end(&self) {
        fs::write(self.0.path("runs.end"), "").unwrap();
    }

    /// The first and the last time of each process id. A line that a signal has cut short counts for nothing.
    fn times(&self) -> BTreeMap<u32, (Duration, Duration)> {
        let mut times = BTreeMap::new();
        for line in fs::read_to_string(self.0.path("runs")).unwrap_or_default().lines() {
            let parsed = line.split_once(' ').and_then(|(id, time)| Some((id.parse().ok()?, time.parse().ok()?)));
            let Some((id, nanoseconds)) = parsed else { continue };
            let time = Duration::from_nanos(nanoseconds);
            times.entry(id).or_insert((time, time)).1 = time;
        }
        times
    }

    /// The process ids in the order of their starts.
    pub(super) fn programs(&self) -> Vec<u32> {
        let times = self.times();
        let mut programs: Vec<u32> = times.keys().copied().collect();
        programs.sort_by_key(|id| times[id].0);
        programs
    }

    /// Waits until this many have run, and returns the process id of the last.
    pub(super) fn until_runs(&self, count: usize) -> u32 {
        until("a program runs", || self.programs().len() >= count);
        self.programs()[count - 1]
    }

    /// When this process last ran, since the epoch.
    pub(super) fn last(&self, program: u32) -> Duration {
        self.times()[&program].1
    }

    /// Each process has run for the last time before the next one began.
    #[track_caller]
    pub(super) fn assert_none_overlap(&self) {
        let times = self.times();
        for pair in self.programs().windows(2) {
            let (end, begin) = (times[&pair[0]].1, times[&pair[1]].0);
            assert!(end < begin, "{} ran {:?} beside {}", pair[0], end - begin, pair[1]);
        }
    }
}
