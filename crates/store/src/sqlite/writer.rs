//! The one thread that writes.
//!
//! It takes everything that is queued and commits it in one transaction, so that callers who come
//! together pay for one sync. While it syncs, the next group gathers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rusqlite::{Connection, Statement};
use tokio::sync::oneshot;

use crate::encode::Encoded;
use crate::{Appended, Retention, StoreError, Swept};

use super::append::{Appender, Refused};
use super::checkpoint::Growth;
use super::failure::Trouble;
use super::identity::Identity;
use super::queue::Queue;
use super::sweep::{sweep, tidy};

pub(super) type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

pub(super) enum Job {
    Append(Box<Encoded>, Reply<Appended>),
    Sweep(Retention, Reply<Swept>),
    /// What earlier sweeps have left.
    Tidy,
    /// The checkpointer has looked at the log.
    LogMoved,
    /// Whether a row can be written and committed.
    Check(Reply<()>),
}

/// How long the writer waits for the next of those who were here a moment ago, at least and at most.
const LEAST_PATIENCE: Duration = Duration::from_micros(100);
const MOST_PATIENCE: Duration = Duration::from_millis(1);

type Group = Vec<(Box<Encoded>, Reply<Appended>)>;

/// Works until the queue is closed and empty.
pub(super) fn run(
    conn: &Connection,
    last_no: Arc<AtomicU64>,
    queue: &Queue<Job>,
    growth: Growth,
    identity: Arc<Identity>,
    commits: Arc<AtomicU64>,
) {
    let _closing = Closing(queue);
    let mut writer = match Writer::new(conn, last_no, growth, identity, commits) {
        Ok(writer) => writer,
        Err(error) => return tracing::error!(%error, "the database cannot be written"),
    };
    let (mut last, mut patience) = (0, LEAST_PATIENCE);
    loop {
        let jobs = queue.drain(last, patience);
        if jobs.is_empty() {
            return;
        }
        last = jobs.len();
        let began = Instant::now();
        writer.work(jobs, queue);
        // Waiting is worth what it saves: a commit.
        patience = began.elapsed().clamp(LEAST_PATIENCE, MOST_PATIENCE);
    }
}

/// However the writer ends, nobody must wait for it in vain.
struct Closing<'a>(&'a Queue<Job>);

impl Drop for Closing<'_> {
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
    growth: Growth,
    identity: Arc<Identity>,
    /// The files were not the right ones when they were looked at last.
    is_lost: bool,
    commits: Arc<AtomicU64>,
    /// Sweeps that pause until the log is moved.
    paused: Vec<Job>,
    /// The last group could not be stored, and that has been said.
    is_failing: bool,
}

impl<'c> Writer<'c> {
    fn new(
        conn: &'c Connection,
        last_no: Arc<AtomicU64>,
        growth: Growth,
        identity: Arc<Identity>,
        commits: Arc<AtomicU64>,
    ) -> rusqlite::Result<Self> {
        Ok(Self {
            conn,
            begin: conn.prepare("BEGIN IMMEDIATE")?,
            commit: conn.prepare("COMMIT")?,
            appender: Appender::new(conn, last_no)?,
            growth,
            identity,
            is_lost: false,
            commits,
            paused: Vec::new(),
            is_failing: false,
        })
    }

    fn work(&mut self, jobs: Vec<Job>, queue: &Queue<Job>) {
        let mut group = Group::with_capacity(jobs.len());
        let mut others = Vec::new();
        for job in jobs {
            match job {
                Job::Append(append, reply) => group.push((append, reply)),
                other => others.push(other),
            }
        }
        if !group.is_empty() {
            self.append_group(group);
        }
        for job in others {
            self.work_aside(job, queue);
        }
    }

    fn work_aside(&mut self, job: Job, queue: &Queue<Job>) {
        match job {
            Job::Append(append, reply) => self.append_group(vec![(append, reply)]),
            slice @ (Job::Sweep(..) | Job::Tidy) if self.growth.has_backlog() => {
                self.paused.push(slice);
                self.growth.tell();
            }
            slice @ (Job::Sweep(..) | Job::Tidy) => self.delete_slice(slice, queue),
            Job::LogMoved => {
                // Whatever is left to move: a reader may keep the log from being moved for long.
                for slice in std::mem::take(&mut self.paused) {
                    self.delete_slice(slice, queue);
                }
            }
            Job::Check(reply) => {
                let conn = self.conn;
                answer(reply, self.transact(|_| probe(conn)).map_err(|trouble| trouble.share()));
                self.growth.grew(self.conn);
            }
        }
    }

    fn delete_slice(&mut self, slice: Job, queue: &Queue<Job>) {
        let conn = self.conn;
        match slice {
            Job::Sweep(retention, reply) => {
                answer(reply, self.transact(|_| sweep(conn, retention)).map_err(|trouble| trouble.share()));
            }
            Job::Tidy => match self.transact(|_| tidy(conn)) {
                Ok(true) => {}
                // The rest comes behind what is queued meanwhile. A closed queue leaves it to the next start.
                Ok(false) => drop(queue.push(Job::Tidy)),
                Err(trouble) => {
                    tracing::warn!(error = %trouble.share(), "cannot delete what is left of old tasks");
                }
            },
            Job::Append(..) | Job::LogMoved | Job::Check(_) => {}
        }
        self.growth.grew(self.conn);
    }

