//! Retention in a file: large tasks are deleted in slices, and the write-ahead log stays short.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use sabir_model::{Event, State, apply};
use sabir_store::{Durability, Retention, SideRow, SqliteStore, Store, SweepResult, TaskNo};
use sabir_testkit::store_contract::fixture::*;

const EVERYTHING: Retention = Retention { settled_before: None, keep: Some(0), pending_after: None };

fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path, Durability::Process).unwrap()
}

/// Counts the rows of a task outside the table `tasks`.
fn rows(path: &Path) -> i64 {
    let sql = "SELECT (SELECT count(*) FROM events) + (SELECT count(*) FROM snapshots) + (SELECT count(*) FROM inbox)
               + (SELECT count(*) FROM leftovers)";
    Connection::open(path).unwrap().query_row(sql, (), |row| row.get(0)).unwrap()
}

/// A settled task of 6 MB with rows in all tables.
async fn large(store: &SqliteStore) -> TaskNo {
    let no = start(store, ["ann", "echo", "t1", "c1"], Some("k"), 0, &[]).await.unwrap().task;
    let mut task = load(store, no).await;
    let side_rows = [
        SideRow::InboxAdd(message("unread").into()),
        SideRow::AgentState(Some("session".into())),
        SideRow::CancelRequested,
    ];
    push_with(store, no, 1, &[], None, &side_rows).await.unwrap();
    let long: Event = chunk(&"x".repeat(200_000));
    for _ in 0..30 {
        apply(&mut task, &long);
        push(store, no, task.seq - 1, std::slice::from_ref(&long)).await.unwrap();
    }
    let end = status(State::Completed, 10);
    apply(&mut task, &end);
    push_with(store, no, 31, &[end], Some(&task), &[]).await.unwrap();
    no
}

#[tokio::test]
async fn a_task_that_goes_in_slices_is_gone_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sabir.db");
    let store = open(&path);
    let no = large(&store).await;
    let neighbour =
        start(&store, ["ann", "echo", "t2", "c2"], None, 0, &[chunk(&"y".repeat(9_000))]).await.unwrap().task;
    let before = rows(&path);

    let mut swept = store.sweep(EVERYTHING).await.unwrap();
    assert_eq!(swept, SweepResult { tasks: 1, more: true });
    let mut slices = 1;
    while swept.more {
        let left = rows(&path);
        assert!(1 < left && left < before, "{left} rows");
        // No reader finds anything of it any more.
        let (ann, echo, c1) = (owner("ann"), agent("echo"), context("c1"));
        assert_eq!(find(&store, "ann", None, "t1").await, None);
        assert_eq!(store.load(no).await.unwrap(), None);
        assert_eq!(store.events(no, 0, 100).await.unwrap(), []);
        assert_eq!(store.inbox(no).await.unwrap(), []);
        assert_eq!(store.find_by_key(&ann, &echo, &key("k")).await.unwrap(), None);
        assert_eq!(store.agent_state(&ann, &echo, &c1).await.unwrap(), None);
        assert_eq!(list(&store, all_of("ann")).await.total, 1);
        assert_eq!(say(push(&store, no, 32, &[chunk("late")]).await), "conflict");
        swept = store.sweep(EVERYTHING).await.unwrap();
        assert_eq!(swept.tasks, 0);
        slices += 1;
    }
    assert!(slices > 5, "{slices} slices");
    assert_eq!(rows(&path), 1, "those of the neighbour");
    assert_eq!(events(&store, neighbour).await.len(), 2);
    // Its id and its key are free again.
    let again = start(&store, ["ann", "echo", "t1", "c1"], Some("k"), 0, &[]).await.unwrap().task;
    assert!(again > no);
    assert_eq!(events(&store, again).await.len(), 1);
}

#[tokio::test]
async fn what_a_sweep_has_left_goes_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sabir.db");
    let store = open(&path);
    let no = large(&store).await;
    assert!(store.sweep(EVERYTHING).await.unwrap().more);
    drop(store);
    let left = rows(&path);
    assert!(left > 1, "{left} rows");

    // Each check is queued behind one more slice.
    let store = open(&path);
    assert_eq!(store.load(no).await.unwrap(), None);
    for _ in 0..left {
        store.check().await.unwrap();
    }
    assert_eq!(rows(&path), 0);
    assert!(create(&store, ["ann", "echo", "t1", "c1"], 0).await > no);
}

#[tokio::test]
async fn the_log_stays_short_while_much_is_swept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sabir.db");
    let store = open(&path);
    let text = "x".repeat(1_500);
    let count = 30_000;
    for number in 0..count {
        let name = ["ann", "echo", &format!("t{number}"), &format!("c{number}")];
        let stored = start(&store, name, None, number, &[chunk(&text), status(State::Completed, number)]);
        if number % 500 == 0 {
            stored.await.unwrap();
        }
    }
    // The log of the appends does not count here.
    drop(store);
    let store = open(&path);
    let log = || fs::metadata(folder.path().join("sabir.db-wal")).unwrap().len() >> 20;
    let mut longest = 0;
    let mut swept = SweepResult { tasks: 0, more: true };
    while swept.more {
        swept = store.sweep(EVERYTHING).await.unwrap();
        longest = longest.max(log());
    }
    assert_eq!(list(&store, all_of("ann")).await.total, 0);
    // The log restarts after 32 MB, and a sweep waits when 16 MB are left to move.
    assert!(longest <= 64, "{longest} MB");
}
