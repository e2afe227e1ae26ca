//! From a request to its reply: what it asks for is read, done, and written in the request's protocol.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::answer::{Answer, Envelope, Place};
use super::call::{Call, Delivery};
use super::card;
use super::connection::{Connection, RawRequest};
use super::errors::{ErrorKind, RemoteError};
use super::faults::{Faults, Refusal, StreamErrors};
use super::perform::{self, Outcome};
use super::planted::PlantedFault;
use super::planted_effects;
use super::protocol::{Operation, RemoteProtocol};
use super::route::{Route, Target};
use super::server::Server;
use super::spelling;
use super::stream::{StreamContent, StreamReply};

pub(super) enum Reply {
    Answer(Answer),
    Stream(Box<StreamReply>),
}

/// Whether a call is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    AsAsked,
    /// The call has its effect, and nobody will see its answer.
    Never,
}

pub(super) fn respond(
    server: &Arc<Server>,
    connection: &Connection,
    route: &Route,
    request: &RawRequest,
    wait: Wait,
) -> Reply {
    let none = Reply::Answer(Answer::empty(404));
    let Some(protocol) = route.protocol else {
        return match &route.target {
            Target::Card(path) => {
                card::answer(server, path, request.header("if-none-match")).map_or(none, Reply::Answer)
            }
            _ => none,
        };
    };
    let mut exchange = Exchange {
        server,
        connection,
        request,
        wait,
        envelope: Envelope { protocol, rpc_id: Value::Null },
        operation: None,
    };
    let result = match &route.target {
        Target::JsonRpc if request.method != "POST" => return Reply::Answer(Answer::empty(405)),
        Target::JsonRpc => exchange.json_rpc(),
        Target::HttpJson { operation, params } => exchange.http_json(*operation, params),
        Target::Card(_) | Target::Nowhere => return none,
    };
    exchange.reply(result)
}

struct Exchange<'a> {
    server: &'a Arc<Server>,
    connection: &'a Connection,
    request: &'a RawRequest,
    wait: Wait,
    envelope: Envelope,
    /// As soon as it is known.
    operation: Option<Operation>,
}

