//! Asks a server over one interface, and has every answer judged by the rules that hold for all of them.

use std::cell::Cell;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use sabir_model::{AgentId, Call, PushCall, State, TaskId};
use sabir_outbound::client::{HttpProtocol, OpenResponse};
use sabir_outbound::{Client, DialError, Request, Response};
use sabir_wire::{Binding, Operation, PeerCall, PeerProtocol, ProtocolVersion};
use serde_json::Value;

use super::exchange::{Answered, Credentials, Exchange, Judged, Outgoing, ResponseId, media_type};
use super::grpc_answer::GrpcOpening;
use super::interface::Interface;
use super::ledger::Ledger;
use super::proto_json::GrpcMethod;
use super::reading::Asked;
use super::scene::Scene;
use super::server::{Access, Promises};
use super::stream_log::{OpenStream, StreamLog};
use super::{rules_envelope, rules_objects, rules_streams};

/// A server that wants to be left alone for a while is asked again, so often.
const TRIES: usize = 4;
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// A body that is no stream of events.
const LARGEST_BODY: usize = 16 << 20;

pub struct Probe<'s> {
    pub access: &'s Access,
    pub promises: &'s Promises,
    pub interface: Interface,
    pub ledger: Ledger,
    pub scene: Scene,
    pub client: &'s Client,
    next_id: Cell<u64>,
}

/// How a streaming call is answered.
pub enum Opened {
    Stream(Box<OpenStream>),
    /// By one answer, such as an error.
    Answer(Box<Asked>),
}

impl<'s> Probe<'s> {
    pub fn new(access: &'s Access, promises: &'s Promises, client: &'s Client, interface: Interface) -> Self {
        Probe {
            access,
            promises,
            ledger: Ledger::of_interface(interface.protocol),
            interface,
            scene: Scene::default(),
            client,
            next_id: Cell::new(1),
        }
    }

    pub fn protocol(&self) -> PeerProtocol {
        self.interface.protocol
    }

    pub fn version(&self) -> ProtocolVersion {
        self.interface.protocol.version()
    }

    pub fn is_v1(&self) -> bool {
        self.version() == ProtocolVersion::V1_0
    }

    pub fn is_json_rpc(&self) -> bool {
        self.interface.protocol.binding() == Binding::JsonRpc
    }

    pub fn is_grpc(&self) -> bool {
        self.interface.protocol.binding() == Binding::Grpc
    }

    pub fn tenant(&self) -> Option<&AgentId> {
        self.interface.tenant.as_ref()
    }

    /// How long an answer may take.
    pub fn patience(&self) -> Duration {
        self.access.timeout
    }

    /// A call as this version and binding write it. `None`: they have no words for it.
    pub fn outgoing(&self, call: &Call) -> Option<Outgoing> {
        self.outgoing_page(call, None)
    }

    /// The same for a further page of a list.
    pub fn outgoing_page(&self, call: &Call, page_token: Option<&str>) -> Option<Outgoing> {
        let id = self.next_id.replace(self.next_id.get() + 1);
        let peer = PeerCall { page_token, ..PeerCall::new(call) };
        let mut request = self.protocol().request(&peer, id).ok()?;
        if !self.promises.required_extensions.is_empty() {
            let list = self.promises.required_extensions.join(", ");
            request.headers.extend([("a2a-extensions", list.clone()), ("x-a2a-extensions", list)]);
        }
        let response_id = ResponseId::Same(Value::from(id));
        let (task, credentials, judged) = (task_of(call).cloned(), Credentials::Shown, Judged::Wholly);
        Some(Outgoing { request, task, response_id, credentials, judged })
    }

    /// Makes a call. `None`: this version and binding have no words for it.
    pub async fn ask(&self, call: &Call) -> Option<Asked> {
        Some(self.send(self.outgoing(call)?).await)
    }

    /// Sends a request and has its answer judged.
    pub async fn send(&self, outgoing: Outgoing) -> Asked {
        let exchange = self.exchange(outgoing).await;
        self.judged(exchange)
    }

