//! What a node does at its start with a database that is half migrated, or whose first host does not answer.

use std::net::TcpListener;
use std::process::Command;

use sabir_testkit::postgres::{Postgres, report_skipped};
use serde_json::{Value, json};

use super::fixture::{ClusterFixture, DEMO, LIMIT, id_of, refusal};
use crate::SABIR;

/// Ends all nodes in order, so that nobody uses the database.
fn stop(mut cluster: ClusterFixture) {
    for mut node in cluster.nodes.drain(..).flatten() {
        node.terminate();
        assert!(node.wait(LIMIT).success());
    }
}

#[test]
fn a_database_that_is_half_migrated_is_refused() {
    let Some(postgres) = Postgres::shared() else { return report_skipped(1) };
    let toml = format!("[audit]\nenabled = true\n{DEMO}");
    let source = ClusterFixture::on(&postgres.fresh_database(), 1, &toml);
    let from = source.url.clone();
    let ids: Vec<String> = (0..3).map(|_| id_of(&source.send(0, "hello", Value::Null))).collect();
    stop(source);
    // A server makes the tables, which then refuse the end of the copy.
    let target = ClusterFixture::on(&postgres.fresh_database(), 1, &toml);
    let to = target.url.clone();
    stop(target);
    let refuse =
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'the disk is full'; END $$;
        CREATE TRIGGER refuse BEFORE INSERT ON audit EXECUTE FUNCTION refuse()";
    postgres.execute(&to, refuse);
    let migrate = || {
        let words = ["store", "migrate", "--from", &from, "--to", &to];
        let output = Command::new(SABIR).args(words).env_clear().output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (is_done, errors) = migrate();
    assert!(!is_done && errors.contains("the disk is full"), "{errors}");
    assert_eq!(postgres.execute(&to, "SELECT count(*) FROM tasks"), "3", "the tasks are there, and more is missing");

    let node = ClusterFixture::on(&to, 0, DEMO);
    let errors = refusal(&node.options("n0"));
    assert!(errors.contains("the migration or the restore into it was interrupted"), "{errors}");
    assert!(errors.contains("run the same `sabir store migrate` or"), "{errors}");
    assert_eq!(postgres.execute(&to, "SELECT count(*) FROM nodes WHERE name = 'n0' AND ended IS NULL"), "0");

    postgres.execute(&to, "DROP FUNCTION refuse CASCADE");
    let (is_done, errors) = migrate();
    assert!(is_done, "{errors}");
    let node = node.with_node("n0");
    for id in &ids {
        assert_eq!(node.state(0, id), "TASK_STATE_COMPLETED");
    }
    assert_eq!(node.rpc(0, "ListTasks", json!({}))["result"]["totalSize"], 3);
}

#[test]
fn a_silent_first_host_is_skipped_and_costs_no_lease() {
    let Some(postgres) = Postgres::shared() else { return report_skipped(1) };
    // The system accepts connections for it, and nobody reads them.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let direct = postgres.fresh_database();
    let database = direct.rsplit('/').next().unwrap();
    let (first, second) = (silent.local_addr().unwrap(), postgres.address());
    // Longer than the grace time: the lease would be over if the silent host were tried again. The other host has as long, also on a
    // busy machine: if it did not answer in time, the silent one would have its turn once more.
    let url = format!("postgres://postgres@{first},{second}/{database}?connect_timeout=25");
    let cluster = ClusterFixture::on(&url, 1, DEMO);
    // It would declare the first node dead and end its run.
    let other = ClusterFixture::on(&direct, 0, DEMO).with_node("other");
    let id = cluster.working(0, "slow 600 hello", Value::Null);
    // New connections are needed in the middle of it.
    assert!(postgres.terminate_backends(&format!("datname = '{database}'")) > 0);
    let since = postgres.execute(&direct, "SELECT now()");
    let renewed = format!("SELECT bool_and(beat > timestamptz '{since}' + interval '8 seconds') FROM nodes");
    other.until_row("both renew their leases", &renewed, "t");
    assert_eq!(postgres.execute(&direct, "SELECT count(*) FROM nodes WHERE is_dead"), "0");
    other.cancel(0, &id);
    assert_eq!(cluster.send(0, "hello", Value::Null)["status"]["state"], "TASK_STATE_COMPLETED");
    silent.set_nonblocking(true).unwrap();
    let asked = silent.incoming().map_while(Result::ok).count();
    assert_eq!(asked, 1, "the host that answered last is tried first");
}
