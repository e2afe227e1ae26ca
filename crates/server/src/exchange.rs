//! One request and its answer: locate, read, decode, call, encode.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Version, header};
use sabir_engine::Answer;
use sabir_model::{Call, Caller, Error, Seq, TraceContext};
use sabir_wire::grpc::{GrpcService, HealthCall, HealthMethod};
use sabir_wire::{CardFormat, Decoded, EVENT_STREAM, Endpoint, Reply, RequestHead, Responder, Surface, locate};

use crate::app::App;
use crate::auth::Peer;
use crate::body::Body;
use crate::budget::SMALL;
use crate::call_observer::Observed;
use crate::connections::Exchange;
use crate::console::{self, Console};
use crate::cors::{self, RequestOrigin};
use crate::extensions::listed;
use crate::grpc::{self, GrpcHead, trailers_of};
use crate::host::Authority;
use crate::incoming::{BodyLimits, BodySource, Received, RequestBody};
use crate::metrics::{CallOrigin, CallOutcome, Serves};
use crate::openai::Route;
use crate::pieces::{Large, Pieces};
use crate::request_id::{self, X_REQUEST_ID};
use crate::stream::Frames;
use crate::tls::PeerCertificate;
use crate::{admin, auth, encoded_tasks, extensions, home, host, mcp, metrics, openapi, operations};

/// The number of the first frame of a gRPC stream.
const FIRST_EVENT_ID: HeaderName = HeaderName::from_static("first-event-id");

/// Names of services are short.
const LONGEST_HEALTH_REQUEST: usize = 4096;

/// How often an answer looks whether there is memory again.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

impl App {
    /// Answers a request, which came on a connection of ours unless this server is mounted in another.
    pub(crate) async fn answer(&self, request: Request<BodySource>, connected: Option<Connected>) -> Response<Body> {
        let started = Instant::now();
        let (parts, incoming) = request.into_parts();
        let (exchange, peer) = match connected {
            Some(Connected { exchange, peer, peer_certificate }) => {
                (Some(exchange), Peer { address: Some(peer), certificate: peer_certificate })
            }
            None => (None, Peer::default()),
        };
        let body = RequestBody::new(&parts, incoming);
        let mut asking = Asking { body, exchange, peer, observed: Observed::default() };
        let mut response = match self.host_of(&parts) {
            Ok(_) if self.serves == Serves::Metrics => self.answer_scraper(&parts).await,
            Ok(host) => self.for_origin(&parts, &mut asking, host).await,
            Err(error) => {
                let head = head_of(&parts);
                self.refuse(&parts, &locate(&head, &self.visible_agents(None)).responder(&head), &error)
            }
        };
        if self.inner.auth.is_required() {
            // Caches do not know every header that a credential is shown in.
            let caching = response.headers_mut().entry(header::CACHE_CONTROL);
            caching.or_insert(HeaderValue::from_static("no-store"));
        }
        self.inner.settings.cors.vary(&mut response);
        if let Some(id) = request_id::given(&parts.headers) {
            response.headers_mut().entry(X_REQUEST_ID).or_insert_with(|| id.clone());
        }
        if tracing::enabled!(tracing::Level::DEBUG) {
            let id = self.inner.request_ids.name(&parts.headers);
            tracing::debug!(
                request = id.to_str().unwrap_or_default(),
                method = %parts.method,
                path = parts.uri.path(),
                status = response.status().as_u16(),
                micros = started.elapsed().as_micros() as u64,
                "answered"
            );
        }
        if let Some(grpc) = GrpcHead::of(&parts) {
            response = grpc.finish(response);
        }
        if let Some(metrics) = &self.inner.settings.metrics {
            metrics.count_response(response.status());
        }
        let Asking { body, exchange, mut observed, .. } = asking;
        observed.responded(response.status());
        body.drain_aside();
        match exchange {
            Some(exchange) => response.map(|body| body.of(exchange)),
            None => response,
        }
    }

