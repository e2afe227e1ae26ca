//! Checkpoints: move the write-ahead log into the database file, on a thread of their own.
//!
//! SQLite reports the length of the log after every commit. A checkpoint next to a busy writer never quite catches up,
//! and SQLite restarts the log only when nothing in it is left to move. So when the log is long, the writer itself
//! moves the small rest between two commits. Sweeps are not urgent, so they pause while much is left to move.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use rusqlite::{Connection, Error, Result};

use super::failure::is_unsynced;

/// Pages in the log that are worth a checkpoint: 8 MiB.
const CHECKPOINT_PAGES: u32 = 1024;

/// Pages that are left to move when a sweep pauses: 16 MiB.
const BACKLOG_PAGES: u32 = 2048;

/// Pages after which the log should restart: 32 MiB.
const RESTART_PAGES: u32 = 4096;

/// The writer's side.
pub(super) struct WalMonitor {
    wal: Arc<WalState>,
    /// The length of the log after the last commit, and when the checkpointer was last woken.
    last: u32,
    pages_at_wake: u32,
    wake: SyncSender<()>,
}

/// The checkpointer's side.
pub(super) struct Checkpointer {
    conn: Connection,
    wal: Arc<WalState>,
    woken: Receiver<()>,
}

/// What both sides know of the log.
#[derive(Default)]
struct WalState {
    /// Its pages as of the last commit.
    pages: AtomicU32,
    /// How many of them the last checkpoint has moved.
    moved: AtomicU32,
    is_long: AtomicBool,
    /// A sync has failed, on either side: see `failure::WriteError`.
    is_unsynced: AtomicBool,
}

pub(super) fn pair(writer: &mut Connection, conn: Connection) -> Result<(WalMonitor, Checkpointer)> {
    let (wake, woken) = sync_channel(1);
    let wal = Arc::new(WalState::default());
    let seen = wal.clone();
    writer.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages: i32| {
        seen.pages.store(u32::try_from(pages).unwrap_or(0), Ordering::Relaxed);
        Ok(())
    }))?;
    let monitor = WalMonitor { wal: wal.clone(), last: 0, pages_at_wake: 0, wake };
    Ok((monitor, Checkpointer { conn, wal, woken }))
}

impl WalMonitor {
    /// Called after every commit.
    pub fn after_commit(&mut self, conn: &Connection) {
        let pages = self.wal.pages.load(Ordering::Relaxed);
        if pages < self.last {
            // The log has restarted.
            self.pages_at_wake = 0;
            self.wal.moved.store(0, Ordering::Relaxed);
        }
        self.last = pages;
        if pages.saturating_sub(self.pages_at_wake) >= CHECKPOINT_PAGES / 2 {
            self.pages_at_wake = pages;
            self.wake();
        }
        if self.wal.is_long.swap(false, Ordering::Relaxed) {
            self.checkpoint_rest(conn);
        }
    }

    /// Whether so much is left to move that sweeps should pause.
    pub fn has_backlog(&self) -> bool {
        self.wal.pages.load(Ordering::Relaxed).saturating_sub(self.wal.moved.load(Ordering::Relaxed)) >= BACKLOG_PAGES
    }

    /// Whether a sync has ever failed.
    pub fn is_unsynced(&self) -> bool {
        self.wal.is_unsynced.load(Ordering::Relaxed)
    }

    pub fn record_error(&self, error: &Error) {
        self.wal.record_error(error);
    }

    pub fn wake(&self) {
        // A wake-up that is pending already covers this one.
        let _ = self.wake.try_send(());
    }

    /// Moves what the checkpointer has not moved yet, so that the next commit restarts the log.
    pub fn checkpoint_rest(&self, conn: &Connection) {
        if let Err(error) = checkpoint(conn, "PASSIVE") {
            self.wal.record_error(&error);
            tracing::warn!(%error, "the write-ahead log cannot be moved into the database");
        }
    }
}

impl Checkpointer {
    /// Runs until the writer is gone, then empties the log. Calls `done` after each run.
    pub fn run(self, done: impl Fn()) {
        while self.woken.recv().is_ok() {
            if let Err(error) = self.advance() {
                self.wal.record_error(&error);
                tracing::warn!(%error, "the write-ahead log cannot be moved into the database");
            }
            done();
        }
        if let Err(error) = checkpoint(&self.conn, "TRUNCATE") {
            tracing::warn!(%error, "the write-ahead log could not be emptied; the next start does it");
        }
    }

    fn advance(&self) -> Result<()> {
        let before = checkpoint(&self.conn, "NOOP")?;
        if before.pages.saturating_sub(before.moved) < CHECKPOINT_PAGES {
            return Ok(());
        }
        let after = checkpoint(&self.conn, "PASSIVE")?;
        if after.pages == 0 {
            // The writer is running a checkpoint itself.
            return Ok(());
        }
        self.wal.moved.store(after.moved, Ordering::Relaxed);
        if after.pages >= RESTART_PAGES {
            self.wal.is_long.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl WalState {
    fn record_error(&self, error: &Error) {
        if is_unsynced(error) {
            self.is_unsynced.store(true, Ordering::Relaxed);
        }
    }
}

struct CheckpointResult {
    pages: u32,
    moved: u32,
}

fn checkpoint(conn: &Connection, how: &str) -> Result<CheckpointResult> {
    let sql = format!("PRAGMA wal_checkpoint({how})");
    let number = |value: i64| u32::try_from(value).unwrap_or(0);
    conn.query_row(&sql, (), |row| Ok(CheckpointResult { pages: number(row.get(1)?), moved: number(row.get(2)?) }))
}
