//! Backups: one state of a store that is being written, in small pieces, and of which every missing or changed byte is noticed.

use std::sync::Arc;

use rusqlite::Connection;
use sabir_model::State;
use sabir_store::backup::{BackupReader, BackupRow, BackupScanner, BackupStream};
use sabir_store::transfer::{ExportTasks, TransferredTask};
use sabir_store::{
    AuditAction, AuditEntry, AuditLog, Durability, PostgresSettings, PostgresStore, SideRow, SqlitePlace, SqliteStore,
    Store,
};
use sabir_testkit::postgres::{Postgres, report_skipped};
use sabir_testkit::store_contract::fixture::*;

const LONG: usize = 300_000;

/// Short tasks, one with a log of several megabytes, and one of each other row.
async fn fill<S: Store + AuditLog>(store: &S) {
    for number in 0..30 {
        create(store, ["ann", "echo", &format!("t{number}"), "c"], number).await;
    }
    let long = create(store, ["ann", "echo", "long", "c"], 50).await;
    for number in 0..20 {
        push(store, long, 1 + number, &[chunk(&"x".repeat(LONG))]).await.unwrap();
    }
    let rows = [
        SideRow::InboxAdd(message("later").into()),
        SideRow::AgentState(Some("session".into())),
        SideRow::TaskState(Some("remembered".into())),
        SideRow::Key(sent_key("k")),
        SideRow::CancelRequested,
        SideRow::Attempts(2),
    ];
    push_with(store, long, 21, &[status(State::Working, 60)], None, &rows).await.unwrap();
    create(store, ["bob", "other", "last", "d"], 70).await;
    let entry = AuditEntry {
        time: at(80),
        caller: owner("ann"),
        peer: Some("127.0.0.1".parse().unwrap()),
        action: AuditAction::List,
        agent: None,
        task: None,
        no: None,
        owner: Some(owner("bob")),
        refusal: None,
        detail: "few words".into(),
    };
    store.record(entry).await.unwrap();
}

/// The pieces of a backup that was begun before more was written.
async fn backup<S: Store + AuditLog>(store: Arc<S>) -> Vec<Vec<u8>> {
    let source = store.export().await.unwrap().expect("it can be copied");
    let mut stream = BackupStream::new(source, "1.2.3", at(90));
    let mut pieces = vec![stream.next_piece().await.unwrap().expect("the header")];
    create(&*store, ["ann", "echo", "too late", "c"], 99).await;
    while let Some(piece) = stream.next_piece().await.unwrap() {
        pieces.push(piece);
    }
    pieces
}

fn scan(bytes: &[u8], step: usize) -> Result<String, String> {
    let mut scanner = BackupScanner::default();
    for piece in bytes.chunks(step) {
        scanner.feed(piece).map_err(|error| error.to_string())?;
    }
    let (header, _) = scanner.finish().map_err(|error| error.to_string())?;
    Ok(format!("{} {:?}", header.version, header.size))
}

fn rows(bytes: &[u8]) -> Vec<BackupRow> {
    let mut reader = BackupReader::new(bytes).unwrap();
    let mut rows = Vec::new();
    while let Some(row) = reader.next_row().unwrap() {
        rows.push(row);
    }
    assert_eq!(reader.next_row().unwrap(), None, "it stays at the end");
    rows
}

async fn all_tasks(mut export: Box<dyn ExportTasks>) -> Vec<TransferredTask> {
    let (mut all, mut last) = (Vec::new(), 0);
    loop {
        let batch = export.tasks(last, 1 << 20).await.unwrap();
        let Some(newest) = batch.last() else { return all };
        last = newest.no;
        all.extend(batch);
    }
}

