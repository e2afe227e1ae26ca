//! What is asked and what comes back.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Method, StatusCode, Uri, header};

use super::secret_query::SecretQuery;
use crate::guard::Target;

/// The value of `User-Agent`.
pub(crate) const AGENT: &str = concat!("sabir/", env!("CARGO_PKG_VERSION"));

/// A request to a URL that somebody else chose. It has no `Debug`: its headers hold secrets.
#[derive(Clone)]
pub struct Request {
    pub method: Method,
    /// Without secrets; errors may show it.
    pub url: String,
    /// A secret that goes into the query.
    pub secret_query: Option<SecretQuery>,
    /// Headers about the connection or the body's length are the client's own and are taken out.
    pub headers: HeaderMap,
    pub body: Bytes,
    /// For all of it: redirects, look-ups, connecting, sending, and reading the response.
    pub timeout: Duration,
    /// How many redirects are followed; 0 hands the first one back as a response.
    pub redirects: u8,
    pub protocol: HttpProtocol,
}

/// Which HTTP a request travels by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpProtocol {
    /// What the two sides agree on.
    Any,
    /// HTTP/2, with trailers, also without TLS: what gRPC needs.
    Http2,
}

/// A response that was read to its end.
#[derive(Debug, Clone)]
pub struct Response {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// What followed the body.
    pub trailers: HeaderMap,
}

impl Request {
    pub fn get(url: impl Into<String>, timeout: Duration) -> Self {
        Request {
            method: Method::GET,
            url: url.into(),
            secret_query: None,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            timeout,
            redirects: 0,
            protocol: HttpProtocol::Any,
        }
    }

    pub fn post(url: impl Into<String>, headers: HeaderMap, body: Bytes, timeout: Duration) -> Self {
        Request { method: Method::POST, headers, body, ..Self::get(url, timeout) }
    }

    /// Follows up to `redirects` redirects, each checked like a URL of its own.
    pub fn following(self, redirects: u8) -> Self {
        Request { redirects, ..self }
    }

    /// The URL as the host gets it. `target` is the URL of the request, or where a redirect of it leads.
    pub(super) fn uri(&self, target: &Target) -> Uri {
        match &self.secret_query {
            None => target.to_uri(),
            Some(query) => query.add_to(target),
        }
    }
}

/// Headers that would change how the message is framed or routed.
pub(crate) const CONNECTION_HEADERS: [HeaderName; 9] = [
    header::HOST,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
    header::UPGRADE,
    header::TE,
    header::TRAILER,
    header::EXPECT,
    header::PROXY_AUTHORIZATION,
];

pub(super) fn without_connection_headers(mut headers: HeaderMap) -> HeaderMap {
    for name in CONNECTION_HEADERS {
        headers.remove(name);
    }
    headers
}