impl Exchange<'_> {
    fn json_rpc(&mut self) -> Result<Outcome, RemoteError> {
        let invalid = || RemoteError::new(ErrorKind::InvalidRequest);
        let json: Value =
            serde_json::from_slice(&self.request.body).map_err(|_| RemoteError::new(ErrorKind::InvalidJson))?;
        let id = json.get("id").cloned().unwrap_or_default();
        let is_possible = id.is_string() || id.is_number() || id.is_null();
        if is_possible {
            self.envelope.rpc_id = id;
        }
        let is_version_2 = json["jsonrpc"] == "2.0" || !planted_effects::checks_envelope(self.server.settings.planted);
        let method = json["method"].as_str().ok_or_else(invalid)?;
        if !is_possible || !is_version_2 {
            return Err(invalid());
        }
        self.check_version(None)?;
        let operation =
            self.protocol().operation_of(method).ok_or_else(|| RemoteError::new(ErrorKind::MethodNotFound))?;
        self.operation = Some(operation);
        let params = json.get("params").cloned().unwrap_or_default();
        if !params.is_object() && operation != Operation::ExtendedCard {
            return Err(RemoteError::invalid("params", "must be an object"));
        }
        self.call(operation, &params)
    }

    fn http_json(&mut self, operation: Option<Operation>, path: &Map<String, Value>) -> Result<Outcome, RemoteError> {
        self.operation = operation;
        let query = self.request.path.split_once('?').map(|(_, query)| query);
        self.check_version(query)?;
        let operation = operation.ok_or_else(|| RemoteError::new(ErrorKind::MethodNotFound))?;
        let body = match self.request.body.as_slice() {
            [] => Value::Null,
            body => serde_json::from_slice(body).map_err(|_| RemoteError::new(ErrorKind::InvalidJson))?,
        };
        let mut params = match body {
            Value::Object(members) => members,
            // Only a cancel or a subscription may come without.
            Value::Null => Map::new(),
            _ => return Err(RemoteError::invalid("body", "must be an object")),
        };
        params.extend(path.clone());
        self.call(operation, &Value::Object(params))
    }

    /// 1.0 serves its own version alone, and no version means 0.3.
    fn check_version(&self, query: Option<&str>) -> Result<(), RemoteError> {
        if !self.protocol().is_v1() || !planted_effects::checks_version(self.server.settings.planted) {
            return Ok(());
        }
        let in_query = || query?.split('&').find_map(|pair| pair.strip_prefix("A2A-Version="));
        let version = self.request.header("a2a-version").filter(|version| !version.is_empty()).or_else(in_query);
        let parts: Vec<&str> = version.unwrap_or("0.3").split('.').take(2).collect();
        if parts == ["1", "0"] {
            return Ok(());
        }
        let mut error = RemoteError::new(ErrorKind::VersionNotSupported);
        error.detail =
            Some(format!("this interface speaks 1.0, not {}", version.unwrap_or("a request without version")));
        Err(error)
    }

    fn call(&self, operation: Operation, params: &Value) -> Result<Outcome, RemoteError> {
        let faults = self.server.faults();
        if let Some(error) = refused(&faults, operation) {
            return Err(error);
        }
        let protocol = self.protocol();
        if let Some(tenant) = &self.server.settings.tenant
            && self.envelope.is_json_rpc()
            && protocol.is_v1()
            && params["tenant"] != tenant.as_str()
        {
            return Err(RemoteError::invalid("tenant", "must be the one of the card"));
        }
        let mut call = spelling::read(protocol, operation, params)?;
        if let Call::Subscribe { after, .. } = &mut call {
            *after = self.request.header("last-event-id").and_then(|id| id.parse().ok());
        }
        if let Call::Send(send) = &mut call
            && self.server.settings.knows_keys
        {
            send.key = self.request.header("idempotency-key").map(str::to_owned);
        }
        planted_effects::before(self.server, &mut call)?;
        if let (Call::Send(send), Wait::Never) = (&mut call, self.wait) {
            send.delivery = Delivery::Immediately;
        }
        perform::perform(self.server, self.connection, protocol, call)
    }

    fn reply(self, result: Result<Outcome, RemoteError>) -> Reply {
        let result = result.or_else(|error| planted_effects::after_refusal(self.server, self.operation, error));
        let operation = self.operation.unwrap_or(Operation::Card);
        match result {
            Ok(Outcome::Stream(source)) => {
                let content = StreamContent::Events(source);
                Reply::Stream(Box::new(StreamReply { envelope: self.envelope, operation, content }))
            }
            Ok(outcome) => {
                let content = spelling::outcome(self.protocol(), operation, &outcome);
                let text = self.envelope.result(self.server, Place::Answer(operation), content);
                Reply::Answer(Answer::new(200, self.media_type(), text))
            }
            Err(error) if self.is_refused_by_frame() => {
                let content = StreamContent::Refusal(error);
                Reply::Stream(Box::new(StreamReply { envelope: self.envelope, operation, content }))
            }
            Err(error) => {
                let text = self.envelope.error(self.server, &error);
                let is_always_200 = self.envelope.is_json_rpc()
                    || self.server.settings.planted == Some(PlantedFault::ErrorWithStatus200);
                let status = if is_always_200 { 200 } else { error.http_status(self.protocol()) };
                Reply::Answer(Answer::new(status, self.media_type(), text))
            }
        }
    }

    fn is_refused_by_frame(&self) -> bool {
        let is_stream = matches!(self.operation, Some(Operation::Stream | Operation::Subscribe));
        is_stream
            && match self.server.faults().stream_errors {
                StreamErrors::AsVersion => self.envelope.is_json_rpc() && !self.protocol().is_v1(),
                StreamErrors::Response => false,
                StreamErrors::Frame => true,
            }
    }

    fn media_type(&self) -> &'static str {
        match self.protocol() {
            RemoteProtocol::V1HttpJson if self.server.settings.planted == Some(PlantedFault::AnswerContentType) => {
                "text/plain"
            }
            RemoteProtocol::V1HttpJson => "application/a2a+json",
            _ => "application/json",
        }
    }

    fn protocol(&self) -> RemoteProtocol {
        self.envelope.protocol
    }
}

fn refused(faults: &Faults, operation: Operation) -> Option<RemoteError> {
    let refusal = match operation {
        Operation::Stream => faults.no_streaming,
        Operation::Subscribe => faults.no_subscribe.or(faults.no_streaming),
        _ => None,
    };
    refusal.map(|refusal| match refusal {
        Refusal::UnsupportedOperation => RemoteError::unsupported("this agent does not stream"),
        Refusal::MethodNotFound => RemoteError::new(ErrorKind::MethodNotFound),
    })
}
