//! Opens a file: checks that it is a Sabir database and undamaged, and migrates it to the newest format.
//!
//! A file is not changed before it is known to be a Sabir database, or empty.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, Error, ErrorCode};

use crate::{OpenError, TaskNo};

use super::connect::{self, SqliteSettings};
use super::lock::Lock;
use super::{key, schema};

/// Files up to this size are checked completely; of larger ones, only what is cheap.
const MAX_FULL_CHECK: i64 = 16 << 20;

pub(super) struct Opened {
    /// The path without symbolic links.
    pub path: PathBuf,
    pub lock: Lock,
    pub conn: Connection,
    /// The highest task number so far.
    pub last_no: TaskNo,
}

pub(super) fn open(path: &Path, settings: &SqliteSettings) -> Result<Opened, OpenError> {
    let path = canonical_path(path)?;
    check_writable(&path)?;
    let lock = Lock::take(&path)?;
    let (conn, last_no) = prepare(&path, settings)?;
    Ok(Opened { path, lock, conn, last_no })
}

pub(super) fn canonical_path(path: &Path) -> Result<PathBuf, OpenError> {
    let other = |reason: String| OpenError::Other { path: path.into(), reason };
    if path.is_dir() {
        return Err(other("it is a folder".into()));
    }
    if let Ok(real) = fs::canonicalize(path) {
        return Ok(real);
    }
    let name = path.file_name().ok_or_else(|| other("it has no file name".into()))?;
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    match fs::canonicalize(folder) {
        Ok(folder) => Ok(folder.join(name)),
        Err(error) => Err(other(format!("its folder {}: {error}", folder.display()))),
    }
}

/// A file or folder without any write permission is meant to stay unchanged, even if root could write it.
pub(super) fn check_writable(path: &Path) -> Result<(), OpenError> {
    let folder = path.parent().unwrap_or(path);
    let is_read_only = |path: &Path| fs::metadata(path).is_ok_and(|meta| meta.permissions().readonly());
    if is_read_only(path) || is_read_only(folder) {
        return Err(OpenError::ReadOnly(path.into()));
    }
    Ok(())
}

fn prepare(path: &Path, settings: &SqliteSettings) -> Result<(Connection, TaskNo), OpenError> {
    let open_failed = |error: Error| open_error(path, error);
    let mut conn = connect::open(path).map_err(open_failed)?;
    let format = format_of(&conn, path)?;
    if conn.is_readonly("main").map_err(open_failed)? {
        return Err(OpenError::ReadOnly(path.into()));
    }
    if !connect::enter_wal(&conn).map_err(open_failed)? {
        let reason = "its file system cannot share memory between processes".into();
        return Err(OpenError::Other { path: path.into(), reason });
    }
    connect::set_up_writer(&conn, settings).map_err(open_failed)?;
    schema::migrate(&mut conn, format).map_err(open_failed)?;
    if let Some(reason) = find_damage(&conn).map_err(open_failed)? {
        return Err(OpenError::Damaged { path: path.into(), reason });
    }
    let last_no = last_no(&conn).map_err(open_failed)?;
    Ok((conn, last_no))
}

/// The format of the file; 0 for an empty one.
pub(super) fn format_of(conn: &Connection, path: &Path) -> Result<i64, OpenError> {
    let number =
        |sql: &str| conn.query_row(sql, (), |row| row.get::<_, i64>(0)).map_err(|error| open_error(path, error));
    let application = number("PRAGMA application_id")?;
    let format = number("PRAGMA user_version")?;
    let entries = number("SELECT count(*) FROM sqlite_schema")?;
    if application == 0 && format == 0 && entries == 0 {
        return Ok(0);
    }
    if application != schema::APPLICATION_ID {
        return Err(OpenError::Damaged { path: path.into(), reason: "it belongs to another program".into() });
    }
    if format > schema::FORMAT {
        return Err(OpenError::Newer { path: path.into(), found: format, known: schema::FORMAT });
    }
    Ok(format)
}

/// What is wrong with the tables, as far as a cheap check can tell.
pub(super) fn find_damage(conn: &Connection) -> rusqlite::Result<Option<String>> {
    if let Some(name) = schema::missing(conn)? {
        return Ok(Some(format!("{name} is missing or changed")));
    }
    let number = |sql: &str| conn.query_row(sql, (), |row| row.get::<_, i64>(0));
    if number("PRAGMA page_count")? * number("PRAGMA page_size")? <= MAX_FULL_CHECK {
        let verdict: String = conn.query_row("PRAGMA quick_check(1)", (), |row| row.get(0))?;
        return Ok((verdict != "ok").then_some(verdict));
    }
    // Reads both ends of the B-trees that every append and lookup uses.
    conn.execute_batch(
        "SELECT min(key) FROM events; SELECT max(key) FROM events;
         SELECT * FROM tasks ORDER BY no LIMIT 1; SELECT * FROM tasks ORDER BY no DESC LIMIT 1;
         SELECT owner FROM tasks INDEXED BY tasks_id ORDER BY owner, id, agent LIMIT 1;
         SELECT owner FROM tasks INDEXED BY tasks_time ORDER BY owner, agent, time, id LIMIT 1;
         SELECT owner FROM tasks INDEXED BY tasks_context ORDER BY owner, context, time LIMIT 1;
         SELECT time FROM tasks INDEXED BY tasks_settled WHERE state >= 4 ORDER BY time LIMIT 1;
         SELECT sum(n) FROM tallies;",
    )?;
    Ok(None)
}

pub(super) fn last_no(conn: &Connection) -> rusqlite::Result<TaskNo> {
    let highest = |sql: &str| conn.query_row(sql, (), |row| row.get::<_, Option<i64>>(0));
    let task = highest("SELECT max(no) FROM tasks")?.unwrap_or(0);
    let swept = highest("SELECT max(no) FROM swept")?.unwrap_or(0);
    let event = highest("SELECT max(key) FROM events")?.unwrap_or(0);
    Ok(key::task_no(event).max(TaskNo(task.max(swept) as u64)))
}

pub(super) fn open_error(path: &Path, error: Error) -> OpenError {
    let path = path.into();
    match error.sqlite_error_code() {
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => OpenError::ReadOnly(path),
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            OpenError::Damaged { path, reason: error.to_string() }
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            OpenError::Other { path, reason: "another program holds it locked".into() }
        }
        Some(ErrorCode::DiskFull) => OpenError::Other { path, reason: "the disk is full".into() },
        _ => OpenError::Other { path, reason: error.to_string() },
    }
}
