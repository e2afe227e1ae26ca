//! The writer thread, the only one that writes.
//!
//! It takes everything that is queued and commits it in one transaction (group commit), so that concurrent callers
//! share one sync. During the sync, the next group collects in the queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rusqlite::{Connection, Statement};
use sabir_model::Owner;
use tokio::sync::oneshot;

use crate::encode::Encoded;
use crate::metrics::Commits;
use crate::{AppendResult, AuditEntry, AuditRetention, AuditTrimmed, Retention, StoreError, SweepResult, TaskNo};

use super::append::{AppendError, Appender};
use super::assign::assign;
use super::checkpoint::WalMonitor;
use super::failure::WriteError;
use super::file_identity::FileIdentity;
use super::queue::Queue;
use super::sweep::{SweepPosition, remove_leftovers, sweep};
use super::webhooks::{Changed, Watched, WebhookChange};

pub(super) type ReplySender<T> = oneshot::Sender<Result<T, StoreError>>;

pub(super) enum Job {
    Append(Box<Encoded>, ReplySender<AppendResult>),
    Webhook(Box<WebhookChange>, ReplySender<Changed>),
    Audit(Box<AuditEntry>, ReplySender<()>),
    Sweep(Retention, ReplySender<SweepResult>),
    TrimAudit(AuditRetention, ReplySender<AuditTrimmed>),
    /// Makes tasks of one owner those of another.
    Assign(Box<Assignment>, ReplySender<Vec<TaskNo>>),
    /// Deletes rows that earlier sweeps have left.
    RemoveLeftovers,
    /// The checkpointer has run.
    CheckpointDone,
    /// Checks that a row can be written and committed.
    Check(ReplySender<()>),
}

/// Tasks that get another owner.
pub(super) struct Assignment {
    pub tasks: Vec<TaskNo>,
    pub from: Owner,
    pub to: Owner,
}

/// The minimum and maximum time that the writer waits for the next caller of the last group.
const MIN_GAP: Duration = Duration::from_micros(100);
const MAX_GAP: Duration = Duration::from_millis(1);

/// What is stored in one transaction.
#[derive(Default)]
struct Group {
    appends: Vec<(Box<Encoded>, ReplySender<AppendResult>)>,
    changes: Vec<(Box<WebhookChange>, ReplySender<Changed>)>,
    audit: Vec<(Box<AuditEntry>, ReplySender<()>)>,
}

impl Group {
    fn len(&self) -> usize {
        self.appends.len() + self.changes.len() + self.audit.len()
    }

    /// Each in a group of its own.
    fn split(self) -> impl Iterator<Item = Group> {
        let appends = self.appends.into_iter().map(|append| Group { appends: vec![append], ..Group::default() });
        let changes = self.changes.into_iter().map(|change| Group { changes: vec![change], ..Group::default() });
        let audit = self.audit.into_iter().map(|entry| Group { audit: vec![entry], ..Group::default() });
        appends.chain(changes).chain(audit)
    }
}

/// The answers to a group, in its order.
struct Answers {
    appends: Vec<Result<AppendResult, StoreError>>,
    changes: Vec<Changed>,
}

/// Runs until the queue is closed and empty.
pub(super) fn run(
    conn: &Connection,
    last_no: Arc<AtomicU64>,
    watched: Watched,
    queue: &Queue<Job>,
    wal: WalMonitor,
    identity: Arc<FileIdentity>,
    commits: Arc<Commits>,
) {
    let _close_on_drop = CloseOnDrop(queue);
    let mut writer = match Writer::new(conn, last_no, watched, wal, identity, commits) {
        Ok(writer) => writer,
        Err(error) => return tracing::error!(%error, "the database cannot be written"),
    };
    let (mut last, mut max_gap) = (0, MIN_GAP);
    loop {
        let jobs = queue.drain(last, max_gap);
        if jobs.is_empty() {
            return;
        }
        last = jobs.len();
        let began = Instant::now();
        writer.run_jobs(jobs, queue);
        // Waiting may cost as much as it saves: one commit.
        max_gap = began.elapsed().clamp(MIN_GAP, MAX_GAP);
    }
}

