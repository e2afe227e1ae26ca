//! Files that are deleted, moved or replaced while they are open: nothing more is acknowledged, and the error says why.

use std::fs;
use std::path::{Path, PathBuf};

use sabir_model::State;
use sabir_store::{Durability, SqliteStore, Store, StoreError};
use sabir_testkit::store_contract::fixture::*;

fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path, Durability::Process).unwrap()
}

fn sidecar(path: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}{suffix}", path.display()))
}

async fn try_to_start(store: &SqliteStore, id: &str) -> String {
    say(start(store, ["ann", "echo", id, "c1"], None, 0, &[]).await)
}

async fn health(store: &SqliteStore) -> String {
    match store.check().await {
        Ok(()) => "good".into(),
        Err(StoreError::Lost(reason)) => reason,
        Err(error) => panic!("{error}"),
    }
}

fn replace(path: &Path) {
    let other = sidecar(path, ".backup");
    fs::write(&other, "another file").unwrap();
    fs::rename(other, path).unwrap();
}

#[tokio::test]
async fn a_file_that_is_not_there_any_more_takes_nothing() {
    type Harm = fn(&Path);
    let harms: [(&str, Harm); 7] = [
        ("sabir.db was deleted", |path| fs::remove_file(path).unwrap()),
        ("sabir.db was deleted or moved", |path| fs::rename(path, sidecar(path, ".moved")).unwrap()),
        ("sabir.db was replaced", replace),
        ("sabir.db-wal was deleted", |path| fs::remove_file(sidecar(path, "-wal")).unwrap()),
        ("sabir.db-wal was replaced", |path| replace(&sidecar(path, "-wal"))),
        ("sabir.db-shm was deleted", |path| fs::remove_file(sidecar(path, "-shm")).unwrap()),
        ("sabir.db was deleted", |path| {
            for suffix in ["", "-wal", "-shm"] {
                fs::remove_file(sidecar(path, suffix)).unwrap();
            }
        }),
    ];
    for (reason, harm) in harms {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sabir.db");
        let store = open(&path);
        // A connection that is being opened creates a missing log, which looks like a replaced one.
        store.until_open();
        assert_eq!(try_to_start(&store, "t1").await, "up to 1");
        assert_eq!(health(&store).await, "good");
        harm(&path);
        assert_eq!(try_to_start(&store, "t2").await, "lost", "{reason}");
        assert_eq!(try_to_start(&store, "t3").await, "lost", "{reason}");
        let health = health(&store).await;
        assert!(health.contains(reason) && health.contains("stop the server, put "), "{health}");
        // Stored tasks can still be read, and reading does not recreate the file.
        let exists = path.exists();
        let reads: Vec<_> = (0..40).map(|_| list(&store, all_of("ann"))).collect();
        for read in reads {
            assert!(ids(&read.await.tasks).ends_with("t1"), "{reason}");
        }
        assert_eq!(path.exists(), exists, "{reason}");
        assert_eq!(find(&store, "ann", None, "t3").await, None, "{reason}");
        store.close();
    }
}

#[tokio::test]
async fn a_file_that_is_cut_off_in_its_place_takes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sabir.db");
    let store = open(&path);
    assert_eq!(try_to_start(&store, "t1").await, "up to 1");
    fs::File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
    assert_eq!(try_to_start(&store, "t2").await, "lost");
    assert!(health(&store).await.contains("sabir.db became shorter"));
}

#[tokio::test]
async fn a_file_that_is_put_back_is_used_again() {
    let folder = tempfile::tempdir().unwrap();
    let (path, elsewhere) = (folder.path().join("sabir.db"), folder.path().join("elsewhere.db"));
    let store = open(&path);
    let no = create(&store, ["ann", "echo", "t1", "c1"], 0).await;
    fs::rename(&path, &elsewhere).unwrap();
    assert!(health(&store).await.contains("sabir.db was deleted or moved away"));
    // From now on nothing is written.
    assert_eq!(say(push(&store, no, 1, &[status(State::Completed, 1)]).await), "lost");
    fs::rename(&elsewhere, &path).unwrap();
    assert_eq!(say(push(&store, no, 1, &[status(State::Completed, 1)]).await), "up to 2");
    assert_eq!(health(&store).await, "good");
    drop(store);
    let store = open(&path);
    assert_eq!(find(&store, "ann", None, "t1").await.unwrap().seq, 2);
}

#[tokio::test]
async fn two_servers_at_one_path_share_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sabir.db");
    let first = open(&path);
    create(&first, ["ann", "echo", "t1", "c1"], 0).await;
    for suffix in ["", "-wal", "-shm"] {
        fs::remove_file(sidecar(&path, suffix)).unwrap();
    }
    let second = open(&path);
    create(&second, ["ann", "echo", "t2", "c1"], 0).await;
    assert_eq!(try_to_start(&first, "t3").await, "lost");
    assert!(health(&first).await.contains("sabir.db was replaced"));
    assert_eq!(ids(&list(&second, all_of("ann")).await.tasks), "t2");
    assert!(ids(&list(&first, all_of("ann")).await.tasks).contains("t1"));

    // Closing the first server does not affect the files of the second.
    drop(first);
    assert_eq!(try_to_start(&second, "t4").await, "up to 1");
    assert_eq!(health(&second).await, "good");
    drop(second);
    assert_eq!(ids(&list(&open(&path), all_of("ann")).await.tasks), "t4 t2");
}

#[tokio::test]
async fn a_moved_file_is_still_locked() {
    let folder = tempfile::tempdir().unwrap();
    let (path, elsewhere) = (folder.path().join("sabir.db"), folder.path().join("elsewhere.db"));
    let _store = open(&path);
    fs::rename(&path, &elsewhere).unwrap();
    let Err(error) = SqliteStore::open(&elsewhere, Durability::Process) else { panic!("it was opened twice") };
    assert!(error.to_string().contains("is in use by another Sabir"), "{error}");
}
