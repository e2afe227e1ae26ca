//! Webhooks of a server: which ones callers may set, and the dispatcher that delivers them.
//!
//! ```text
//! caller --set--> engine --admit--> Admission (guard, key) --> store --due--> Dispatcher (same guard, same key) --> receiver
//! ```
//!
//! One guard decides when a URL is set and again at every connect. The dispatcher begins when the engine has taken up its tasks.
//! It ends when it is told to, or when the engine is gone: the engine holds the admission, and that holds the switch.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use sabir_engine::{AdmittedWebhook, WebhookPolicy, WebhookRefusal};
use sabir_model::PushConfig;
use sabir_outbound::webhooks::{Dispatcher, DispatcherSettings, SealKey, WebhookSecrets};
use sabir_outbound::{Client, EgressPolicy, Guard, Limits, Roots, SystemResolver, Target};
use sabir_store::{Outbox, Store};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

/// After a panic of the dispatcher, deliveries go on this much later.
const AFTER_PANIC: Duration = Duration::from_secs(1);

/// Webhooks that a server offers, before it has started.
pub struct Webhooks {
    guard: Arc<Guard>,
    settings: DispatcherSettings,
    stop: watch::Sender<bool>,
}

impl Webhooks {
    /// `policy` says what may be dialled beside public addresses.
    pub fn new(policy: EgressPolicy, settings: DispatcherSettings) -> Self {
        let guard = Arc::new(Guard::new(policy, Arc::new(SystemResolver::default())));
        Webhooks { guard, settings, stop: watch::Sender::new(false) }
    }

    /// What the engine asks when a webhook is set.
    pub fn admission(&self) -> Arc<dyn WebhookPolicy> {
        let (guard, key) = (self.guard.clone(), self.settings.seal_key.clone());
        Arc::new(Admission { guard, key, _stop: self.stop.clone() })
    }

    /// Begins to deliver. Nothing is dialled, and no certificate is read, before something is due.
    pub fn start(self, store: Arc<dyn Store>, outbox: Arc<dyn Outbox>) -> Deliveries {
        let Webhooks { guard, settings, stop } = self;
        let client = Client::new(guard, Limits::default(), Roots::default());
        let stopped = stop.subscribe();
        let dispatcher = move || {
            let mut stopped = stopped.clone();
            // Resolves as well when nobody is left who could say so.
            let until = async move { drop(stopped.wait_for(|stop| *stop).await) };
            Dispatcher::new(store.clone(), outbox.clone(), client.clone(), settings.clone()).run(until)
        };
        let task = tokio::spawn(survive_panics(dispatcher, AFTER_PANIC));
        Deliveries { stop, task: Mutex::new(Some(task)) }
    }
}

/// The running dispatcher.
pub struct Deliveries {
    stop: watch::Sender<bool>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Deliveries {
    /// Starts no more deliveries, and returns when the outcomes of those under way are noted, or at the deadline. What is
    /// not noted by then is repeated after the next start.
    pub async fn stop(&self, deadline: Instant) {
        self.stop.send_replace(true);
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut task) = task else { return };
        if timeout_at(deadline, &mut task).await.is_err() {
            task.abort();
            // An aborted task still holds the store until it is gone.
            let _ = task.await;
        }
    }
}

/// Runs what `make` makes until it ends by itself; after a panic, the next one.
async fn survive_panics<F>(mut make: impl FnMut() -> F, pause: Duration)
where
    F: Future<Output = ()> + Send + 'static,
{
    loop {
        let mut running = AbortOnDrop(tokio::spawn(make()));
        match (&mut running.0).await {
            Err(error) if error.is_panic() => {
                tracing::error!("the dispatcher of webhooks panicked; it starts again");
                tokio::time::sleep(pause).await;
            }
            _ => return,
        }
    }
}

/// A task that ends with whoever waits for it.
struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Decides about webhooks that callers want to set.
struct Admission {
    guard: Arc<Guard>,
    key: Option<SealKey>,
    /// Dropped with the engine; then the dispatcher ends.
    _stop: watch::Sender<bool>,
}

impl WebhookPolicy for Admission {
    fn admit<'a>(&'a self, config: &'a PushConfig) -> BoxFuture<'a, Result<AdmittedWebhook, WebhookRefusal>> {
        Box::pin(async move {
            let refused = |field: &str, reason: String| WebhookRefusal { field: field.to_owned(), reason };
            let PushConfig { url, token, authentication, .. } = config;
            let secrets = WebhookSecrets { token: token.clone(), authentication: authentication.clone() };
            secrets.check().map_err(|error| refused(error.field, error.to_string()))?;
            let target =
                self.guard.check_url(url).await.map_err(|error| refused("url", format!("is refused: {error}")))?;
            Ok(AdmittedWebhook { receiver: receiver(&target), secrets: secrets.seal(self.key.as_ref(), url) })
        })
    }

