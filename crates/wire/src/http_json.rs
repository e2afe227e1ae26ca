//! HTTP+JSON: the operation is verb and path, the parameters are path, query and body.
//!
//! Everything becomes the one JSON object that the dialect reads anyway, so a field means the same wherever it
//! was written. A body that is already that object is handed on as it came.

mod endpoints;
mod params;
mod path;
mod query;

use std::borrow::Cow;

use sabir_model::{AgentId, Call, Error, OnFinishedCancel};
use serde_json::value::RawValue;

pub(crate) use endpoints::EndpointGroup;
pub(crate) use path::{Found, find};

use crate::beside::{self, Agent, Behaviour};
use crate::responder::TaskDialect;
use crate::version::{Requested, VersionHeader};
use crate::{
    CancelTerminal, Compat, Decoded, Head, KnownAgents, Operation, ProtocolVersion, Reading, Responder, json, v01::V01,
};

/// An operation over HTTP+JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route<'a> {
    /// Of the path, as `/agents/{id}` or as a tenant.
    pub agent: Option<AgentId>,
    pub operation: Operation,
    pub(crate) group: EndpointGroup,
    pub(crate) task: Option<Cow<'a, str>>,
    pub(crate) config: Option<Cow<'a, str>>,
}

impl Route<'_> {
    pub(crate) fn responder(&self) -> Responder<'static> {
        Responder::http_json(self.group, Some(self.operation))
    }

    /// Reads one request; `body` is empty where there is none.
    pub fn decode(&self, head: &Head<'_>, body: &[u8], compat: Compat, agents: &dyn KnownAgents) -> Decoded<'static> {
        let responder = match VersionHeader::of(head).requested {
            _ if (self.group, self.operation) != (EndpointGroup::TaskAlias, Operation::Get) => self.responder(),
            Requested::Nothing => Responder { task_dialect: TaskDialect::OfBirth, ..self.responder() },
            Requested::Version(ProtocolVersion::V0_1) => Responder { dialect: &V01, ..self.responder() },
            Requested::Version(_) | Requested::Unsupported => self.responder(),
        };
        Decoded { call: self.read(head, body, compat, agents), responder }
    }

    fn read(&self, head: &Head<'_>, body: &[u8], compat: Compat, agents: &dyn KnownAgents) -> Result<Call, Error> {
        let reading = match self.group {
            _ if compat.strict => Reading::Strict,
            EndpointGroup::V1 => Reading::Complete,
            EndpointGroup::Unversioned | EndpointGroup::V0_3 | EndpointGroup::V0_2Card | EndpointGroup::TaskAlias => {
                Reading::Lenient
            }
        };
        let mut call = match self.operation {
            Operation::Send | Operation::Stream => {
                let text = json::check_text(body)?;
                let call = self.group.dialect().decode(self.operation, text, reading);
                call.map_err(|error| object(text).err().unwrap_or(error))?
            }
            Operation::Cancel | Operation::PushSet => {
                let text = json::check_text(body)?;
                let params = params::with_body(self, text)?;
                self.group.dialect().decode(self.operation, &params, reading)?
            }
            Operation::Get
            | Operation::List
            | Operation::Subscribe
            | Operation::PushGet
            | Operation::PushList
            | Operation::PushDelete
            | Operation::ExtendedCard => self.ask(head.query, reading)?,
        };
        let tenant = self.tenant(head.query, agents)?;
        let behaviour = Behaviour {
            agent: match (&self.agent, &tenant) {
                (Some(agent), _) => Agent::InPath(agent),
                (None, Some(tenant)) => Agent::InQuery(tenant),
                (None, None) => Agent::Named,
            },
            finished_cancel: match compat.cancel_terminal {
                CancelTerminal::Auto | CancelTerminal::Error => OnFinishedCancel::Refuse,
                CancelTerminal::Noop => OnFinishedCancel::Leave,
            },
            finished_send: compat.terminal_message,
        };
        beside::complete(&mut call, head, &behaviour, agents)?;
        Ok(call)
    }

    /// The agent that the query names: it must exist, whatever else says whom the request is for.
    fn tenant(&self, query: Option<&str>, agents: &dyn KnownAgents) -> Result<Option<AgentId>, Error> {
        let Some(named) = query::tenant(query, self.group)? else { return Ok(None) };
        match AgentId::parse(named.as_str()) {
            Ok(agent) if agents.knows(&named) => Ok(Some(agent)),
            _ => Err(Error::AgentNotFound { named, known: agents.ids() }),
        }
    }

    /// A dialect may stop at the first field it refuses; asked again without that one, it tells the next.
    fn ask(&self, query: Option<&str>, reading: Reading) -> Result<Call, Error> {
        let (mut fields, mut violations) = query::fields(query, self.group, self.operation);
        loop {
            let params = params::with_query(self, &fields);
            match self.group.dialect().decode(self.operation, &params, reading) {
                Ok(call) if violations.is_empty() => return Ok(call),
                Ok(_) => return Err(Error::Invalid(query::in_order(violations))),
                Err(Error::Invalid(more)) => {
                    let asked = fields.len();
                    fields.retain(|field| !more.iter().any(|violation| violation.field == field.name));
                    violations.extend(more);
                    if fields.len() == asked {
                        return Err(Error::Invalid(query::in_order(violations)));
                    }
                }
                Err(other) => return Err(other),
            }
        }
    }
}

/// A dialect that cannot read a body says what it misses; whether there was JSON at all is said here.
fn object(text: &str) -> Result<(), Error> {
    match json::parse::<&RawValue>(text) {
        Err(error) => Err(Error::NotJson(error.to_string())),
        Ok(value) if value.get().starts_with('{') => Ok(()),
        Ok(_) => Err(Error::InvalidRequest("the body must be a JSON object".to_owned())),
    }
}

#[cfg(test)]
mod tests;
