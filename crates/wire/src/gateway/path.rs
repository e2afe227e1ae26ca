//! Paths of the gateway. What is asked for is judged before whom it is asked of, so that a wrong action is told as
//! one also where the agent does not exist.

use std::borrow::Cow;

use sabir_model::{Error, TaskId};

use super::route::Asked;
use crate::percent;

/// What a path below the base names.
pub(crate) enum Named<'a> {
    /// All agents.
    List,
    /// Something of one agent.
    Of { agent: Cow<'a, str>, thing: Thing },
}

pub(crate) enum Thing {
    Card,
    Call(Asked),
}

/// `rest` is what follows the base, with its slash; `None`: there is nothing there.
pub(crate) fn find<'a>(verb: &str, rest: &'a str) -> Option<Result<Named<'a>, Error>> {
    let reads = matches!(verb, "GET" | "HEAD");
    let segments: Vec<&str> = rest.split('/').skip(1).collect();
    let (agent, thing) = match segments.as_slice() {
        [] if reads => return Some(Ok(Named::List)),
        [agent, "agent-card"] if reads => (agent, Ok(Thing::Card)),
        [] | [_, "agent-card"] => return Some(Err(Error::VerbNotAllowed(verb.to_owned()))),
        [agent, "tasks", last] => (agent, task(verb, last)?),
        [agent, action] => (agent, action_of(verb, &percent::segment(action)?)),
        _ => return None,
    };
    let agent = match percent::segment(agent)? {
        Cow::Borrowed(agent) => Cow::Borrowed(agent.trim()),
        Cow::Owned(agent) => Cow::Owned(agent.trim().to_owned()),
    };
    Some(thing.map(|thing| Named::Of { agent, thing }))
}

fn action_of(verb: &str, action: &str) -> Result<Thing, Error> {
    match (verb, action) {
        ("POST", "message:send") => Ok(Thing::Call(Asked::Send)),
        (_, "message:send") => Err(Error::VerbNotAllowed(verb.to_owned())),
        _ => Err(Error::InvalidRequest("unsupported A2A action; expected 'message:send'".to_owned())),
    }
}

/// Ids may hold colons, so an action is what follows the last one that is not percent-encoded. `None`: the id is no
/// text.
fn task(verb: &str, last: &str) -> Option<Result<Thing, Error>> {
    let (id, is_cancel) = match last.strip_suffix(":cancel") {
        Some(id) => (id, true),
        None => (last, false),
    };
    let id = percent::segment(id)?;
    Some(asked_of(verb, &id, is_cancel))
}

fn asked_of(verb: &str, id: &str, is_cancel: bool) -> Result<Thing, Error> {
    let id = TaskId::parse(id.trim()).map_err(|why| Error::InvalidRequest(format!("the task id {why}")));
    match (verb, is_cancel) {
        ("GET" | "HEAD", false) => Ok(Thing::Call(Asked::Task(id?))),
        ("POST", true) => Ok(Thing::Call(Asked::Cancel(id?))),
        ("GET" | "HEAD", true) => Err(Error::InvalidRequest("a cancel must be sent with POST".to_owned())),
        ("POST", false) => {
            Err(Error::InvalidRequest("unsupported task action; expected '/tasks/:task_id:cancel'".to_owned()))
        }
        _ => Err(Error::VerbNotAllowed(verb.to_owned())),
    }
}
