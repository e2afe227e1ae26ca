//! Fetches the keys of an issuer and keeps them.
//!
//! | the keys are | a token's key is known | a token's key is unknown |
//! |---|---|---|
//! | fresh | checked at once | one fetch for all who ask, if the last one began 30 s ago |
//! | older than 10 minutes | checked at once; a fetch begins in the background | the same |
//! | not there yet | | one fetch for all who ask, if the last one began 5 s ago |
//!
//! A fetch is a task of its own: callers wait for it for at most 5 seconds, at most 256 of them, and a caller that goes away does
//! not end it. A fetch that fails leaves the keys as they are. Keys that are missing from a set that was fetched do not
//! count any more. The server begins a fetch when it starts, and does not wait for it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::discovery::{Discovered, IssuerMetadata, locations};
use super::key_set::KeySet;

/// Fetches the documents of an issuer: discovery and keys. Implementations follow no redirects.
pub trait DocumentFetcher: Send + Sync {
    /// The body of a 200 response. `Err` says for the log why there is none.
    fn fetch<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<Bytes, String>>;
}

/// Older keys are fetched again when somebody needs them.
const STALE_AFTER: Duration = Duration::from_secs(600);

/// Between the beginnings of two fetches.
const FETCH_INTERVAL: Duration = Duration::from_secs(30);

/// The same while there are no keys: nobody gets in until a fetch succeeds.
const FIRST_FETCH_INTERVAL: Duration = Duration::from_secs(5);

/// For discovery and keys together.
const FETCH_LIMIT: Duration = Duration::from_secs(10);

/// How long a caller waits for a fetch.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// How many callers wait for a fetch.
const MOST_WAITING: usize = 256;

const LARGEST_DOCUMENT: usize = 256 * 1024;

pub(super) struct KeySource {
    issuer: String,
    jwks_url: Option<String>,
    fetcher: Arc<dyn DocumentFetcher>,
    known: RwLock<Known>,
    fetching: Mutex<Fetching>,
    waiting: AtomicUsize,
}

/// The result of the last fetch that succeeded.
#[derive(Clone, Default)]
struct Known {
    keys: Arc<KeySet>,
    metadata: Option<Arc<IssuerMetadata>>,
    fetched: Option<Instant>,
}

#[derive(Default)]
struct Fetching {
    began: Option<Instant>,
    /// The sender lives as long as the fetch.
    running: Option<watch::Receiver<()>>,
    /// Failures since the last success.
    failures: u32,
}

/// What asking for newer keys led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refreshed {
    /// The keys are those that the issuer publishes, or were shortly ago.
    Recent,
    /// Nobody knows what the issuer publishes now.
    Unavailable { retry_after: Duration },
}

impl KeySource {
    pub(super) fn new(issuer: String, jwks_url: Option<String>, fetcher: Arc<dyn DocumentFetcher>) -> Arc<Self> {
        Arc::new(KeySource {
            issuer,
            jwks_url,
            fetcher,
            known: RwLock::default(),
            fetching: Mutex::default(),
            waiting: AtomicUsize::new(0),
        })
    }

