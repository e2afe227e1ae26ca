//! Group commit: many appends share one transaction, and a failed append does not affect the others.

use std::path::Path;

use rusqlite::Connection;
use sabir_model::State;
use sabir_store::{
    AppendResult, AuditAction, AuditEntry, AuditLog, AuditQuery, Durability, SideRow, SqliteStore, StoreFuture,
};
use sabir_testkit::store_contract::fixture::*;

/// Locks the file as a backup would, so that appends collect in the queue.
fn gather<T>(path: &Path, ask: impl FnOnce() -> T) -> T {
    let other = Connection::open(path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let asked = ask();
    other.execute_batch("ROLLBACK").unwrap();
    asked
}

async fn answers(appends: Vec<StoreFuture<'static, AppendResult>>) -> Vec<String> {
    let mut answers = Vec::new();
    for append in appends {
        answers.push(say(append.await));
    }
    answers
}

#[tokio::test]
async fn what_is_queued_is_committed_together() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sabir.db");
    let store = SqliteStore::open(&path, Durability::PowerCut).unwrap();
    let starts = gather(&path, || {
        let start = |number| start(&store, ["ann", "echo", &format!("t{number}"), "c1"], None, number, &[]);
        (0..200).map(start).collect()
    });
    assert!(answers(starts).await.iter().all(|answer| answer == "up to 1"));
    // The writer may have taken some of them before the others came.
    assert!(store.commits() <= 2, "{} commits", store.commits());
    assert_eq!(list(&store, all_of("ann")).await.total, 200);
}

#[tokio::test]
async fn one_that_fails_midway_does_not_take_its_neighbours_along() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sabir.db");
    drop(SqliteStore::open(&path, Durability::Process).unwrap());
    let poison = "CREATE TRIGGER poison BEFORE INSERT ON events WHEN instr(NEW.body, 'poison')
                  BEGIN SELECT RAISE(ABORT, 'poison'); END";
    let long_poison = chunk(&"poison ".repeat(1_000));
    Connection::open(&path).unwrap().execute_batch(poison).unwrap();
    let store = SqliteStore::open(&path, Durability::Process).unwrap();
    let known = create(&store, ["ann", "echo", "known", "c1"], 0).await;
    let asked = gather(&path, || {
        let mut asked = Vec::new();
        for number in 0..20 {
            let (good, bad) = (format!("good{number}"), format!("bad{number}"));
            let end = status(State::Completed, 10);
            asked.push(start(&store, ["ann", "echo", &good, "c1"], Some(&good), 0, std::slice::from_ref(&end)));
            asked.push(start(&store, ["ann", "echo", &bad, "c1"], Some(&bad), 0, &[long_poison.clone(), end]));
            asked.push(push(&store, known, 1, &[status(State::Failed, 20), long_poison.clone()]));
        }
        asked
    });
    let expected: Vec<&str> = ["up to 2", "failed", "failed"].repeat(20);
    assert_eq!(answers(asked).await, expected);
    let listing = list(&store, all_of("ann")).await;
    assert_eq!((listing.total, listing.tasks.len()), (21, 21));
    assert_eq!(find(&store, "ann", None, "known").await.unwrap().seq, 1);
    // The keys of failed appends are free.
    assert_eq!(say(start(&store, ["ann", "echo", "bad3", "c1"], Some("bad3"), 0, &[]).await), "up to 1");
}

/// A trigger makes one of the appends fail after its entry is written.
#[tokio::test]
async fn entries_of_the_audit_log_go_with_the_append_that_brings_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sabir.db");
    drop(SqliteStore::open(&path, Durability::Process).unwrap());
    let poison = "CREATE TRIGGER poison BEFORE INSERT ON audit WHEN NEW.detail = 'poison'
                  BEGIN SELECT RAISE(ABORT, 'poison'); END";
    Connection::open(&path).unwrap().execute_batch(poison).unwrap();
    let store = SqliteStore::open(&path, Durability::Process).unwrap();
    let known = create(&store, ["ann", "echo", "known", "c1"], 0).await;
    let entry = |detail: &str| AuditEntry {
        time: at(1),
        caller: owner("ann"),
        peer: None,
        action: AuditAction::Message,
        agent: None,
        task: None,
        no: None,
        owner: None,
        refusal: None,
        detail: detail.to_owned(),
    };
    let row = |detail: &str| SideRow::Audit(Box::new(entry(detail)));
    let commits = store.commits();
    let (first, poisoned, recorded, second) = gather(&path, || {
        let first = push_with(&store, known, 1, &[status(State::Working, 1)], None, &[row("first")]);
        let poisoned = push_with(&store, known, 2, &[], None, &[row("lost"), row("poison")]);
        let recorded = store.record(entry("alone"));
        let second = push_with(&store, known, 2, &[], None, &[row("second")]);
        (first, poisoned, recorded, second)
    });
    assert_eq!(say(first.await), "up to 2");
    assert!(poisoned.await.is_err());
    recorded.await.unwrap();
    assert_eq!(say(second.await), "up to 2");
    assert!(store.commits() <= commits + 4);
    let page = store.entries(AuditQuery::oldest(10)).await.unwrap();
    let mut stored: Vec<(u64, &str)> =
        page.records.iter().map(|record| (record.number, record.entry.detail.as_str())).collect();
    assert_eq!(stored.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [1, 2, 3], "no gap: {stored:?}");
    stored.sort_by_key(|(_, detail)| *detail);
    assert_eq!(stored.iter().map(|(_, detail)| *detail).collect::<Vec<_>>(), ["alone", "first", "second"]);
}
