//! HTTP+JSON: the operation is verb and path, the parameters are path, query and body.
//!
//! All of them become the one JSON object that the dialect reads, so a field means the same wherever it is written. A
//! body that is already that object is passed on unchanged.

mod endpoints;
mod params;
mod path;
mod query;

use std::borrow::Cow;

use sabir_model::{AgentId, Call, Error, OnFinishedCancel};
use serde_json::value::RawValue;

pub(crate) use endpoints::EndpointGroup;
pub(crate) use path::{MatchedPath, match_path};

use crate::call_context::{self, AgentSource, CallContext};
use crate::responder::TaskDialect;
use crate::version::{Requested, VersionHeader};
use crate::{
    CancelTerminal, Compat, Decoded, KnownAgents, Operation, ProtocolVersion, RequestHead, Responder, Strictness, json,
    v01::V01,
};

/// The path of a request, matched to an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpJsonRoute<'a> {
    /// Of the path, as `/agents/{id}` or as a tenant.
    pub agent: Option<AgentId>,
    pub operation: Operation,
    pub(crate) group: EndpointGroup,
    pub(crate) task: Option<Cow<'a, str>>,
    pub(crate) config: Option<Cow<'a, str>>,
}

impl HttpJsonRoute<'_> {
    pub(crate) fn responder(&self) -> Responder<'static> {
        Responder::http_json(self.group, Some(self.operation))
    }

    /// Reads one request; `body` is empty where there is none.
    pub fn decode(
        &self,
        head: &RequestHead<'_>,
        body: &[u8],
        compat: Compat,
        agents: &dyn KnownAgents,
    ) -> Decoded<'static> {
        let responder = match VersionHeader::of(head).requested {
            _ if (self.group, self.operation) != (EndpointGroup::TaskAlias, Operation::Get) => self.responder(),
            Requested::Nothing => Responder { task_dialect: TaskDialect::OfBirth, ..self.responder() },
            Requested::Version(ProtocolVersion::V0_1) => Responder { dialect: &V01, ..self.responder() },
            Requested::Version(_) | Requested::Unsupported => self.responder(),
        };
        Decoded { call: self.read(head, body, compat, agents), responder }
    }

    fn read(
        &self,
        head: &RequestHead<'_>,
        body: &[u8],
        compat: Compat,
        agents: &dyn KnownAgents,
    ) -> Result<Call, Error> {
        let strictness = match self.group {
            _ if compat.strict => Strictness::Strict,
            EndpointGroup::V1 => Strictness::Complete,
            EndpointGroup::Unversioned | EndpointGroup::V0_3 | EndpointGroup::V0_2Card | EndpointGroup::TaskAlias => {
                Strictness::Lenient
            }
        };
        let mut call = match self.operation {
            Operation::Send | Operation::Stream => {
                let text = json::check_text(body)?;
                let call = self.group.dialect().decode(self.operation, text, strictness);
                call.map_err(|error| check_object(text).err().unwrap_or(error))?
            }
            Operation::Cancel | Operation::PushSet => {
                let text = json::check_text(body)?;
                let params = params::with_body(self, text)?;
                self.group.dialect().decode(self.operation, &params, strictness)?
            }
            Operation::Get
            | Operation::List
            | Operation::Subscribe
            | Operation::PushGet
            | Operation::PushList
            | Operation::PushDelete
            | Operation::ExtendedCard => self.read_query(head.query, strictness)?,
        };
        let tenant = self.tenant(head.query, agents)?;
        let context = CallContext {
            agent: match (&self.agent, &tenant) {
                (Some(agent), _) => AgentSource::Path(agent),
                (None, Some(tenant)) => AgentSource::Query(tenant),
                (None, None) => AgentSource::Body,
            },
            on_finished_cancel: match compat.cancel_terminal {
                CancelTerminal::Auto | CancelTerminal::Error => OnFinishedCancel::Refuse,
                CancelTerminal::Noop => OnFinishedCancel::Leave,
            },
            on_finished_send: compat.terminal_message,
        };
        call_context::apply(&mut call, head, &context, agents)?;
        Ok(call)
    }

    /// The agent that the query names. It must exist, even if path or body name another one.
    fn tenant(&self, query: Option<&str>, agents: &dyn KnownAgents) -> Result<Option<AgentId>, Error> {
        let Some(named) = query::tenant(query, self.group)? else { return Ok(None) };
        match AgentId::parse(named.as_str()) {
            Ok(agent) if agents.knows(&named) => Ok(Some(agent)),
            _ => Err(Error::AgentNotFound { named, known: agents.ids() }),
        }
    }

    /// A dialect may stop at the first field it refuses. It is asked again without that field, to report the next.
    fn read_query(&self, query: Option<&str>, strictness: Strictness) -> Result<Call, Error> {
        let (mut fields, mut violations) = query::fields(query, self.group, self.operation);
        loop {
            let params = params::with_query(self, &fields);
            match self.group.dialect().decode(self.operation, &params, strictness) {
                Ok(call) if violations.is_empty() => return Ok(call),
                Ok(_) => return Err(Error::Invalid(query::in_order(violations))),
                Err(Error::Invalid(more)) => {
                    let before = fields.len();
                    fields.retain(|field| !more.iter().any(|violation| violation.field == field.name));
                    violations.extend(more);
                    if fields.len() == before {
                        return Err(Error::Invalid(query::in_order(violations)));
                    }
                }
                Err(other) => return Err(other),
            }
        }
    }
}

/// Checks that the body is a JSON object at all; a dialect reports only which member it misses.
fn check_object(text: &str) -> Result<(), Error> {
    match json::parse::<&RawValue>(text) {
        Err(error) => Err(Error::NotJson(error.to_string())),
        Ok(value) if value.get().starts_with('{') => Ok(()),
        Ok(_) => Err(Error::InvalidRequest("the body must be a JSON object".to_owned())),
    }
}

#[cfg(test)]
mod tests;
