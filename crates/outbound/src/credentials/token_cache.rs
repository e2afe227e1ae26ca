//! Fetches a token when it is needed and keeps it, for all requests to an upstream.
//!
//! A fetch is a task of its own: one for all who wait, and a request that is given up does not end it. When which
//! token is used is decided by `TokenState`. A fetch from an endpoint ends by the timeout of its request. Reading a file may
//! hang where a mount does; then no second one begins, and each request waits until its time is over.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::time::timeout;

use super::error::CredentialError;
use super::secret::Secret;
use super::token_answer::Grant;
use super::token_fetcher::TokenFetcher;
use super::token_state::{NumberedToken, TokenState};

type Outcome = Result<NumberedToken, CredentialError>;

pub(super) struct TokenCache {
    fetcher: TokenFetcher,
    shared: Mutex<Shared>,
}

#[derive(Default)]
struct Shared {
    state: TokenState,
    /// The sender lives as long as the fetch.
    running: Option<watch::Receiver<Option<Outcome>>>,
    /// Failures since the last success.
    failures: u32,
}

enum Lookup {
    Known(Outcome),
    Running(watch::Receiver<Option<Outcome>>),
}

impl TokenCache {
    pub fn new(fetcher: TokenFetcher) -> Arc<Self> {
        Arc::new(TokenCache { fetcher, shared: Mutex::default() })
    }

    /// The current token. If it must be fetched, waits for that as long as `wait`.
    pub async fn token(self: &Arc<Self>, wait: Duration) -> Outcome {
        let mut running = match self.look_up() {
            Lookup::Known(outcome) => return outcome,
            Lookup::Running(running) => running,
        };
        let ended = timeout(wait, running.wait_for(Option::is_some)).await;
        match ended {
            Err(_) => Err(CredentialError::Timeout),
            // The task is gone without an outcome.
            Ok(Err(_)) => Err(CredentialError::Interrupted),
            Ok(Ok(outcome)) => outcome.clone().expect("it was waited for"),
        }
    }

    /// The upstream has refused the token with this number. Whether another request may be shown another token.
    pub fn refused(&self, number: u64) -> bool {
        self.shared().state.refused(number, Instant::now())
    }

    /// The token that requests are shown now, if there is one.
    pub fn known(&self) -> Option<Secret> {
        Some(self.shared().state.current(Instant::now())?.ok()?.token)
    }

    /// Where the token comes from: a path, or a URL without its query.
    pub fn source(&self) -> String {
        self.fetcher.to_string()
    }

    /// The token, or the running fetch, or a new one.
    fn look_up(self: &Arc<Self>) -> Lookup {
        let mut shared = self.shared();
        if let Some(outcome) = shared.state.current(Instant::now()) {
            return Lookup::Known(outcome);
        }
        // A closed channel means that the fetch ended, in whatever way.
        if let Some(running) = shared.running.as_ref().filter(|running| running.has_changed().is_ok()) {
            return Lookup::Running(running.clone());
        }
        let (sender, running) = watch::channel(None);
        shared.running = Some(running.clone());
        drop(shared);
        let cache = Arc::clone(self);
        tokio::spawn(async move {
            let began = Instant::now();
            let outcome = cache.fetcher.fetch().await;
            sender.send_replace(Some(cache.note(began, outcome)));
        });
        Lookup::Running(running)
    }

    fn note(&self, began: Instant, outcome: Result<Grant, CredentialError>) -> Outcome {
        let mut shared = self.shared();
        let outcome = shared.state.fetched(began, Instant::now(), outcome);
        shared.running = None;
        let earlier_failures = shared.failures;
        shared.failures = if outcome.is_ok() { 0 } else { earlier_failures.saturating_add(1) };
        drop(shared);
        match &outcome {
            Ok(_) if earlier_failures == 0 => {}
            Ok(_) => {
                tracing::info!(source = %self.fetcher, failures = earlier_failures, "tokens for an upstream are here again")
            }
            // The first of a streak is enough.
            Err(_) if earlier_failures > 0 => {}
            Err(error) => {
                let detail = error.detail();
                tracing::warn!(source = %self.fetcher, reason = %error, detail, "there is no token for an upstream");
            }
        }
        outcome
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
