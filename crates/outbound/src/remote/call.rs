//! Calls of a remote agent.
//!
//! What changes nothing, or nothing twice, is asked again when the connection fails. A message is sent again only where
//! the server cannot have acted on it: no byte left, the server asks for it, the server knows idempotency keys, or the
//! task's id is ours (0.1). Otherwise its outcome is unknown, and that is what the caller is told.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use http::{HeaderName, HeaderValue, Method, StatusCode};
use sabir_model::{AgentId, Call, ContextId, PushCall, Send, TaskId};
use sabir_wire::grpc::GRPC;
use sabir_wire::{
    Binding, Operation, PeerCall, PeerError, PeerErrorKind, PeerProtocol, PeerRequest, ProtocolVersion, Received,
};
use tokio::time::{Instant, sleep, timeout};

use super::address::trust;
use super::discovery::{Discovered, choose, without_card};
use super::error::RemoteError;
use super::grpc_end::{grpc_end, grpc_error};
use super::message_stream::MessageParser;
use super::settings::{RemoteSettings, WireEvent};
use super::stream::RemoteStream;
use crate::back_off::BackOff;
use crate::cards::{CardError, FetchedCard, fetch_card};
use crate::client::{Client, DialError, HttpProtocol, Limits, OpenResponse, Request, Response};
use crate::credentials::{CredentialError, ShownToken, UpstreamCredentials};
use crate::guard::{EgressPolicy, Guard, SystemResolver};

/// A remote agent. Cheap to clone; clones share connections and what is known of the agent.
#[derive(Clone)]
pub struct Remote {
    inner: Arc<Inner>,
}

struct Inner {
    client: Client,
    credentials: UpstreamCredentials,
    settings: RemoteSettings,
    policy: EgressPolicy,
    discovered: RwLock<Option<Arc<Discovered>>>,
    corrected: RwLock<Option<CorrectedVersion>>,
    next_id: AtomicU64,
}

/// The card says one version, and another one works.
#[derive(Debug, Clone, Copy)]
struct CorrectedVersion {
    promised: PeerProtocol,
    spoken: PeerProtocol,
}

/// So often a call is made again that changes nothing.
const TRIES: usize = 3;
/// A connection that was unused for longer is not used again: its server may close it at the very moment, and a message that is
/// sent just then may have arrived or not.
const LONGEST_IDLE: Duration = Duration::from_secs(1);
/// A server that wants to be left alone for longer is not waited for in a single call.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

impl Remote {
    pub fn new(settings: RemoteSettings) -> Result<Self, RemoteError> {
        let mut policy = settings.policy.clone();
        for url in [Some(&settings.url), settings.card_url.as_ref(), settings.endpoint.as_ref()].into_iter().flatten() {
            trust(&mut policy, url).map_err(|refusal| CardError::Url { url: url.clone(), refusal })?;
        }
        let guard = Guard::new(policy.clone(), Arc::new(SystemResolver::default()));
        let limits = Limits {
            body: settings.largest_answer,
            idle_per_host: 256,
            idle: LONGEST_IDLE,
            connect_timeout: Limits::default().connect_timeout.min(settings.call_timeout),
            ..Limits::default()
        };
        let (roots, identity) = (settings.roots.clone(), settings.identity.clone());
        let client = Client::with_identity(Arc::new(guard), limits, roots, identity);
        let upstreams: Vec<&str> = [Some(&settings.url), settings.card_url.as_ref(), settings.endpoint.as_ref()]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect();
        let credentials = UpstreamCredentials::new(settings.credentials.clone(), &upstreams)
            .map_err(|error| RemoteError::InvalidCredential(error.to_string()))?;
        let inner = Inner {
            client,
            credentials,
            settings,
            policy,
            discovered: RwLock::new(None),
            corrected: RwLock::new(None),
            next_id: AtomicU64::new(1),
        };
        Ok(Remote { inner: Arc::new(inner) })
    }

