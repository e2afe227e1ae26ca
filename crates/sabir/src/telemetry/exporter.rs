//! Sends spans to the collector, in a task of its own.
//!
//! A request that the collector may take later is repeated within the time of its batch; then the batch is lost. A
//! collector that is away is logged when that begins, now and then while it lasts, and when it is over.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use prost::Message;
use sabir_outbound::{Client, EgressPolicy, Guard, Limits, Request, Roots, SystemResolver, Target};
use tokio::sync::watch;
use tokio::time::Instant;

use super::otlp::{ExportRequest, ExportResponse, Resource, ResourceSpans, Scope, ScopeSpans, attribute};
use super::queue::SpanQueue;
use super::settings::{BatchSettings, TraceSettings};
use super::span::{EndedSpan, Value};

/// The wait before the first repetition; it doubles.
const FIRST_WAIT: Duration = Duration::from_millis(500);

/// How often trouble is logged while it lasts.
const LOG_AGAIN: Duration = Duration::from_secs(60);

const USER_AGENT: &str = concat!("sabir/", env!("CARGO_PKG_VERSION"));

pub(super) struct Exporter {
    client: Client,
    endpoint: String,
    /// For the log.
    shown_endpoint: String,
    headers: HeaderMap,
    timeout: Duration,
    batches: BatchSettings,
    resource: Resource,
    queue: Arc<SpanQueue>,
    trouble: Option<Trouble>,
}

/// Since the last batch that the collector took.
struct Trouble {
    lost: u64,
    logged: Instant,
}

/// Why a request failed.
struct Failure {
    reason: String,
    /// `None`: repeating it is useless.
    retry: Option<Retry>,
}

enum Retry {
    Soon,
    After(Duration),
}