    /// Where the request came to, if this server answers to that. Clients of HTTP/1.0 know no Host, and some of them
    /// watch over servers.
    fn host_of<'a>(&self, parts: &'a Parts) -> Result<Option<Authority<'a>>, Error> {
        let checked = self.hosts.check(parts);
        let is_health =
            || matches!(locate(&head_of(parts), &self.visible_agents(None)), Surface::Health | Surface::Ready);
        if checked.is_err() && parts.version == Version::HTTP_10 && host::requested(parts)?.is_none() && is_health() {
            return Ok(None);
        }
        checked
    }

    async fn for_origin(&self, parts: &Parts, asking: &mut Asking, host: Option<Authority<'_>>) -> Response<Body> {
        let origin = self.inner.settings.cors.judge(&parts.headers, host.as_ref());
        let mut response =
            match (&origin, cors::preflight(&parts.method, &parts.headers, self.inner.auth.key_headers())) {
                (RequestOrigin::Allowed(_) | RequestOrigin::AllowedAsAny(_), Some(response)) => response,
                _ => self.exchange(parts, asking, host, &origin).await,
            };
        if response.status() == StatusCode::UNAUTHORIZED {
            let resource = if parts.uri.path() == mcp::PATH { mcp::PATH } else { "" };
            self.inner.auth.challenge(&self.inner.cards.base(parts, host), resource, &parts.headers, &mut response);
        }
        if let RequestOrigin::Allowed(origin) | RequestOrigin::AllowedAsAny(origin) = origin {
            cors::allow(origin, &mut response);
        }
        response
    }

    async fn exchange(
        &self,
        parts: &Parts,
        asking: &mut Asking,
        host: Option<Authority<'_>>,
        origin: &RequestOrigin,
    ) -> Response<Body> {
        let requested = extensions::requested(&parts.headers);
        let trace_state = listed(&parts.headers, &["tracestate"]);
        let head =
            RequestHead { extensions: requested.as_deref(), trace_state: trace_state.as_deref(), ..head_of(parts) };
        let app = &*self.inner;
        if home::is_wanted(parts) {
            return home::page(&app.engine, app.settings.console);
        }
        if let (Some(below), Console::Served) = (console::path_below_base(parts.uri.path()), app.settings.console) {
            return console::answer(parts, below);
        }
        if let Some(below) = admin::path_below_base(parts.uri.path()) {
            return self.admin(parts, below, admin::Source { origin, host, peer: &asking.peer }).await;
        }
        if let Some(metrics) = app.settings.metrics.as_deref().filter(|_| parts.uri.path() == metrics::PATH) {
            return self.metrics(metrics, parts, admin::Source { origin, host, peer: &asking.peer }).await;
        }
        if let Some(door) = app.mcp.as_ref().filter(|_| parts.uri.path() == mcp::PATH) {
            return self.mcp(door, parts, asking, origin).await;
        }
        if let Some(door) = app.mcp.as_ref().filter(|_| parts.uri.path() == mcp::CARD_PATH) {
            return self.mcp_card(door, parts, &asking.peer, host).await;
        }
        if let (Some(door), Some(route)) = (&app.openai, Route::of(parts.uri.path())) {
            return self.openai(door, route, parts, asking, origin).await;
        }
        if parts.uri.path() == openapi::PATH {
            return openapi::answer(parts, &app.cards.base(parts, host), &app.settings.facts.version, &app.auth);
        }
        if let Some(document) = app.settings.jwks.as_deref().filter(|_| parts.uri.path() == operations::JWKS_PATH) {
            return operations::public_document(&parts.method, document);
        }
        if app.auth.is_required()
            && let Some(resource) = auth::resource_path(parts.uri.path())
        {
            let metadata = app.auth.metadata(&app.cards.base(parts, host), resource);
            return operations::public_document(&parts.method, &metadata);
        }
        let listed = self.visible_agents(None);
        let located = locate(&head, &listed);
        let is_grpc = matches!(located, Surface::Call(Endpoint::Grpc(_)) | Surface::GrpcService(_));
        let grpc = match is_grpc.then(|| GrpcHead::read(parts)).transpose() {
            Ok(grpc) => grpc,
            // Who sends something else does not read gRPC either.
            Err(error) => return not_grpc(&error),
        };
        let located = match located {
            Surface::Card { agent, format } => return app.cards.answer(format, parts, host, agent.as_ref()),
            Surface::GatewayCard(agent) => {
                return app.cards.answer(Some(CardFormat::Gateway), parts, host, Some(&agent));
            }
            Surface::Health => return operations::alive(),
            Surface::Ready => return operations::ready(&app.engine).await,
            Surface::GrpcService(GrpcService::Health(method)) => {
                return self.grpc_health(parts, asking, method, grpc.as_ref(), &head).await;
            }
            Surface::Catalogue => match app.cards.public_catalogue(parts, host, &listed, app.mcp.as_ref()) {
                Some(catalogue) => return catalogue,
                None => Surface::Catalogue,
            },
            located => located,
        };
        if let (Some(observer), Surface::Call(_)) = (&app.settings.call_observer, &located) {
            let trace = head.trace_parent.and_then(|parent| TraceContext::parse(parent, head.trace_state));
            asking.observed = Observed::begin(&**observer, parts, trace, asking.peer.address);
        }
        if let RequestOrigin::Refused = origin
            && let Surface::Call(_) | Surface::GrpcService(_) = &located
        {
            let why = "pages of this origin may not call; allow it with server.cors_origins";
            let error = Error::Forbidden(why.into());
            return self.refuse_call(parts, &mut asking.observed, &located.responder(&head), &error);
        }
        // Before the body is read, and before anything is said of what is at this path.
        let caller = match self.admitted_caller(parts, &asking.peer).await {
            Ok(caller) => caller,
            Err(error) => return self.refuse_call(parts, &mut asking.observed, &located.responder(&head), &error),
        };
        let agents = self.visible_agents(Some(&caller));
        let located = if app.hides_agents { locate(&head, &agents) } else { located };
        let endpoint = match located {
            Surface::Call(endpoint) => endpoint,
            Surface::Catalogue => {
                return self.for_this_caller(app.cards.catalogue(parts, host, &agents, app.mcp.as_ref()));
            }
            Surface::AgentList => return self.for_this_caller(app.cards.agent_list(parts, &agents)),
            Surface::Refused(refusal) => return response_of(refusal.reply()),
            // Of an agent that is not listed, or they would have been answered before.
            Surface::Card { agent, format } => {
                return self.for_this_caller(app.cards.answer(format, parts, host, agent.as_ref()));
            }
            Surface::GatewayCard(agent) => {
                let card = app.cards.answer(Some(CardFormat::Gateway), parts, host, Some(&agent));
                return self.for_this_caller(card);
            }
            Surface::Health => return operations::alive(),
            Surface::Ready => return operations::ready(&app.engine).await,
            surface @ Surface::GrpcService(_) => {
                let body = std::mem::replace(&mut asking.body, RequestBody::empty()).into_source();
                return grpc::reflection(app.engine.clone(), body, surface.responder(&head));
            }
        };
        let deadline = match grpc.map_or(Ok(None), |_| grpc::deadline(&parts.headers)) {
            Ok(deadline) => deadline,
            Err(error) => return self.refuse_call(parts, &mut asking.observed, &endpoint.responder(&head), &error),
        };
        let receiving = self.receive(parts, asking, grpc.as_ref(), app.settings.body_limit);
        let received = match deadline {
            Some(time) => tokio::time::timeout_at(time, receiving).await.unwrap_or(Err(Error::DeadlineExceeded)),
            None => receiving.await,
        };
        let body = match received.and_then(|body| self.weigh(&endpoint, body)) {
            Ok(body) => body,
            Err(error) => return self.refuse_call(parts, &mut asking.observed, &endpoint.responder(&head), &error),
        };
        let Decoded { mut call, responder } = endpoint.decode(&head, &body, app.settings.compat, &agents);
        let responder = responder.into_owned();
        let observed = &mut asking.observed;
        observed.decoded(&responder, &mut call);
        if let (Ok(Call::ExtendedCard { agent }), Endpoint::Grpc(route)) = (&call, &endpoint)
            && route.asks_for_public_card()
            && !app.auth.is_required()
        {
            let card = app.cards.public(&app.cards.base(parts, host), agent.as_ref());
            return response_of(responder.reply(&Answer::Card(Box::new(card))));
        }
        if let Ok(Call::ExtendedCard { agent }) = &call
            && app.auth.is_required()
        {
            return match app.cards.extended(&caller, &app.cards.base(parts, host), agent.as_ref()) {
                Ok(card) => response_of(responder.reply(&Answer::Card(Box::new(card)))),
                Err(error) => self.refuse_call(parts, observed, &responder, &error),
            };
        }
        // A call may take hours; what it was read from is not needed any more.
        drop(body);
        self.answer_call(parts, observed, caller, call, responder, deadline).await
    }

    async fn answer_call(
        &self,
        parts: &Parts,
        observed: &mut Observed,
        caller: Caller,
        call: Result<Call, Error>,
        responder: Responder<'static>,
        deadline: Option<tokio::time::Instant>,
    ) -> Response<Body> {
        let Some(time) = deadline else { return self.call(parts, observed, caller, call, responder, None).await };
        if time <= tokio::time::Instant::now() {
            return self.refuse_call(parts, observed, &responder, &Error::DeadlineExceeded);
        }
        // The call ends then; the task goes on.
        let called = self.call(parts, observed, caller, call, responder.clone(), deadline);
        let called = tokio::time::timeout_at(time, called).await;
        called.unwrap_or_else(|_| self.refuse_call(parts, observed, &responder, &Error::DeadlineExceeded))
    }

    /// The health service, which everybody may ask.
    async fn grpc_health(
        &self,
        parts: &Parts,
        asking: &mut Asking,
        method: HealthMethod,
        grpc: Option<&GrpcHead>,
        head: &RequestHead<'_>,
    ) -> Response<Body> {
        let call = match self.receive(parts, asking, grpc, LONGEST_HEALTH_REQUEST).await {
            Ok(message) => HealthCall::read(&message),
            Err(error) => Err(error),
        };
        let answered = match call {
            Ok(call) => grpc::health(&self.inner.engine, &self.inner.health_watchers, method, call).await,
            Err(error) => Err(error),
        };
        let responder = || Surface::GrpcService(GrpcService::Health(method)).responder(head);
        answered.unwrap_or_else(|error| self.refuse(parts, &responder(), &error))
    }

    /// What not everybody is shown must not reach others through a cache between here and the caller.
    pub(crate) fn for_this_caller(&self, mut response: Response<Body>) -> Response<Body> {
        if self.inner.auth.is_required() || self.inner.hides_agents {
            response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
        }
        response
    }

    /// Who calls, if it has not called too often.
    pub(crate) async fn admitted_caller(&self, parts: &Parts, peer: &Peer) -> Result<Caller, Error> {
        let limits = &self.inner.limits;
        match self.caller(parts, peer).await {
            Ok(caller) => limits.admit_request(&caller).map(|()| caller),
            // Who has no valid credential counts by its address, so that nobody can try many.
            Err(error) => limits.admit_request(&Caller::anonymous().from_peer(peer.address)).and(Err(error)),
        }
    }

    /// The same at the door for programs: one that works on a task may show the credential that it was started with.
    pub(crate) async fn admitted_program(&self, parts: &Parts, peer: &Peer) -> Result<Caller, Error> {
        let limits = &self.inner.limits;
        let caller = match self.inner.auth.program_credential(&parts.headers) {
            Ok(Some(credential)) => self.inner.engine.program_caller(credential),
            // What is malformed is refused there, where somebody is asked at all.
            Ok(None) | Err(_) => return self.admitted_caller(parts, peer).await,
        };
        match caller {
            Some(caller) => {
                let caller = caller.from_peer(peer.address);
                limits.admit_request(&caller).map(|()| caller)
            }
            None => {
                self.inner.refusal_log.note(peer.address);
                limits.admit_request(&Caller::anonymous().from_peer(peer.address))?;
                let why = "this credential of a program counts only while the program works on its task";
                Err(Error::Unauthenticated(why.into()))
            }
        }
    }

    /// Who calls. Whoever mounts this server in another may have found that out.
    async fn caller(&self, parts: &Parts, peer: &Peer) -> Result<Caller, Error> {
        match parts.extensions.get::<Caller>() {
            Some(caller) => Ok(caller.clone()),
            None => {
                let caller = self.inner.auth.caller(&parts.headers, peer).await;
                if let Err(Error::Unauthenticated(_)) = caller {
                    self.inner.refusal_log.note(peer.address);
                }
                caller
            }
        }
    }

    /// Reserves the memory that it takes to decode a body.
    fn weigh(&self, endpoint: &Endpoint<'_>, body: Received) -> Result<Received, Error> {
        match endpoint.weight(&body) {
            ..=SMALL => Ok(body),
            // One large thing alone always fits, but not one that was made to be.
            weight if weight > self.inner.settings.memory => {
                let why = "has so many members that they take more memory than server.memory allows";
                Err(Error::invalid("message", why))
            }
            weight => body.reserving(&self.inner.budget, weight),
        }
    }

    /// The body, or for gRPC the message in it.
    pub(crate) async fn receive(
        &self,
        parts: &Parts,
        asking: &mut Asking,
        grpc: Option<&GrpcHead>,
        size: usize,
    ) -> Result<Received, Error> {
        let app = &*self.inner;
        let _receiving = asking.exchange.as_ref().map(Exchange::receive);
        let limits = BodyLimits { size, patience: app.settings.timeouts.body, budget: &app.budget };
        let Some(grpc) = grpc else { return asking.body.read_json(&parts.headers, &limits).await };
        let received = asking.body.read(&limits).await?;
        let message = grpc.message(received.bytes(), limits.size)?;
        Ok(received.with_bytes(message))
    }

    async fn call(
        &self,
        parts: &Parts,
        observed: &mut Observed,
        caller: Caller,
        call: Result<Call, Error>,
        mut responder: Responder<'static>,
        deadline: Option<tokio::time::Instant>,
    ) -> Response<Body> {
        let app = &*self.inner;
        let call = match call {
            Ok(call) => call,
            Err(error) => return self.refuse_call(parts, observed, &responder, &error),
        };
        let origin = CallOrigin::of(&responder);
        let active = extensions::active(&parts.headers, |uri| app.cards.declares(&call, uri));
        // What has been done is not refused for want of memory: its caller would do it again.
        let patience = match call {
            Call::Send(_) | Call::Cancel(_) => app.settings.timeouts.reply * 2,
            _ => Duration::ZERO,
        };
        let answered = app.engine.call(&caller, call).await;
        if let Ok(answer) = &answered {
            observed.answered(answer);
        }
        let answered = match answered {
            Ok(Answer::Stream(subscription)) => {
                responder = responder.for_birth(subscription.born());
                let first = subscription.first_number();
                let (tasks, keep_alive) = (app.encoded_tasks.clone(), app.settings.keep_alive);
                let open = app.open_streams.enter();
                let frames = Frames::new(subscription, responder.clone(), tasks, keep_alive, open);
                observed.responded(StatusCode::OK);
                let mut frames = frames.until(deadline).of(std::mem::take(observed));
                match if patience.is_zero() { frames.begin() } else { Ok(()) } {
                    Ok(()) => Ok(stream_response(&responder, first, Body::stream(frames.into_stream()))),
                    Err(error) => {
                        *observed = frames.into_observed();
                        Err(error)
                    }
                }
            }
            Ok(answer) => match responder.check_fit(&answer) {
                Ok(()) => self.whole(&responder, &answer, patience).await,
                Err(error) => Err(error),
            },
            Err(error) => Err(error),
        };
        let mut response = match answered {
            Ok(response) => response,
            Err(error) => return self.refuse_call(parts, observed, &responder, &error),
        };
        if let Some(metrics) = &app.settings.metrics {
            metrics.count_call(origin, CallOutcome::Done);
        }
        if let Some(active) = active {
            extensions::tell(&active, &parts.headers, response.headers_mut());
        }
        response
    }

    /// An answer that is complete, when there is memory for it.
    async fn whole(
        &self,
        responder: &Responder<'_>,
        answer: &Answer,
        patience: Duration,
    ) -> Result<Response<Body>, Error> {
        let deadline = tokio::time::Instant::now() + patience;
        loop {
            match self.try_whole(responder, answer) {
                Err(Error::Overloaded) if tokio::time::Instant::now() < deadline => {
                    tokio::time::sleep(LOOK_AGAIN).await
                }
                tried => return tried,
            }
        }
    }

    fn try_whole(&self, responder: &Responder<'_>, answer: &Answer) -> Result<Response<Body>, Error> {
        let app = &*self.inner;
        if let Answer::Task(task) = answer
            && encoded_tasks::is_large(task)
            && let Some(split) = responder.split_task_reply(answer)
        {
            let shared = app.encoded_tasks.share(task, &split.encoder)?;
            let wrapper = responder.reply_wrapper(&split, shared.bytes().len());
            let body = Body::from(Pieces::wrapped(Large::Task(shared), wrapper));
            let trailers = responder.end_status(None).map(|status| trailers_of(&status));
            return Ok(with_type(split.content_type, with_trailers(body, trailers)));
        }
        // First of all, since a refusal must not cost what the answer would have cost: it comes in crowds, and a send asks
        // again and again.
        let mut reserved = app.budget.nothing();
        reserved.grow_to(encoded_tasks::length_of(answer))?;
        let mut reply = app.encoded_tasks.counted(responder.reply(answer));
        reserved.grow_to(reply.body.len())?;
        if reply.body.len() <= SMALL {
            return Ok(response_of(reply));
        }
        let bytes = std::mem::take(&mut reply.body);
        let trailers = reply.grpc_status.take().map(|status| trailers_of(&status));
        let mut response = response_of(reply);
        let body = Body::from(Pieces::large(Large::Own(Bytes::from(bytes), reserved)));
        *response.body_mut() = with_trailers(body, trailers);
        Ok(response)
    }

    fn refuse_call(
        &self,
        parts: &Parts,
        observed: &mut Observed,
        responder: &Responder<'_>,
        error: &Error,
    ) -> Response<Body> {
        observed.refused(responder, error);
        self.refuse(parts, responder, error)
    }

    pub(crate) fn refuse(&self, parts: &Parts, responder: &Responder<'_>, error: &Error) -> Response<Body> {
        if let Some(metrics) = &self.inner.settings.metrics {
            let is_ours = matches!(error, Error::Internal(_));
            let outcome = if is_ours { CallOutcome::Failed } else { CallOutcome::Refused };
            metrics.count_call(CallOrigin::of(responder), outcome);
        }
        let mut response = response_of(responder.error_reply(error));
        if let Error::Internal(source) = error {
            let id = self.inner.request_ids.name(&parts.headers);
            let request = id.to_str().unwrap_or_default();
            tracing::error!(request, path = parts.uri.path(), error = causes(&**source), "internal error");
            response.headers_mut().insert(X_REQUEST_ID, id);
        }
        response
    }
}