    pub fn settings(&self) -> &RemoteSettings {
        &self.inner.settings
    }

    /// What is known of the agent; its card is fetched if nothing is known yet.
    pub async fn discovered(&self) -> Result<Arc<Discovered>, RemoteError> {
        let known = self.inner.discovered.read().unwrap_or_else(PoisonError::into_inner).clone();
        match known {
            Some(known) => Ok(known),
            None => self.discover().await,
        }
    }

    /// Fetches the card, also if one is known.
    pub async fn discover(&self) -> Result<Arc<Discovered>, RemoteError> {
        let Inner { client, settings, policy, discovered, .. } = &*self.inner;
        let url = settings.card_url.as_ref().unwrap_or(&settings.url);
        let (headers, timeout) = (settings.headers.clone(), settings.call_timeout);
        let fetched = fetch_card(client, Some(&self.inner.credentials), url, headers, timeout).await;
        self.observe_card(&fetched);
        let mut found = match fetched {
            Ok(card) => choose(card, settings, policy)?,
            // A card that was there once is only away for a while.
            Err(error @ CardError::NotFound(_)) if !self.has_had_card() => {
                without_card(settings).ok_or(RemoteError::Card(error))?
            }
            Err(error) => return Err(error.into()),
        };
        if let Err(error) = self.inner.credentials.check_url(&found.endpoint.url) {
            found.notes.push(format!(
                "calls to {} will fail: {error}; if you trust that address, name it yourself as the endpoint",
                found.endpoint.url
            ));
        }
        let corrected = *self.inner.corrected.read().unwrap_or_else(PoisonError::into_inner);
        let found = Arc::new(match corrected.filter(|corrected| corrected.promised == found.endpoint.protocol) {
            Some(corrected) => with_protocol(found, corrected.spoken),
            None => found,
        });
        *discovered.write().unwrap_or_else(PoisonError::into_inner) = Some(found.clone());
        Ok(found)
    }

    fn has_had_card(&self) -> bool {
        let known = self.inner.discovered.read().unwrap_or_else(PoisonError::into_inner);
        known.as_ref().is_some_and(|known| known.card.is_some())
    }

    /// Cards are fetched by `cards`, which knows no observer. Places where there is none are left out.
    fn observe_card(&self, fetched: &Result<FetchedCard, CardError>) {
        let Some(observer) = &self.inner.settings.observer else { return };
        let (url, status, body) = match fetched {
            Ok(card) => (card.url.as_str(), 200, card.text.as_str()),
            Err(CardError::Status { url, status }) => (url.as_str(), status.as_u16(), ""),
            Err(_) => return,
        };
        observer(WireEvent::Request { verb: "GET", url, headers: &[], body: &[] });
        observer(WireEvent::Response { status, body: body.as_bytes() });
    }

    /// Makes a call that is answered once. A send with `Delivery::Stream` is for `stream`.
    pub async fn call(&self, call: &Call) -> Result<Received, RemoteError> {
        self.call_page(call, None).await
    }

    /// The same for a list that continues at the token of the page before.
    pub async fn call_page(&self, call: &Call, page_token: Option<&str>) -> Result<Received, RemoteError> {
        self.repeat(call, |protocol| self.try_call(call, page_token, protocol)).await
    }

    /// Opens a stream: a send with `Delivery::Stream`, or a subscription. `last_event_id` resumes it where the server can.
    pub async fn stream(&self, call: &Call, last_event_id: Option<&str>) -> Result<RemoteStream, RemoteError> {
        self.repeat(call, |protocol| self.try_stream(call, last_event_id, protocol)).await
    }

