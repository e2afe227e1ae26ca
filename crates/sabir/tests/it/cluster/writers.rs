//! Nodes with several writers each (`cluster.writers`): all of them write, the events of a task keep their order, and totals are
//! right.

use std::collections::BTreeSet;

use sabir_testkit::postgres::Postgres;
use serde_json::{Value, json};

use super::fixture::{ClusterFixture, DEMO, id_of, until};

const TASKS: usize = 80;

#[test]
fn all_writers_of_a_node_write_and_keep_the_order_of_a_task() {
    let toml = format!("[recovery]\nrunning = \"requeue\"\n{DEMO}");
    let Some(mut cluster) = ClusterFixture::with_cluster(2, &toml, "writers = 4") else { return };
    let later = json!({"configuration": {"returnImmediately": true}});
    let send = |number: usize| {
        let words = if number.is_multiple_of(2) { "stream 30 2" } else { "hello" };
        id_of(&cluster.send(number % 2, words, later.clone()))
    };
    let ids: Vec<String> = std::thread::scope(|scope| {
        let sends: Vec<_> = (0..TASKS).map(|number| scope.spawn(move || send(number))).collect();
        sends.into_iter().map(|send| send.join().unwrap()).collect()
    });
    for (number, id) in ids.iter().enumerate() {
        let events = cluster.events((number + 1) % 2, id, 0);
        let numbers: Vec<u64> = events.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>());
        assert_eq!(events, cluster.events(number % 2, id, 0));
        assert!(events.last().unwrap().1.contains("TASK_STATE_COMPLETED"), "{:?}", events.last());
    }
    // Each writer has counters of its own.
    let sql = "SELECT DISTINCT nodes.name || ' ' || writer FROM tallies JOIN nodes ON nodes.no = tallies.node";
    let rows = Postgres::shared().unwrap().execute(&cluster.url, sql);
    let expected: Vec<String> = (0..2).flat_map(|node| (0..4).map(move |writer| format!("n{node} {writer}"))).collect();
    assert_eq!(rows.lines().collect::<BTreeSet<_>>(), expected.iter().map(String::as_str).collect::<BTreeSet<_>>());

    let running: Vec<String> = (0..8).map(|_| id_of(&cluster.send(0, "slow 600 hello", later.clone()))).collect();
    until("all work", || cluster.total(1, "TASK_STATE_WORKING") == running.len() as u64);
    cluster.kill(0);
    for id in &running {
        cluster.until_works_again(1, id);
    }
    for id in &running[4..] {
        cluster.cancel(1, id);
    }
    let total = |params: Value| cluster.rpc(1, "ListTasks", params)["result"]["totalSize"].clone();
    assert_eq!(total(json!({})), TASKS + running.len());
    assert_eq!(total(json!({"status": "TASK_STATE_COMPLETED"})), TASKS);
    assert_eq!(total(json!({"status": "TASK_STATE_CANCELED"})), 4);
    assert_eq!(total(json!({"status": "TASK_STATE_WORKING"})), 4);
}
