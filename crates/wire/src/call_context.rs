//! What a call gets from outside its JSON: the agent of the path, the headers, and how its mount behaves.

use sabir_model::{
    AgentId, Call, Error, IdempotencyKey, LastEventId, OnFinished, OnFinishedCancel, PushCall, PushEvents, Seq,
    TraceContext,
};

use crate::{KnownAgents, RequestHead, TerminalMessage};

pub(crate) struct CallContext<'a> {
    pub agent: AgentSource<'a>,
    pub on_finished_cancel: OnFinishedCancel,
    pub on_finished_send: TerminalMessage,
}

/// Where the agent of a call is named.
#[derive(Debug, Clone, Copy)]
pub(crate) enum AgentSource<'a> {
    /// The body: its tenant, or no agent.
    Body,
    /// The mount; a body that names another agent is refused.
    Mount(&'a AgentId),
    /// The path, whatever the body says.
    Path(&'a AgentId),
    /// The query; a body that names another agent is refused.
    Query(&'a AgentId),
}

pub(crate) fn apply(
    call: &mut Call,
    head: &RequestHead<'_>,
    context: &CallContext<'_>,
    agents: &dyn KnownAgents,
) -> Result<(), Error> {
    resolve_agent(agent_of(call), context.agent, agents)?;
    match call {
        Call::Send(send) => {
            if send.delivery == sabir_model::Delivery::Stream {
                // Whether the value matters is known only when the send joins a task or starts one.
                let last = last_event_id(head);
                send.last_event_id = last.map_or(Some(LastEventId::Unusable), |seq| seq.map(LastEventId::Event));
            }
            send.idempotency = idempotency_key(head)?;
            let uris = head.extensions.into_iter().flat_map(|list| list.split(',')).map(str::trim);
            send.extensions = uris.filter(|uri| !uri.is_empty()).map(str::to_owned).collect();
            send.trace = head.trace_parent.and_then(|parent| TraceContext::parse(parent, head.trace_state));
            if context.on_finished_send == TerminalMessage::NewTask {
                send.on_finished = OnFinished::StartTask;
            }
        }
        Call::Subscribe(subscribe) => subscribe.after = last_event_id(head)?,
        Call::Cancel(cancel) => cancel.on_finished = context.on_finished_cancel,
        Call::Push(PushCall::Set { events, .. }) => *events = push_events(head)?,
        Call::Get(_) | Call::List(_) | Call::Push(_) | Call::ExtendedCard { .. } => {}
    }
    Ok(())
}

fn agent_of(call: &mut Call) -> &mut Option<AgentId> {
    match call {
        Call::Send(send) => &mut send.agent,
        Call::Get(get) => &mut get.agent,
        Call::List(list) => &mut list.agent,
        Call::Cancel(cancel) => &mut cancel.agent,
        Call::Subscribe(subscribe) => &mut subscribe.agent,
        Call::Push(PushCall::Set { agent, .. })
        | Call::Push(PushCall::Get { agent, .. })
        | Call::Push(PushCall::List { agent, .. })
        | Call::Push(PushCall::Delete { agent, .. }) => agent,
        Call::ExtendedCard { agent } => agent,
    }
}

fn resolve_agent(named: &mut Option<AgentId>, source: AgentSource<'_>, agents: &dyn KnownAgents) -> Result<(), Error> {
    match (source, &*named) {
        (AgentSource::Body, Some(tenant)) if !agents.knows(tenant.as_str()) => {
            return Err(Error::AgentNotFound { named: tenant.to_string(), known: agents.ids() });
        }
        (AgentSource::Mount(mounted), Some(tenant)) if tenant != mounted => {
            return Err(Error::invalid("tenant", format!("does not match the path, which names {mounted}")));
        }
        (AgentSource::Query(asked), Some(tenant)) if tenant != asked => {
            return Err(Error::invalid("tenant", format!("does not match the query, which names {asked}")));
        }
        (AgentSource::Body, _) => {}
        (AgentSource::Mount(agent) | AgentSource::Path(agent) | AgentSource::Query(agent), _) => {
            *named = Some(agent.clone())
        }
    }
    Ok(())
}

fn last_event_id(head: &RequestHead<'_>) -> Result<Option<Seq>, Error> {
    let Some(text) = head.last_event_id.map(str::trim).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let is_number = text.bytes().all(|digit| digit.is_ascii_digit());
    match text.parse() {
        Ok(seq) if is_number => Ok(Some(seq)),
        _ => Err(Error::invalid("Last-Event-ID", "must be the number of an event of this task, or 0")),
    }
}

fn push_events(head: &RequestHead<'_>) -> Result<PushEvents, Error> {
    match head.push_events.map(str::trim) {
        None => Ok(PushEvents::Statuses),
        Some("all") => Ok(PushEvents::All),
        Some(_) => Err(Error::invalid("Sabir-Push-Events", "must be all, or left out")),
    }
}

fn idempotency_key(head: &RequestHead<'_>) -> Result<Option<IdempotencyKey>, Error> {
    let Some(text) = head.idempotency_key else {
        return Ok(None);
    };
    match IdempotencyKey::parse(text) {
        Ok(key) => Ok(Some(key)),
        Err(why) => Err(Error::invalid("Idempotency-Key", why.to_string())),
    }
}
