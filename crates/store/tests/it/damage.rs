//! Damage that only a file can have: packs, rows, snapshots and keys.

use std::path::Path;

use rusqlite::Connection;
use sabir_model::{Birth, Event, Message, PushConfigId, State, apply};
use sabir_store::{
    DeliveryKind, Durability, Outbox, Retention, SqliteStore, Store, StoreError, TaskNo, Webhook, WebhookEvents,
};
use sabir_testkit::store_contract::fixture::*;

fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path, Durability::Process).unwrap()
}

fn execute(path: &Path, sql: &str) {
    Connection::open(path).unwrap().execute_batch(sql).unwrap();
}

async fn reason(store: &SqliteStore, no: TaskNo) -> String {
    let task = load(store, no).await;
    let text = task.status.message.as_deref().map(Message::text).unwrap_or_default();
    format!("{:?} {}: {text}", task.status.state, task.seq)
}

async fn seqs(store: &SqliteStore, no: TaskNo, after: u64) -> String {
    match store.events(no, after, 100).await {
        Ok(events) => events.iter().map(|event| event.seq.to_string()).collect::<Vec<_>>().join(" "),
        Err(StoreError::Damaged { task, reason }) => format!("{task}: {reason}"),
        Err(error) => panic!("{error}"),
    }
}

/// Packs of 1 to 3, of 4 to 6 and of 7 to 9: too long for the row of the task.
async fn packed(store: &SqliteStore) -> TaskNo {
    let long = chunk(&"a".repeat(3_000));
    let no = start(store, ["ann", "echo", "t1", "c1"], None, 0, &[long, chunk("b")]).await.unwrap().task;
    for after in [3, 6] {
        push(store, no, after, &[chunk("a"), chunk("b"), status(State::Working, 5)]).await.unwrap();
    }
    no
}

