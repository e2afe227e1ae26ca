//! The ends of the number ranges, which no test could reach by appending.

use rusqlite::Connection;
use sabir_model::State;
use sabir_store::{Durability, SqliteStore, Store};
use sabir_testkit::store_contract::fixture::*;

const LAST: u64 = (1 << 28) - 1;

#[tokio::test]
async fn a_task_with_all_its_numbers_takes_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sabir.db");
    let store = SqliteStore::open(&path, Durability::Process).unwrap();
    let long = chunk(&"x".repeat(3_000));
    let no = start(&store, ["ann", "echo", "t1", "c1"], None, 0, &[long]).await.unwrap().task;
    let neighbour = create(&store, ["ann", "echo", "t2", "c1"], 0).await;
    drop(store);
    let conn = Connection::open(&path).unwrap();
    let insert = "INSERT INTO events SELECT ?1, body FROM events WHERE key = ?2";
    let key = |seq: u64| (no.0 << 28 | seq) as i64;
    conn.execute(insert, (key(LAST - 1), key(2))).unwrap();
    drop(conn);

    let store = SqliteStore::open(&path, Durability::Process).unwrap();
    assert_eq!(say(push(&store, no, LAST - 1, &[chunk("a"), chunk("b")]).await), "failed");
    assert_eq!(say(push(&store, no, LAST - 1, &[chunk("a")]).await), format!("up to {LAST}"));
    assert_eq!(say(push(&store, no, LAST, &[status(State::Failed, 1)]).await), "failed");
    assert_eq!(say(push(&store, no, LAST, &[]).await), format!("up to {LAST}"));
    let row = find(&store, "ann", None, "t1").await.unwrap();
    assert_eq!((row.seq, row.state), (LAST, State::Submitted));
    assert_eq!(store.events(no, LAST, 10).await.unwrap(), []);
    assert_eq!(events(&store, neighbour).await.len(), 1);
}

#[tokio::test]
async fn task_numbers_go_on_behind_the_highest_event() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sabir.db");
    drop(SqliteStore::open(&path, Durability::Process).unwrap());
    let conn = Connection::open(&path).unwrap();
    conn.execute("INSERT INTO events VALUES (?1, 'orphan')", (41i64 << 28 | 1,)).unwrap();
    drop(conn);
    let store = SqliteStore::open(&path, Durability::Process).unwrap();
    assert_eq!(create(&store, ["ann", "echo", "t1", "c1"], 0).await.0, 42);
}
