//! Nodes that poll, since a pooler is between, while they get sends all the time: what comes in puts no look at the log off.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use sabir_testkit::postgres::{PgBouncer, Postgres, report_skipped};
use serde_json::{Value, json};

use super::fixture::{ClusterFixture, DEMO, LIMIT, id_of, numbered};

/// Shorter than the interval at which nodes poll.
const PAUSE: Duration = Duration::from_millis(50);

#[test]
fn sends_do_not_put_off_what_other_nodes_wait_for() {
    let Some(postgres) = Postgres::shared() else { return report_skipped(1) };
    let Some(bouncer) = PgBouncer::start(postgres) else { return report_skipped(1) };
    let url = bouncer.url_of(postgres.fresh_database().rsplit('/').next().unwrap());
    let cluster = ClusterFixture::on(&url, 2, DEMO);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for node in 0..2 {
            let (cluster, is_over) = (&cluster, &is_over);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    cluster.send(node, "hello", Value::Null);
                    thread::sleep(PAUSE);
                }
            });
        }
        let end = EndGuard(&is_over);
        // Followed on the node that does not drive it.
        let streamed = cluster.working(0, "stream 10000 25", Value::Null);
        let mut tail = cluster.subscribe(1, &streamed, Some(0));
        tail.give_up_after(LIMIT);
        for _ in 0..40 {
            numbered(tail.next_frame().unwrap().expect("it goes on"));
        }
        assert_eq!(cluster.state(0, &streamed), "TASK_STATE_WORKING", "the tail is read while the task runs");
        // The cancel is a row that the driver's node has to look for.
        cluster.cancel(1, &streamed);
        cluster.until_state(1, &streamed, "TASK_STATE_CANCELED");
        let asked = id_of(&cluster.send(0, "ask which?", Value::Null));
        let answer = json!({"message": {"taskId": asked}});
        assert_eq!(cluster.send(1, "this one", answer)["status"]["state"], "TASK_STATE_COMPLETED");
        drop(end);
    });
}

/// Lets the senders end, also if the test fails.
struct EndGuard<'a>(&'a AtomicBool);

impl Drop for EndGuard<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
