//! Looks at a file without changing anything, for `sabir doctor`: also at one that a server has open, or that is damaged.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, OptionalExtension};

use crate::OpenError;

use super::{open, schema};

/// What is known of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqliteExamination {
    /// 0: the file is empty.
    pub format: i64,
    /// The format that this version writes.
    pub known_format: i64,
    pub bytes: u64,
    pub wal_bytes: u64,
    /// What is wrong with the tables, as far as a cheap check can tell.
    pub damage: Option<String>,
    /// When the newest task was made, in milliseconds since 1970.
    pub newest_task: Option<i64>,
}

impl SqliteExamination {
    /// `path` must lead to a file. Reads at most a few megabytes.
    ///
    /// # Errors
    /// It is not a database of Sabir, or it cannot be read.
    pub fn of(path: &Path) -> Result<Self, OpenError> {
        let failed = |error| open::open_error(path, error);
        let conn = connect(path).map_err(failed)?;
        let format = open::format_of(&conn, path)?;
        let is_current = format == schema::FORMAT;
        let damage = if is_current { open::find_damage(&conn).map_err(failed)? } else { None };
        let newest = "SELECT created FROM tasks ORDER BY no DESC LIMIT 1";
        let newest_task = match is_current && damage.is_none() {
            true => conn.query_row(newest, (), |row| row.get(0)).optional().map_err(failed)?,
            false => None,
        };
        Ok(Self {
            format,
            known_format: schema::FORMAT,
            bytes: length(path),
            wal_bytes: length(&beside(path, "-wal")),
            damage,
            newest_task,
        })
    }
}

/// Where nothing is in the write-ahead log, the file is read as one that does not change: otherwise SQLite would make files beside
/// it. A server that has the file open has a log.
fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if beside(path, "-wal").exists() {
        return Connection::open_with_flags(path, flags);
    }
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let letter = |byte: u8| match byte {
        b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => char::from(byte).to_string(),
        _ => format!("%{byte:02x}"),
    };
    let encoded: String = path.as_os_str().as_encoded_bytes().iter().copied().map(letter).collect();
    Connection::open_with_flags(format!("file:{encoded}?immutable=1"), flags | OpenFlags::SQLITE_OPEN_URI)
}

pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |meta| meta.len())
}