    /// What was started is remembered, also where the server should have refused it.
    fn judged(&self, exchange: Exchange) -> Asked {
        let asked = Asked::new(self.protocol(), exchange);
        rules_envelope::observe(self, &asked);
        if asked.exchange.judged == Judged::Wholly {
            rules_objects::observe(self, &asked);
        }
        match (asked.exchange.operation, asked.task()) {
            (Operation::Send, Some(task)) if asked.exchange.judged == Judged::ByEnvelope => {
                self.scene.started_by_fault(&task.id, task.status.state);
            }
            (Operation::Send | Operation::Stream, Some(task)) => self.scene.started(&task.id, task.status.state),
            (_, Some(task)) => self.scene.heard(&task.id, task.status.state),
            (_, None) => {}
        }
        asked
    }

    async fn exchange(&self, outgoing: Outgoing) -> Exchange {
        let url = outgoing.request.url(&self.interface.url);
        let tried = outgoing.tried(&url);
        let Outgoing { request, task, response_id, credentials, judged } = outgoing;
        let (operation, method) = (request.operation, GrpcMethod::at(&request.path));
        let started = Instant::now();
        let answer = match self.open_raw(&request, &url, credentials).await {
            Ok(response) => {
                let left = self.patience().saturating_sub(started.elapsed());
                response.complete(left).await.map(|response| match &method {
                    Some(method) => Answered::of_grpc(self.protocol(), method, response),
                    None => answered(response),
                })
            }
            Err(error) => Err(error),
        };
        self.scene.count_message(operation);
        Exchange { operation, task, response_id, judged, tried, answer, elapsed: started.elapsed() }
    }

    /// Makes a streaming call. `None`: this version and binding have no words for it.
    pub async fn open(&self, call: &Call) -> Option<Opened> {
        let outgoing = self.outgoing(call)?;
        let url = outgoing.request.url(&self.interface.url);
        let tried = outgoing.tried(&url);
        let Outgoing { request, task, response_id, credentials, judged } = outgoing;
        let (operation, method) = (request.operation, GrpcMethod::at(&request.path));
        let started = Instant::now();
        let opened = self.open_raw(&request, &url, credentials).await;
        self.scene.count_message(operation);
        let exchange = |answer: Result<Answered, DialError>| {
            let (task, response_id, tried) = (task.clone(), response_id.clone(), tried.clone());
            let elapsed = started.elapsed();
            let exchange = Exchange { operation, task, response_id, judged, tried, answer, elapsed };
            Some(Opened::Answer(Box::new(self.judged(exchange))))
        };
        let mut response = match opened {
            Ok(response) => response,
            Err(error) => return exchange(Err(error)),
        };
        let new_stream = |response: OpenResponse| {
            let (tried, response_id, task, method) = (tried.clone(), response_id.clone(), task.clone(), method.clone());
            OpenStream::new(self.protocol(), operation, tried, response_id, task, method, response)
        };
        if let Some(method) = &method {
            return match GrpcOpening::read(self.protocol(), method, &mut response, self.patience()).await {
                Ok(GrpcOpening::Refused(answered)) => exchange(Ok(*answered)),
                Ok(GrpcOpening::Begun(first)) => {
                    let mut stream = new_stream(response);
                    stream.feed(&first);
                    Some(Opened::Stream(Box::new(stream)))
                }
                Err(error) => exchange(Err(error)),
            };
        }
        if response.status.is_success() && is_event_stream(&response.headers) {
            return Some(Opened::Stream(Box::new(new_stream(response))));
        }
        // The type may be wrong, and the body a stream all the same.
        let first = match response.chunk(self.patience()).await {
            Ok(first) => first.unwrap_or_default(),
            Err(error) => return exchange(Err(error)),
        };
        if response.status.is_success() && looks_like_events(&first) {
            let mut stream = new_stream(response);
            stream.feed(&first);
            return Some(Opened::Stream(Box::new(stream)));
        }
        let (status, headers) = (response.status.as_u16(), response.headers.clone());
        let body = read_rest(response, first, self.patience()).await;
        exchange(body.map(|body| Answered { status, headers, body, grpc: None }))
    }

