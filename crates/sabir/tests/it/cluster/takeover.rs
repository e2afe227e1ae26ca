//! What becomes of the work of a node that dies, freezes, stops in order or cannot reach the database.

use std::time::{Duration, Instant};

use sabir_testkit::postgres::{Postgres, StopMode, report_skipped};
use serde_json::{Value, json};

use super::fixture::{ClusterFixture, id_of, status_text};

const TAKEOVER: Duration = Duration::from_secs(10);

#[test]
fn the_work_of_a_killed_node_is_taken_over() {
    let toml = "[[agent]]\nid = \"demo\"\nkind = \"demo\"\nmax_concurrent = 2\n";
    let Some(mut cluster) = ClusterFixture::with(3, toml) else { return };
    let running = cluster.working(0, "slow 60 never", Value::Null);
    let other = cluster.working(0, "slow 60 never", Value::Null);
    // The agent has no slot left on this node.
    let later = json!({"configuration": {"returnImmediately": true}});
    let queued = id_of(&cluster.send(0, "hello", later));
    let waiting = id_of(&cluster.send(1, "ask which?", Value::Null));
    assert_eq!(cluster.state(1, &queued), "TASK_STATE_SUBMITTED");
    let mut live = cluster.subscribe(1, &running, Some(0));
    cluster.kill(0);
    let took = cluster.until_state(1, &running, "TASK_STATE_FAILED");
    assert!(took < TAKEOVER, "{took:?}");
    cluster.until_state(2, &other, "TASK_STATE_FAILED");
    cluster.until_state(2, &queued, "TASK_STATE_COMPLETED");
    let task = cluster.rpc(2, "GetTask", json!({"id": running}))["result"].clone();
    assert!(status_text(&task).contains("node n0 was lost"), "{task}");
    let frames = live.rest().unwrap();
    assert!(frames.last().unwrap().data.contains("TASK_STATE_FAILED"), "the reader follows the task to its new node");
    assert_eq!(cluster.state(1, &waiting), "TASK_STATE_INPUT_REQUIRED");
    let answered = cluster.send(2, "this", json!({"message": {"taskId": waiting}}));
    assert_eq!(answered["status"]["state"], "TASK_STATE_COMPLETED");
}

#[test]
fn what_ran_is_run_again_if_recovery_says_so() {
    let toml = "[recovery]\nrunning = \"requeue\"\n[[agent]]\nid = \"demo\"\nkind = \"demo\"\n";
    let Some(mut cluster) = ClusterFixture::with(2, toml) else { return };
    let running = cluster.working(0, "slow 1 hello", Value::Null);
    cluster.kill(0);
    cluster.until_state(1, &running, "TASK_STATE_COMPLETED");
}

#[test]
fn a_message_is_not_lost_when_its_sender_takes_the_task_over() {
    let toml = "[recovery]\nrunning = \"requeue\"\n[[agent]]\nid = \"demo\"\nkind = \"demo\"\n";
    let Some(cluster) = ClusterFixture::with(2, toml) else { return };
    let running = cluster.working(0, "slow 1.5 first", json!({"message": {"contextId": "c1"}}));
    cluster.node(0).signal("STOP");
    // Forwarded to the frozen node, and then the sender has the task itself.
    let to = json!({"message": {"taskId": running, "contextId": "c1"}, "configuration": {"returnImmediately": true}});
    let began = Instant::now();
    let task = cluster.send(1, "second", to);
    assert!(began.elapsed() < TAKEOVER + Duration::from_secs(2), "{:?}: {task}", began.elapsed());
    cluster.until_state(1, &running, "TASK_STATE_COMPLETED");
    let task = cluster.rpc(1, "GetTask", json!({"id": running}))["result"].clone();
    let copies = task["history"].to_string().matches("\"second\"").count();
    assert_eq!(copies, 1, "{task}");
    cluster.node(0).signal("CONT");
}

#[test]
fn a_repeated_message_joins_the_first_after_a_takeover() {
    let toml = "[recovery]\nrunning = \"requeue\"\n[[agent]]\nid = \"demo\"\nkind = \"demo\"\n";
    let Some(mut cluster) = ClusterFixture::with(2, toml) else { return };
    let id = id_of(&cluster.send(0, "ask which?", Value::Null));
    let named = |message: &str| json!({"message": {"messageId": message, "taskId": id}, "configuration": {"returnImmediately": true}});
    // The answer begins a turn, and the other message comes while that runs.
    let messages = [("slow 3 answered", "the-answer"), ("hello", "the-next")];
    for (text, message) in messages {
        cluster.send(0, text, named(message));
        cluster.until_state(0, &id, "TASK_STATE_WORKING");
    }
    cluster.kill(0);
    // The first ones wait for the takeover, and the others come after it.
    for _ in 0..2 {
        for (text, message) in messages {
            assert_eq!(id_of(&cluster.send(1, text, named(message))), id);
        }
    }
    cluster.until_state(1, &id, "TASK_STATE_COMPLETED");
    let task = cluster.rpc(1, "GetTask", json!({"id": id}))["result"].clone();
    for (_, message) in messages {
        let copies = task["history"].to_string().matches(&format!("\"{message}\"")).count();
        assert_eq!(copies, 1, "{message}: {task}");
    }
}

