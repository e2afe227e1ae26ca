//! Moves the write-ahead log into the file, off the path of a commit.
//!
//! A checkpoint beside a busy writer never quite catches up, and SQLite begins the log anew only when
//! nothing in it is left to move. So when the log has grown long, the writer is asked to move the
//! little that came in meanwhile itself, between two commits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use rusqlite::{Connection, Result};

/// Pages in the log that are worth moving: 8 MiB.
const WORTH_MOVING: i64 = 1024;

/// Pages after which the log should begin anew: 32 MiB.
const LONG: i64 = 4096;

/// The writer tells of itself after so many commits or bytes.
const COMMITS: u32 = 32;
const BYTES: usize = 4 << 20;

/// The writer's end.
pub(super) struct Growth {
    commits: u32,
    bytes: usize,
    tell: SyncSender<()>,
    is_long: Arc<AtomicBool>,
}

/// The checkpointer's end.
pub(super) struct Checkpointer {
    conn: Connection,
    told: Receiver<()>,
    is_long: Arc<AtomicBool>,
}

pub(super) fn pair(conn: Connection) -> (Growth, Checkpointer) {
    let (tell, told) = sync_channel(1);
    let is_long = Arc::new(AtomicBool::new(false));
    let growth = Growth { commits: 0, bytes: 0, tell, is_long: is_long.clone() };
    (growth, Checkpointer { conn, told, is_long })
}

impl Growth {
    /// After every commit.
    pub fn grew(&mut self, conn: &Connection, bytes: usize) {
        self.commits += 1;
        self.bytes += bytes;
        if self.commits >= COMMITS || self.bytes >= BYTES {
            (self.commits, self.bytes) = (0, 0);
            // One that is told already will see the rest too.
            let _ = self.tell.try_send(());
        }
        if self.is_long.swap(false, Ordering::Relaxed) {
            self.move_rest(conn);
        }
    }

    /// Moves what the checkpointer has not moved yet, so that the next commit begins the log anew.
    pub fn move_rest(&self, conn: &Connection) {
        if let Err(error) = move_log(conn, "PASSIVE") {
            tracing::warn!(%error, "the write-ahead log cannot be moved into the database");
        }
    }
}

impl Checkpointer {
    /// Works until the writer is gone, then empties the log.
    pub fn run(self) {
        while self.told.recv().is_ok() {
            if let Err(error) = self.advance() {
                tracing::warn!(%error, "the write-ahead log cannot be moved into the database");
            }
        }
        if let Err(error) = move_log(&self.conn, "TRUNCATE") {
            tracing::warn!(%error, "the write-ahead log could not be emptied; the next start does it");
        }
    }

    fn advance(&self) -> Result<()> {
        let before = move_log(&self.conn, "NOOP")?;
        if before.pages - before.moved < WORTH_MOVING {
            return Ok(());
        }
        let after = move_log(&self.conn, "PASSIVE")?;
        if after.pages >= LONG {
            self.is_long.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}

struct Log {
    pages: i64,
    moved: i64,
}

fn move_log(conn: &Connection, how: &str) -> Result<Log> {
    let sql = format!("PRAGMA wal_checkpoint({how})");
    conn.query_row(&sql, (), |row| Ok(Log { pages: row.get(1)?, moved: row.get(2)? }))
}
