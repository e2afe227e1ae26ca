//! What becomes of the work of a node that dies, freezes, stops in order or cannot reach the database.

use std::process::Command;
use std::time::Duration;

use sabir_testkit::postgres::{Postgres, StopMode, report_skipped};
use serde_json::{Value, json};

use super::fixture::{ClusterFixture, LIMIT, id_of, numbered, status_text, until};
use crate::SABIR;

#[test]
fn the_work_of_a_killed_node_is_taken_over() {
    let toml = "[[agent]]\nid = \"demo\"\nkind = \"demo\"\nmax_concurrent = 2\n";
    let Some(mut cluster) = ClusterFixture::with(3, toml) else { return };
    let running = cluster.working(0, "slow 600 never", Value::Null);
    let other = cluster.working(0, "slow 600 never", Value::Null);
    // The agent has no slot left on this node.
    let later = json!({"configuration": {"returnImmediately": true}});
    let queued = id_of(&cluster.send(0, "hello", later));
    let waiting = id_of(&cluster.send(1, "ask which?", Value::Null));
    assert_eq!(cluster.state(1, &queued), "TASK_STATE_SUBMITTED");
    let mut live = cluster.subscribe(1, &running, Some(0));
    cluster.kill(0);
    cluster.until_state(1, &running, "TASK_STATE_FAILED");
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
    let running = cluster.working(0, "slow 4 hello", Value::Null);
    cluster.kill(0);
    cluster.until_state(1, &running, "TASK_STATE_COMPLETED");
}

#[test]
fn a_message_is_not_lost_when_its_sender_takes_the_task_over() {
    let toml = "[recovery]\nrunning = \"requeue\"\n[[agent]]\nid = \"demo\"\nkind = \"demo\"\n";
    let Some(cluster) = ClusterFixture::with(2, toml) else { return };
    let running = cluster.working(0, "slow 600 first", json!({"message": {"contextId": "c1"}}));
    cluster.node(0).signal("STOP");
    // Forwarded to the frozen node, and then the sender has the task itself.
    let to = json!({"message": {"taskId": running, "contextId": "c1"}, "configuration": {"returnImmediately": true}});
    cluster.send(1, "second", to);
    cluster.until_works_again(1, &running);
    // The history of a canceled task also has the messages that still waited for their turn.
    cluster.cancel(1, &running);
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
    let messages = [("slow 600 answered", "the-answer"), ("hello", "the-next")];
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
    // The history of a canceled task also has the messages that still waited for their turn.
    cluster.cancel(1, &id);
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
    cluster.working(0, "slow 600 never", Value::Null);
    let queued: Vec<String> = (0..5).map(|_| id_of(&cluster.send(0, "hello", later.clone()))).collect();
    // They have waited for long when their node dies.
    cluster.execute("UPDATE tasks SET time = time - 3600000");
    cluster.kill(0);
    cluster.until_row("the node without the agent has left them", "SELECT count(*) FROM tasks WHERE is_left", "6");
    // It looks at them once per second.
    std::thread::sleep(Duration::from_millis(1500));
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
    let toml = "[server]\ngrace = \"600s\"\n[[agent]]\nid = \"demo\"\nkind = \"demo\"\nmax_concurrent = 1\n";
    let Some(mut cluster) = ClusterFixture::with(2, toml) else { return };
    let running = cluster.working(0, "slow 600 hello", Value::Null);
    let later = json!({"configuration": {"returnImmediately": true}});
    let queued = id_of(&cluster.send(0, "hello", later));
    assert_eq!(cluster.state(1, &queued), "TASK_STATE_SUBMITTED");
    cluster.node(0).terminate();
    cluster.until_state(1, &queued, "TASK_STATE_COMPLETED");
    assert_eq!(cluster.state(1, &running), "TASK_STATE_WORKING", "nobody waits for the run of the node that stops");
    // That run still belongs to its node, which ends after it.
    cluster.cancel(1, &running);
    let mut stopped = cluster.nodes[0].take().unwrap();
    assert!(stopped.wait(LIMIT).success());
    cluster.start(0);
    assert_eq!(cluster.state(0, &queued), "TASK_STATE_COMPLETED");
}

