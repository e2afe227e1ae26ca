//! Messages that wait for a task without a driver: each is taken once and in order, also while a node is just claiming the task.

use serde_json::{Value, json};

use super::fixture::{ClusterFixture, id_of, until};

const ROUNDS: usize = 12;

#[test]
fn messages_to_a_task_that_is_being_claimed_are_each_taken_once() {
    let Some(cluster) = ClusterFixture::demo(3) else { return };
    for round in 0..ROUNDS {
        let context = format!("c{round}");
        let task = id_of(&cluster.send(round % 3, "ask one", json!({"message": {"contextId": context}})));
        let blocker = cluster.working(0, "slow 600 never", json!({"message": {"contextId": context}}));
        let to_task = || json!({"message": {"taskId": task}, "configuration": {"returnImmediately": true}});
        // The context is busy, so it waits with the task, which nobody drives.
        cluster.send(1, "ask two", to_task());
        std::thread::scope(|scope| {
            let cluster = &cluster;
            // Now the task may run, and every node claims what it can.
            scope.spawn(|| cluster.cancel(round % 3, &blocker));
            for node in 0..3 {
                scope.spawn(move || cluster.send(node, &format!("ask {node} more"), to_task()));
            }
        });
        let mut texts = Vec::new();
        until("all messages are taken", || {
            let found = cluster.rpc(0, "GetTask", json!({"id": task}))["result"].clone();
            texts = texts_of_user(&found);
            texts.len() >= 5 && found["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
        });
        assert_eq!(texts[..2], ["ask one", "ask two"], "round {round}: {texts:?}");
        texts[2..].sort_unstable();
        assert_eq!(texts[2..], ["ask 0 more", "ask 1 more", "ask 2 more"], "round {round}: {texts:?}");
    }
}

fn texts_of_user(task: &Value) -> Vec<String> {
    let history = task["history"].as_array().into_iter().flatten();
    let texts = history.filter(|message| message["role"] == "ROLE_USER").map(|message| &message["parts"][0]["text"]);
    texts.map(|text| text.as_str().unwrap_or_default().to_owned()).collect()
}
