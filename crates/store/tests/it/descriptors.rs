//! A server that has run out of file descriptors still answers.
//!
//! The limit is that of the process, so the test runs once more in a process of its own, under a shell that lowers it.

use std::fs::File;
use std::process::Command;

use sabir_model::State;
use sabir_store::{Durability, Retention, SqliteStore, Store};
use sabir_testkit::store_contract::fixture::*;

const CHILD: &str = "SABIR_TEST_WITHOUT_DESCRIPTORS";

#[test]
fn without_any_descriptor_left_all_is_read_and_written() {
    if std::env::var_os(CHILD).is_some() {
        return tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap().block_on(work());
    }
    let this = std::env::current_exe().unwrap();
    let name = "descriptors::without_any_descriptor_left_all_is_read_and_written";
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -n 100 && exec \"$0\" --exact \"$1\" --nocapture"]).arg(this).arg(name);
    let output = shell.env(CHILD, "1").output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && told.contains("1 passed"), "{told}{}", String::from_utf8_lossy(&output.stderr));
}

async fn work() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&folder.path().join("sabir.db"), Durability::PowerCut).unwrap();
    let long = chunk(&"x".repeat(100_000));
    for number in 0..30 {
        let name = ["ann", "echo", &format!("t{number}"), "c1"];
        start(&store, name, None, number, &[long.clone(), status(State::Completed, number)]).await.unwrap();
    }
    let mut hoard = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        hoard.push(file);
    }
    assert!(hoard.len() > 10, "{} descriptors were left", hoard.len());

    // More concurrent readers than connections, and a list that needs a sort.
    let reads: Vec<_> = (0..40)
        .map(|_| {
            let query = sabir_store::Query { context: Some(context("c1")), ..all_of("ann") };
            store.list(query)
        })
        .collect();
    for read in reads {
        assert_eq!(read.await.unwrap().tasks.len(), 30);
    }
    store.check().await.unwrap();
    let no = create(&store, ["ann", "echo", "new", "c2"], 0).await;
    assert_eq!(load(&store, no).await.seq, 1);
    assert_eq!(
        store.conversation(&owner("ann"), &agent("echo"), &context("c1"), 99, usize::MAX).await.unwrap().len(),
        30
    );
    assert_eq!(store.unfinished().await.unwrap().len(), 1);
    assert_eq!(sweep_all(&store, Retention { settled_before: None, keep: Some(0), pending_after: None }).await, 30);
    assert!(File::open("/dev/null").is_err(), "somebody has closed a descriptor");
    drop(hoard);
}
