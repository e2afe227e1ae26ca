//! Moves the write-ahead log into the file, off the path of a commit.
//!
//! SQLite itself says after every commit how long the log is, whatever was committed. A checkpoint beside a busy writer
//! never quite catches up, and SQLite begins the log anew only when nothing in it is left to move. So when the log has
//! grown long, the writer is asked to move the little that came in meanwhile itself, between two commits. Sweeps, which
//! nobody waits for, pause while much is left to move.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use rusqlite::{Connection, Error, Result};

use super::failure::is_unsynced;

/// Pages in the log that are worth moving: 8 MiB.
const WORTH_MOVING: u32 = 1024;

/// Pages that are left to move when a sweep pauses: 16 MiB.
const BACKLOG: u32 = 2048;

/// Pages after which the log should begin anew: 32 MiB.
const LONG: u32 = 4096;

/// The writer's end.
pub(super) struct Growth {
    log: Arc<Log>,
    /// The length of the log after the last commit, and when the checkpointer was told.
    last: u32,
    told: u32,
    tell: SyncSender<()>,
}

/// The checkpointer's end.
pub(super) struct Checkpointer {
    conn: Connection,
    log: Arc<Log>,
    told: Receiver<()>,
}

/// What both know of the log.
#[derive(Default)]
struct Log {
    /// Its pages, as of the last commit.
    pages: AtomicU32,
    /// Those of them that were moved by the last checkpoint.
    moved: AtomicU32,
    is_long: AtomicBool,
    /// A sync has failed, here or there: see `failure::Trouble`.
    is_unsynced: AtomicBool,
}

pub(super) fn pair(writer: &mut Connection, conn: Connection) -> Result<(Growth, Checkpointer)> {
    let (tell, told) = sync_channel(1);
    let log = Arc::new(Log::default());
    let seen = log.clone();
    writer.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages: i32| {
        seen.pages.store(u32::try_from(pages).unwrap_or(0), Ordering::Relaxed);
        Ok(())
    }))?;
    let growth = Growth { log: log.clone(), last: 0, told: 0, tell };
    Ok((growth, Checkpointer { conn, log, told }))
}

impl Growth {
    /// After every commit.
    pub fn grew(&mut self, conn: &Connection) {
        let pages = self.log.pages.load(Ordering::Relaxed);
        if pages < self.last {
            // The log has begun anew.
            self.told = 0;
            self.log.moved.store(0, Ordering::Relaxed);
        }
        self.last = pages;
        if pages.saturating_sub(self.told) >= WORTH_MOVING / 2 {
            self.told = pages;
            self.tell();
        }
        if self.log.is_long.swap(false, Ordering::Relaxed) {
            self.move_rest(conn);
        }
    }

    /// So much is left to move that more should not be added without need.
    pub fn has_backlog(&self) -> bool {
        self.log.pages.load(Ordering::Relaxed).saturating_sub(self.log.moved.load(Ordering::Relaxed)) >= BACKLOG
    }

    /// Whether a sync has ever failed.
    pub fn is_unsynced(&self) -> bool {
        self.log.is_unsynced.load(Ordering::Relaxed)
    }

    pub fn note(&self, error: &Error) {
        self.log.note(error);
    }

    pub fn tell(&self) {
        // One that is told already will see the rest too.
        let _ = self.tell.try_send(());
    }

    /// Moves what the checkpointer has not moved yet, so that the next commit begins the log anew.
    pub fn move_rest(&self, conn: &Connection) {
        if let Err(error) = move_log(conn, "PASSIVE") {
            self.log.note(&error);
            tracing::warn!(%error, "the write-ahead log cannot be moved into the database");
        }
    }
}

impl Checkpointer {
    /// Works until the writer is gone, then empties the log. Says so after each time that it has looked at the log.
    pub fn run(self, done: impl Fn()) {
        while self.told.recv().is_ok() {
            if let Err(error) = self.advance() {
                self.log.note(&error);
                tracing::warn!(%error, "the write-ahead log cannot be moved into the database");
            }
            done();
        }
        if let Err(error) = move_log(&self.conn, "TRUNCATE") {
            tracing::warn!(%error, "the write-ahead log could not be emptied; the next start does it");
        }
    }

    fn advance(&self) -> Result<()> {
        let before = move_log(&self.conn, "NOOP")?;
        if before.pages.saturating_sub(before.moved) < WORTH_MOVING {
            return Ok(());
        }
        let after = move_log(&self.conn, "PASSIVE")?;
        if after.pages == 0 {
            // The writer is at it itself.
            return Ok(());
        }
        self.log.moved.store(after.moved, Ordering::Relaxed);
        if after.pages >= LONG {
            self.log.is_long.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl Log {
    fn note(&self, error: &Error) {
        if is_unsynced(error) {
            self.is_unsynced.store(true, Ordering::Relaxed);
        }
    }
}

struct Moved {
    pages: u32,
    moved: u32,
}

fn move_log(conn: &Connection, how: &str) -> Result<Moved> {
    let sql = format!("PRAGMA wal_checkpoint({how})");
    let number = |value: i64| u32::try_from(value).unwrap_or(0);
    conn.query_row(&sql, (), |row| Ok(Moved { pages: number(row.get(1)?), moved: number(row.get(2)?) }))
}