    fn schemes(&self, url: &str, secrets: &[u8]) -> Vec<String> {
        WebhookSecrets::schemes(self.key.as_ref(), url, secrets)
    }
}

/// Deliveries to one of these share its limits, so each has one spelling.
fn receiver(target: &Target) -> String {
    format!("{}://{}:{}", target.scheme.as_str(), target.host, target.port)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use sabir_model::PushAuthentication;

    use super::*;

    fn config(url: &str, token: Option<&str>, credentials: Option<&str>) -> PushConfig {
        let authentication = credentials.map(|credentials| PushAuthentication {
            schemes: vec!["Bearer".to_owned()],
            credentials: Some(credentials.to_owned()),
        });
        PushConfig { id: None, task: None, url: url.to_owned(), token: token.map(str::to_owned), authentication }
    }

    #[tokio::test]
    async fn configs_and_what_becomes_of_them() {
        let mut policy = EgressPolicy::default();
        policy.allow_host("Hook-A").unwrap();
        policy.allow_range("127.0.0.0/8").unwrap();
        let admission = Webhooks::new(policy, DispatcherSettings::default()).admission();
        for (url, token, credentials, expected) in [
            ("http://127.0.0.1:8080/x", None, None, "http://127.0.0.1:8080"),
            ("HTTP://127.0.0.1/x?y", Some("t"), None, "http://127.0.0.1:80"),
            ("https://hook-a./", None, Some("c"), "https://hook-a:443"),
            ("http://192.168.1.1/", None, None, "url: is refused: the host is not a public address"),
            ("ftp://127.0.0.1/", None, None, "url: is refused: the URL must begin with http:// or https://"),
            ("", None, None, "url: is refused: the URL must begin with http:// or https://"),
            ("http://127.0.0.1/", Some("a\nb"), None, "token: must be at most 4096 printable ASCII characters"),
            (
                "http://127.0.0.1/",
                None,
                Some("\u{fc}"),
                "authentication.credentials: must be at most 4096 printable ASCII characters",
            ),
        ] {
            let outcome = match admission.admit(&config(url, token, credentials)).await {
                Ok(admitted) => admitted.receiver,
                Err(WebhookRefusal { field, reason }) => format!("{field}: {reason}"),
            };
            assert_eq!(outcome, expected, "{url} {token:?} {credentials:?}");
        }
    }

    #[tokio::test]
    async fn secrets_are_sealed_where_there_is_a_key() {
        let mut policy = EgressPolicy::default();
        policy.allow_host("hook-a").unwrap();
        for (seal_key, is_readable) in [(None, true), (Some(SealKey::generate()), false)] {
            let settings = DispatcherSettings { seal_key, ..DispatcherSettings::default() };
            let admission = Webhooks::new(policy.clone(), settings).admission();
            let admitted = admission.admit(&config("http://hook-a/", Some("geheim"), None)).await.unwrap();
            assert_eq!(admitted.secrets.windows(6).any(|bytes| bytes == b"geheim"), is_readable);
            // The scheme is no secret: answers show it.
            let admitted = admission.admit(&config("http://hook-a/", None, Some("geheim"))).await.unwrap();
            assert_eq!(admission.schemes("http://hook-a/", &admitted.secrets), ["Bearer"]);
        }
    }

    #[tokio::test]
    async fn what_panics_is_started_again_until_it_ends() {
        let starts = Arc::new(AtomicUsize::new(0));
        let counted = starts.clone();
        let make = move || {
            let start = counted.fetch_add(1, Ordering::SeqCst);
            async move { assert!(start == 2, "on purpose") }
        };
        survive_panics(make, Duration::ZERO).await;
        assert_eq!(starts.load(Ordering::SeqCst), 3);
    }

    #[tokio::test]
    async fn the_dispatcher_ends_when_told_and_with_its_engine() {
        for is_told in [true, false] {
            let webhooks = Webhooks::new(EgressPolicy::default(), DispatcherSettings::default());
            let admission = webhooks.admission();
            let store = Arc::new(sabir_store::MemoryStore::new());
            let deliveries = webhooks.start(store.clone(), store.clone());
            if is_told {
                deliveries.stop(Instant::now() + Duration::from_secs(60)).await;
                drop(admission);
            } else {
                let Deliveries { stop, task } = deliveries;
                let task = task.into_inner().unwrap().unwrap();
                drop((admission, stop));
                task.await.unwrap();
            }
            assert_eq!(Arc::strong_count(&store), 1, "told: {is_told}");
        }
    }
}
