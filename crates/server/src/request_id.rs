//! A name for each request, so that a line in the log and a complaint can be brought together.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use http::{HeaderMap, HeaderName, HeaderValue};

pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

pub(crate) struct RequestIds {
    /// Tells the requests of one run from those of another.
    epoch: u64,
    count: AtomicU64,
}

impl RequestIds {
    pub(crate) fn new() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { epoch: since.as_millis() as u64, count: AtomicU64::new(0) }
    }

    /// The caller's own, if it is fit to be logged and sent back, or a new one.
    pub(crate) fn name(&self, headers: &HeaderMap) -> HeaderValue {
        if let Some(given) = given(headers) {
            return given.clone();
        }
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        HeaderValue::try_from(format!("{:x}-{count:x}", self.epoch)).unwrap_or(HeaderValue::from_static("request"))
    }
}

/// The caller's own name for the request.
pub(crate) fn given(headers: &HeaderMap) -> Option<&HeaderValue> {
    let is_fit = |id: &&HeaderValue| (1..=128).contains(&id.len()) && id.as_bytes().iter().all(u8::is_ascii_graphic);
    headers.get(X_REQUEST_ID).filter(is_fit)
}
