//! Connections for readers, and the threads they read on.
//!
//! A connection is opened when all others are busy, and kept for the next reader. Reads beyond the
//! limit wait their turn: more threads than that would only fight over the same processors.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use rusqlite::Connection;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::{StoreError, StoreFuture};

use super::connect;

pub(super) struct Pool {
    path: PathBuf,
    places: Arc<Semaphore>,
    idle: Mutex<Vec<Connection>>,
}

impl Pool {
    pub fn new(path: PathBuf) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let places = Arc::new(Semaphore::new((2 * processors).clamp(4, 32)));
        Self { path, places, idle: Mutex::new(Vec::new()) }
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
            let mut conn = pool.take()?;
            let seen = look(&mut conn);
            pool.put_back(conn);
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
                let mut conn = pool.take()?;
                let answer = read(&mut conn);
                pool.put_back(conn);
                answer
            });
            done.await.map_err(|error| StoreError::Failed(error.into()))?
        })
    }

    /// Reads that have begun are finished; later ones are refused.
    pub fn close(&self) {
        self.places.close();
        self.idle().clear();
    }

    fn take(&self) -> Result<Connection, StoreError> {
        let idle = self.idle().pop();
        Ok(idle.map_or_else(|| connect::reader(&self.path), Ok)?)
    }

    fn put_back(&self, conn: Connection) {
        let mut idle = self.idle();
        if !self.places.is_closed() {
            idle.push(conn);
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().expect("nobody panics with the connections in hand")
    }
}
