//! Connections for readers, and the threads they read on.
//!
//! All of them are opened at the start, so that a read needs no descriptor: a server that has run out of them can still
//! answer. Reads beyond their number wait their turn; more threads would only fight over the same processors.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use rusqlite::Connection;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::{StoreError, StoreFuture};

use super::connect;

pub(super) struct Pool {
    /// As many as there are connections.
    places: Arc<Semaphore>,
    idle: Mutex<Vec<Connection>>,
}

impl Pool {
    pub fn open(path: &Path) -> rusqlite::Result<Self> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let count = processors.clamp(LEAST, MOST);
        let idle = (0..count).map(|_| connect::reader(path)).collect::<rusqlite::Result<_>>()?;
        Ok(Self { places: Arc::new(Semaphore::new(count)), idle: Mutex::new(idle) })
    }

    /// Looks up a few rows, here and now: that is over sooner than another thread could be woken for it. `None` from
    /// `look` means that there is more to read than that, and then it is done where it may block.
    pub fn look<T: Send + 'static>(
        self: &Arc<Self>,
        look: impl FnOnce(&mut Connection) -> Result<Option<T>, StoreError> + Send + 'static,
        read: impl FnOnce(&mut Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<'static, T> {
        let pool = self.clone();
        Box::pin(async move {
            // All readers are busy: then this one waits like any other.
            let Ok(place) = pool.places.clone().try_acquire_owned() else { return pool.read(read).await };
            let seen = pool.lend(look);
            drop(place);
            match seen? {
                Some(seen) => Ok(seen),
                None => pool.read(read).await,
            }
        })
    }

    /// Runs a read where it may block.
    pub fn read<T: Send + 'static>(
        self: &Arc<Self>,
        read: impl FnOnce(&mut Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<'static, T> {
        let pool = self.clone();
        Box::pin(async move {
            let place = pool.places.clone().acquire_owned().await.map_err(|_| StoreError::Closed)?;
            let done = spawn_blocking(move || {
                let _place = place;
                pool.lend(read)
            });
            done.await.map_err(|error| StoreError::Failed(error.into()))?
        })
    }

    /// Reads that have begun are finished; later ones are refused.
    pub fn close(&self) {
        self.places.close();
        self.idle().clear();
    }

    /// Whoever has a place gets a connection.
    fn lend<T>(&self, read: impl FnOnce(&mut Connection) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let conn = self.idle().pop().ok_or(StoreError::Closed)?;
        let mut lent = Lent { pool: self, conn: Some(conn) };
        let conn = lent.conn.as_mut().ok_or(StoreError::Closed)?;
        read(conn)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().expect("nobody panics with the connections in hand")
    }
}

/// So many readers there are, at least and at most: one for each processor.
const LEAST: usize = 4;
const MOST: usize = 16;

/// A connection that comes back whatever happens to its reader.
struct Lent<'p> {
    pool: &'p Pool,
    conn: Option<Connection>,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let mut idle = self.pool.idle();
        if !self.pool.places.is_closed() {
            idle.extend(self.conn.take());
        }
    }
}