impl Exporter {
    /// The operator wrote the address, so its host and port may be anything.
    pub(super) fn new(settings: TraceSettings, queue: Arc<SpanQueue>) -> Result<Self, String> {
        let target = Target::parse(&settings.endpoint).map_err(|refusal| refusal.to_string())?;
        let mut policy = EgressPolicy::default();
        policy.trust(target.host, target.port);
        let mut roots = Roots::default();
        if let Some(file) = &settings.certificate {
            let text = std::fs::read(file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
            roots.add_pem(&text).map_err(|error| format!("{}: {error}", file.display()))?;
        }
        let limits = Limits { connect_timeout: settings.timeout, idle_per_host: 1, ..Limits::default() };
        let guard = Guard::new(policy, Arc::new(SystemResolver::default()));
        let shown_endpoint = settings.shown_endpoint();
        let mut headers = settings.headers;
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        headers.insert(header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
        let attributes = settings.resource.into_iter().map(|(name, value)| attribute(&name, Value::Text(value.into())));
        Ok(Self {
            client: Client::new(Arc::new(guard), limits, roots),
            endpoint: settings.endpoint,
            shown_endpoint,
            headers,
            timeout: settings.timeout,
            batches: settings.batches,
            resource: Resource { attributes: attributes.collect() },
            queue,
            trouble: None,
        })
    }

    /// Until the server stops; then what is left is sent once.
    pub(super) async fn run(mut self, mut stopping: watch::Receiver<bool>) {
        let queue = self.queue.clone();
        loop {
            let gathered = async {
                queue.until_first().await;
                let _ = tokio::time::timeout(self.batches.delay, queue.until_full()).await;
            };
            tokio::select! {
                () = gathered => {}
                _ = stopping.wait_for(|stop| *stop) => break,
            }
            self.log_dropped();
            let spans = queue.take();
            let (count, request) = (spans.len() as u64, self.request(spans));
            let sent = self.send(&request, &mut stopping).await;
            self.note(count, sent);
        }
        while !queue.is_empty() {
            let spans = queue.take();
            let (count, request) = (spans.len() as u64, self.request(spans));
            let sent = self.post(request).await.map_err(|failure| failure.reason);
            let is_lost = sent.is_err();
            self.note(count, sent);
            if is_lost {
                break;
            }
        }
        self.log_dropped();
    }

    fn request(&self, spans: Vec<EndedSpan>) -> Bytes {
        let scope = Scope { name: "sabir".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
        let scope_spans = ScopeSpans { scope: Some(scope), spans: spans.into_iter().map(Into::into).collect() };
        let of_resource = ResourceSpans { resource: Some(self.resource.clone()), scope_spans: vec![scope_spans] };
        ExportRequest { resource_spans: vec![of_resource] }.encode_to_vec().into()
    }

    /// Sends a batch, and repeats it as long as there is time.
    async fn send(&self, request: &Bytes, stopping: &mut watch::Receiver<bool>) -> Result<(), String> {
        let deadline = Instant::now() + self.batches.timeout;
        let mut wait = FIRST_WAIT;
        loop {
            let failure = match self.post(request.clone()).await {
                Ok(()) => return Ok(()),
                Err(failure) => failure,
            };
            let pause = match failure.retry {
                None => return Err(failure.reason),
                Some(Retry::Soon) => wait,
                // It is the collector's word, and may be anything: nothing is added to a clock that does not fit, and a
                // collector that asks for no pause gets ours.
                Some(Retry::After(pause)) => pause.clamp(wait, self.batches.timeout.max(wait)),
            };
            wait *= 2;
            if Instant::now() + pause >= deadline || *stopping.borrow() {
                return Err(failure.reason);
            }
            // A stop ends the pause; there is one more attempt then.
            let _ = tokio::time::timeout(pause, stopping.wait_for(|stop| *stop)).await;
        }
    }

    async fn post(&self, request: Bytes) -> Result<(), Failure> {
        let response =
            self.client.send(Request::post(&*self.endpoint, self.headers.clone(), request, self.timeout)).await;
        let response = response.map_err(|error| Failure {
            reason: match error.detail() {
                Some(detail) => format!("{error} ({detail})"),
                None => error.to_string(),
            },
            retry: (!error.is_permanent()).then_some(Retry::Soon),
        })?;
        if response.status.is_success() {
            let partial = ExportResponse::decode(response.body).ok().and_then(|response| response.partial_success);
            if let Some(partial) = partial.filter(|partial| partial.rejected_spans > 0) {
                let (spans, reason) = (partial.rejected_spans, partial.error_message);
                tracing::warn!(spans, reason, "the collector refused some spans");
            }
            return Ok(());
        }
        // Those that the specification of OTLP calls retryable.
        let retry = matches!(response.status.as_u16(), 429 | 502 | 503 | 504).then(|| {
            let seconds = response.headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
            seconds.map_or(Retry::Soon, |seconds| Retry::After(Duration::from_secs(seconds)))
        });
        Err(Failure { reason: format!("it answered {}", response.status), retry })
    }

    fn note(&mut self, count: u64, sent: Result<(), String>) {
        let reason = match sent {
            Ok(()) => {
                if let Some(trouble) = self.trouble.take() {
                    tracing::info!(lost = trouble.lost, "the collector takes spans again");
                }
                return;
            }
            Err(reason) => reason,
        };
        let now = Instant::now();
        match &mut self.trouble {
            None => {
                tracing::warn!(
                    endpoint = self.shown_endpoint,
                    reason,
                    spans = count,
                    "the collector takes no spans; they are lost"
                );
                self.trouble = Some(Trouble { lost: count, logged: now });
            }
            Some(trouble) => {
                trouble.lost += count;
                if now.duration_since(trouble.logged) >= LOG_AGAIN {
                    trouble.logged = now;
                    tracing::warn!(reason, lost = trouble.lost, "the collector still takes no spans");
                }
            }
        }
    }

    fn log_dropped(&self) {
        let spans = self.queue.take_dropped();
        if spans > 0 {
            tracing::warn!(spans, "spans were dropped: the collector does not keep up; see OTEL_BSP_MAX_QUEUE_SIZE");
        }
    }
}
