//! JSON-RPC: one URL, the method in the body.
//!
//! The envelope is read without copying, the method's name leads to dialect and operation, and the dialect
//! reads the params. What the params cannot say comes from the mount and the headers.

mod envelope;
mod method;

use sabir_model::{AgentId, Call, Error, OnFinishedCancel};
use serde::Deserialize;
use serde::de::IgnoredAny;

pub use envelope::{Refusal, Request};

use crate::beside::{self, Agent, Behaviour};
use crate::version::{self, MethodVersions, Requested, VersionHeader};
use crate::voice::Frames;
use crate::{
    CancelTerminal, Compat, Decoded, Dialect, Head, KnownAgents, Operation, ProtocolVersion, Reading, Voice, json,
    v01::V01,
};
use method::Method;

/// A URL that takes JSON-RPC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Below `/agents/{id}`.
    pub agent: Option<AgentId>,
    pub place: Place,
}

/// Which of the paths it is, since clients of some expect their own answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// `/`
    Root,
    /// `/a2a`
    A2a,
    /// `/a2a/jsonrpc`
    JsonRpc,
    /// `/v1/a2a`
    V1A2a,
    /// `/a2a/v1`, `/a2a/v0.3`, `/a2a/v0.1`: one dialect, and exactly as it is spelled.
    Forced(ProtocolVersion),
}

impl Place {
    fn forced(self) -> Option<ProtocolVersion> {
        match self {
            Place::Root | Place::A2a | Place::JsonRpc | Place::V1A2a => None,
            Place::Forced(version) => Some(version),
        }
    }
}

impl Mount {
    /// For what goes wrong before there is a body.
    pub(crate) fn voice<'a>(&self, head: &Head<'_>) -> Voice<'a> {
        let version = match (self.place.forced(), VersionHeader::of(head).requested) {
            (Some(version), _) | (None, Requested::Version(version)) => version,
            (None, Requested::Nothing | Requested::Unsupported) => ProtocolVersion::V0_3,
        };
        Voice::json_rpc(version, Frames::wanted(head.query))
    }

    /// Reads one request. Whatever it is, there is a voice to answer it with.
    pub fn decode<'a>(&self, head: &Head<'_>, body: &'a [u8], compat: Compat, agents: &dyn KnownAgents) -> Decoded<'a> {
        let mut voice = self.voice(head);
        let call = self.read(head, body, compat, agents, &mut voice);
        Decoded { call, voice }
    }

    fn read<'a>(
        &self,
        head: &Head<'_>,
        body: &'a [u8],
        compat: Compat,
        agents: &dyn KnownAgents,
        voice: &mut Voice<'a>,
    ) -> Result<Call, Error> {
        let request = match Request::parse(json::check_text(body)?) {
            Ok(request) => request,
            Err(refusal) => {
                voice.answering(refusal.id);
                return Err(refusal.error);
            }
        };
        voice.answering(request.id.unwrap_or("null"));
        let not_found = || Error::MethodNotFound(request.method.clone().into_owned());
        let forced = self.place.forced();
        let method = if forced.is_some() { Method::named(&request.method) } else { Method::called(&request.method) };
        let Method { versions, operation } = method.ok_or_else(not_found)?;
        voice.about(forced.unwrap_or(versions.newest()), operation);

        let header = VersionHeader::of(head);
        let version = version::negotiate(forced, versions, &header)?;
        if !versions.contains(version) {
            return Err(not_found());
        }
        voice.speaking(version);
        if versions == MethodVersions::ALL_0_X && forced.is_none() {
            voice.sharing(header.requested);
        }

        let reading = match header.requested {
            _ if forced.is_some() || compat.strict => Reading::Strict,
            Requested::Version(ProtocolVersion::V1_0) => Reading::Complete,
            _ => Reading::Lenient,
        };
        let params = request.params()?;
        let mut call = version.json_rpc_dialect().decode(operation, params, reading)?;
        let behaviour = Behaviour {
            agent: self.agent.as_ref().map_or(Agent::Named, Agent::Mounted),
            finished_cancel: self.finished_cancel(operation, version, params, compat),
            finished_send: compat.terminal_message,
        };
        beside::complete(&mut call, head, &behaviour, agents)?;
        // Last of all: whoever forgot the id is helped more by what is wrong with the rest.
        if request.id.is_none() {
            return Err(Error::InvalidRequest("id is missing; notifications are not supported".to_owned()));
        }
        Ok(call)
    }

    /// What each client was promised by the page it grew up with; those of 0.1 were promised an error.
    fn finished_cancel(
        &self,
        operation: Operation,
        version: ProtocolVersion,
        params: &str,
        compat: Compat,
    ) -> OnFinishedCancel {
        let promises_task = match (version, self.place) {
            (ProtocolVersion::V0_3 | ProtocolVersion::V0_2, Place::A2a) => true,
            (ProtocolVersion::V0_3 | ProtocolVersion::V0_2, Place::JsonRpc) => {
                operation == Operation::Cancel && is_spelled_task_id(params)
            }
            _ => false,
        };
        match compat.cancel_terminal {
            CancelTerminal::Error => OnFinishedCancel::Refuse,
            CancelTerminal::Noop => OnFinishedCancel::Leave,
            CancelTerminal::Auto if promises_task => OnFinishedCancel::LeaveUnlessBorn(V01.birth()),
            CancelTerminal::Auto => OnFinishedCancel::Refuse,
        }
    }
}

fn is_spelled_task_id(params: &str) -> bool {
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
