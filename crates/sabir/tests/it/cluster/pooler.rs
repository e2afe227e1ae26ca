//! PgBouncer in transaction mode between the nodes and Postgres: everything works, and the nodes say that they poll.

use sabir_testkit::postgres::{PgBouncer, Postgres, report_skipped};
use serde_json::{Value, json};

use super::fixture::{ClusterFixture, DEMO, id_of, numbered, status_text};

#[test]
fn nodes_behind_a_pooler_work_together() {
    let Some(postgres) = Postgres::shared() else { return report_skipped(1) };
    let Some(bouncer) = PgBouncer::start(postgres) else { return report_skipped(1) };
    let direct_url = postgres.fresh_database();
    let url = bouncer.url_of(direct_url.rsplit('/').next().unwrap());
    let mut cluster = ClusterFixture::on(&url, 3, DEMO);
    for node in 0..3 {
        let ready = &cluster.node(node).ready;
        assert_eq!(ready["notifications"], "polling: a pooler is between", "{ready}");
        assert_eq!(cluster.node(node).get("/readyz").json(), json!({"status": "ready", "notifications": "polling"}));
    }
    let direct = ClusterFixture::on(&direct_url, 0, DEMO).with_node("direct");
    assert_eq!(direct.node(0).ready["notifications"], "listening to other nodes");
    assert_eq!(direct.node(0).get("/readyz").json(), json!({"status": "ready", "notifications": "listening"}));
    drop(direct);

    // Sent on one node, followed live on another until it is canceled.
    let streamed = cluster.working(0, "stream 10000 25", Value::Null);
    let mut tail = cluster.subscribe(1, &streamed, Some(0));
    let mut seen = Vec::new();
    while seen.len() < 40 {
        seen.push(numbered(tail.next_frame().unwrap().expect("it goes on")));
    }
    assert_eq!(cluster.state(0, &streamed), "TASK_STATE_WORKING", "the tail is read while the task runs");
    cluster.cancel(0, &streamed);
    seen.extend(tail.rest().unwrap().into_iter().map(numbered));
    assert_eq!(seen, cluster.events(0, &streamed, 0));
    assert_eq!(seen, cluster.events(2, &streamed, 0));

    // Canceled and answered through others.
    let running = cluster.working(0, "slow 600 never", Value::Null);
    cluster.cancel(2, &running);
    let asked = id_of(&cluster.send(1, "ask which?", Value::Null));
    let answered = cluster.send(2, "this one", json!({"message": {"taskId": asked}}));
    assert_eq!(answered["status"]["state"], "TASK_STATE_COMPLETED");

    // Taken over: the grace time, then a look at the other nodes at each beat.
    let lost = cluster.working(0, "slow 600 never", Value::Null);
    let mut tail = cluster.subscribe(2, &lost, Some(0));
    cluster.kill(0);
    cluster.until_state(1, &lost, "TASK_STATE_FAILED");
    let task = cluster.rpc(2, "GetTask", json!({"id": lost}))["result"].clone();
    assert!(status_text(&task).contains("node n0 was lost"), "{task}");
    assert!(tail.rest().unwrap().last().unwrap().data.contains("TASK_STATE_FAILED"));
    assert_eq!(cluster.send(1, "hello", Value::Null)["status"]["state"], "TASK_STATE_COMPLETED");
}
