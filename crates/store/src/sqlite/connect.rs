//! Connections to the file, and how each of them is set up.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Result};

const PAGE_BYTES: i64 = 8192;

/// How long a write waits for another program that holds the file, such as a backup.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// What an acknowledged append survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// A power cut: every commit is synced to the disk.
    #[default]
    PowerCut,
    /// A killed process. The operating system writes to the disk when it likes.
    Process,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SqliteSettings {
    pub durability: Durability,
    /// The file does not grow beyond this; appends that would need more fail with `StoreError::Full`
    /// until retention has made room. The write-ahead log beside it is not counted.
    pub max_bytes: Option<u64>,
}

/// Opens the file, which must be there, and changes nothing in it.
pub(super) fn open(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    conn.busy_timeout(BUSY_TIMEOUT)?;
    // Partial indexes make SQLite plan a statement anew for every value that is bound to it, in case the value fits one
    // of them. Ours never depend on that, and the planning costs more than most of the queries.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(conn)
}

/// Makes the file one that can be read while it is written. Says whether that worked.
pub(super) fn enter_wal(conn: &Connection) -> Result<bool> {
    // Only a file without any page yet takes this to heart.
    conn.pragma_update(None, "page_size", PAGE_BYTES)?;
    let mode: String = conn.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
    Ok(mode == "wal")
}

pub(super) fn set_up_writer(conn: &Connection, settings: &SqliteSettings) -> Result<()> {
    set_durability(conn, settings.durability)?;
    conn.pragma_update(None, "wal_autocheckpoint", 0)?;
    // A log that had to grow beyond this is cut back when it begins anew.
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
    // It may wait for a reader at the very end only, and a leftover log is no harm.
    conn.busy_timeout(Duration::from_secs(1))?;
    set_durability(&conn, durability)?;
    Ok(conn)
}

pub(super) fn reader(path: &Path) -> Result<Connection> {
    let conn = open(path)?;
    conn.pragma_update(None, "query_only", true)?;
    // With this and the first read it has every descriptor that it will ever need. The tables are looked at when they
    // are first asked for: a laptop hardly ever needs more than one reader, and what each knows of them takes 300 KB.
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
