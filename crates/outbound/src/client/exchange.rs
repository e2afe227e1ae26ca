//! The client: one request and its response, within every limit.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, header};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::time::{Instant, timeout_at};

use super::connector::Connector;
use super::error::DialError;
use super::identity::ClientIdentity;
use super::limits::Limits;
use super::open_response::OpenResponse;
use super::redirect;
use super::request::{HttpProtocol, Request, Response, without_connection_headers};
use super::tls::{Roots, Tls};
use crate::guard::{Guard, Target};

/// A HTTP client for URLs that others chose. Cheap to clone; clones share the pool of connections.
#[derive(Clone)]
pub struct Client {
    inner: legacy::Client<Connector, Full<Bytes>>,
    /// Speaks HTTP/2 without asking.
    http2: legacy::Client<Connector, Full<Bytes>>,
    guard: Arc<Guard>,
    body_limit: usize,
}

impl Client {
    pub fn new(guard: Arc<Guard>, limits: Limits, roots: Roots) -> Self {
        Self::with_identity(guard, limits, roots, None)
    }

    /// A client that shows its certificate to every host that asks for one, also after a redirect.
    pub fn with_identity(guard: Arc<Guard>, limits: Limits, roots: Roots, identity: Option<ClientIdentity>) -> Self {
        let connector = Connector::new(Arc::clone(&guard), Tls::new(roots, identity), limits.connect_timeout);
        let mut builder = legacy::Client::builder(TokioExecutor::new());
        builder
            .pool_timer(TokioTimer::new())
            .timer(TokioTimer::new())
            .pool_idle_timeout(limits.idle)
            .pool_max_idle_per_host(limits.idle_per_host)
            .http1_max_buf_size(limits.head.max(SMALLEST_BUFFER))
            .http1_max_headers(limits.headers)
            .http2_max_header_list_size(u32::try_from(limits.head).unwrap_or(u32::MAX))
            .http2_initial_stream_window_size(WINDOW)
            .http2_initial_connection_window_size(WINDOW);
        let inner = builder.build(connector.clone());
        // A stream of gRPC may be silent for long; pings show whether the host is still there.
        builder.http2_only(true).http2_keep_alive_interval(PING).http2_keep_alive_timeout(PONG);
        Client { inner, http2: builder.build(connector), guard, body_limit: limits.body }
    }

    pub fn guard(&self) -> &Arc<Guard> {
        &self.guard
    }

    /// POSTs a body; redirects are not followed.
    pub async fn post(
        &self,
        url: &str,
        headers: HeaderMap,
        body: Bytes,
        timeout: Duration,
    ) -> Result<Response, DialError> {
        self.send(Request::post(url, headers, body, timeout)).await
    }

    pub async fn send(&self, mut request: Request) -> Result<Response, DialError> {
        let deadline = Instant::now() + request.timeout.min(LONGEST);
        request.headers = without_connection_headers(request.headers);
        let mut target = Target::parse(&request.url)?;
        if request.redirects == 0 {
            return self.exchange(&target, request, deadline).await;
        }
        for _ in 0..=request.redirects {
            let response = self.exchange(&target, request.clone(), deadline).await?;
            match redirect::location(&target, &response) {
                Some(next) => {
                    let next = next?;
                    request = redirect::follow(request, response.status, &target, &next)?;
                    target = next;
                }
                None => return Ok(response),
            }
        }
        Err(DialError::TooManyRedirects(request.redirects))
    }

    /// Sends a request whose response is read piece by piece; the time limit is for its head. Redirects are not followed.
    pub async fn open(&self, mut request: Request) -> Result<OpenResponse, DialError> {
        let deadline = Instant::now() + request.timeout.min(LONGEST);
        request.headers = without_connection_headers(request.headers);
        let target = Target::parse(&request.url)?;
        let (head, body) = self.start(&target, request, deadline).await?;
        let (status, headers) = (head.status, head.headers);
        Ok(OpenResponse { status, headers, body, trailers: HeaderMap::new(), limit: self.body_limit })
    }

    /// Until the head of the response is there.
    async fn start(
        &self,
        target: &Target,
        request: Request,
        deadline: Instant,
    ) -> Result<(http::response::Parts, Incoming), DialError> {
        let uri = request.uri(target);
        let mut outgoing = http::Request::new(Full::new(request.body));
        *outgoing.method_mut() = request.method;
        *outgoing.uri_mut() = uri;
        *outgoing.headers_mut() = request.headers;
        let client = match request.protocol {
            HttpProtocol::Any => &self.inner,
            HttpProtocol::Http2 => {
                outgoing.headers_mut().insert(header::TE, HeaderValue::from_static("trailers"));
                &self.http2
            }
        };
        let answer = timeout_at(deadline, client.request(outgoing)).await.map_err(|_| DialError::Timeout)?;
        Ok(answer.map_err(|error| DialError::from_hyper(&error))?.into_parts())
    }

    async fn exchange(&self, target: &Target, request: Request, deadline: Instant) -> Result<Response, DialError> {
        let (head, body) = self.start(target, request, deadline).await?;
        let status = head.status;
        let body = match timeout_at(deadline, read(body, self.body_limit)).await {
            Ok(Ok((body, _))) => body,
            Ok(Err(Excess::TooLarge)) => return Err(DialError::BodyTooLarge { status, limit: self.body_limit }),
            Ok(Err(Excess::Broken(detail))) => return Err(DialError::BodyBroken { status, detail }),
            Err(_) => return Err(DialError::BodyTimeout { status }),
        };
        Ok(Response { status, headers: head.headers, body, trailers: HeaderMap::new() })
    }
}

/// A clock cannot be set later than this on every platform.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// How often a HTTP/2 host is asked whether it is there. Servers of gRPC hang up on clients that ask more often.
const PING: Duration = Duration::from_secs(310);
/// How long it may take to answer.
const PONG: Duration = Duration::from_secs(20);

/// How much a HTTP/2 host may send ahead of our reading; the smallest that the protocol begins with.
const WINDOW: u32 = 65_535;

/// hyper does not work with less.
const SMALLEST_BUFFER: usize = 8192;

/// Why a body was not read to its end.
pub(super) enum Excess {
    TooLarge,
    Broken(String),
}

/// Reads a body and its trailers up to a limit. Dropping it unread closes a HTTP/1.1 connection and resets a HTTP/2 stream.
pub(super) async fn read(mut body: Incoming, limit: usize) -> Result<(Bytes, HeaderMap), Excess> {
    if body.size_hint().lower() > limit as u64 {
        return Err(Excess::TooLarge);
    }
    let mut bytes = BytesMut::new();
    let mut trailers = HeaderMap::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Excess::Broken(error.to_string()))?;
        let data = match frame.into_data() {
            Ok(data) => data,
            Err(frame) => {
                trailers = frame.into_trailers().unwrap_or_default();
                continue;
            }
        };
        if bytes.len() + data.len() > limit {
            return Err(Excess::TooLarge);
        }
        bytes.extend_from_slice(&data);
    }
    Ok((bytes.freeze(), trailers))
}
