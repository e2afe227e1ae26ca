//! Webhooks of a node that dies while their receiver is down: another node delivers everything.

use serde_json::{Value, json};

use super::fixture::{ClusterFixture, id_of};
use crate::webhook_receiver::{ClosedReceiver, ReceivedRequest, WebhookReceiver};

const TOML: &str = "[push]\nallow_hosts = [\"127.0.0.1\"]\n[[agent]]\nid = \"demo\"\nkind = \"demo\"\n";

#[test]
fn webhooks_of_a_killed_node_are_delivered_by_another() {
    let Some(mut cluster) = ClusterFixture::with(2, TOML) else { return };
    let receiver = ClosedReceiver::new();
    let with_hook = json!({"taskPushNotificationConfig": {"url": receiver.url("/hook")}, "returnImmediately": true});
    // One task is over before the node dies, the other one ends on the other node.
    let finished = id_of(&cluster.send(0, "ask which?", json!({"configuration": with_hook.clone()})));
    cluster.until_state(0, &finished, "TASK_STATE_INPUT_REQUIRED");
    cluster.send(0, "this one", json!({"message": {"taskId": finished}}));
    let interrupted = id_of(&cluster.send(0, "slow 600 never", json!({"configuration": with_hook})));
    cluster.until_state(0, &interrupted, "TASK_STATE_WORKING");
    cluster.until_row("n0 has tried both", "SELECT count(*) FROM webhooks WHERE attempts > 0", "2");
    let owners = "SELECT DISTINCT nodes.name FROM webhooks JOIN nodes ON nodes.no = webhooks.node";
    assert_eq!(cluster.execute(owners), "n0");

    cluster.kill(0);
    cluster.until_row("n1 has both webhooks", owners, "n1");
    let receiver = receiver.open();
    let mut deliveries = Vec::new();
    while deliveries.iter().filter(|request| is_last(request)).count() < 2 {
        deliveries.push(receiver.next());
    }
    assert_eq!(
        states_of(&deliveries, &finished),
        ["TASK_STATE_WORKING", "TASK_STATE_INPUT_REQUIRED", "TASK_STATE_WORKING", "TASK_STATE_COMPLETED"]
    );
    assert_eq!(states_of(&deliveries, &interrupted), ["TASK_STATE_WORKING", "TASK_STATE_FAILED"]);
    assert_eq!(deliveries.len(), 6);
    cluster.until_row("nothing is due any more", "SELECT count(*) FROM webhooks WHERE due IS NOT NULL", "0");
    assert_nothing_more(&receiver);
}

/// What is in a delivery: an event, or the task where it waits or is over.
fn event(request: &ReceivedRequest) -> Value {
    let mut body = request.json();
    let name = if body["task"].is_object() { "task" } else { "statusUpdate" };
    body[name].take()
}

fn is_last(request: &ReceivedRequest) -> bool {
    ["TASK_STATE_COMPLETED", "TASK_STATE_FAILED"].contains(&event(request)["status"]["state"].as_str().unwrap())
}

fn states_of(deliveries: &[ReceivedRequest], task: &str) -> Vec<String> {
    let events = deliveries.iter().map(event);
    let of_task = events.filter(|event| event["taskId"] == task || event["id"] == task);
    of_task.map(|event| event["status"]["state"].as_str().unwrap().to_owned()).collect()
}

fn assert_nothing_more(receiver: &WebhookReceiver) {
    let more = receiver.rest();
    assert!(more.is_empty(), "{more:?}");
}