    pub(super) fn keys(&self) -> Arc<KeySet> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).keys.clone()
    }

    /// Of the keys.
    pub(super) fn generation(&self) -> u64 {
        self.known.read().unwrap_or_else(PoisonError::into_inner).keys.generation
    }

    pub(super) fn metadata(&self) -> Option<Arc<IssuerMetadata>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).metadata.clone()
    }

    /// Begins a fetch in the background if the keys are old or not there.
    pub(super) fn refresh_if_stale(self: &Arc<Self>) {
        if self.fetched().is_none_or(|fetched| fetched.elapsed() >= STALE_AFTER) {
            self.begin_fetch();
        }
    }

    /// Waits for newer keys, as far as they may be fetched now.
    pub(super) async fn refresh(self: &Arc<Self>) -> Refreshed {
        if let Some(mut running) = self.begin_fetch() {
            let place = self.waiting.fetch_add(1, Ordering::Relaxed);
            let _place = WaitingPlace(&self.waiting);
            // The sender only ever goes away; then the fetch has ended.
            if place >= MOST_WAITING || timeout(LONGEST_WAIT, running.changed()).await.is_err() {
                return Refreshed::Unavailable { retry_after: FIRST_FETCH_INTERVAL };
            }
        }
        let (interval, has_keys) = (self.interval(), self.fetched().is_some());
        let fetching = self.fetching();
        if has_keys && fetching.failures == 0 {
            return Refreshed::Recent;
        }
        let passed = fetching.began.map_or(Duration::ZERO, |began| began.elapsed());
        Refreshed::Unavailable { retry_after: interval.saturating_sub(passed).max(Duration::from_secs(1)) }
    }

    /// The running fetch, or a new one unless the last one began shortly ago.
    fn begin_fetch(self: &Arc<Self>) -> Option<watch::Receiver<()>> {
        let interval = self.interval();
        let mut fetching = self.fetching();
        // A closed channel means that the fetch ended, in whatever way.
        if let Some(running) = fetching.running.as_ref().filter(|running| running.has_changed().is_ok()) {
            return Some(running.clone());
        }
        if fetching.began.is_some_and(|began| began.elapsed() < interval) {
            return None;
        }
        let (end, running) = watch::channel(());
        fetching.began = Some(Instant::now());
        fetching.running = Some(running.clone());
        drop(fetching);
        let source = self.clone();
        tokio::spawn(async move {
            source.fetch().await;
            drop(end);
        });
        Some(running)
    }

    async fn fetch(&self) {
        let outcome = timeout(FETCH_LIMIT, self.fetch_documents()).await;
        match outcome.unwrap_or_else(|_| Err(format!("no answer within {} s", FETCH_LIMIT.as_secs()))) {
            Ok((keys, metadata)) => self.replace(keys, metadata),
            Err(words) => self.note_failure(&words),
        }
    }

    async fn fetch_documents(&self) -> Result<(KeySet, Option<IssuerMetadata>), String> {
        let (url, metadata) = match &self.jwks_url {
            Some(url) => (url.clone(), None),
            None => {
                let Discovered { jwks_uri, metadata } = self.discover().await?;
                (jwks_uri, Some(metadata))
            }
        };
        let document = self.fetch_document(&url).await.map_err(|words| format!("{url}: {words}"))?;
        let keys = KeySet::parse(&document).map_err(|words| format!("{url}: {words}"))?;
        Ok((keys, metadata))
    }

    /// The first usable document. If there is none, the words are about the first place, which most issuers use.
    async fn discover(&self) -> Result<Discovered, String> {
        let mut first = None;
        for url in locations(&self.issuer) {
            let document = self.fetch_document(&url).await;
            let discovered =
                document.and_then(|document| Discovered::parse(&document, &self.issuer).map_err(str::to_owned));
            match discovered {
                Ok(discovered) => return Ok(discovered),
                Err(words) => first = first.or(Some(format!("{url}: {words}"))),
            }
        }
        Err(first.expect("an issuer has at least one location"))
    }

    async fn fetch_document(&self, url: &str) -> Result<Bytes, String> {
        let document = self.fetcher.fetch(url).await?;
        match document.len() {
            ..=LARGEST_DOCUMENT => Ok(document),
            _ => Err("the document is larger than 256 KiB".to_owned()),
        }
    }

    fn replace(&self, mut keys: KeySet, metadata: Option<IssuerMetadata>) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        keys.generation = known.keys.generation;
        if known.fetched.is_none() || !keys.has_same_keys(&known.keys) {
            keys.generation += 1;
            tracing::info!(issuer = self.issuer, "the issuer publishes other keys");
        }
        *known = Known { keys: Arc::new(keys), metadata: metadata.map(Arc::new), fetched: Some(Instant::now()) };
        drop(known);
        let mut fetching = self.fetching();
        if fetching.failures > 0 {
            tracing::info!(issuer = self.issuer, failures = fetching.failures, "the keys of the issuer are here again");
        }
        fetching.failures = 0;
    }

    fn note_failure(&self, words: &str) {
        let mut fetching = self.fetching();
        fetching.failures = fetching.failures.saturating_add(1);
        // The first of a streak is enough.
        if fetching.failures == 1 {
            tracing::warn!(
                issuer = self.issuer,
                reason = words,
                "the keys of the issuer cannot be fetched; those that are known stay in use"
            );
        }
    }

    fn interval(&self) -> Duration {
        if self.fetched().is_some() { FETCH_INTERVAL } else { FIRST_FETCH_INTERVAL }
    }

    fn fetched(&self) -> Option<Instant> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).fetched
    }

    fn fetching(&self) -> MutexGuard<'_, Fetching> {
        self.fetching.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Given back when the caller has waited or is gone.
struct WaitingPlace<'a>(&'a AtomicUsize);

impl Drop for WaitingPlace<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