    fn append_group(&mut self, group: Group) {
        match self.append_together(group.iter().map(|(append, _)| append.as_ref())) {
            Ok(answers) => {
                if std::mem::take(&mut self.is_failing) {
                    tracing::info!(file = self.conn.path(), "storing works again");
                }
                for ((_, reply), result) in group.into_iter().zip(answers) {
                    answer(reply, result);
                }
                self.growth.grew(self.conn);
            }
            // One of them spoiled the transaction. Which one shows when each has its own.
            Err(trouble) if group.len() > 1 && !trouble.concerns_all() => {
                for one in group {
                    self.append_group(vec![one]);
                }
            }
            Err(trouble) => {
                if !std::mem::replace(&mut self.is_failing, true) {
                    let (error, file) = (trouble.share(), self.conn.path());
                    tracing::error!(%error, file, "cannot store anything; will say so when it works again");
                }
                for (_, reply) in group {
                    answer(reply, Err(trouble.share()));
                }
            }
        }
    }

    fn append_together<'a>(
        &mut self,
        appends: impl ExactSizeIterator<Item = &'a Encoded>,
    ) -> Result<Vec<Result<Appended, StoreError>>, Trouble> {
        self.transact(|appender| {
            let mut answers = Vec::with_capacity(appends.len());
            for append in appends {
                match appender.append(append) {
                    Ok(appended) => answers.push(Ok(appended)),
                    Err(Refused::Cleanly(refusal)) => answers.push(Err(refusal)),
                    Err(Refused::Midway(error)) => return Err(error),
                }
            }
            Ok(answers)
        })
    }

    /// Commits what `work` does. Nobody may be told of it where this fails, whatever is in the file.
    fn transact<T>(&mut self, work: impl FnOnce(&mut Appender<'c>) -> rusqlite::Result<T>) -> Result<T, Trouble> {
        if self.growth.is_unsynced() {
            return Err(Trouble::Unsynced);
        }
        if self.is_lost {
            self.look_for_files()?;
        }
        let done = match self.commit_after(work) {
            Ok(done) => done,
            Err(error) => {
                self.growth.note(&error);
                self.roll_back();
                return Err(error.into());
            }
        };
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.look_for_files()?;
        Ok(done)
    }

    fn look_for_files(&mut self) -> Result<(), Trouble> {
        let found = self.identity.check();
        self.is_lost = found.is_err();
        found.map_err(Trouble::Lost)
    }

    fn commit_after<T>(&mut self, work: impl FnOnce(&mut Appender<'c>) -> rusqlite::Result<T>) -> rusqlite::Result<T> {
        self.begin.execute(())?;
        let done = work(&mut self.appender)?;
        self.appender.tallies.write()?;
        self.commit.execute(())?;
        Ok(done)
    }

    fn roll_back(&mut self) {
        self.appender.tallies.forget();
        // A full disk makes SQLite roll back by itself.
        if !self.conn.is_autocommit()
            && let Err(error) = self.conn.execute_batch("ROLLBACK")
        {
            tracing::error!(%error, "a transaction cannot be rolled back");
        }
        // On a full disk the log may have room of its own, once it can begin anew.
        if !self.growth.is_unsynced() {
            self.growth.move_rest(self.conn);
        }
    }
}

/// Takes pages and gives them back, so that a file at its limit fails too.
fn probe(conn: &Connection) -> rusqlite::Result<()> {
    conn.prepare_cached("INSERT INTO probe (body) VALUES (zeroblob(16384))")?.execute(())?;
    conn.prepare_cached("DELETE FROM probe")?.execute(())?;
    Ok(())
}

/// A caller who went away does not need the answer.
fn answer<T>(reply: Reply<T>, result: Result<T, StoreError>) {
    let _ = reply.send(result);
}

#[cfg(test)]
mod tests {
    use rusqlite::{Error, ffi};

    use super::super::{checkpoint, connect, open, pool::Pool};
    use super::*;
    use crate::Settings;

    /// What the system cannot write it may forget, and then it calls the next sync a success.
    #[test]
    fn after_a_failed_sync_nothing_is_stored_any_more() {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings::default();
        let opened = open::open(&folder.path().join("sabir.db"), &settings).unwrap();
        let (mut conn, path) = (opened.conn, opened.path);
        let beside = connect::checkpointer(&path, settings.durability).unwrap();
        let (growth, _checkpointer) = checkpoint::pair(&mut conn, beside).unwrap();
        let _pool = Pool::open(&path).unwrap();
        let identity = Arc::new(Identity::new(&path, &opened.lock).unwrap());
        let commits = Arc::new(AtomicU64::new(0));
        let last_no = Arc::new(AtomicU64::new(opened.last_no.0));
        let mut writer = Writer::new(&conn, last_no, growth, identity, commits.clone()).unwrap();

        writer.transact(|_| probe(&conn)).unwrap();
        let failed =
            |_: &mut Appender<'_>| Err::<(), _>(Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_IOERR_FSYNC), None));
        assert!(matches!(writer.transact(failed), Err(Trouble::Sqlite(_))));
        assert!(matches!(writer.transact(|_| probe(&conn)), Err(Trouble::Unsynced)));
        assert_eq!(commits.load(Ordering::Relaxed), 1);
    }
}