#[test]
fn a_node_without_the_agent_leaves_its_tasks_to_others() {
    let with_agent = "[[agent]]\nid = \"extra\"\nkind = \"demo\"\nmax_concurrent = 1\n";
    let Some(mut cluster) = ClusterFixture::with(1, with_agent) else { return };
    let without = ClusterFixture::on(&cluster.url, 0, "[[agent]]\nid = \"demo\"\nkind = \"demo\"\n");
    let without = without.with_node("other");
    let later = json!({"configuration": {"returnImmediately": true}});
    cluster.working(0, "slow 60 never", Value::Null);
    let queued: Vec<String> = (0..5).map(|_| id_of(&cluster.send(0, "hello", later.clone()))).collect();
    // They have waited for long when their node dies.
    Postgres::shared().unwrap().execute(&cluster.url, "UPDATE tasks SET time = time - 3600000");
    cluster.kill(0);
    std::thread::sleep(Duration::from_secs(8));
    for id in &queued {
        assert_eq!(without.state(0, id), "TASK_STATE_SUBMITTED", "nobody has the agent now");
    }
    cluster.start(0);
    for id in &queued {
        cluster.until_state(0, id, "TASK_STATE_COMPLETED");
    }
}

#[test]
fn a_rolling_restart_gives_queued_work_back_at_once() {
    let toml = "[server]\ngrace = \"3s\"\n[[agent]]\nid = \"demo\"\nkind = \"demo\"\nmax_concurrent = 1\n";
    let Some(mut cluster) = ClusterFixture::with(2, toml) else { return };
    let running = cluster.working(0, "slow 1 hello", Value::Null);
    let later = json!({"configuration": {"returnImmediately": true}});
    let queued = id_of(&cluster.send(0, "hello", later));
    assert_eq!(cluster.state(1, &queued), "TASK_STATE_SUBMITTED");
    let began = Instant::now();
    cluster.node(0).terminate();
    cluster.until_state(1, &queued, "TASK_STATE_COMPLETED");
    assert!(began.elapsed() < Duration::from_secs(5), "without a grace time: {:?}", began.elapsed());
    cluster.until_state(1, &running, "TASK_STATE_COMPLETED");
    let mut stopped = cluster.nodes[0].take().unwrap();
    assert!(stopped.wait(Duration::from_secs(10)).success());
    cluster.start(0);
    assert_eq!(cluster.state(0, &queued), "TASK_STATE_COMPLETED");
}

#[test]
fn a_frozen_node_writes_nothing_when_it_wakes_up() {
    let Some(cluster) = ClusterFixture::demo(2) else { return };
    let id = cluster.working(0, "stream 2000 20", Value::Null);
    cluster.node(0).signal("STOP");
    let took = cluster.until_state(1, &id, "TASK_STATE_FAILED");
    assert!(took < TAKEOVER, "{took:?}");
    let before = cluster.events(1, &id, 0);
    cluster.node(0).signal("CONT");
    std::thread::sleep(Duration::from_secs(4));
    assert_eq!(cluster.events(1, &id, 0), before);
    assert_eq!(cluster.events(0, &id, 0), before, "the frozen node has noticed too");
    // It is a node like any other again.
    let after = cluster.send(0, "hello", Value::Null);
    assert_eq!(after["status"]["state"], "TASK_STATE_COMPLETED");
    let again = cluster.working(0, "slow 0.5 hello", Value::Null);
    cluster.until_state(1, &again, "TASK_STATE_COMPLETED");
}

#[test]
fn a_short_outage_of_the_database_costs_nobody_its_run() {
    let Some(mut postgres) = Postgres::start() else { return report_skipped(1) };
    let cluster = ClusterFixture::on(&postgres.fresh_database(), 2, "[[agent]]\nid = \"demo\"\nkind = \"demo\"\n");
    let id = cluster.working(0, "slow 6 hello", Value::Null);
    let mut reader = cluster.subscribe(1, &id, Some(0));
    postgres.stop(StopMode::Immediate);
    std::thread::sleep(Duration::from_millis(1500));
    postgres.start_again();
    cluster.until_state(1, &id, "TASK_STATE_COMPLETED");
    let frames = reader.rest().unwrap();
    let numbers: Vec<u64> = frames.iter().map(|frame| frame.id.unwrap()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    assert!(frames.last().unwrap().data.contains("TASK_STATE_COMPLETED"));
    let after = cluster.send(1, "hello", Value::Null);
    assert_eq!(after["status"]["state"], "TASK_STATE_COMPLETED");
}

#[test]
fn readers_find_new_events_when_hints_are_lost() {
    let Some(mut postgres) = Postgres::start() else { return report_skipped(1) };
    let cluster = ClusterFixture::on(&postgres.fresh_database(), 2, "[[agent]]\nid = \"demo\"\nkind = \"demo\"\n");
    let id = cluster.working(0, "stream 100 50", Value::Null);
    let mut reader = cluster.subscribe(1, &id, Some(0));
    assert!(postgres.terminate_backends("query LIKE 'LISTEN%'") > 0, "somebody listens");
    let frames = reader.rest().unwrap();
    assert_eq!(frames.len(), cluster.events(0, &id, 0).len());
    postgres.stop(StopMode::Fast);
}
