//! MCP over streamable HTTP at `/mcp`: carries the messages of `sabir-doors`.
//!
//! Each message is a POST. A call is answered as server-sent events, so that its client sees progress; a client that takes JSON alone
//! gets the response alone. There are no streams by GET, and nothing to delete: a session is in its id.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use futures_util::future::BoxFuture;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use hyper::body::Frame;
use sabir_doors::mcp::{McpCall, McpDoor, McpHeaders, McpReply, McpTransport};
use sabir_model::Error;
use tokio::sync::mpsc;

use crate::app::App;
use crate::auth::Peer;
use crate::body::Body;
use crate::budget::{Budget, Reservation, SMALL};
use crate::cors::RequestOrigin;
use crate::exchange::{Asking, event_stream, header_text};
use crate::host::Authority;
use crate::keep_alive::KeepAlive;
use crate::open_streams::OpenStream;
use crate::pieces::{Large, Pieces};

/// Where the door is.
pub(crate) const PATH: &str = "/mcp";
/// Where its card is, for programs that look before they connect.
pub(crate) const CARD_PATH: &str = "/mcp/server-card";
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// What `sabir mcp` sends, since it carries messages of another transport.
const TRANSPORT: &str = "sabir-mcp-transport";
/// The headers of MCP.
const REPEATING: [&str; 5] = ["mcp-session-id", "mcp-protocol-version", "mcp-method", "mcp-name", TRANSPORT];
const METHODS: &str = "POST, DELETE";
/// Of JSON-RPC, for refusals that the protocol has no code for.
const INVALID_REQUEST: i32 = -32600;

impl App {
    pub(crate) async fn mcp(
        &self,
        door: &McpDoor,
        parts: &Parts,
        asking: &mut Asking,
        origin: &RequestOrigin,
    ) -> Response<Body> {
        if let RequestOrigin::Refused = origin {
            let why = "pages of this origin may not call; allow it with server.cors_origins";
            return refused(StatusCode::FORBIDDEN, why);
        }
        let caller = match self.admitted_program(parts, &asking.peer).await {
            Ok(caller) => caller,
            Err(error) => return refusal_of(&error),
        };
        // Whatever stands in front may have read the other one.
        if let Some(name) = REPEATING.iter().find(|name| parts.headers.get_all(**name).iter().nth(1).is_some()) {
            return refused(StatusCode::BAD_REQUEST, &format!("the header {name} is there twice"));
        }
        let session = header_text(&parts.headers, SESSION.as_str());
        let transport = match header_text(&parts.headers, TRANSPORT) {
            Some("stdio") => McpTransport::Stdio,
            _ => McpTransport::Http,
        };
        if session.is_some_and(|id| !McpDoor::knows_session(id, transport)) {
            return refused(StatusCode::NOT_FOUND, "there is no such session; send initialize again");
        }
        match parts.method.as_str() {
            "POST" => {}
            "DELETE" => {
                let mut response = Response::new(Body::empty());
                *response.status_mut() = StatusCode::NO_CONTENT;
                return response;
            }
            _ => {
                let mut response = refused(StatusCode::METHOD_NOT_ALLOWED, "send messages by POST");
                response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(METHODS));
                return response;
            }
        }
        let body = match self.receive(parts, asking, None, self.inner.settings.body_limit).await {
            Ok(body) => body,
            Err(error) => return refusal_of(&error),
        };
        let headers = McpHeaders {
            protocol_version: header_text(&parts.headers, "mcp-protocol-version"),
            method: header_text(&parts.headers, "mcp-method"),
            name: header_text(&parts.headers, "mcp-name"),
            session,
            transport,
        };
        let reply = door.receive_http(&caller, headers, &body).await;
        drop(body);
        match reply {
            McpReply::Accepted => {
                let mut response = Response::new(Body::empty());
                *response.status_mut() = StatusCode::ACCEPTED;
                response
            }
            McpReply::Whole { status, body, session } => {
                let Some(body) = self.with_memory(body) else { return refusal_of(&Error::Overloaded) };
                let mut response = json(StatusCode::from_u16(status).unwrap_or(StatusCode::OK), body);
                if let Some(value) = session.and_then(|id| HeaderValue::try_from(id).ok()) {
                    response.headers_mut().insert(SESSION, value);
                }
                response
            }
            McpReply::Call(call) if takes_events(&parts.headers) => {
                let open = self.inner.open_streams.enter();
                let events = Events::new(call, self.inner.settings.keep_alive, open, self.inner.budget.clone());
                event_stream(Body::stream(events))
            }
            McpReply::Call(McpCall { messages, response, .. }) => {
                // Nobody reads what is told meanwhile.
                drop(messages);
                match self.with_memory(response.await) {
                    Some(body) => json(StatusCode::OK, body),
                    None => refusal_of(&Error::Overloaded),
                }
            }
        }
    }
}