#[test]
fn a_frozen_node_writes_nothing_when_it_wakes_up() {
    let Some(cluster) = ClusterFixture::demo(2) else { return };
    let id = cluster.working(0, "stream 10000 20", Value::Null);
    cluster.node(0).signal("STOP");
    cluster.until_state(1, &id, "TASK_STATE_FAILED");
    let before = cluster.events(1, &id, 0);
    cluster.node(0).signal("CONT");
    let begun_again = "SELECT count(*) FROM nodes WHERE name = 'n0' AND ended IS NULL";
    cluster.until_row("the frozen node begins again", begun_again, "1");
    cluster.until_state(0, &id, "TASK_STATE_FAILED");
    assert_eq!(cluster.events(1, &id, 0), before);
    assert_eq!(cluster.events(0, &id, 0), before, "the frozen node has noticed too");
    // It is a node like any other again.
    let after = cluster.send(0, "hello", Value::Null);
    assert_eq!(after["status"]["state"], "TASK_STATE_COMPLETED");
    let again = cluster.working(0, "slow 600 hello", Value::Null);
    cluster.cancel(1, &again);
    assert_eq!(cluster.events(1, &id, 0), before);
}

#[test]
fn a_short_outage_of_the_database_costs_nobody_its_run() {
    let Some(mut postgres) = Postgres::start() else { return report_skipped(1) };
    let cluster = ClusterFixture::on(&postgres.fresh_database(), 2, "[[agent]]\nid = \"demo\"\nkind = \"demo\"\n");
    let id = cluster.working(0, "slow 600 hello", Value::Null);
    let mut reader = cluster.subscribe(1, &id, Some(0));
    postgres.stop(StopMode::Immediate);
    std::thread::sleep(Duration::from_millis(1500));
    postgres.start_again();
    let renewed = "SELECT bool_and(beat > pg_postmaster_start_time() + interval '2 seconds') FROM nodes";
    until("both renew their leases", || postgres.execute(&cluster.url, renewed) == "t");
    cluster.cancel(1, &id);
    let frames: Vec<(u64, String)> = reader.rest().unwrap().into_iter().map(numbered).collect();
    let numbers: Vec<u64> = frames.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    assert_eq!(frames.iter().filter(|(_, data)| data.contains("TASK_STATE_WORKING")).count(), 1, "{frames:?}");
    assert!(frames.last().unwrap().1.contains("TASK_STATE_CANCELED"), "{frames:?}");
    let after = cluster.send(1, "hello", Value::Null);
    assert_eq!(after["status"]["state"], "TASK_STATE_COMPLETED");
}

#[test]
fn readers_find_new_events_when_hints_are_lost() {
    let Some(mut postgres) = Postgres::start() else { return report_skipped(1) };
    let cluster = ClusterFixture::on(&postgres.fresh_database(), 2, "[[agent]]\nid = \"demo\"\nkind = \"demo\"\n");
    let id = cluster.working(0, "stream 10000 50", Value::Null);
    let mut reader = cluster.subscribe(1, &id, Some(0));
    assert!(postgres.terminate_backends("query LIKE 'LISTEN%'") > 0, "somebody listens");
    reader.give_up_after(LIMIT);
    let mut frames: Vec<_> = (0..60).map(|_| numbered(reader.next_frame().unwrap().expect("it goes on"))).collect();
    cluster.cancel(0, &id);
    frames.extend(reader.rest().unwrap().into_iter().map(numbered));
    assert_eq!(frames, cluster.events(0, &id, 0));
    postgres.stop(StopMode::Fast);
}

