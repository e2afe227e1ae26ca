//! Writing a request: verb, path, headers and body.

use std::borrow::Cow;

use sabir_model::{Call, Error, PushCall, Wanted};

use super::call::PeerCall;
use super::grpc;
use super::protocol::{Binding, PeerProtocol};
use crate::jsonrpc::method_name;
use crate::percent::encode;
use crate::v1::state_name;
use crate::{Operation, ProtocolVersion, v01, v1, v03};

/// A request as it is sent to a server, apart from credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerRequest {
    pub operation: Operation,
    pub verb: &'static str,
    /// What follows the URL of the interface: empty for JSON-RPC; percent-encoded, with the query.
    pub path: String,
    pub headers: Vec<(&'static str, String)>,
    /// Empty: none.
    pub body: Vec<u8>,
}

impl PeerProtocol {
    /// `id` is the id of a JSON-RPC request. An error says what this version has no words for.
    pub fn request(self, peer: &PeerCall<'_>, id: u64) -> Result<PeerRequest, Error> {
        let operation = peer.operation();
        let mut request = match self.binding() {
            Binding::JsonRpc => self.json_rpc(peer, operation, id)?,
            Binding::HttpJson => self.http_json(peer, operation)?,
            Binding::Grpc => self.grpc_request(peer, operation)?,
        };
        request.headers = self.headers(peer, operation);
        Ok(request)
    }

    fn json_rpc(self, peer: &PeerCall<'_>, operation: Operation, id: u64) -> Result<PeerRequest, Error> {
        let method = method_name(self.version(), operation)
            .ok_or_else(|| Error::Unsupported(format!("{} has no call for this", self.version().number())))?;
        let mut body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":"#).into_bytes();
        self.write_params(peer, &mut body)?;
        body.push(b'}');
        Ok(PeerRequest { operation, verb: "POST", path: String::new(), headers: Vec::new(), body })
    }

    fn write_params(self, peer: &PeerCall<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
        match self.version() {
            ProtocolVersion::V1_0 => v1::write_call(peer, out),
            ProtocolVersion::V0_3 | ProtocolVersion::V0_2 => v03::write_call(peer, out)?,
            ProtocolVersion::V0_1 => v01::write_call(peer, out)?,
        }
        Ok(())
    }

    fn http_json(self, peer: &PeerCall<'_>, operation: Operation) -> Result<PeerRequest, Error> {
        let is_v1 = self.version() == ProtocolVersion::V1_0;
        let base = match (is_v1, peer.call.agent()) {
            (true, Some(tenant)) => format!("/{}", encode(tenant.as_str())),
            (true, None) => String::new(),
            (false, _) => "/v1".to_owned(),
        };
        let (verb, path) = match peer.call {
            Call::Send(_) if operation == Operation::Stream => ("POST", "/message:stream".to_owned()),
            Call::Send(_) => ("POST", "/message:send".to_owned()),
            Call::Get(get) => {
                let query = get.history.map(|length| format!("?historyLength={length}"));
                ("GET", format!("/tasks/{}{}", encode(get.task.as_str()), query.unwrap_or_default()))
            }
            Call::List(list) if is_v1 => ("GET", format!("/tasks{}", list_query(list, peer.page_token))),
            Call::List(_) => return Err(Error::MethodNotFound("tasks/list".to_owned())),
            Call::Cancel(cancel) => ("POST", format!("/tasks/{}:cancel", encode(cancel.task.as_str()))),
            // The text of both specifications says POST, their protobuf GET. The SDKs of 1.0 send POST, those of 0.3 GET.
            Call::Subscribe(subscribe) => {
                let verb = if is_v1 { "POST" } else { "GET" };
                (verb, format!("/tasks/{}:subscribe", encode(subscribe.task.as_str())))
            }
            Call::Push(push) => push_path(push),
            Call::ExtendedCard { .. } if is_v1 => ("GET", "/extendedAgentCard".to_owned()),
            Call::ExtendedCard { .. } => ("GET", "/card".to_owned()),
        };
        let mut body = Vec::new();
        let has_body = matches!(peer.call, Call::Send(_) | Call::Cancel(_) | Call::Push(PushCall::Set { .. }));
        match is_v1 {
            true if has_body => v1::write_call(peer, &mut body),
            true => {}
            false => v03::write_proto_call(peer, &mut body)?,
        }
        Ok(PeerRequest { operation, verb, path: format!("{base}{path}"), headers: Vec::new(), body })
    }

