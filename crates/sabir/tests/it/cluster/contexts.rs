//! One run per context, over all nodes, in order of arrival.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::fixture::{ClusterFixture, LIMIT, id_of, status_text, until};

fn in_context(context: &str) -> Value {
    json!({"message": {"contextId": context}, "configuration": {"returnImmediately": true}})
}

#[test]
fn tasks_of_one_context_take_turns_over_all_nodes() {
    let Some(cluster) = ClusterFixture::demo(3) else { return };
    // The first works until all of them have come.
    let words = |number: usize| if number == 0 { "slow 600 hello" } else { "slow 0.3 hello" };
    let ids: Vec<String> =
        (0..6).map(|number| id_of(&cluster.send(number % 3, words(number), in_context("c1")))).collect();
    let second = cluster.rpc(0, "GetTask", json!({"id": ids[1]}))["result"].clone();
    assert_eq!(second["status"]["state"], "TASK_STATE_SUBMITTED");
    assert!(status_text(&second).contains(&format!("waiting for task {}", ids[0])), "{second}");
    cluster.cancel(1, &ids[0]);
    // Whoever has begun is working or done, and at most one works.
    let (began, mut finished) = (Instant::now(), vec![ids[0].clone()]);
    while finished.len() < ids.len() {
        assert!(began.elapsed() < LIMIT, "only {finished:?} of {ids:?}");
        // The last one first: those before a task that works are done when they are looked at.
        let mut states: Vec<String> = ids.iter().rev().map(|id| cluster.state(2, id)).collect();
        states.reverse();
        let working = states.iter().filter(|state| *state == "TASK_STATE_WORKING").count();
        assert!(working <= 1, "{states:?}");
        for (id, state) in ids.iter().zip(&states) {
            if state == "TASK_STATE_COMPLETED" && !finished.contains(id) {
                finished.push(id.clone());
            }
        }
        assert!(!states.iter().any(|state| state == "TASK_STATE_FAILED"), "{states:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(finished, ids, "in the order in which they came");
}

#[test]
fn a_blocking_send_waits_for_its_context_elsewhere() {
    let Some(cluster) = ClusterFixture::demo(2) else { return };
    let first = cluster.working(0, "slow 600 first", json!({"message": {"contextId": "c1"}}));
    let second = std::thread::scope(|scope| {
        let second = scope.spawn(|| cluster.send(1, "second", json!({"message": {"contextId": "c1"}})));
        until("the second waits", || cluster.total(0, "TASK_STATE_SUBMITTED") == 1);
        cluster.cancel(0, &first);
        second.join().unwrap()
    });
    assert_eq!(second["status"]["state"], "TASK_STATE_COMPLETED", "{second}");
}

#[test]
fn a_task_that_waits_for_its_context_can_be_canceled_anywhere() {
    let Some(cluster) = ClusterFixture::demo(3) else { return };
    let first = cluster.working(0, "slow 600 never", json!({"message": {"contextId": "c1"}}));
    let second = id_of(&cluster.send(1, "second", in_context("c1")));
    let third = id_of(&cluster.send(1, "third", in_context("c1")));
    cluster.cancel(2, &second);
    cluster.cancel(1, &first);
    cluster.until_state(0, &third, "TASK_STATE_COMPLETED");
}

#[test]
fn an_agent_has_so_many_runs_on_all_nodes() {
    let toml = "[[agent]]\nid = \"demo\"\nkind = \"demo\"\nmax_concurrent_total = 2\n";
    let Some(cluster) = ClusterFixture::with(3, toml) else { return };
    let later = json!({"configuration": {"returnImmediately": true}});
    for number in 0..6 {
        cluster.send(number % 3, "slow 0.4 hello", later.clone());
    }
    until("all are completed", || {
        let working = cluster.total(0, "TASK_STATE_WORKING");
        assert!(working <= 2, "{working} work at the same time");
        cluster.total(0, "TASK_STATE_COMPLETED") == 6
    });
}

/// As long as the agent has all its runs, the tasks that wait for one are left alone.
#[test]
fn tasks_that_wait_for_a_run_on_any_node_cost_nothing() {
    let toml = "[[agent]]\nid = \"demo\"\nkind = \"demo\"\nmax_concurrent = 4\nmax_concurrent_total = 1\nqueue = 500\n";
    let Some(cluster) = ClusterFixture::with(3, toml) else { return };
    let first = cluster.working(0, "slow 600 never", Value::Null);
    let later = json!({"configuration": {"returnImmediately": true}});
    let ids: Vec<String> = (0..60).map(|number| id_of(&cluster.send(number % 3, "hello", later.clone()))).collect();
    // Connections report what they did a while later, so the sends may still be counted at first.
    let began = Instant::now();
    loop {
        let (before, since) = (cluster.transactions(), Instant::now());
        std::thread::sleep(Duration::from_secs(4));
        let per_second = (cluster.transactions() - before) as f64 / since.elapsed().as_secs_f64();
        if per_second < 100.0 {
            break;
        }
        assert!(began.elapsed() < LIMIT, "{per_second} transactions per second with nothing to do");
    }
    let states = ids.iter().filter(|id| cluster.state(1, id) == "TASK_STATE_SUBMITTED").count();
    assert_eq!(states, ids.len());
    cluster.cancel(2, &first);
    until("hints wake those that wait", || cluster.total(2, "TASK_STATE_COMPLETED") == ids.len() as u64);
}