/// With the usual beat (2 s) and grace time (6 s). It prints how long the takeover took, from the last beat of the killed node to the
/// last status of a task.
#[test]
fn all_tasks_of_a_killed_node_are_taken_over_soon() {
    const TASKS: usize = 200;
    /// How many are sent at the same time.
    const SENDERS: usize = 10;
    let toml = format!("[[agent]]\nid = \"demo\"\nkind = \"demo\"\nmax_concurrent = {TASKS}\n");
    let Some(mut cluster) = ClusterFixture::with(3, &toml) else { return };
    let later = json!({"configuration": {"returnImmediately": true}});
    let ids: Vec<String> = std::thread::scope(|scope| {
        let (cluster, later) = (&cluster, &later);
        let send = move |_| id_of(&cluster.send(0, "slow 600", later.clone()));
        let senders: Vec<_> =
            (0..SENDERS).map(|_| scope.spawn(move || (0..TASKS / SENDERS).map(send).collect::<Vec<_>>())).collect();
        senders.into_iter().flat_map(|sender| sender.join().unwrap()).collect()
    });
    assert_eq!(ids.len(), TASKS);
    until("all work", || cluster.total(1, "TASK_STATE_WORKING") == TASKS as u64);
    let killed = cluster.execute("SELECT now()");
    cluster.kill(0);
    until("all have failed", || cluster.total(1, "TASK_STATE_FAILED") == TASKS as u64);
    for (number, id) in ids.iter().enumerate() {
        let task = cluster.rpc(1 + number % 2, "GetTask", json!({"id": id}))["result"].clone();
        assert!(status_text(&task).contains("node n0 was lost"), "{task}");
    }
    let seconds_from = |start: &str| -> f64 {
        let sql = format!(
            "SELECT extract(epoch FROM to_timestamp(max(tasks.time) / 1000.0) - {start})::float8 FROM tasks,
                (SELECT beat, ended FROM nodes WHERE name = 'n0' AND is_dead) AS lost GROUP BY beat, ended"
        );
        cluster.execute(&sql).parse().unwrap()
    };
    let (beat, kill) = (seconds_from("lost.beat"), seconds_from(&format!("timestamptz '{killed}'")));
    let declared_dead = seconds_from("lost.ended");
    println!(
        "{TASKS} tasks were taken over {beat:.2} s after the last beat, {kill:.2} s after the kill and {declared_dead:.2} s after \
         their node was declared dead"
    );
    // When the grace time is over, other nodes notice it at one of their next beats.
    const GRACE: f64 = 6.0;
    assert!(beat < GRACE + 10.0, "{beat} s after the last beat");
    assert!(declared_dead < 10.0, "{declared_dead} s after the node was declared dead");
}

#[test]
fn the_command_line_shows_all_nodes_and_which_one_is_dead() {
    let Some(mut cluster) = ClusterFixture::demo(3) else { return };
    let running = cluster.working(0, "slow 600 never", Value::Null);
    let nodes = |cluster: &ClusterFixture| -> Value {
        let url = format!("http://{}", cluster.node(1).address);
        let output = Command::new(SABIR).args(["nodes", &url]).env_clear().output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    // Name, state, whether it was asked, and how many tasks work there.
    let rows = |shown: &Value| -> Vec<(String, String, bool, u64)> {
        assert_eq!(shown["shared"], true, "{shown}");
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let row = |node: &Value| {
            let working = node["working"].as_u64().unwrap();
            (text(&node["name"]), text(&node["state"]), node["this"] == true, working)
        };
        shown["nodes"].as_array().unwrap_or_else(|| panic!("{shown}")).iter().map(row).collect()
    };
    let row = |name: &str, state: &str, working: u64| (name.to_owned(), state.to_owned(), name == "n1", working);
    until("all are alive", || {
        rows(&nodes(&cluster)) == [row("n0", "alive", 1), row("n1", "alive", 0), row("n2", "alive", 0)]
    });
    let shown = nodes(&cluster);
    for node in shown["nodes"].as_array().unwrap() {
        assert_eq!((&node["version"], &node["grace"]), (&json!(env!("CARGO_PKG_VERSION")), &json!(6.0)), "{shown}");
        assert!(node["up"].as_f64() >= node["last_beat"].as_f64(), "{shown}");
    }
    cluster.kill(0);
    until("the killed one is dead", || {
        rows(&nodes(&cluster)) == [row("n0", "dead", 0), row("n1", "alive", 0), row("n2", "alive", 0)]
    });
    cluster.until_state(1, &running, "TASK_STATE_FAILED");
    cluster.start(0);
    until("it is back", || {
        rows(&nodes(&cluster)) == [row("n0", "alive", 0), row("n1", "alive", 0), row("n2", "alive", 0)]
    });
}
