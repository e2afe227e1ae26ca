//! The figures of the whole server, as Prometheus reads them at `/metrics`.
//!
//! Each room keeps its own figures and registers them; here are those of HTTP, those of the process, and the page. What is
//! counted on the way of a request is one atomic addition to an array. All else is read when somebody asks for the page.
//!
//! | file             | its idea                                                        |
//! |------------------|-----------------------------------------------------------------|
//! | `call_counts.rs` | calls by operation, protocol and outcome; responses by status   |
//! | `process.rs`     | what the system knows of this process                           |
//! | `plain_text.rs`  | the older text format, for clients that do not know OpenMetrics |
//! | here             | the page, and the listener that has nothing else                |

mod call_counts;
mod plain_text;
mod process;

use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use tokio::sync::Mutex;

pub(crate) use call_counts::{CallOrigin, CallOutcome};

use crate::app::App;
use crate::body::Body;
use crate::operations;
use call_counts::CallCounts;

pub(crate) const PATH: &str = "/metrics";

/// What the names of our figures begin with.
pub const METRICS_PREFIX: &str = "sabir";

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PLAIN_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The figures of a server.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    calls: CallCounts,
    /// One page at a time: each asks the store.
    making_page: Mutex<()>,
}

impl Metrics {
    /// `registry` has the figures of the other rooms, and the prefix of the names.
    pub fn new(mut registry: Registry) -> Self {
        let calls = CallCounts::default();
        calls.register(&mut registry);
        Self { registry, calls, making_page: Mutex::default() }
    }

    pub(crate) fn count_call(&self, origin: CallOrigin, outcome: CallOutcome) {
        self.calls.count_call(origin, outcome);
    }

    pub(crate) fn count_response(&self, status: StatusCode) {
        self.calls.count_response(status);
    }
}

/// What a listener serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Serves {
    Everything,
    /// The figures and the health, to everybody who can reach it.
    Metrics,
}

impl App {
    /// The same server for a listener that has `/metrics`, `/healthz` and `/readyz` and nothing else, and asks nobody for a
    /// credential.
    pub fn for_scrapers(&self) -> Self {
        Self { serves: Serves::Metrics, ..self.clone() }
    }

    pub(crate) async fn answer_scraper(&self, parts: &Parts) -> Response<Body> {
        let is_read = parts.method == Method::GET || parts.method == Method::HEAD;
        match (parts.uri.path(), &self.inner.settings.metrics) {
            (PATH | "/healthz" | "/readyz", _) if !is_read => {
                let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "this path takes GET and HEAD");
                response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
                response
            }
            (PATH, Some(metrics)) => self.metrics_page(metrics, &parts.headers).await,
            ("/healthz", _) => operations::alive(),
            ("/readyz", _) => operations::ready(&self.inner.engine).await,
            _ => plain(StatusCode::NOT_FOUND, "this address has /metrics, /healthz and /readyz, and nothing else"),
        }
    }

    pub(crate) async fn metrics_page(&self, metrics: &Metrics, headers: &HeaderMap) -> Response<Body> {
        let _one = metrics.making_page.lock().await;
        let mut now = Registry::with_prefix(METRICS_PREFIX);
        self.inner.engine.measure(&mut now).await;
        self.register_own(&mut now);
        let mut of_process = Registry::default();
        process::register(&mut of_process);
        let mut page = String::with_capacity(32 * 1024);
        let written = [&metrics.registry, &now, &of_process]
            .into_iter()
            .try_for_each(|registry| encode_registry(&mut page, registry));
        written.and_then(|()| encode_eof(&mut page)).expect("a text can be written to");
        let (content_type, page) = match wants_open_metrics(headers) {
            true => (OPEN_METRICS, page),
            false => (PLAIN_TEXT, plain_text::from_open_metrics(&page)),
        };
        let mut response = Response::new(Body::from(page.into_bytes()));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.append(header::VARY, HeaderValue::from_static("accept"));
        response
    }

    fn register_own(&self, registry: &mut Registry) {
        let gauge = |value: usize| {
            let gauge = Gauge::<i64>::default();
            gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
            gauge
        };
        let (connections, reserved) = (self.inner.connections.count(), self.reserved_memory());
        registry.register("connections", "Connections that are open now", gauge(connections));
        registry.register(
            "connections_limit",
            "Connections that the server takes",
            gauge(self.inner.settings.max_connections),
        );
        let help = "Memory that large requests and replies have reserved now";
        registry.register_with_unit("reserved_memory", help, Unit::Bytes, gauge(reserved));
        let help = "Memory that large requests and replies may reserve (server.memory)";
        registry.register_with_unit("reserved_memory_limit", help, Unit::Bytes, gauge(self.inner.settings.memory));
    }
}

/// Prometheus names it first. Clients that name nothing get the older format, which all of them read.
fn wants_open_metrics(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.into_iter().any(|value| value.contains("application/openmetrics-text"))
}

fn plain(status: StatusCode, text: &str) -> Response<Body> {
    let mut response = Response::new(Body::from(format!("{text}\n").into_bytes()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