    /// Tries a call until it works or must not be made again. A server that does not know the method is tried in other
    /// versions: cards are often wrong about them, and nothing was done.
    async fn repeat<T, F>(&self, call: &Call, attempt: impl Fn(PeerProtocol) -> F) -> Result<T, RemoteError>
    where
        F: Future<Output = Result<T, RemoteError>>,
    {
        let promised = self.discovered().await?.endpoint.protocol;
        let mut others = other_versions(promised, call).into_iter();
        let mut protocol = promised;
        let mut first_error = None;
        let mut back_off = BackOff::after_failures();
        let mut tries = 0;
        loop {
            tries += 1;
            let error = match attempt(protocol).await {
                Ok(done) => {
                    self.speak(protocol);
                    return Ok(done);
                }
                Err(error) => error,
            };
            if is_other_version(call, &error) {
                first_error.get_or_insert(error);
                match others.next() {
                    Some(other) => protocol = other,
                    None => return Err(first_error.expect("it was set above")),
                }
                continue;
            }
            if !error.did_nothing() {
                // It knows this version: whether it has the message can be asked in it.
                self.speak(protocol);
            }
            // A message that could not be sent is for `Following` to send again, which knows how long that makes sense.
            let is_unsent = matches!(call, Call::Send(_)) && error.did_nothing();
            if tries >= TRIES || is_unsent || !self.may_repeat(call, &error).await {
                // What another version than the promised one says is of no use.
                return Err(outcome_of(call, first_error.filter(|_| error.did_nothing()).unwrap_or(error)));
            }
            let wait = back_off.next(error.retry_after());
            if wait > LONGEST_WAIT {
                return Err(outcome_of(call, error));
            }
            sleep(wait).await;
        }
    }

    /// Whether a call that failed may be made once more.
    pub async fn may_repeat(&self, call: &Call, error: &RemoteError) -> bool {
        if !error.is_transient() {
            return false;
        }
        !matches!(call, Call::Send(_)) || error.did_nothing() || self.repeats_are_safe().await
    }

    /// Whether the server recognises a message that it has got already.
    pub async fn repeats_are_safe(&self) -> bool {
        self.discovered().await.is_ok_and(|known| known.knows_idempotency_keys())
    }

    /// The id of the task that a message makes, where that is ours to choose: in 0.1.
    pub(super) async fn chosen_task(&self, send: &Send) -> Option<TaskId> {
        let known = self.discovered().await.ok()?;
        let is_ours = known.endpoint.protocol.version() == ProtocolVersion::V0_1 && send.message.task.is_none();
        is_ours.then(|| chosen_id(send))
    }

    async fn try_call(
        &self,
        call: &Call,
        page_token: Option<&str>,
        protocol: PeerProtocol,
    ) -> Result<Received, RemoteError> {
        let started = Instant::now();
        let timeout = match call {
            Call::Send(_) => self.inner.settings.send_timeout,
            _ => self.inner.settings.call_timeout,
        };
        let (response, operation) = self.open(call, page_token, None, protocol, timeout).await?;
        let left = timeout.saturating_sub(started.elapsed());
        self.read_whole(response, operation, protocol, task_of(call), left).await
    }

    async fn try_stream(
        &self,
        call: &Call,
        last_event_id: Option<&str>,
        protocol: PeerProtocol,
    ) -> Result<RemoteStream, RemoteError> {
        let settings = &self.inner.settings;
        // Some servers send the head of a stream with its first event.
        let patience = match call {
            Call::Send(_) => settings.send_timeout,
            _ => settings.call_timeout,
        };
        let (response, operation) = self.open(call, None, last_event_id, protocol, patience).await?;
        if protocol.binding() == Binding::Grpc {
            return self.message_stream(call, response, protocol, operation).await;
        }
        if response.status.is_success() && response.is_event_stream() {
            let stream = RemoteStream::events(
                response,
                protocol,
                operation,
                task_of(call).cloned(),
                settings.largest_answer,
                settings.stream_silence,
                settings.observer.clone(),
            );
            // Whether a message was taken is known with the first frame.
            return match call {
                Call::Send(_) => stream.wait_for_first(settings.send_timeout).await,
                _ => Ok(stream),
            };
        }
        let received = self.read_whole(response, operation, protocol, task_of(call), settings.send_timeout).await?;
        Ok(RemoteStream::single(received, protocol, operation))
    }