/// A request that is being answered.
pub(crate) struct Asking {
    body: RequestBody,
    exchange: Option<Exchange>,
    pub(crate) peer: Peer,
    observed: Observed,
}

/// What is known of a request by the connection that it came on.
pub(crate) struct Connected {
    pub(crate) exchange: Exchange,
    /// Who asks: the other end of the connection, or whom a trusted proxy names.
    pub(crate) peer: IpAddr,
    /// What the client has shown in its TLS handshake. It was verified then, and it has not expired since.
    pub(crate) peer_certificate: Option<Arc<PeerCertificate>>,
}

fn head_of(parts: &Parts) -> RequestHead<'_> {
    let text = |name: &str| header_text(&parts.headers, name);
    RequestHead {
        verb: parts.method.as_str(),
        path: parts.uri.path(),
        query: parts.uri.query(),
        version: text("a2a-version"),
        last_event_id: text("last-event-id"),
        idempotency_key: text("idempotency-key"),
        extensions: None,
        push_events: text("sabir-push-events"),
        trace_parent: trace_parent(&parts.headers),
        trace_state: None,
    }
}

/// `None` as well where there are two: then nobody can say which trace it is.
pub(crate) fn trace_parent(headers: &HeaderMap) -> Option<&str> {
    let mut all = headers.get_all("traceparent").iter();
    all.next().filter(|_| all.next().is_none()).and_then(|value| value.to_str().ok())
}

