//! Paths of the gateway. The action is checked before the agent, so a wrong action is reported as one even if the agent
//! does not exist.

use std::borrow::Cow;

use sabir_model::{Error, TaskId};

use super::route::GatewayOperation;
use crate::percent;

/// What a path below the base names.
pub(crate) enum GatewayPath<'a> {
    AgentList,
    OfAgent { agent: Cow<'a, str>, resource: AgentResource },
}

pub(crate) enum AgentResource {
    Card,
    Operation(GatewayOperation),
}

/// `rest` is what follows the base, with its slash; `None`: no such path.
pub(crate) fn match_path<'a>(verb: &str, rest: &'a str) -> Option<Result<GatewayPath<'a>, Error>> {
    let reads = matches!(verb, "GET" | "HEAD");
    let segments: Vec<&str> = rest.split('/').skip(1).collect();
    let (agent, resource) = match segments.as_slice() {
        [] if reads => return Some(Ok(GatewayPath::AgentList)),
        [agent, "agent-card"] if reads => (agent, Ok(AgentResource::Card)),
        [] | [_, "agent-card"] => return Some(Err(Error::VerbNotAllowed(verb.to_owned()))),
        [agent, "tasks", last] => (agent, task(verb, last)?),
        [agent, action] => (agent, message_operation(verb, &percent::segment(action)?)),
        _ => return None,
    };
    let agent = match percent::segment(agent)? {
        Cow::Borrowed(agent) => Cow::Borrowed(agent.trim()),
        Cow::Owned(agent) => Cow::Owned(agent.trim().to_owned()),
    };
    Some(resource.map(|resource| GatewayPath::OfAgent { agent, resource }))
}

fn message_operation(verb: &str, action: &str) -> Result<AgentResource, Error> {
    match (verb, action) {
        ("POST", "message:send") => Ok(AgentResource::Operation(GatewayOperation::Send)),
        (_, "message:send") => Err(Error::VerbNotAllowed(verb.to_owned())),
        _ => Err(Error::InvalidRequest("unsupported A2A action; expected 'message:send'".to_owned())),
    }
}

/// Ids may hold colons, so an action is what follows the last one that is not percent-encoded. `None`: the id is no
/// text.
fn task(verb: &str, last: &str) -> Option<Result<AgentResource, Error>> {
    let (id, is_cancel) = match last.strip_suffix(":cancel") {
        Some(id) => (id, true),
        None => (last, false),
    };
    let id = percent::segment(id)?;
    Some(task_operation(verb, &id, is_cancel))
}

fn task_operation(verb: &str, id: &str, is_cancel: bool) -> Result<AgentResource, Error> {
    let id = TaskId::parse(id.trim()).map_err(|why| Error::InvalidRequest(format!("the task id {why}")));
    match (verb, is_cancel) {
        ("GET" | "HEAD", false) => Ok(AgentResource::Operation(GatewayOperation::Get(id?))),
        ("POST", true) => Ok(AgentResource::Operation(GatewayOperation::Cancel(id?))),
        ("GET" | "HEAD", true) => Err(Error::InvalidRequest("a cancel must be sent with POST".to_owned())),
        ("POST", false) => {
            Err(Error::InvalidRequest("unsupported task action; expected '/tasks/:task_id:cancel'".to_owned()))
        }
        _ => Err(Error::VerbNotAllowed(verb.to_owned())),
    }
}