#[tokio::test]
async fn every_damage_of_a_log_is_reported() {
    for (sql, load, from_start, from_four) in [
        (
            "DELETE FROM events WHERE key = 1 << 28 | 6",
            "Failed 9: the log of this task is damaged: events up to 9 are missing or doubled",
            "1 2 3",
            "t1: events up to 9 are missing or doubled",
        ),
        (
            "DELETE FROM events WHERE key = 1 << 28 | 3",
            "Failed 9: the log of this task is damaged: its beginning is missing",
            "t1: events up to 6 are missing or doubled",
            "5 6 7 8 9",
        ),
        (
            "DELETE FROM events WHERE key >> 28 = 1",
            "Failed 0: the log of this task is damaged: it has no events",
            "",
            "",
        ),
        (
            "UPDATE events SET body = substr(body, 1, length(body) - 5) WHERE key = 1 << 28 | 6",
            "Failed 9: the log of this task is damaged: event 6 cannot be read: EOF while parsing an object at line 1 column 257",
            "1 2 3 4 5",
            "5",
        ),
        (
            "UPDATE events SET body = 'text' WHERE key = 1 << 28 | 9",
            "Failed 9: the log of this task is damaged: one of its rows has no valid body",
            "1 2 3 4 5 6",
            "5 6",
        ),
        (
            "UPDATE events SET body = CAST(body || body AS BLOB) WHERE key = 1 << 28 | 3",
            "Failed 9: the log of this task is damaged: events up to 3 are missing or doubled",
            "1 2 3",
            "5 6 7 8 9",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sabir.db");
        let store = open(&path);
        let no = packed(&store).await;
        create(&store, ["ann", "echo", "t2", "c1"], 0).await;
        execute(&path, sql);
        assert_eq!(reason(&store, no).await, load, "{sql}");
        assert_eq!(seqs(&store, no, 0).await, from_start, "{sql}");
        assert_eq!(seqs(&store, no, 4).await, from_four, "{sql}");
        assert_eq!(list(&store, all_of("ann")).await.tasks.len(), 2, "{sql}");
        // It can be settled all the same.
        let last = load_seq(&store, no).await;
        assert_eq!(say(push(&store, no, last, &[status(State::Failed, 9)]).await), format!("up to {}", last + 1));
        assert_eq!(store.unfinished().await.unwrap().len(), 1, "{sql}");
    }
}

async fn load_seq(store: &SqliteStore, no: TaskNo) -> u64 {
    load(store, no).await.seq
}

#[tokio::test]
async fn a_log_in_the_row_can_be_damaged_too() {
    for (harm, load, from_start) in [
        (
            "head = substr(head, 1, length(head) - 5)",
            "Failed 3: the log of this task is damaged: event 3 cannot be read: EOF while parsing an object at line 1 column 282",
            "1 2",
        ),
        (
            "in_row = 4",
            "Failed 4: the log of this task is damaged: events up to 4 are missing or doubled",
            "t1: events up to 4 are missing or doubled",
        ),
        (
            "head = NULL",
            "Failed 3: the log of this task is damaged: events up to 3 are missing or doubled",
            "t1: one of its rows has no valid body",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sabir.db");
        let store = open(&path);
        let name = ["ann", "echo", "t1", "c1"];
        let no = start(&store, name, None, 0, &[chunk("a"), status(State::Working, 5)]).await.unwrap().task;
        execute(&path, &format!("UPDATE tasks SET {harm}"));
        assert_eq!(reason(&store, no).await, load, "{harm}");
        assert_eq!(seqs(&store, no, 0).await, from_start, "{harm}");
        assert_eq!(list(&store, all_of("ann")).await.tasks.len(), 1, "{harm}");
        let last = load_seq(&store, no).await;
        let end = [status(State::Failed, 9)];
        assert_eq!(say(push(&store, no, last, &end).await), format!("up to {}", last + 1), "{harm}");
        assert_eq!(store.unfinished().await.unwrap(), [], "{harm}");
    }
}

#[tokio::test]
async fn a_snapshot_and_a_log_stand_in_for_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sabir.db");
    let store = open(&path);
    let no = create(&store, ["ann", "echo", "t1", "c1"], 0).await;
    let mut task = load(&store, no).await;
    for seq in 1..=30 {
        let event: Event = chunk(&"x".repeat(2_000));
        apply(&mut task, &event);
        push_with(&store, no, seq, &[event], Some(&task), &[]).await.unwrap();
    }
    execute(&path, "CREATE TABLE kept AS SELECT * FROM snapshots; UPDATE snapshots SET body = x'7b'");
    assert_eq!(load(&store, no).await, task);
    execute(
        &path,
        "UPDATE snapshots SET body = kept.body FROM kept; UPDATE events SET body = x'7b' WHERE key < 1 << 28 | 9",
    );
    assert_eq!(load(&store, no).await, task);
    execute(&path, "UPDATE snapshots SET body = x'7b'");
    assert!(reason(&store, no).await.starts_with("Failed 31: the log of this task is damaged: event 1 "));
}

#[tokio::test]
async fn a_row_that_cannot_be_read_is_left_out() {
    for harm in ["id = ''", "agent = ''", "context = char(7)", "time = 'noon'", "born = 999"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sabir.db");
        let store = open(&path);
        for id in ["t1", "t2", "t3"] {
            create_in(&store, ["ann", "echo", id, "c1"], State::InputRequired, 5).await;
        }
        execute(&path, &format!("UPDATE tasks SET {harm} WHERE no = 2"));
        let (ann, echo, c1) = (owner("ann"), agent("echo"), context("c1"));
        let pending = store.unfinished().await.unwrap();
        assert_eq!(row_ids(pending.iter().map(|pending| &pending.row)), "t1 t3", "{harm}");
        assert_eq!(row_ids(&store.waiting(&ann, &echo, &c1).await.unwrap()), "t1 t3", "{harm}");
        assert_eq!(row_ids(&store.waiting_since(at(9), 9).await.unwrap()), "t1 t3", "{harm}");
        assert_eq!(ids(&list(&store, all_of("ann")).await.tasks), "t3 t1", "{harm}");
        assert_eq!(ids(&store.conversation(&ann, &echo, &c1, 9, usize::MAX).await.unwrap()), "t1 t3", "{harm}");

        // When it counts as settled, retention deletes it like any other.
        execute(&path, "UPDATE tasks SET state = 5; UPDATE tallies SET state = 5");
        assert_eq!(
            sweep_all(&store, Retention { settled_before: None, keep: Some(0), pending_after: None }).await,
            3,
            "{harm}"
        );
    }
}

/// One webhook whose row cannot be read must not stop the deliveries of others.
#[tokio::test]
async fn a_webhook_that_cannot_be_read_stops_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sabir.db");
    let mut store = SqliteStore::open(&path, Durability::Process).unwrap();
    for id in ["t1", "t2", "t3"] {
        let no = create_in(&store, ["ann", "echo", id, id], State::Completed, 1).await;
        let webhook = Webhook {
            id: PushConfigId::parse(id).unwrap(),
            url: "https://a/hook".to_owned(),
            receiver: "https://a".to_owned(),
            secrets: Vec::new(),
            dialect: Birth(1),
            events: WebhookEvents::Statuses,
        };
        store.set_webhook(no, webhook, at(2)).await.unwrap();
    }
    for damage in ["id = ''", "url = x'ff'", "receiver = x'ff'", "secrets = 7", "sent = 'x'", "dialect = 1000"] {
        let conn = Connection::open(&path).unwrap();
        conn.execute_batch("CREATE TEMP TABLE IF NOT EXISTS before AS SELECT * FROM webhooks WHERE number = 1")
            .unwrap();
        conn.execute_batch(&format!("UPDATE webhooks SET {damage} WHERE number = 1")).unwrap();
        check_others(&store, damage).await;
        drop(store);
        store = SqliteStore::open(&path, Durability::Process).unwrap();
        check_others(&store, &format!("{damage}, opened again")).await;
        conn.execute_batch("REPLACE INTO webhooks SELECT * FROM before").unwrap();
    }
    drop(store);
    let store = SqliteStore::open(&path, Durability::Process).unwrap();
    assert_eq!(store.due("https://a", at(9), 9).await.unwrap().len(), 3);
}

async fn check_others(store: &SqliteStore, damage: &str) {
    assert_eq!(store.receivers().await.unwrap(), [("https://a".to_owned(), at(2))], "{damage}");
    let due = store.due("https://a", at(9), 1).await.unwrap();
    assert_eq!(due.iter().map(|due| due.settings.id.as_str()).collect::<Vec<_>>(), ["t2"], "{damage}");
    let pending = store.deliveries(DeliveryKind::Pending, 1, 9).await.unwrap();
    assert_eq!(pending.iter().map(|delivery| delivery.number).collect::<Vec<_>>(), [2, 3], "{damage}");
}
