//! The connections of the readers, and the threads that they read on.
//!
//! All connections are opened at the start, so that a read needs no new descriptor: a server that has run out of
//! descriptors can still answer. Two are opened before the store is used, the others while the server starts. By then
//! the path may lead to another file; such a connection is not used.
//!
//! Reads that may block run on blocking threads. Their number is bounded, since more would only compete for the same
//! processors. A quick read of a few rows runs where it is called and never waits for long reads: there is a connection
//! for every thread that may call.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::{StoreError, StoreFuture};

use super::connect;

pub(super) struct Pool {
    /// Permits for reads that may block, and for quick reads. Together they are as many as the connections.
    blocking_reads: Arc<Semaphore>,
    quick_reads: Semaphore,
    idle: Mutex<Vec<Connection>>,
    opener: Mutex<Option<JoinHandle<()>>>,
}

impl Pool {
    /// Opens the first two connections.
    pub fn open(path: &Path) -> rusqlite::Result<Arc<Self>> {
        let idle = vec![connect::reader(path)?, connect::reader(path)?];
        let blocking_reads = Arc::new(Semaphore::new(1));
        let pool =
            Self { blocking_reads, quick_reads: Semaphore::new(1), idle: Mutex::new(idle), opener: Mutex::default() };
        Ok(Arc::new(pool))
    }

    /// Opens the other connections on a thread of their own. `check` tells whether the path still leads to the same
    /// file.
    pub fn open_others(self: &Arc<Self>, path: &Path, check: impl Fn() -> Result<(), String> + Send + 'static) {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let reads = processors.clamp(MIN_READS, MAX_READS);
        let (opening, path) = (self.clone(), path.to_owned());
        let open_others = move || {
            for (wanted, is_quick) in [(reads, false), (processors, true)] {
                for _ in 1..wanted {
                    if opening.blocking_reads.is_closed() {
                        return;
                    }
                    // Checked before, since opening would create a log for another file, and after, in case the file
                    // was replaced in between.
                    let conn = check().and_then(|()| connect::reader(&path).map_err(|error| error.to_string()));
                    match conn.and_then(|conn| check().map(|()| conn)) {
                        Ok(conn) => {
                            opening.add(conn, if is_quick { &opening.quick_reads } else { &opening.blocking_reads })
                        }
                        Err(error) => {
                            tracing::warn!(error, "cannot open another connection to the database");
                            return;
                        }
                    }
                }
            }
        };
        match std::thread::Builder::new().name("store-readers".into()).spawn(open_others) {
            Ok(opener) => *self.opener.lock().expect("nobody panics with the thread in hand") = Some(opener),
            // Without a thread, two connections have to suffice.
            Err(error) => tracing::warn!(%error, "cannot open more connections to the database"),
        }
    }

    fn add(&self, conn: Connection, permits: &Semaphore) {
        let mut idle = self.idle();
        if !self.blocking_reads.is_closed() {
            idle.push(conn);
            permits.add_permits(1);
        }
    }

    /// Reads a few rows on the current thread, which takes less time than waking another one. If `quick` returns
    /// `None`, there is more to read, and `read` runs on a blocking thread.
    pub fn quick_read<T: Send + 'static>(
        self: &Arc<Self>,
        quick: impl FnOnce(&mut Connection) -> Result<Option<T>, StoreError> + Send + 'static,
        read: impl FnOnce(&mut Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<'static, T> {
        let pool = self.clone();
        Box::pin(async move {
            let seen = match pool.quick_reads.try_acquire() {
                Ok(_permit) => pool.with_connection(quick)?,
                // More threads than processors are reading: this read waits like a long one.
                Err(_) => None,
            };
            match seen {
                Some(seen) => Ok(seen),
                None => pool.read(read).await,
            }
        })
    }

    /// Runs a read on a blocking thread.
    pub fn read<T: Send + 'static>(
        self: &Arc<Self>,
        read: impl FnOnce(&mut Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<'static, T> {
        let pool = self.clone();
        Box::pin(async move {
            let permit = pool.blocking_reads.clone().acquire_owned().await.map_err(|_| StoreError::Closed)?;
            let done = spawn_blocking(move || {
                let _permit = permit;
                pool.with_connection(read)
            });
            done.await.map_err(|error| StoreError::Failed(error.into()))?
        })
    }

    /// Finishes the reads that have begun and refuses later ones.
    pub fn close(&self) {
        self.blocking_reads.close();
        self.idle().clear();
        // No connection may be left when the file is closed.
        self.until_open();
    }

    /// Blocks until no more connections are being opened.
    pub fn until_open(&self) {
        let opener = self.opener.lock().expect("nobody panics with the thread in hand").take();
        // A thread that panicked has logged it.
        opener.map(JoinHandle::join);
    }

    /// Lends a connection. There is one for each permit.
    fn with_connection<T>(&self, read: impl FnOnce(&mut Connection) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let conn = self.idle().pop().ok_or(StoreError::Closed)?;
        let mut borrowed = BorrowedConnection { pool: self, conn: Some(conn) };
        let conn = borrowed.conn.as_mut().ok_or(StoreError::Closed)?;
        read(conn)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().expect("nobody panics with the connections in hand")
    }
}

/// The minimum and maximum number of concurrent reads that may block; otherwise one for each processor.
const MIN_READS: usize = 2;
const MAX_READS: usize = 16;

/// Returns its connection to the pool when it is dropped, even by a panic of the reader.
struct BorrowedConnection<'p> {
    pool: &'p Pool,
    conn: Option<Connection>,
}

impl Drop for BorrowedConnection<'_> {
    fn drop(&mut self) {
        let mut idle = self.pool.idle();
        if !self.pool.blocking_reads.is_closed() {
            idle.extend(self.conn.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn a_look_does_not_wait_for_long_reads() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pool.db");
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE t (n); INSERT INTO t VALUES (7)").unwrap();
        let pool = Pool::open(&path).unwrap();
        pool.open_others(&path, || Ok(()));
        let (release, held) = mpsc::channel::<()>();
        let held = Arc::new(Mutex::new(held));
        // As many as there are permits, and some more that wait.
        let long: Vec<_> = (0..MAX_READS + 3)
            .map(|_| {
                let held = held.clone();
                tokio::spawn(pool.read(move |_| {
                    let _ = held.lock().unwrap().recv();
                    Ok(())
                }))
            })
            .collect();
        while pool.blocking_reads.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        let number = |conn: &mut Connection| Ok(conn.query_row("SELECT n FROM t", (), |row| row.get::<_, i64>(0))?);
        let seen = pool.quick_read(move |conn| number(conn).map(Some), |_| panic!("it was seen at once")).await;
        assert_eq!(seen.unwrap(), 7);
        drop(release);
        for read in long {
            read.await.unwrap().unwrap();
        }
    }

    #[test]
    fn connections_to_another_file_of_that_name_are_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pool.db");
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE t (n)").unwrap();
        for (checked, more) in [(Ok(()), true), (Err("it was replaced".to_owned()), false)] {
            let pool = Pool::open(&path).unwrap();
            pool.open_others(&path, move || checked.clone());
            pool.until_open();
            assert_eq!(pool.idle().len() > 2, more);
        }
    }
}
