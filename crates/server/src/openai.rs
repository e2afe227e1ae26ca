//! Chat completions at `/v1/chat/completions` and the agents as models at `/v1/models`: carries what `sabir-doors` reads and writes.
//!
//! An answer is JSON when it is complete, or server-sent events as it grows. Headers say where the agent's work is found, since the
//! API has no place for that.

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use hyper::body::Frame;
use sabir_doors::openai::{ChatEvents, ChatHeaders, ChatPlace, OpenAiDoor, Refusal};
use sabir_model::TraceContext;

use crate::app::App;
use crate::body::Body;
use crate::budget::{Budget, Reservation, SMALL};
use crate::cors::RequestOrigin;
use crate::exchange::{Asking, event_stream, header_text, trace_parent};
use crate::extensions::listed;
use crate::keep_alive::KeepAlive;
use crate::open_streams::OpenStream;

const CHAT: &str = "/v1/chat/completions";
const MODELS: &str = "/v1/models";
const CONTEXT: HeaderName = HeaderName::from_static("x-sabir-context");
const TASK: HeaderName = HeaderName::from_static("x-sabir-task");
/// Tells client libraries whether to send a request again by themselves.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
/// Of two of them, whatever stands in front may have read the other one.
const SINGLE: [&str; 2] = ["x-sabir-context", "idempotency-key"];

/// Whether a server has these paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OpenAi {
    #[default]
    Served,
    Off,
}

/// What is at a path.
pub(crate) enum Route<'a> {
    Chat,
    Models,
    Model(Cow<'a, str>),
}

impl<'a> Route<'a> {
    pub(crate) fn of(path: &'a str) -> Option<Self> {
        match path {
            CHAT => Some(Self::Chat),
            MODELS => Some(Self::Models),
            path => {
                let name = path.strip_prefix(MODELS)?.strip_prefix('/')?;
                // Clients write the slash of a name like this.
                let name =
                    if name.contains('%') { name.replace("%2F", "/").replace("%2f", "/").into() } else { name.into() };
                Some(Self::Model(name))
            }
        }
    }

    fn methods(&self) -> &'static str {
        match self {
            Self::Chat => "POST",
            Self::Models | Self::Model(_) => "GET, HEAD",
        }
    }

    fn takes(&self, method: &Method) -> bool {
        match self {
            Self::Chat => method == Method::POST,
            Self::Models | Self::Model(_) => method == Method::GET || method == Method::HEAD,
        }
    }
}

impl App {
    pub(crate) async fn openai(
        &self,
        door: &OpenAiDoor,
        route: Route<'_>,
        parts: &Parts,
        asking: &mut Asking,
        origin: &RequestOrigin,
    ) -> Response<Body> {
        let answered = match origin {
            RequestOrigin::Refused => Err(Refusal::foreign_origin()),
            _ => self.openai_answer(door, &route, parts, asking).await,
        };
        answered.unwrap_or_else(|refusal| refused(&refusal, &route))
    }

