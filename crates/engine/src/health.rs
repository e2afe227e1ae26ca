//! Whether the engine can accept work, for health endpoints.
//!
//! A check of the store writes to the disk, and anybody may ask for one. So all callers share one check, and its result
//! is cached for a moment. The check runs in a task of its own: a caller that disconnects does not restart it for the
//! next one.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use sabir_store::Store;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::engine::Engine;
use crate::sharded::lock;

/// How long the result of a check is valid.
const CACHE_TIME: Duration = Duration::from_secs(1);

/// Whether the engine can accept work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// It can.
    Ready,
    /// It stops, and takes no more.
    Stopping,
    /// The store cannot be read or written, for this reason.
    StoreDown(String),
}

/// The latest check of the store, finished or in progress.
#[derive(Default)]
pub(crate) struct StoreCheck(Mutex<Option<watch::Receiver<Option<CheckResult>>>>);

#[derive(Clone)]
struct CheckResult {
    health: Health,
    at: Instant,
}

impl Engine {
    /// Whether calls can be taken now. Cheap to ask often.
    pub async fn health(&self) -> Health {
        if *self.core.stopping.borrow() {
            return Health::Stopping;
        }
        self.core.store_check.result(&self.core.store).await
    }
}

impl StoreCheck {
    async fn result(&self, store: &Arc<dyn Store>) -> Health {
        let mut check = self.current(store);
        match check.wait_for(Option::is_some).await {
            Ok(result) => result.as_ref().map(|result| result.health.clone()),
            Err(_) => None,
        }
        .unwrap_or_else(|| Health::StoreDown("the check of the store broke off".into()))
    }

    /// The check that is in progress or recent enough; otherwise starts a new one.
    fn current(&self, store: &Arc<dyn Store>) -> watch::Receiver<Option<CheckResult>> {
        let mut latest = lock(&self.0);
        if let Some(check) = latest.as_ref().filter(|check| is_current(check)) {
            return check.clone();
        }
        let (done, check) = watch::channel(None);
        *latest = Some(check.clone());
        let store = store.clone();
        tokio::spawn(async move {
            let health = match store.check().await {
                Ok(()) => Health::Ready,
                Err(error) => Health::StoreDown(error.to_string()),
            };
            done.send_replace(Some(CheckResult { health, at: Instant::now() }));
        });
        check
    }
}

fn is_current(check: &watch::Receiver<Option<CheckResult>>) -> bool {
    match &*check.borrow() {
        Some(result) => result.at.elapsed() < CACHE_TIME,
        // In progress, unless its task has died.
        None => check.has_changed().is_ok(),
    }
}