/// A header that is no text is not absent, but a value that nobody can use.
pub(crate) fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).map(|value| std::str::from_utf8(value.as_bytes()).unwrap_or("\0"))
}

/// An error with all that led to it, for the log.
fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    let chain = std::iter::successors(Some(error), |error| error.source());
    chain.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

pub(crate) fn response_of(reply: Reply) -> Response<Body> {
    let trailers = reply.grpc_status.map(|status| trailers_of(&status));
    // Without a body there is nothing that trailers could follow, so they are among the headers.
    let (trailers, instead) = if reply.body.is_empty() { (None, trailers) } else { (trailers, None) };
    let mut response = with_type(reply.content_type, with_trailers(Body::from(reply.body), trailers));
    *response.status_mut() = status_of(reply.status);
    let headers = response.headers_mut();
    headers.extend(instead.unwrap_or_default());
    if let Some(seconds) = reply.retry_after {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if let Some(verbs) = reply.allow {
        headers.insert(header::ALLOW, HeaderValue::from_static(verbs));
    }
    response
}

fn with_type(content_type: &'static str, body: Body) -> Response<Body> {
    if content_type == EVENT_STREAM {
        return event_stream(body);
    }
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

fn with_trailers(body: Body, trailers: Option<HeaderMap>) -> Body {
    match trailers {
        Some(trailers) => body.with_trailers(trailers),
        None => body,
    }
}

/// Who sends something else than gRPC does not read gRPC either.
fn not_grpc(error: &Error) -> Response<Body> {
    let mut response = Response::new(Body::from(format!("{error}\n").into_bytes()));
    *response.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// `first` is the number of the first frame. Server-sent events have theirs in each frame; messages of gRPC have none, so a
/// client counts on from this one.
fn stream_response(responder: &Responder<'_>, first: Seq, body: Body) -> Response<Body> {
    let content_type = responder.stream_content_type();
    let mut response = with_type(content_type, body);
    if content_type != EVENT_STREAM {
        response.headers_mut().insert(FIRST_EVENT_ID, HeaderValue::from(first));
    }
    response
}

fn status_of(status: u16) -> StatusCode {
    StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

pub(crate) fn event_stream(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Proxies would hold events back to fill their buffers.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}