async fn check<S: Store + AuditLog>(store: Arc<S>) -> Vec<u8> {
    fill(&*store).await;
    let pieces = backup(store.clone()).await;
    let largest = pieces.iter().map(Vec::len).max().unwrap();
    assert!(largest < 2 << 20, "a piece has {largest} bytes");
    let whole = pieces.concat();
    assert!(whole.len() > 20 * LONG, "{}", whole.len());
    let found = scan(&whole, 64 << 10).unwrap();
    assert!(found.starts_with("1.2.3 TransferSize { tasks: 32, contexts: 1, audit_entries: 1"), "{found}");

    let rows = rows(&whole);
    let mut tasks = Vec::new();
    for row in &rows {
        match row {
            BackupRow::Task(task) => tasks.push((**task).clone()),
            BackupRow::AgentState(state) => assert_eq!(state.state, "session"),
            BackupRow::Audit(entry) => {
                assert_eq!((entry.action.as_str(), entry.detail.as_str()), ("list", "few words"))
            }
        }
    }
    assert_eq!((rows.len(), tasks.len()), (34, 32));
    let mut now = all_tasks(store.export().await.unwrap().unwrap()).await;
    assert_eq!(now.pop().unwrap().id, "too late", "what was written after the beginning is not in the backup");
    assert!(tasks == now, "each task has the same rows");
    assert!(tasks.iter().all(|task| task.check().is_ok()));
    whole
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_of_a_file_has_one_state_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&folder.path().join("sabir.db"), Durability::Process).unwrap();
    check(Arc::new(store)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_of_a_postgres_has_one_state_of_it() {
    let Some(postgres) = Postgres::shared() else { return report_skipped(1) };
    let settings = PostgresSettings::new(postgres.fresh_database(), "a", "0");
    check(Arc::new(PostgresStore::open(settings).await.unwrap())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_missing_or_changed_byte_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&folder.path().join("sabir.db"), Durability::Process).unwrap();
    for number in 0..3 {
        create(&store, ["ann", "echo", &format!("t{number}"), "c"], number).await;
    }
    let source = store.export().await.unwrap().unwrap();
    let mut stream = BackupStream::new(source, "1.2.3", at(90));
    let mut whole = Vec::new();
    while let Some(piece) = stream.next_piece().await.unwrap() {
        whole.extend(piece);
    }
    for step in [1, 7, whole.len()] {
        assert!(scan(&whole, step).is_ok(), "in pieces of {step}");
    }
    for length in 0..whole.len() {
        let told = scan(&whole[..length], 100).unwrap_err();
        let expected = if length < 15 { "it is no backup of Sabir" } else { "its end is missing" };
        assert!(told.starts_with(expected), "{length}: {told}");
    }
    for place in 0..whole.len() {
        let mut changed = whole.clone();
        changed[place] ^= 1;
        assert!(scan(&changed, 100).is_err(), "byte {place}");
    }
    let broken_off = [&whole[..whole.len() / 2], &BackupStream::broken_off("the disk is gone")].concat();
    assert!(scan(&broken_off, 100).is_err());
    let header = 15 + 5 + u32::from_be_bytes(whole[16..20].try_into().unwrap()) as usize;
    let broken_off = [&whole[..header], &BackupStream::broken_off("the disk is gone")].concat();
    let told = scan(&broken_off, 100).unwrap_err();
    assert_eq!(told, "it is not complete: the server stopped writing it: the disk is gone");
}

/// What a restore does at its end, while another program has the old database open.
#[tokio::test]
async fn a_log_that_another_program_keeps_open_is_not_torn_from_its_database() {
    for is_reading in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sabir.db");
        drop(SqliteStore::open(&path, Durability::Process).unwrap());
        let (reader, writer) = (Connection::open(&path).unwrap(), Connection::open(&path).unwrap());
        let tables = "SELECT count(*) FROM sqlite_schema";
        let count = |conn: &Connection| conn.query_row(tables, (), |row| row.get::<_, i64>(0)).unwrap();
        let before = count(&reader);
        if is_reading {
            reader.execute_batch("BEGIN").unwrap();
            assert_eq!(count(&reader), before);
        }
        writer.execute_batch("CREATE TABLE newest (x)").unwrap();
        drop(writer);
        let new = folder.path().join("new.db");
        drop(SqliteStore::open(&new, Durability::Process).unwrap());

        let error = SqlitePlace::take(&path).unwrap().put(&new).unwrap_err().to_string();
        assert!(error.contains("another program has the database open"), "{is_reading}: {error}");
        drop(reader);
        assert_eq!(count(&Connection::open(&path).unwrap()), before + 1, "{is_reading}");
        let kept = SqlitePlace::take(&path).unwrap().put(&new).unwrap().unwrap();
        assert_eq!(count(&Connection::open(&path).unwrap()), before, "{is_reading}");
        assert_eq!(count(&Connection::open(kept).unwrap()), before + 1, "{is_reading}");
    }
}