    fn headers(self, peer: &PeerCall<'_>, operation: Operation) -> Vec<(&'static str, String)> {
        let accepts = match (operation.is_streaming(), self.binding()) {
            (_, Binding::Grpc) => None,
            (true, _) => Some("text/event-stream"),
            (false, Binding::JsonRpc) => Some("application/json"),
            // 1.0 has a media type of its own.
            (false, Binding::HttpJson) => Some("application/a2a+json, application/json"),
        };
        let content_type = if self.binding() == Binding::Grpc { grpc::CONTENT_TYPE } else { "application/json" };
        let mut headers =
            vec![("content-type", content_type.to_owned()), ("a2a-version", header_version(self.version()).to_owned())];
        headers.extend(accepts.map(|accepts| ("accept", accepts.to_owned())));
        if let Call::Send(send) = peer.call {
            if !send.extensions.is_empty() {
                let list = send.extensions.join(", ");
                // Each version has its own name for the header, and some servers know only the other one.
                headers.extend([("a2a-extensions", list.clone()), ("x-a2a-extensions", list)]);
            }
            headers.extend(send.idempotency.as_ref().map(|key| ("idempotency-key", key.to_string())));
            if let Some(trace) = &send.trace {
                headers.push(("traceparent", trace.traceparent().to_owned()));
                headers.extend(trace.tracestate().map(|state| ("tracestate", state.to_owned())));
            }
        }
        if operation.is_streaming() {
            headers.extend(peer.last_event_id.map(|id| ("last-event-id", id.to_owned())));
        }
        headers
    }
}

/// Servers that look at the header know 0.3, which is 0.2 on the wire.
fn header_version(version: ProtocolVersion) -> &'static str {
    match version {
        ProtocolVersion::V0_2 => ProtocolVersion::V0_3.number(),
        version => version.number(),
    }
}

impl PeerRequest {
    /// The same call with the other verb, for servers that follow the other half of the specification.
    pub fn with_other_verb(&self) -> Option<Self> {
        // Only in HTTP+JSON, whose paths have the task in them.
        if self.operation != Operation::Subscribe || !self.path.ends_with(":subscribe") {
            return None;
        }
        let verb = if self.verb == "POST" { "GET" } else { "POST" };
        Some(PeerRequest { verb, ..self.clone() })
    }

    /// The URL to ask, below the URL of an interface.
    pub fn url(&self, interface: &str) -> String {
        if self.path.is_empty() {
            return interface.to_owned();
        }
        let (base, query) = match interface.split_once('?') {
            Some((base, query)) => (base, Some(query)),
            None => (interface, None),
        };
        let base = base.trim_end_matches('/');
        // Cards of 0.3 should not have the version in the URL, but some do.
        let base = if self.path.starts_with("/v1/") { base.strip_suffix("/v1").unwrap_or(base) } else { base };
        let Some(query) = query else { return format!("{base}{}", self.path) };
        let joint = if self.path.contains('?') { '&' } else { '?' };
        format!("{base}{}{joint}{query}", self.path)
    }
}

fn list_query(list: &sabir_model::List, page_token: Option<&str>) -> String {
    let mut query = format!("?pageSize={}", list.page_size);
    let mut add = |name: &str, value: Cow<'_, str>| query.push_str(&format!("&{name}={value}"));
    if let Some(context) = &list.context {
        add("contextId", encode(context.as_str()));
    }
    if let Some(state) = list.state {
        add("status", Cow::Borrowed(state_name(state)));
    }
    if let Some(token) = page_token {
        add("pageToken", encode(token));
    }
    if let Some(length) = list.history {
        add("historyLength", length.to_string().into());
    }
    if let Some(since) = list.since {
        add("statusTimestampAfter", encode(&since.to_string()).into_owned().into());
    }
    if list.artifacts == Wanted::Yes {
        add("includeArtifacts", Cow::Borrowed("true"));
    }
    query
}

fn push_path(push: &PushCall) -> (&'static str, String) {
    let configs = |task: &str| format!("/tasks/{}/pushNotificationConfigs", encode(task));
    let config = |task: &sabir_model::TaskId, config: &Option<sabir_model::PushConfigId>| match config {
        Some(config) => format!("{}/{}", configs(task.as_str()), encode(config.as_str())),
        // Where nobody chose an id, it is the task's.
        None => format!("{}/{}", configs(task.as_str()), encode(task.as_str())),
    };
    match push {
        PushCall::Set { config, .. } => {
            ("POST", configs(config.task.as_ref().map(sabir_model::TaskId::as_str).unwrap_or_default()))
        }
        PushCall::Get { task, config: id, .. } => ("GET", config(task, id)),
        PushCall::Delete { task, config: id, .. } => ("DELETE", config(task, id)),
        PushCall::List { task, page_size, page_token, .. } => {
            let mut query = Vec::new();
            query.extend(page_size.map(|size| format!("pageSize={size}")));
            query.extend(page_token.as_ref().map(|token| format!("pageToken={}", encode(token))));
            let query = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
            ("GET", format!("{}{query}", configs(task.as_str())))
        }
    }
}
