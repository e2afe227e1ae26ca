//! A response whose body is still arriving, such as a stream of events.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::timeout;

use super::error::DialError;
use super::exchange::{Excess, read};
use super::request::Response;

/// The head of a response, and its body as it comes. Dropping it ends the exchange.
pub struct OpenResponse {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub(super) body: Incoming,
    /// What followed the body, once it is complete.
    pub trailers: HeaderMap,
    pub(super) limit: usize,
}

impl OpenResponse {
    /// For how long the server wants to be left alone. Seconds; the other form, a date, is read as a short wait.
    pub fn retry_after(&self) -> Option<Duration> {
        let text = self.headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
        Some(text.parse().map_or(Duration::from_secs(5), Duration::from_secs))
    }

    /// Whether the body is a stream of server-sent events.
    pub fn is_event_stream(&self) -> bool {
        let media_type = self.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        media_type.is_some_and(|value| value.trim_start().to_ascii_lowercase().starts_with("text/event-stream"))
    }

    /// The next bytes; `None`: the body is complete. Nothing within `patience` is an error.
    pub async fn chunk(&mut self, patience: Duration) -> Result<Option<Bytes>, DialError> {
        let status = self.status;
        loop {
            let frame = timeout(patience, self.body.frame()).await.map_err(|_| DialError::BodyTimeout { status })?;
            let Some(frame) = frame else { return Ok(None) };
            let frame = frame.map_err(|error| DialError::BodyBroken { status, detail: error.to_string() })?;
            match frame.into_data() {
                Ok(data) if data.is_empty() => {}
                Ok(data) => return Ok(Some(data)),
                Err(frame) => self.trailers = frame.into_trailers().unwrap_or_default(),
            }
        }
    }

    /// The whole body, within the limit of the client and this time.
    pub async fn complete(self, patience: Duration) -> Result<Response, DialError> {
        let OpenResponse { status, headers, body, limit, .. } = self;
        match timeout(patience, read(body, limit)).await {
            Ok(Ok((body, trailers))) => Ok(Response { status, headers, body, trailers }),
            Ok(Err(Excess::TooLarge)) => Err(DialError::BodyTooLarge { status, limit }),
            Ok(Err(Excess::Broken(detail))) => Err(DialError::BodyBroken { status, detail }),
            Err(_) => Err(DialError::BodyTimeout { status }),
        }
    }
}
