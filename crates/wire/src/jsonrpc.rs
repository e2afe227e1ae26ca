//! JSON-RPC: one URL, the method in the body.
//!
//! The envelope is read without copying, the method gives dialect and operation, and the dialect reads the params. What
//! is not in the params comes from the mount and the headers (`call_context`).

mod envelope;
mod method;

use std::borrow::Cow;

use sabir_model::{AgentId, Error, OnFinishedCancel};
use serde::Deserialize;
use serde::de::IgnoredAny;

use envelope::{InvalidRequest, Request};

use crate::call_context::{self, AgentSource, CallContext};
use crate::responder::{FrameFormat, JsonRpcEnvelope, TaskDialect};
use crate::version::{self, MethodVersions, Requested, VersionHeader};
use crate::{
    CancelTerminal, Compat, Decoded, Dialect, KnownAgents, Operation, ProtocolVersion, RequestHead, Responder,
    Strictness, json, v01::V01,
};
use method::Method;

pub(crate) use method::method_name;

/// A URL that takes JSON-RPC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Below `/agents/{id}`.
    pub agent: Option<AgentId>,
    pub path: MountPath,
}

/// Clients of some paths expect answers of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MountPath {
    /// `/`
    Root,
    /// `/a2a`
    A2a,
    /// `/a2a/jsonrpc`
    JsonRpc,
    /// `/v1/a2a`
    V1A2a,
    /// `/a2a/v1`, `/a2a/v0.3`, `/a2a/v0.1`: one version, read strictly.
    Versioned(ProtocolVersion),
}

impl MountPath {
    fn fixed_version(self) -> Option<ProtocolVersion> {
        match self {
            MountPath::Root | MountPath::A2a | MountPath::JsonRpc | MountPath::V1A2a => None,
            MountPath::Versioned(version) => Some(version),
        }
    }
}

impl Mount {
    /// For a request whose method is not known.
    fn responder_without_method<'a>(&self, head: &RequestHead<'_>, id: &'a str) -> Responder<'a> {
        let version = match (self.path.fixed_version(), VersionHeader::of(head).requested) {
            (Some(version), _) | (None, Requested::Version(version)) => version,
            (None, Requested::Nothing | Requested::Unsupported) => ProtocolVersion::V0_3,
        };
        let frames = FrameFormat::of_query(head.query);
        let envelope = JsonRpcEnvelope { id: Cow::Borrowed(id), version, frames };
        Responder::json_rpc(envelope, None, TaskDialect::OfRequest)
    }

    /// For what goes wrong before there is a body.
    pub(crate) fn responder(&self, head: &RequestHead<'_>) -> Responder<'static> {
        self.responder_without_method(head, "null")
    }

    /// Reads one request. Whatever it is, there is a responder for it.
    pub fn decode<'a>(
        &self,
        head: &RequestHead<'_>,
        body: &'a [u8],
        compat: Compat,
        agents: &dyn KnownAgents,
    ) -> Decoded<'a> {
        let request =
            json::check_text(body).map_err(|error| InvalidRequest { id: "null", error }).and_then(Request::parse);
        let request = match request {
            Ok(request) => request,
            Err(InvalidRequest { id, error }) => {
                return Decoded { call: Err(error), responder: self.responder_without_method(head, id) };
            }
        };
        let id = request.id.unwrap_or("null");
        let fixed = self.path.fixed_version();
        let method =
            if fixed.is_some() { Method::find(&request.method) } else { Method::find_with_aliases(&request.method) };
        let Some(method) = method else {
            let responder = self.responder_without_method(head, id);
            return Decoded { call: Err(request.method_not_found()), responder };
        };
        let respond_in = |version, task_dialect| {
            let frames = FrameFormat::of_query(head.query);
            let envelope = JsonRpcEnvelope { id: Cow::Borrowed(id), version, frames };
            Responder::json_rpc(envelope, Some(method.operation), task_dialect)
        };
        let header = VersionHeader::of(head);
        let version = match version::negotiate(fixed, method.versions, &header) {
            Ok(version) if method.versions.contains(version) => version,
            refused => {
                let error = refused.err().unwrap_or_else(|| request.method_not_found());
                let version = fixed.unwrap_or(method.versions.newest());
                return Decoded { call: Err(error), responder: respond_in(version, TaskDialect::OfRequest) };
            }
        };
        let is_ambiguous = fixed.is_none() && header.is_missing() && method.versions == MethodVersions::ALL_0_X;
        let task_dialect = if is_ambiguous { TaskDialect::OfBirth } else { TaskDialect::OfRequest };
        let strictness = match header.requested {
            _ if fixed.is_some() || compat.strict => Strictness::Strict,
            Requested::Version(ProtocolVersion::V1_0) => Strictness::Complete,
            _ => Strictness::Lenient,
        };
        let call = request.params().and_then(|params| {
            let mut call = version.json_rpc_dialect().decode(method.operation, params, strictness)?;
            let context = CallContext {
                agent: self.agent.as_ref().map_or(AgentSource::Body, AgentSource::Mount),
                on_finished_cancel: self.finished_cancel(method.operation, version, &header, params, compat),
                on_finished_send: compat.terminal_message,
            };
            call_context::apply(&mut call, head, &context, agents)?;
            // Last of all: a caller that forgot the id is helped more by what is wrong with the rest.
            if request.id.is_none() {
                return Err(Error::InvalidRequest("id is missing; notifications are not supported".to_owned()));
            }
            Ok(call)
        });
        Decoded { call, responder: respond_in(version, task_dialect) }
    }

    /// What the documentation of each mount promised its clients; those of 0.1 were promised an error. None of those clients
    /// names its version: who does is answered as that version says.
    fn finished_cancel(
        &self,
        operation: Operation,
        version: ProtocolVersion,
        header: &VersionHeader<'_>,
        params: &str,
        compat: Compat,
    ) -> OnFinishedCancel {
        let returns_task = match (version, self.path) {
            (ProtocolVersion::V0_3 | ProtocolVersion::V0_2, MountPath::A2a) => header.is_missing(),
            (ProtocolVersion::V0_3 | ProtocolVersion::V0_2, MountPath::JsonRpc) => {
                operation == Operation::Cancel && names_task_id_only(params)
            }
            _ => false,
        };
        match compat.cancel_terminal {
            CancelTerminal::Error => OnFinishedCancel::Refuse,
            CancelTerminal::Noop => OnFinishedCancel::Leave,
            CancelTerminal::Auto if returns_task => OnFinishedCancel::LeaveUnlessBorn(V01.birth()),
            CancelTerminal::Auto => OnFinishedCancel::Refuse,
        }
    }
}

fn names_task_id_only(params: &str) -> bool {
    #[derive(Deserialize)]
    struct Ids {
        id: Option<IgnoredAny>,
        #[serde(rename = "taskId")]
        task_id: Option<IgnoredAny>,
    }
    json::parse::<Ids>(params).is_ok_and(|ids| ids.task_id.is_some() && ids.id.is_none())
}

#[cfg(test)]
mod tests;