/// Closes the queue when the writer ends, even by a panic, so that no caller waits for ever.
struct CloseOnDrop<'a>(&'a Queue<Job>);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.close();
        self.0.drain(0, Duration::ZERO);
    }
}

struct Writer<'c> {
    conn: &'c Connection,
    begin: Statement<'c>,
    commit: Statement<'c>,
    appender: Appender<'c>,
    wal: WalMonitor,
    identity: Arc<FileIdentity>,
    /// The last check of the files has failed.
    is_lost: bool,
    commits: Arc<Commits>,
    /// Where the next slice of a sweep begins.
    sweep_position: SweepPosition,
    /// Sweeps that wait for a checkpoint.
    paused: Vec<Job>,
    /// The last group could not be stored, and that is logged.
    is_failing: bool,
}

impl<'c> Writer<'c> {
    fn new(
        conn: &'c Connection,
        last_no: Arc<AtomicU64>,
        watched: Watched,
        wal: WalMonitor,
        identity: Arc<FileIdentity>,
        commits: Arc<Commits>,
    ) -> rusqlite::Result<Self> {
        Ok(Self {
            conn,
            begin: conn.prepare("BEGIN IMMEDIATE")?,
            commit: conn.prepare("COMMIT")?,
            appender: Appender::new(conn, last_no, watched)?,
            wal,
            identity,
            is_lost: false,
            sweep_position: SweepPosition::default(),
            commits,
            paused: Vec::new(),
            is_failing: false,
        })
    }

    fn run_jobs(&mut self, jobs: Vec<Job>, queue: &Queue<Job>) {
        let mut group = Group::default();
        group.appends.reserve(jobs.len());
        let mut others = Vec::new();
        for job in jobs {
            match job {
                Job::Append(append, reply) => group.appends.push((append, reply)),
                Job::Webhook(change, reply) => group.changes.push((change, reply)),
                Job::Audit(entry, reply) => group.audit.push((entry, reply)),
                other => others.push(other),
            }
        }
        if group.len() > 0 {
            self.store_group(group);
        }
        for job in others {
            self.run_other_job(job, queue);
        }
    }

    fn run_other_job(&mut self, job: Job, queue: &Queue<Job>) {
        match job {
            Job::Append(append, reply) => {
                self.store_group(Group { appends: vec![(append, reply)], ..Group::default() })
            }
            Job::Webhook(change, reply) => {
                self.store_group(Group { changes: vec![(change, reply)], ..Group::default() })
            }
            Job::Audit(entry, reply) => self.store_group(Group { audit: vec![(entry, reply)], ..Group::default() }),
            slice @ (Job::Sweep(..) | Job::TrimAudit(..) | Job::RemoveLeftovers) if self.wal.has_backlog() => {
                self.paused.push(slice);
                self.wal.wake();
            }
            slice @ (Job::Sweep(..) | Job::TrimAudit(..) | Job::RemoveLeftovers) => self.delete_slice(slice, queue),
            Job::Assign(assignment, reply) => {
                let (conn, Assignment { tasks, from, to }) = (self.conn, *assignment);
                let moved = self.transact(|_| assign(conn, &tasks, &from, &to));
                answer(reply, moved.map_err(|error| error.to_store_error()));
                self.wal.after_commit(self.conn);
            }
            Job::CheckpointDone => {
                // Continues even if the log is still long: a reader may delay checkpoints for a long time.
                for slice in std::mem::take(&mut self.paused) {
                    self.delete_slice(slice, queue);
                }
            }
            Job::Check(reply) => {
                let conn = self.conn;
                answer(reply, self.transact(|_| probe(conn)).map_err(|error| error.to_store_error()));
                self.wal.after_commit(self.conn);
            }
        }
    }

