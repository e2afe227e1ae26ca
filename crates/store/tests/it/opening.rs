//! Opening files: which files can be opened, and the errors for those that cannot.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use sabir_model::State;
use sabir_store::{Durability, OpenError, Retention, SqliteStore, Store, StoreError};
use sabir_testkit::store_contract::fixture::*;

fn open(path: &Path) -> Result<SqliteStore, OpenError> {
    SqliteStore::open(path, Durability::Process)
}

/// The kind of the error, and its text after the path.
fn refusal(path: &Path) -> String {
    let Err(error) = open(path) else { return "opened".into() };
    let kind = match &error {
        OpenError::InUse(_) => "in use",
        OpenError::ReadOnly(_) => "read-only",
        OpenError::Damaged { reason, .. } => return format!("damaged: {reason}"),
        OpenError::Newer { found, known, .. } => return format!("newer: {found} than {known}"),
        OpenError::Other { reason, .. } => return format!("other: {reason}"),
        other => return other.to_string(),
    };
    kind.into()
}

/// A closed file with some tasks in it.
async fn file_with_tasks(path: &Path, tasks: usize) {
    let store = open(path).unwrap();
    for number in 0..tasks {
        let id = format!("t{number}");
        create_in(&store, ["ann", "echo", &id, "c1"], State::Completed, number as i64).await;
    }
}

#[tokio::test]
async fn a_new_file_and_an_empty_one_can_be_opened() {
    let folder = tempfile::tempdir().unwrap();
    let (new, empty) = (folder.path().join("new.db"), folder.path().join("empty.db"));
    File::create(&empty).unwrap();
    for path in [new, empty] {
        let store = open(&path).unwrap();
        store.check().await.unwrap();
        drop(store);
        let conn = Connection::open(&path).unwrap();
        let pragma = |name: &str| conn.query_row(&format!("PRAGMA {name}"), (), |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!((pragma("page_size"), pragma("user_version"), pragma("application_id")), (8192, 6, 0x5341_4252));
    }
}

#[tokio::test]
async fn nothing_is_left_beside_a_closed_file() {
    let folder = tempfile::tempdir().unwrap();
    file_with_tasks(&folder.path().join("sabir.db"), 50).await;
    let mut names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["sabir.db"]);
}

#[tokio::test]
async fn a_file_in_use_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (path, link) = (folder.path().join("sabir.db"), folder.path().join("link.db"));
    let store = open(&path).unwrap();
    symlink(&path, &link).unwrap();
    let began = Instant::now();
    assert_eq!(refusal(&path), "in use");
    assert_eq!(refusal(&link), "in use");
    assert!(began.elapsed() < Duration::from_secs(10), "it waited");
    store.close();
    assert_eq!(refusal(&link), "opened");
    drop(store);
    assert_eq!(refusal(&path), "opened");
}

#[tokio::test]
async fn a_closed_store_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("sabir.db")).unwrap();
    let no = create(&store, ["ann", "echo", "t1", "c1"], 0).await;
    let queued: Vec<_> = (1..50).map(|after| push(&store, no, after, &[chunk("a")])).collect();
    store.close();
    store.close();
    // What was queued before the close is stored.
    for append in queued {
        append.await.unwrap();
    }
    assert_eq!(say(push(&store, no, 50, &[chunk("late")]).await), "closed");
    assert!(matches!(store.load(no).await, Err(StoreError::Closed)));
    assert!(matches!(store.check().await, Err(StoreError::Closed)));
    assert!(matches!(store.sweep(Retention::default()).await, Err(StoreError::Closed)));
    drop(store);
    let store = open(&folder.path().join("sabir.db")).unwrap();
    assert_eq!(events(&store, no).await.len(), 50);
}

#[tokio::test]
async fn a_newer_format_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sabir.db");
    file_with_tasks(&path, 1).await;
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let before = fs::read(&path).unwrap();
    assert_eq!(refusal(&path), "newer: 99 than 6");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[tokio::test]
async fn a_file_of_somebody_else_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    for (name, sql) in [
        ("tables.db", "CREATE TABLE notes (text TEXT)"),
        ("application.db", "PRAGMA application_id = 77"),
        ("version.db", "PRAGMA user_version = 1"),
        ("lookalike.db", "CREATE TABLE tasks (no INTEGER PRIMARY KEY); PRAGMA user_version = 1"),
    ] {
        let path = folder.path().join(name);
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        let before = fs::read(&path).unwrap();
        assert_eq!(refusal(&path), "damaged: it belongs to another program", "{name}");
        assert_eq!(fs::read(&path).unwrap(), before, "{name}");
    }
}

#[tokio::test]
async fn a_damaged_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 7] = [
        ("text", |path| fs::write(path, "this is no database, whatever its name says".repeat(50)).unwrap()),
        ("short text", |path| fs::write(path, "hello").unwrap()),
        ("truncated", |path| OpenOptions::new().write(true).open(path).unwrap().set_len(3 * 8192).unwrap()),
        ("overwritten", |path| scribble(path, 3 * 8192, 60_000)),
        ("header", |path| scribble(path, 0, 16)),
        ("missing table", |path| execute(path, "DROP TABLE tallies")),
        ("other index", |path| execute(path, "DROP INDEX tasks_id; CREATE INDEX tasks_id ON tasks (id)")),
    ];
    for (name, damage) in damages {
        let path = folder.path().join(format!("{name}.db"));
        file_with_tasks(&path, 300).await;
        damage(&path);
        let refusal = refusal(&path);
        assert!(refusal.starts_with("damaged: "), "{name}: {refusal}");
    }
}

#[tokio::test]
async fn a_large_file_is_looked_at_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sabir.db");
    let store = open(&path).unwrap();
    let text = "x".repeat(1 << 20);
    for number in 0..20 {
        let name = ["ann", "echo", &format!("t{number}"), "c1"];
        start(&store, name, None, 0, &[chunk(&text)]).await.unwrap();
    }
    drop(store);
    assert!(fs::metadata(&path).unwrap().len() > 20 << 20);
    assert_eq!(refusal(&path), "opened");
    OpenOptions::new().write(true).open(&path).unwrap().set_len(20 << 20).unwrap();
    assert!(refusal(&path).starts_with("damaged: "));
}

fn scribble(path: &Path, at: u64, count: usize) {
    let mut file = OpenOptions::new().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(at)).unwrap();
    file.write_all(&vec![0xa5; count]).unwrap();
}

fn execute(path: &Path, sql: &str) {
    Connection::open(path).unwrap().execute_batch(sql).unwrap();
}

#[tokio::test]
async fn what_may_not_be_written_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sabir.db");
    file_with_tasks(&path, 1).await;
    let set = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    set(&path, 0o444);
    assert_eq!(refusal(&path), "read-only");
    set(&path, 0o644);
    set(folder.path(), 0o555);
    let refused = (refusal(&path), refusal(&folder.path().join("new.db")));
    set(folder.path(), 0o755);
    assert_eq!(refused, ("read-only".into(), "read-only".into()));
    assert_eq!(refusal(&path), "opened");
}

#[test]
fn a_place_where_no_file_can_be_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(refusal(folder.path()), "other: it is a folder");
    let refused = refusal(&folder.path().join("missing/sabir.db"));
    assert!(refused.starts_with("other: its folder ") && refused.contains("missing"), "{refused}");
    assert_eq!(refusal(Path::new("")), "other: it has no file name");
}