impl App {
    /// The card of the door, for those who may read the catalogue.
    pub(crate) async fn mcp_card(
        &self,
        door: &McpDoor,
        parts: &Parts,
        peer: &Peer,
        host: Option<Authority<'_>>,
    ) -> Response<Body> {
        if !matches!(parts.method, Method::GET | Method::HEAD) {
            let mut response = refused(StatusCode::METHOD_NOT_ALLOWED, "read the card by GET");
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            return response;
        }
        let cards = &self.inner.cards;
        if let Some(card) = cards.public_mcp_card(parts, host, door) {
            return card;
        }
        match self.admitted_caller(parts, peer).await {
            Ok(_) => self.for_this_caller(cards.mcp_card(parts, host, door)),
            Err(error) => refusal_of(&error),
        }
    }

    /// A body for which there is memory.
    pub(crate) fn with_memory(&self, body: Vec<u8>) -> Option<Body> {
        let mut reserved = self.inner.budget.nothing();
        reserved.grow_to(body.len()).ok()?;
        Some(match body.len() {
            ..=SMALL => Body::from(body),
            _ => Body::from(Pieces::large(Large::Own(Bytes::from(body), reserved))),
        })
    }
}

fn takes_events(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.into_iter().any(|value| value.contains("text/event-stream"))
}

fn json(status: StatusCode, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// An error that comes before any message was read, so it has no id.
fn refused(status: StatusCode, why: &str) -> Response<Body> {
    #[derive(serde::Serialize)]
    struct Refused<'a> {
        jsonrpc: &'static str,
        error: Reason<'a>,
    }
    #[derive(serde::Serialize)]
    struct Reason<'a> {
        code: i32,
        message: &'a str,
    }
    let body = Refused { jsonrpc: "2.0", error: Reason { code: INVALID_REQUEST, message: why } };
    json(status, Body::from(serde_json::to_vec(&body).expect("texts and numbers can be written as JSON")))
}

fn refusal_of(error: &Error) -> Response<Body> {
    let (status, retry_after) = match error {
        Error::Unauthenticated(_) => (StatusCode::UNAUTHORIZED, None),
        Error::Forbidden(_) => (StatusCode::FORBIDDEN, None),
        Error::TooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, None),
        Error::UnsupportedMediaType(_) | Error::UnsupportedCompression(_) => (StatusCode::UNSUPPORTED_MEDIA_TYPE, None),
        Error::LimitReached { retry_after, .. } => (StatusCode::TOO_MANY_REQUESTS, Some(*retry_after)),
        Error::IdentityUnavailable | Error::Overloaded | Error::Stopping => (StatusCode::SERVICE_UNAVAILABLE, Some(1)),
        Error::Internal(_) => (StatusCode::INTERNAL_SERVER_ERROR, None),
        _ => (StatusCode::BAD_REQUEST, None),
    };
    let mut response = refused(status, &error.to_string());
    if let Some(seconds) = retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// The events of a call: its messages as they come, then its response. Whoever drops it stops waiting.
struct Events {
    messages: Option<mpsc::Receiver<Vec<u8>>>,
    response: Option<BoxFuture<'static, Vec<u8>>>,
    /// The response, while there are messages before it.
    last: Option<Vec<u8>>,
    /// The response instead, where there is no memory for it.
    too_large: Vec<u8>,
    budget: Arc<Budget>,
    /// For the response.
    reserved: Option<Reservation>,
    keep_alive: KeepAlive,
    _open: OpenStream,
}

impl Events {
    fn new(call: McpCall, keep_alive: Duration, open: OpenStream, budget: Arc<Budget>) -> Self {
        let McpCall { messages, response, too_large } = call;
        Self {
            messages: Some(messages),
            response: Some(response),
            last: None,
            too_large,
            budget,
            reserved: None,
            keep_alive: KeepAlive::every(keep_alive),
            _open: open,
        }
    }
}

impl Stream for Events {
    type Item = Frame<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Frame<Bytes>>> {
        let this = &mut *self;
        if let Some(response) = &mut this.response
            && let Poll::Ready(body) = response.as_mut().poll(context)
        {
            let mut reserved = this.budget.nothing();
            let has_memory = reserved.grow_to(body.len()).is_ok();
            (this.response, this.reserved) = (None, Some(reserved));
            this.last = Some(if has_memory { body } else { std::mem::take(&mut this.too_large) });
        }
        if let Some(messages) = &mut this.messages {
            match messages.poll_recv(context) {
                Poll::Ready(Some(message)) => return Poll::Ready(Some(event(&message))),
                Poll::Ready(None) => this.messages = None,
                Poll::Pending => {}
            }
        }
        if let Some(body) = this.last.take() {
            return Poll::Ready(Some(event(&body)));
        }
        if this.response.is_none() {
            return Poll::Ready(None);
        }
        this.keep_alive.poll(context).map(Some)
    }
}

/// Carried JSON may have line breaks, which would end the data.
fn event(message: &[u8]) -> Frame<Bytes> {
    let mut bytes = Vec::with_capacity(message.len() + 32);
    bytes.extend_from_slice(b"event: message\n");
    for line in message.split(|byte| matches!(byte, b'\n' | b'\r')) {
        bytes.extend_from_slice(b"data: ");
        bytes.extend_from_slice(line);
        bytes.push(b'\n');
    }
    bytes.push(b'\n');
    Frame::data(bytes.into())
}