    fn delete_slice(&mut self, slice: Job, queue: &Queue<Job>) {
        let conn = self.conn;
        match slice {
            Job::Sweep(retention, reply) => {
                let mut position = self.sweep_position;
                let swept = self.transact(|appender| sweep(conn, retention, &mut position, &mut appender.watched));
                self.sweep_position = if swept.is_ok() { position } else { SweepPosition::default() };
                answer(reply, swept.map_err(|error| error.to_store_error()));
            }
            Job::TrimAudit(retention, reply) => {
                let trimmed = self.transact(|appender| appender.audit.trim(conn, retention));
                answer(reply, trimmed.map_err(|error| error.to_store_error()));
            }
            Job::RemoveLeftovers => match self.transact(|_| remove_leftovers(conn)) {
                Ok(true) => {}
                // The rest is queued behind newer jobs. If the queue is closed, the next start does it.
                Ok(false) => drop(queue.push(Job::RemoveLeftovers)),
                Err(error) => {
                    tracing::warn!(error = %error.to_store_error(), "cannot delete what is left of old tasks");
                }
            },
            Job::Append(..)
            | Job::Webhook(..)
            | Job::Audit(..)
            | Job::Assign(..)
            | Job::CheckpointDone
            | Job::Check(_) => {}
        }
        self.wal.after_commit(self.conn);
    }

    fn store_group(&mut self, group: Group) {
        let began = self.commits.metrics.get().map(|metrics| (metrics.clone(), Instant::now()));
        match self.store_together(&group) {
            Ok(Answers { appends, changes }) => {
                if let Some((metrics, began)) = began {
                    metrics.committed(began.elapsed(), group.len());
                }
                if std::mem::take(&mut self.is_failing) {
                    tracing::info!(file = self.conn.path(), "storing works again");
                }
                for ((_, reply), result) in group.appends.into_iter().zip(appends) {
                    answer(reply, result);
                }
                for ((_, reply), changed) in group.changes.into_iter().zip(changes) {
                    answer(reply, Ok(changed));
                }
                for (_, reply) in group.audit {
                    answer(reply, Ok(()));
                }
                self.wal.after_commit(self.conn);
            }
            // One append made the transaction fail. Separate transactions show which one.
            Err(error) if group.len() > 1 && !error.concerns_all() => {
                for one in group.split() {
                    self.store_group(one);
                }
            }
            Err(error) => {
                if !std::mem::replace(&mut self.is_failing, true) {
                    let (error, file) = (error.to_store_error(), self.conn.path());
                    tracing::error!(%error, file, "cannot store anything; will say so when it works again");
                }
                for (_, reply) in group.appends {
                    answer(reply, Err(error.to_store_error()));
                }
                for (_, reply) in group.changes {
                    answer(reply, Err(error.to_store_error()));
                }
                for (_, reply) in group.audit {
                    answer(reply, Err(error.to_store_error()));
                }
            }
        }
    }

    fn store_together(&mut self, group: &Group) -> Result<Answers, WriteError> {
        let conn = self.conn;
        self.transact(|appender| {
            let mut appends = Vec::with_capacity(group.appends.len());
            for (append, _) in &group.appends {
                match appender.append(append) {
                    Ok(appended) => appends.push(Ok(appended)),
                    Err(AppendError::Refused(refusal)) => appends.push(Err(refusal)),
                    Err(AppendError::Partial(error)) => return Err(error),
                }
            }
            let changes = group.changes.iter().map(|(change, _)| appender.watched.change(conn, change));
            let changes = changes.collect::<rusqlite::Result<_>>()?;
            for (entry, _) in &group.audit {
                appender.audit.insert(conn, entry, entry.no)?;
            }
            Ok(Answers { appends, changes })
        })
    }