    async fn message_stream(
        &self,
        call: &Call,
        response: OpenResponse,
        protocol: PeerProtocol,
        operation: Operation,
    ) -> Result<RemoteStream, RemoteError> {
        let settings = &self.inner.settings;
        // A call that fails at once has its status among the headers.
        let end = grpc_end(&response.headers, &response.trailers);
        if !response.status.is_success() || end.status.is_some() && !end.is_ok() {
            return Err(grpc_error(protocol, response.status, &response.headers, &response.trailers));
        }
        let (limit, observer) = (settings.largest_answer, settings.observer.clone());
        let stream = RemoteStream::messages(response, protocol, operation, limit, observer);
        match call {
            Call::Send(_) => {
                let first = timeout(settings.send_timeout, stream.wait_for_first(settings.send_timeout)).await;
                first.unwrap_or(Err(RemoteError::Dial(DialError::BodyTimeout { status: StatusCode::OK })))
            }
            _ => Ok(stream),
        }
    }

    async fn read_whole(
        &self,
        response: OpenResponse,
        operation: Operation,
        protocol: PeerProtocol,
        task: Option<&TaskId>,
        patience: Duration,
    ) -> Result<Received, RemoteError> {
        let retry_after = response.retry_after();
        let response = response.complete(patience).await?;
        let status = response.status.as_u16();
        if let Some(observer) = &self.inner.settings.observer {
            observer(WireEvent::Response { status, body: &response.body });
        }
        if protocol.binding() == Binding::Grpc {
            return read_message(protocol, operation, &response);
        }
        let read = protocol.read_response(operation, task, status, &response.body);
        read.map_err(|error| RemoteError::Peer { error, retry_after })
    }

    /// Sends a request, until the head of its answer is there.
    async fn open(
        &self,
        call: &Call,
        page_token: Option<&str>,
        last_event_id: Option<&str>,
        protocol: PeerProtocol,
        timeout: Duration,
    ) -> Result<(OpenResponse, Operation), RemoteError> {
        let known = self.discovered().await?;
        let call = completed(call, known.endpoint.tenant.as_ref(), protocol);
        let id = self.inner.next_id.fetch_add(1, Ordering::Relaxed);
        let peer = PeerCall { call: &call, page_token, last_event_id };
        let request = protocol.request(&peer, id).map_err(|error| RemoteError::NotInVersion(error.to_string()))?;
        let (operation, with_other_verb) = (request.operation, request.with_other_verb());
        let response = self.dial(request, &known.endpoint.url, timeout).await?;
        match with_other_verb {
            Some(request) if matches!(response.status.as_u16(), 404 | 405) => {
                Ok((self.dial(request, &known.endpoint.url, timeout).await?, operation))
            }
            _ => Ok((response, operation)),
        }
    }

