//! One request and its answer: locate, read, decode, call, encode.

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use sabir_engine::Answer;
use sabir_model::{Caller, Error};
use sabir_wire::{Decoded, EVENT_STREAM, Head, Reply, Surface, Voice, locate};

use crate::app::App;
use crate::body::{self, Body};
use crate::cors::{self, Origin};
use crate::request_id::{self, X_REQUEST_ID};
use crate::{operations, stream};

impl App {
    pub(crate) async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        match self.inner.settings.cors.judge(&parts.headers) {
            Origin::Own => self.exchange(&parts, body).await,
            Origin::Allowed(origin) => {
                let mut response = match cors::preflight(&parts.method, &parts.headers) {
                    Some(response) => response,
                    None => self.exchange(&parts, body).await,
                };
                cors::allow(origin, &mut response);
                response
            }
            Origin::Refused => refuse_origin(),
        }
    }

    async fn exchange(&self, parts: &Parts, body: Incoming) -> Response<Body> {
        let head = head_of(parts);
        let app = &*self.inner;
        let surface = locate(&head, &app.agents);
        let mut response = match &surface {
            Surface::Card { agent, spelling } => app.cards.answer(*spelling, &parts.headers, agent.as_ref()),
            Surface::Health => operations::alive(),
            Surface::Ready => operations::ready(&app.engine).await,
            Surface::Refused(refused) => response_of(refused.reply()),
            Surface::JsonRpc(mount) => match body::read(&parts.headers, body, app.settings.body_limit).await {
                Ok(body) => self.call(parts, mount.decode(&head, &body, app.settings.compat, &app.agents)).await,
                Err(error) => self.refuse(parts, &surface.voice(&head), &error),
            },
            Surface::HttpJson(route) => match body::read(&parts.headers, body, app.settings.body_limit).await {
                Ok(body) => self.call(parts, route.decode(&head, &body, app.settings.compat, &app.agents)).await,
                Err(error) => self.refuse(parts, &surface.voice(&head), &error),
            },
        };
        if let Some(id) = request_id::given(&parts.headers) {
            response.headers_mut().entry(X_REQUEST_ID).or_insert_with(|| id.clone());
        }
        if tracing::enabled!(tracing::Level::DEBUG) {
            let id = app.request_ids.name(&parts.headers);
            tracing::debug!(request = ?id, method = %parts.method, path = parts.uri.path(), status = response.status().as_u16());
        }
        response
    }

    async fn call(&self, parts: &Parts, Decoded { call, voice }: Decoded<'_>) -> Response<Body> {
        let app = &*self.inner;
        let call = match call {
            Ok(call) => call,
            Err(error) => return self.refuse(parts, &voice, &error),
        };
        match app.engine.call(&Caller::anonymous(), call).await {
            Ok(Answer::Stream(subscription)) => {
                let frames = stream::frames(subscription, voice.into_owned(), app.settings.keep_alive);
                event_stream(Body::Stream(Box::pin(frames)))
            }
            Ok(answer) => response_of(voice.answer(&answer)),
            Err(error) => self.refuse(parts, &voice, &error),
        }
    }

    fn refuse(&self, parts: &Parts, voice: &Voice<'_>, error: &Error) -> Response<Body> {
        let mut response = response_of(voice.error(error));
        if let Error::Internal(source) = error {
            let id = self.inner.request_ids.name(&parts.headers);
            tracing::error!(request = ?id, path = parts.uri.path(), error = %source, "internal error");
            response.headers_mut().insert(X_REQUEST_ID, id);
        }
        response
    }
}

fn head_of(parts: &Parts) -> Head<'_> {
    let text = |name: &str| header_text(&parts.headers, name);
    Head {
        verb: parts.method.as_str(),
        path: parts.uri.path(),
        query: parts.uri.query(),
        version: text("a2a-version"),
        last_event_id: text("last-event-id"),
        idempotency_key: text("idempotency-key"),
    }
}

/// A header that is no text is as wrong as any other value that cannot be used, not absent.
fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).map(|value| std::str::from_utf8(value.as_bytes()).unwrap_or("\u{fffd}"))
}

pub(crate) fn response_of(reply: Reply) -> Response<Body> {
    if reply.content_type == EVENT_STREAM {
        let mut response = event_stream(Body::from(reply.body));
        *response.status_mut() = status_of(reply.status);
        return response;
    }
    let mut response = Response::new(Body::from(reply.body));
    *response.status_mut() = status_of(reply.status);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(reply.content_type));
    if let Some(seconds) = reply.retry_after {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if let Some(verbs) = reply.allow {
        headers.insert(header::ALLOW, HeaderValue::from_static(verbs));
    }
    response
}

fn status_of(status: u16) -> StatusCode {
    StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

fn event_stream(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Proxies would hold events back to fill their buffers.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

fn refuse_origin() -> Response<Body> {
    let text = r#"{"type":"about:blank","title":"Forbidden","status":403,"detail":"pages of this origin may not call; allow it with server.cors_origins"}"#;
    let mut response = Response::new(Body::Whole(Some(Bytes::from_static(text.as_bytes()))));
    *response.status_mut() = StatusCode::FORBIDDEN;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    response
}