    /// Commits what `work` does. If this fails, nothing of it may be acknowledged, whatever is in the file.
    fn transact<T>(&mut self, work: impl FnOnce(&mut Appender<'c>) -> rusqlite::Result<T>) -> Result<T, WriteError> {
        if self.wal.is_unsynced() {
            return Err(WriteError::Unsynced);
        }
        if self.is_lost {
            self.check_files()?;
        }
        let done = match self.commit_after(work) {
            Ok(done) => done,
            Err(error) => {
                self.wal.record_error(&error);
                self.roll_back();
                return Err(error.into());
            }
        };
        self.commits.count.fetch_add(1, Ordering::Relaxed);
        self.appender.audit.committed();
        let is_due = self.appender.watched.committed();
        self.check_files()?;
        if is_due {
            self.appender.watched.wake();
        }
        Ok(done)
    }

    fn check_files(&mut self) -> Result<(), WriteError> {
        let found = self.identity.check();
        self.is_lost = found.is_err();
        found.map_err(WriteError::Lost)
    }

    fn commit_after<T>(&mut self, work: impl FnOnce(&mut Appender<'c>) -> rusqlite::Result<T>) -> rusqlite::Result<T> {
        self.begin.execute(())?;
        let done = work(&mut self.appender)?;
        self.appender.task_counts.write()?;
        self.commit.execute(())?;
        Ok(done)
    }

    fn roll_back(&mut self) {
        self.appender.task_counts.discard();
        self.appender.audit.rolled_back();
        self.appender.watched.rolled_back();
        // On a full disk, SQLite rolls back by itself.
        if !self.conn.is_autocommit()
            && let Err(error) = self.conn.execute_batch("ROLLBACK")
        {
            tracing::error!(%error, "a transaction cannot be rolled back");
        }
        // On a full disk, the log may have space again when it restarts.
        if !self.wal.is_unsynced() {
            self.wal.checkpoint_rest(self.conn);
        }
    }
}

/// Allocates pages and frees them, so that the check fails for a file at its size limit.
fn probe(conn: &Connection) -> rusqlite::Result<()> {
    conn.prepare_cached("INSERT INTO probe (body) VALUES (zeroblob(16384))")?.execute(())?;
    conn.prepare_cached("DELETE FROM probe")?.execute(())?;
    Ok(())
}

/// The caller may be gone; then the result is not needed.
fn answer<T>(reply: ReplySender<T>, result: Result<T, StoreError>) {
    let _ = reply.send(result);
}

#[cfg(test)]
mod tests {
    use rusqlite::{Error, ffi};

    use super::super::{checkpoint, connect, open, pool::Pool};
    use super::*;
    use crate::SqliteSettings;

    /// The system may drop what it could not write, and report the next sync as a success.
    #[test]
    fn after_a_failed_sync_nothing_is_stored_any_more() {
        let folder = tempfile::tempdir().unwrap();
        let settings = SqliteSettings::default();
        let opened = open::open(&folder.path().join("sabir.db"), &settings).unwrap();
        let (mut conn, path) = (opened.conn, opened.path);
        let checkpoint_conn = connect::checkpointer(&path, settings.durability).unwrap();
        let (wal, _checkpointer) = checkpoint::pair(&mut conn, checkpoint_conn).unwrap();
        let _pool = Pool::open(&path).unwrap();
        let identity = Arc::new(FileIdentity::new(&path, &opened.lock).unwrap());
        let commits = Arc::<Commits>::default();
        let last_no = Arc::new(AtomicU64::new(opened.last_no.0));
        let watched = Watched::load(&conn, Arc::default()).unwrap();
        let mut writer = Writer::new(&conn, last_no, watched, wal, identity, commits.clone()).unwrap();

        writer.transact(|_| probe(&conn)).unwrap();
        let failed =
            |_: &mut Appender<'_>| Err::<(), _>(Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_IOERR_FSYNC), None));
        assert!(matches!(writer.transact(failed), Err(WriteError::Sqlite(_))));
        assert!(matches!(writer.transact(|_| probe(&conn)), Err(WriteError::Unsynced)));
        assert_eq!(commits.count.load(Ordering::Relaxed), 1);
    }
}
