//! Snapshots: which are written, and that reads use them.

use std::path::Path;

use rusqlite::Connection;
use sabir_model::{Event, State, Wanted, apply};
use sabir_store::{Durability, Query, SqliteStore};
use sabir_testkit::store_contract::fixture::*;

/// The event that the task's snapshot ends with.
fn snapshot(path: &Path) -> Option<i64> {
    let conn = Connection::open(path).unwrap();
    conn.query_row("SELECT max(seq) FROM snapshots", (), |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn a_snapshot_is_kept_when_it_spares_its_readers_something() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sabir.db");
    let store = SqliteStore::open(&path, Durability::Process).unwrap();
    let no = create(&store, ["ann", "echo", "t1", "c1"], 0).await;
    let mut task = load(&store, no).await;
    // Chunks of this many bytes, each append with a snapshot, also while the task works.
    for (chunks, bytes, kept) in [
        (15, 10, None),
        (1, 10, Some(17)),
        (16, 10, Some(17)),
        (1, 10, Some(34)),
        (1, 100_000, Some(35)),
        (1, 10, Some(35)),
        (15, 10, Some(35)),
        (1, 10, Some(52)),
    ] {
        let events: Vec<Event> = vec![chunk(&"x".repeat(bytes)); chunks];
        let after = task.seq;
        for event in &events {
            apply(&mut task, event);
        }
        push_with(&store, no, after, &events, Some(&task), &[]).await.unwrap();
        assert_eq!(snapshot(&path), kept, "at event {}", task.seq);
        assert_eq!(load(&store, no).await, task);
    }
}

#[tokio::test]
async fn a_running_task_is_read_from_its_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sabir.db");
    let store = SqliteStore::open(&path, Durability::Process).unwrap();
    let no = create(&store, ["ann", "echo", "t1", "c1"], 0).await;
    let mut task = load(&store, no).await;
    for batch in 0..50 {
        let mut events: Vec<Event> = (0..40).map(|number| chunk(&number.to_string())).collect();
        events.push(status(State::Working, batch));
        let after = task.seq;
        for event in &events {
            apply(&mut task, event);
        }
        push_with(&store, no, after, &events, (batch == 48).then_some(&task), &[]).await.unwrap();
    }
    // The events that the snapshot covers are not read: they could not even be decoded.
    let covered = snapshot(&path).unwrap();
    let spoil = "UPDATE events SET body = x'7b' WHERE key & 0xfffffff <= ?1";
    assert!(Connection::open(&path).unwrap().execute(spoil, (covered,)).unwrap() > 20);
    assert_eq!(load(&store, no).await, task);
    let page = list(&store, all_of("ann")).await;
    assert_eq!(page.tasks, [task.clone()]);
    // Without artifacts, the row alone is enough.
    let everything = "UPDATE events SET body = x'7b'; UPDATE snapshots SET body = x'7b', artifacts = x'7b'";
    Connection::open(&path).unwrap().execute_batch(everything).unwrap();
    let page = list(&store, Query { artifacts: Wanted::No, ..all_of("ann") }).await;
    assert_eq!((&page.tasks[0].status, &page.tasks[0].history), (&task.status, &task.history));
}