    async fn dial(&self, request: PeerRequest, endpoint: &str, timeout: Duration) -> Result<OpenResponse, RemoteError> {
        let url = request.url(endpoint);
        let is_grpc = request.headers.iter().any(|(name, value)| *name == "content-type" && value == GRPC);
        if let Some(observer) = &self.inner.settings.observer {
            observer(WireEvent::Request {
                verb: request.verb,
                url: &url,
                headers: &request.headers,
                body: &request.body,
            });
        }
        let method = Method::from_bytes(request.verb.as_bytes()).expect("a verb of HTTP");
        let mut headers = self.inner.settings.headers.clone();
        for (name, value) in &request.headers {
            // What a header cannot carry (an extension's name with a line break) is left out.
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        let body = request.body.into();
        let protocol = if is_grpc { HttpProtocol::Http2 } else { HttpProtocol::Any };
        let outgoing = Request { method, url, headers, body, timeout, redirects: 0, secret_query: None, protocol };
        let repetition = self.inner.credentials.may_change().then(|| outgoing.clone());
        let (response, shown) = self.open_with_credentials(outgoing).await?;
        match repetition {
            // A token that has been refused may be an old one; another is shown once.
            Some(repetition) if is_unauthenticated(&response) && self.inner.credentials.forget(shown) => {
                Ok(self.open_with_credentials(repetition).await?.0)
            }
            _ => Ok(response),
        }
    }

    async fn open_with_credentials(&self, mut request: Request) -> Result<(OpenResponse, ShownToken), RemoteError> {
        let shown = self.inner.credentials.authorize(&mut request).await.map_err(|error| match error {
            // The same every time.
            CredentialError::OtherOrigin { .. } | CredentialError::Url(_) => {
                RemoteError::InvalidCredential(error.to_string())
            }
            CredentialError::Refused { status, .. } | CredentialError::Unusable { status, .. }
                if status.is_client_error() && status != StatusCode::TOO_MANY_REQUESTS =>
            {
                RemoteError::InvalidCredential(error.to_string())
            }
            error => RemoteError::Credential(error.to_string()),
        })?;
        Ok((self.inner.client.open(request).await?, shown))
    }

    /// Remembers that the agent speaks another version than its card says.
    fn speak(&self, protocol: PeerProtocol) {
        let is_known =
            |known: &Option<Arc<Discovered>>| known.as_ref().is_none_or(|known| known.endpoint.protocol == protocol);
        if is_known(&self.inner.discovered.read().unwrap_or_else(PoisonError::into_inner)) {
            return;
        }
        let mut known = self.inner.discovered.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.as_ref().filter(|found| found.endpoint.protocol != protocol) {
            let corrected = CorrectedVersion { promised: found.endpoint.protocol, spoken: protocol };
            *self.inner.corrected.write().unwrap_or_else(PoisonError::into_inner) = Some(corrected);
            *known = Some(Arc::new(with_protocol((**found).clone(), protocol)));
        }
    }
}

fn with_protocol(mut known: Discovered, protocol: PeerProtocol) -> Discovered {
    known.notes.push(format!("the agent does not speak {}; {protocol} works", known.endpoint.protocol));
    known.endpoint.protocol = protocol;
    known
}

/// Whether a server that answers so may know the call in another version. Some have no better words for an unknown method
/// than that the request is invalid; a message that names a task may be refused like that for other reasons.
fn is_other_version(call: &Call, error: &RemoteError) -> bool {
    match error.peer_kind() {
        Some(PeerErrorKind::MethodNotFound | PeerErrorKind::Version) => true,
        Some(PeerErrorKind::InvalidRequest) => matches!(call, Call::Send(send) if send.message.task.is_none()),
        _ => false,
    }
}

/// What is told of a message that may have arrived.
fn outcome_of(call: &Call, error: RemoteError) -> RemoteError {
    match (call, &error) {
        (Call::Send(_), RemoteError::Dial(dial)) if dial.may_have_left() => {
            RemoteError::OutcomeUnknown(error.to_string())
        }
        (Call::Send(_), RemoteError::StreamEnded) => RemoteError::OutcomeUnknown(error.to_string()),
        (Call::Send(_), RemoteError::Peer { error: peer, retry_after: None })
            // 409 and 499 are what HTTP calls ABORTED and CANCELLED of gRPC.
            if peer.kind == PeerErrorKind::Unavailable && matches!(peer.status, 409 | 499 | 502 | 504) =>
        {
            RemoteError::OutcomeUnknown(error.to_string())
        }
        _ => error,
    }
}

/// gRPC says it among the headers of an answer that has no message.
fn is_unauthenticated(response: &OpenResponse) -> bool {
    const UNAUTHENTICATED: &str = "16";
    let by_grpc = response.headers.get("grpc-status").is_some_and(|code| code == UNAUTHENTICATED);
    response.status == StatusCode::UNAUTHORIZED || by_grpc
}

/// The one message of a response, if the call went well.
fn read_message(protocol: PeerProtocol, operation: Operation, response: &Response) -> Result<Received, RemoteError> {
    let Response { status, headers, body, trailers } = response;
    let end = grpc_end(headers, trailers);
    if !status.is_success() || !end.is_ok() {
        // A message without a status may be cut off.
        return Err(match end.status {
            None if status.is_success() => RemoteError::StreamEnded,
            _ => grpc_error(protocol, *status, headers, trailers),
        });
    }
    let mut parser = MessageParser::new(usize::MAX);
    parser.feed(body);
    let read = match parser.next() {
        Ok(Some(message)) => protocol.read_message(operation, &message),
        _ => Err(PeerError::malformed(200, "the response has no message")),
    };
    read.map_err(|error| RemoteError::Peer { error, retry_after: None })
}

fn task_of(call: &Call) -> Option<&TaskId> {
    match call {
        Call::Send(send) => send.message.task.as_ref(),
        Call::Get(get) => Some(&get.task),
        Call::Cancel(cancel) => Some(&cancel.task),
        Call::Subscribe(subscribe) => Some(&subscribe.task),
        Call::Push(PushCall::Get { task, .. } | PushCall::List { task, .. } | PushCall::Delete { task, .. }) => {
            Some(task)
        }
        Call::Push(PushCall::Set { config, .. }) => config.task.as_ref(),
        Call::List(_) | Call::ExtendedCard { .. } => None,
    }
}

/// With the tenant that the card names, and in 0.1 with names for a new task and its session.
fn completed<'c>(call: &'c Call, tenant: Option<&AgentId>, protocol: PeerProtocol) -> Cow<'c, Call> {
    let needs_task =
        protocol.version() == ProtocolVersion::V0_1 && matches!(call, Call::Send(send) if send.message.task.is_none());
    if call.agent() == tenant && !needs_task {
        return Cow::Borrowed(call);
    }
    let mut call = call.clone();
    if let Call::Send(send) = &mut call
        && needs_task
    {
        let id = chosen_id(send);
        // Frames of 0.1 do not say to which session they belong, and then a task counts as its own.
        let context = send.message.context.take().or_else(|| ContextId::parse(id.as_str()).ok());
        (send.message.task, send.message.context) = (Some(id), context);
    }
    let agent = match &mut call {
        Call::Send(send) => &mut send.agent,
        Call::Get(get) => &mut get.agent,
        Call::List(list) => &mut list.agent,
        Call::Cancel(cancel) => &mut cancel.agent,
        Call::Subscribe(subscribe) => &mut subscribe.agent,
        Call::Push(
            PushCall::Set { agent, .. }
            | PushCall::Get { agent, .. }
            | PushCall::List { agent, .. }
            | PushCall::Delete { agent, .. },
        )
        | Call::ExtendedCard { agent } => agent,
    };
    *agent = tenant.cloned();
    Cow::Owned(call)
}

/// The same for the same message, and so for each repetition of it.
pub(super) fn chosen_id(send: &Send) -> TaskId {
    let key = send.idempotency.as_ref().and_then(|key| TaskId::parse(key.as_str()).ok());
    let message = || send.message.id.as_ref().and_then(|id| TaskId::parse(id.as_str()).ok());
    key.or_else(message).unwrap_or_else(|| TaskId::parse("task").expect("a short word is an id"))
}

/// Versions in which a server may know a call that it does not know in the promised one.
fn other_versions(promised: PeerProtocol, call: &Call) -> Vec<PeerProtocol> {
    if matches!(call, Call::List(_) | Call::Push(_) | Call::ExtendedCard { .. }) {
        return Vec::new();
    }
    // On the wire 0.2 is 0.3.
    let versions = [ProtocolVersion::V0_3, ProtocolVersion::V0_1, ProtocolVersion::V1_0];
    let is_same = |version| version == ProtocolVersion::V0_3 && promised.version() == ProtocolVersion::V0_2;
    let others = versions
        .into_iter()
        .filter(|version| !is_same(*version))
        .filter_map(|version| PeerProtocol::new(version, promised.binding()));
    others.filter(|other| *other != promised).collect()
}
