//! `GET /metrics` on the port that all callers use: for those who may make admin calls, and for the scope `metrics`.

use http::request::Parts;
use http::{HeaderValue, Method, Response, header};
use sabir_model::scope;

use super::{AdminRefusal, Source};
use crate::app::App;
use crate::body::Body;
use crate::metrics::Metrics;

impl App {
    pub(crate) async fn metrics(&self, metrics: &Metrics, parts: &Parts, source: Source<'_>) -> Response<Body> {
        let refusal = match self.admit_with_scope(parts, &source, scope::METRICS).await {
            Ok(_) if parts.method == Method::GET || parts.method == Method::HEAD => {
                return self.metrics_page(metrics, &parts.headers).await;
            }
            Ok(_) => AdminRefusal::VerbNotAllowed { allow: "GET, HEAD" },
            Err(refusal) => refusal,
        };
        let mut response = self.admin_refusal(parts, refusal);
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}
