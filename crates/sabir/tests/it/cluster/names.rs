//! Two servers with the same node name at the same time. On one machine the second does not start. Two machines cannot know of each
//! other before the database tells: the second starts, says what is wrong, and both stay nodes of their own.

use std::fs;
use std::process::Stdio;

use serde_json::{Value, json};

use super::fixture::{ClusterFixture, DEMO, refusal, until};

#[test]
fn a_node_name_is_used_once_on_a_machine() {
    let Some(cluster) = ClusterFixture::demo(1) else { return };
    let errors = refusal(&cluster.options("n0"));
    assert!(errors.contains("node n0 runs on this machine already"), "{errors}");
    assert!(errors.contains("cluster.node_name (SABIR_CLUSTER_NODE_NAME)"), "{errors}");
    let sent = cluster.send(0, "hello", Value::Null);
    assert_eq!(sent["status"]["state"], "TASK_STATE_COMPLETED", "the first one is as it was");
}

#[test]
fn two_machines_with_one_node_name_are_two_nodes() {
    let toml = format!("[recovery]\nrunning = \"requeue\"\n{DEMO}");
    // A node looks for namesakes during its first two grace times, which a busy machine needs to be longer.
    let long = "beat = \"2s\"\ngrace = \"12s\"";
    let Some(mut cluster) = ClusterFixture::with_cluster(1, &toml, long) else { return };
    // Another home directory is another machine.
    let home = tempfile::tempdir().unwrap();
    let log = home.path().join("log");
    let text = home.path().display().to_string();
    let options = cluster.options("n0");
    let options = options.variable("HOME", &text).variable("XDG_STATE_HOME", &text).variable("XDG_DATA_HOME", &text);
    cluster.nodes.push(Some(options.start_with(Stdio::from(fs::File::create(&log).unwrap()))));
    let told = |log: &str| log.contains("another node has this name and renews its lease: give each server its own");
    until("the node tells of its namesake", || told(&fs::read_to_string(&log).unwrap()));

    let members = cluster.node(0).get("/admin/v1/nodes").json();
    let names = |key: &str| -> Vec<Value> {
        members["nodes"].as_array().unwrap().iter().map(|node| node[key].clone()).collect()
    };
    assert_eq!((names("name"), names("state")), (vec![json!("n0"); 2], vec![json!("alive"); 2]), "{members}");

    // Each drives its own tasks for longer than a grace time, and neither declares the other dead.
    let (first, second) =
        (cluster.working(0, "slow 600 first", Value::Null), cluster.working(1, "slow 600 second", Value::Null));
    let since = cluster.execute("SELECT now()");
    let renewed = format!("SELECT bool_and(beat > timestamptz '{since}' + interval '14 seconds') FROM nodes");
    cluster.until_row("both renew their leases", &renewed, "t");
    assert_eq!(cluster.execute("SELECT count(*) FROM nodes WHERE ended IS NOT NULL"), "0");
    for (node, task) in [(1, &first), (0, &second)] {
        // A call for a task of the namesake is forwarded to it.
        cluster.cancel(node, task);
        let text = cluster.events(node, task, 0);
        let begun = text.iter().filter(|(_, data)| data.contains("TASK_STATE_WORKING")).count();
        assert_eq!(begun, 1, "one run: {text:?}");
    }
    // The namesake takes over what is left behind.
    let lost = cluster.working(0, "slow 600 hello", Value::Null);
    cluster.kill(0);
    cluster.until_works_again(1, &lost);
    cluster.cancel(1, &lost);
}

#[test]
fn a_server_that_starts_again_is_not_its_own_namesake() {
    let short = "beat = \"500ms\"\ngrace = \"1500ms\"";
    let Some(mut cluster) = ClusterFixture::with_cluster(1, DEMO, short) else { return };
    cluster.kill(0);
    let options = cluster.options("n0");
    let log = options.folder.join("log");
    cluster.nodes[0] = Some(options.start_with(Stdio::from(fs::File::create(&log).unwrap())));
    let nodes = || cluster.node(0).get("/admin/v1/nodes").json()["nodes"].as_array().unwrap().len();
    // It does so only after a whole grace time of its own, in which it has looked for namesakes several times.
    until("the row of the killed server is ended", || nodes() == 1);
    let log = fs::read_to_string(&log).unwrap();
    assert!(!log.contains("another node has this name"), "{log}");
}