    /// Reads a stream to its end and has it judged.
    pub async fn finish(&self, stream: OpenStream) -> StreamLog {
        let log = stream.finish(self.patience()).await;
        rules_envelope::observe_frames(self, &log);
        rules_objects::observe_frames(self, &log);
        rules_streams::observe(self, &log);
        if let (Operation::Stream, Some(task)) = (log.operation, log.task()) {
            self.scene.started(task, State::Working);
        }
        for frame in &log.frames {
            if let (Some(task), Some(state)) = (frame.task(), frame.state()) {
                self.scene.heard(task, state);
            }
        }
        log
    }

    async fn open_raw(
        &self,
        request: &sabir_wire::PeerRequest,
        url: &str,
        credentials: Credentials,
    ) -> Result<OpenResponse, DialError> {
        let mut verb = request.verb;
        let mut tries = 0;
        loop {
            let outgoing = Request {
                method: Method::from_bytes(verb.as_bytes()).expect("a verb of HTTP"),
                url: url.to_owned(),
                headers: self.headers(url, &request.headers, credentials),
                body: Bytes::from(request.body.clone()),
                timeout: self.patience(),
                redirects: 0,
                secret_query: None,
                protocol: if self.is_grpc() { HttpProtocol::Http2 } else { HttpProtocol::Any },
            };
            let response = self.client.open(outgoing).await?;
            // The text of the specification and its protobuf do not agree on the verb of a subscription.
            if matches!(response.status.as_u16(), 404 | 405)
                && let Some(other) =
                    request.with_other_verb().filter(|other| other.verb != verb && verb == request.verb)
            {
                verb = other.verb;
                continue;
            }
            tries += 1;
            match wait_of(&response).filter(|_| tries < TRIES) {
                Some(wait) => tokio::time::sleep(wait).await,
                None => return Ok(response),
            }
        }
    }

    /// Credentials are for the server that the operator named, and for no other one that its card leads to.
    fn headers(&self, url: &str, own: &[(&'static str, String)], credentials: Credentials) -> HeaderMap {
        let mut headers = match credentials {
            Credentials::Shown if self.access.is_origin_of(url) => self.access.headers.clone(),
            Credentials::Shown | Credentials::Withheld => HeaderMap::new(),
        };
        for (name, value) in own {
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        headers
    }
}

/// How long a busy server wants to be left alone.
fn wait_of(response: &OpenResponse) -> Option<Duration> {
    let text = |name: &str| response.headers.get(name)?.to_str().ok().map(str::trim);
    let wait = if matches!(response.status.as_u16(), 429 | 503) {
        let asked = text(header::RETRY_AFTER.as_str())?;
        asked.parse().map_or(Duration::from_secs(1), Duration::from_secs)
    } else {
        let is_busy = matches!(text("grpc-status")?, RESOURCE_EXHAUSTED | UNAVAILABLE);
        Duration::from_millis(text("grpc-retry-pushback-ms").filter(|_| is_busy)?.parse().ok()?)
    };
    (wait <= LONGEST_WAIT).then_some(wait)
}

/// Codes of gRPC.
const RESOURCE_EXHAUSTED: &str = "8";
const UNAVAILABLE: &str = "14";

fn answered(response: Response) -> Answered {
    Answered { status: response.status.as_u16(), headers: response.headers, body: response.body, grpc: None }
}

async fn read_rest(mut response: OpenResponse, first: Bytes, patience: Duration) -> Result<Bytes, DialError> {
    let mut body = BytesMut::from(&first[..]);
    while let Some(bytes) = response.chunk(patience).await? {
        body.extend_from_slice(&bytes);
        if body.len() > LARGEST_BODY {
            return Err(DialError::BodyTooLarge { status: response.status, limit: LARGEST_BODY });
        }
    }
    Ok(body.freeze())
}

pub fn is_event_stream(headers: &HeaderMap) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    content_type.is_some_and(|content_type| media_type(content_type) == "text/event-stream")
}

fn looks_like_events(first: &[u8]) -> bool {
    let text = first.strip_prefix("\u{feff}".as_bytes()).unwrap_or(first).trim_ascii_start();
    [&b"data:"[..], b"event:", b"id:", b"retry:", b":"].iter().any(|field| text.starts_with(field))
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
