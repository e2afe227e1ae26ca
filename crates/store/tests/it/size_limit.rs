//! A file at its size limit: appends that do not fit are refused, and the store continues when there is space.

use std::path::Path;

use sabir_model::State;
use sabir_store::{Durability, Query, Retention, SqliteSettings, SqliteStore, Store, StoreError};
use sabir_testkit::store_contract::fixture::*;

fn open(path: &Path, max_bytes: Option<u64>) -> SqliteStore {
    SqliteStore::open_with(path, SqliteSettings { durability: Durability::Process, max_bytes }).unwrap()
}

/// Makes settled tasks until no more fit. Returns how many.
async fn fill(store: &SqliteStore) -> u64 {
    let text = "x".repeat(2_000);
    for number in 0..10_000 {
        let name = ["ann", "echo", &format!("t{number}"), "c1"];
        match start(store, name, None, number, &[chunk(&text), status(State::Completed, number)]).await {
            Ok(_) => {}
            Err(StoreError::Full) => return number as u64,
            Err(error) => panic!("{error}"),
        }
    }
    panic!("it is never full");
}

#[tokio::test]
async fn a_full_store_refuses_and_recovers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sabir.db");
    let store = open(&path, Some(1 << 20));
    let fitted = fill(&store).await;
    assert!(fitted > 100, "{fitted}");

    // Nothing of a refused append is stored, and everything stored can be read.
    let big = "x".repeat(100_000);
    let refused: Vec<_> = (0..20)
        .map(|number| start(&store, ["ann", "echo", &format!("big{number}"), "c1"], None, 0, &[chunk(&big)]))
        .collect();
    for append in refused {
        assert_eq!(say(append.await), "full");
    }
    assert!(matches!(store.check().await, Err(StoreError::Full)));
    let listing = list(&store, Query { limit: 10, ..all_of("ann") }).await;
    assert_eq!((listing.total, listing.tasks.len()), (fitted, 10));
    assert_eq!(find(&store, "ann", None, "big0").await, None);

    // Retention frees space by itself.
    let gone =
        sweep_all(&store, Retention { settled_before: None, keep: Some(fitted - 100), pending_after: None }).await;
    assert_eq!(gone, 100);
    store.check().await.unwrap();
    let name = ["ann", "echo", "big0", "c1"];
    assert_eq!(say(start(&store, name, None, 0, &[chunk(&big)]).await), "up to 2");
    assert_eq!(list(&store, all_of("ann")).await.total, fitted - 99);
}

#[tokio::test]
async fn a_full_file_can_be_opened_with_more_room() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sabir.db");
    let store = open(&path, Some(1 << 20));
    let fitted = fill(&store).await;
    drop(store);
    // The limit may be below the size of the file: then the file just cannot grow.
    let store = open(&path, Some(1 << 16));
    let big = "x".repeat(100_000);
    assert_eq!(say(start(&store, ["ann", "echo", "big", "c1"], None, 0, &[chunk(&big)]).await), "full");
    drop(store);
    let store = open(&path, None);
    assert_eq!(say(start(&store, ["ann", "echo", "big", "c1"], None, 0, &[chunk(&big)]).await), "up to 2");
    assert_eq!(list(&store, all_of("ann")).await.total, fitted + 1);
}