    async fn openai_answer(
        &self,
        door: &OpenAiDoor,
        route: &Route<'_>,
        parts: &Parts,
        asking: &mut Asking,
    ) -> Result<Response<Body>, Refusal> {
        let caller = self.admitted_caller(parts, &asking.peer).await.map_err(|error| Refusal::from(&error))?;
        if !route.takes(&parts.method) {
            return Err(Refusal::wrong_method(parts.method.as_str(), route.methods()));
        }
        match route {
            Route::Models => Ok(self.for_this_caller(json(StatusCode::OK, Body::from(door.models(&caller))))),
            Route::Model(name) => {
                let model = door.model(&caller, name)?;
                Ok(self.for_this_caller(json(StatusCode::OK, Body::from(model))))
            }
            Route::Chat => {
                if let Some(name) = SINGLE.iter().find(|name| parts.headers.get_all(**name).iter().nth(1).is_some()) {
                    return Err(Refusal::header(name, "is there twice"));
                }
                let received = self.receive(parts, asking, None, self.inner.settings.body_limit).await;
                let body = received.and_then(|body| match OpenAiDoor::weight(&body) {
                    ..=SMALL => Ok(body),
                    weight => body.reserving(&self.inner.budget, weight),
                });
                let body = body.map_err(|error| Refusal::from(&error))?;
                let trace_state = listed(&parts.headers, &["tracestate"]);
                let trace =
                    trace_parent(&parts.headers).and_then(|parent| TraceContext::parse(parent, trace_state.as_deref()));
                let headers = ChatHeaders {
                    context: header_text(&parts.headers, CONTEXT.as_str()),
                    idempotency_key: header_text(&parts.headers, "idempotency-key"),
                    retries: header_text(&parts.headers, "x-stainless-retry-count"),
                    trace,
                };
                let chat = door.begin(&caller, headers, &body).await?;
                // The agent may take hours; what its message was read from is not needed any more.
                drop(body);
                let place = chat.place().cloned();
                let mut response = if chat.is_stream() {
                    let open = self.inner.open_streams.enter();
                    let keep_alive = self.inner.settings.keep_alive;
                    event_stream(Body::stream(Events::new(chat.events(), keep_alive, open, self.inner.budget.clone())))
                } else {
                    match self.with_memory(chat.whole().await?) {
                        Some(body) => json(StatusCode::OK, body),
                        None => refused(&Refusal::no_memory(), route),
                    }
                };
                tell_place(place.as_ref(), response.headers_mut());
                Ok(response)
            }
        }
    }
}

fn json(status: StatusCode, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn refused(refusal: &Refusal, route: &Route<'_>) -> Response<Body> {
    let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json(status, Body::from(refusal.body()));
    let headers = response.headers_mut();
    if let Some(seconds) = refusal.retry_after {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if let Some(repeats) = refusal.may_be_repeated() {
        headers.insert(SHOULD_RETRY, HeaderValue::from_static(if repeats { "true" } else { "false" }));
    }
    if status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(header::ALLOW, HeaderValue::from_static(route.methods()));
    }
    tell_place(refusal.place.as_deref(), headers);
    response
}

fn tell_place(place: Option<&ChatPlace>, headers: &mut HeaderMap) {
    let Some(place) = place else { return };
    for (name, id) in [(CONTEXT, &place.context), (TASK, &place.task)] {
        // Ids have no control characters, so all of them can be headers.
        if let Ok(value) = HeaderValue::from_bytes(id.as_bytes()) {
            headers.insert(name, value);
        }
    }
}

/// The events of an answer, made when the connection has room for them. Whoever drops it stops waiting.
struct Events {
    events: Option<ChatEvents>,
    budget: Arc<Budget>,
    /// For the event that was made last.
    reserved: Option<Reservation>,
    keep_alive: KeepAlive,
    _open: OpenStream,
}

impl Events {
    fn new(events: ChatEvents, keep_alive: Duration, open: OpenStream, budget: Arc<Budget>) -> Self {
        Self { events: Some(events), budget, reserved: None, keep_alive: KeepAlive::every(keep_alive), _open: open }
    }
}

impl Stream for Events {
    type Item = Frame<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Frame<Bytes>>> {
        let this = &mut *self;
        let Some(events) = &mut this.events else { return Poll::Ready(None) };
        match events.poll_next_unpin(context) {
            Poll::Pending => this.keep_alive.poll(context).map(Some),
            Poll::Ready(None) => {
                this.events = None;
                Poll::Ready(None)
            }
            Poll::Ready(Some(data)) => {
                this.reserved = None;
                let mut reserved = this.budget.nothing();
                let data = match reserved.grow_to(data.len()) {
                    Ok(()) => data,
                    Err(_) => {
                        this.events = None;
                        Refusal::no_memory().body()
                    }
                };
                this.reserved = Some(reserved);
                Poll::Ready(Some(event(&data)))
            }
        }
    }
}

/// What is written here has no line breaks outside of texts, where they are escaped.
fn event(data: &[u8]) -> Frame<Bytes> {
    Frame::data([b"data: ", data, b"\n\n"].concat().into())
}
