//! Connections to the file and their settings: for the writer, the checkpointer and the readers.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Result};

const PAGE_BYTES: i64 = 8192;

/// How long a write waits for another program that has locked the file, such as a backup.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// What a committed append survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// A power cut: every commit is synced to the disk.
    #[default]
    PowerCut,
    /// A killed process. The operating system decides when to write to the disk.
    Process,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SqliteSettings {
    pub durability: Durability,
    /// The maximum size of the file. Appends beyond it fail with `StoreError::Full` until retention has freed space.
    /// The write-ahead log is not counted.
    pub max_bytes: Option<u64>,
}

/// Opens an existing file and changes nothing in it.
pub(super) fn open(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    conn.busy_timeout(BUSY_TIMEOUT)?;
    // Because of partial indexes, SQLite would plan a statement again for every bound value, in case the value matches
    // an index. Our statements never depend on that, and planning costs more than most of the queries.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(conn)
}

/// Switches the file to WAL mode, so that it can be read while it is written. Returns whether that worked.
pub(super) fn enter_wal(conn: &Connection) -> Result<bool> {
    // This has an effect only on a file without pages.
    conn.pragma_update(None, "page_size", PAGE_BYTES)?;
    let mode: String = conn.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
    Ok(mode == "wal")
}

pub(super) fn set_up_writer(conn: &Connection, settings: &SqliteSettings) -> Result<()> {
    set_durability(conn, settings.durability)?;
    conn.pragma_update(None, "wal_autocheckpoint", 0)?;
    // A longer write-ahead log is truncated when it restarts.
    conn.pragma_update_and_check(None, "journal_size_limit", 64 << 20, |_| Ok(()))?;
    conn.pragma_update(None, "cache_size", -16 * 1024)?;
    conn.pragma_update(None, "temp_store", "memory")?;
    if let Some(max_bytes) = settings.max_bytes {
        let page_bytes: i64 = conn.pragma_query_value(None, "page_size", |row| row.get(0))?;
        let pages = i64::try_from(max_bytes).unwrap_or(i64::MAX) / page_bytes;
        conn.pragma_update_and_check(None, "max_page_count", pages.max(1), |_| Ok(()))?;
    }
    Ok(())
}

pub(super) fn checkpointer(path: &Path, durability: Durability) -> Result<Connection> {
    let conn = open(path)?;
    // It waits for a reader only in its last checkpoint; a log that is left over does no harm.
    conn.busy_timeout(Duration::from_secs(1))?;
    set_durability(&conn, durability)?;
    Ok(conn)
}

pub(super) fn reader(path: &Path) -> Result<Connection> {
    let conn = open(path)?;
    conn.pragma_update(None, "query_only", true)?;
    // With this and the first read, the connection has all the descriptors that it will ever need. The schema is read
    // with the first query: a laptop rarely uses more than one reader, and the schema takes 300 KB per connection.
    conn.pragma_update(None, "temp_store", "memory")?;
    conn.set_prepared_statement_cache_capacity(32);
    conn.query_row("PRAGMA schema_version", (), |_| Ok(()))?;
    Ok(conn)
}

fn set_durability(conn: &Connection, durability: Durability) -> Result<()> {
    let synchronous = match durability {
        Durability::PowerCut => "full",
        Durability::Process => "normal",
    };
    conn.pragma_update(None, "synchronous", synchronous)
}
