//! What of a call stands beside its JSON: the agent of the path, the headers, the behaviour of the mount.

use sabir_model::{AgentId, Call, Error, IdempotencyKey, LastEventId, OnFinished, OnFinishedCancel, PushCall, Seq};

use crate::{Head, KnownAgents, TerminalMessage};

pub(crate) struct Behaviour<'a> {
    pub agent: Agent<'a>,
    pub finished_cancel: OnFinishedCancel,
    pub finished_send: TerminalMessage,
}

/// Whose tasks a call is about.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Agent<'a> {
    /// The body's tenant, or none.
    Named,
    /// The mount's; a body that names another one is refused.
    Mounted(&'a AgentId),
    /// The path's, whatever the body says.
    InPath(&'a AgentId),
    /// The query's; a body that names another one is refused.
    InQuery(&'a AgentId),
}

pub(crate) fn complete(
    call: &mut Call,
    head: &Head<'_>,
    behaviour: &Behaviour<'_>,
    agents: &dyn KnownAgents,
) -> Result<(), Error> {
    settle_agent(agent_of(call), behaviour.agent, agents)?;
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
            if behaviour.finished_send == TerminalMessage::NewTask {
                send.on_finished = OnFinished::StartTask;
            }
        }
        Call::Subscribe(subscribe) => subscribe.after = last_event_id(head)?,
        Call::Cancel(cancel) => cancel.on_finished = behaviour.finished_cancel,
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

fn settle_agent(named: &mut Option<AgentId>, rule: Agent<'_>, agents: &dyn KnownAgents) -> Result<(), Error> {
    match (rule, &*named) {
        (Agent::Named, Some(tenant)) if !agents.knows(tenant.as_str()) => {
            return Err(Error::AgentNotFound { named: tenant.to_string(), known: agents.ids() });
        }
        (Agent::Mounted(mounted), Some(tenant)) if tenant != mounted => {
            return Err(Error::invalid("tenant", format!("does not match the path, which names {mounted}")));
        }
        (Agent::InQuery(asked), Some(tenant)) if tenant != asked => {
            return Err(Error::invalid("tenant", format!("does not match the query, which names {asked}")));
        }
        (Agent::Named, _) => {}
        (Agent::Mounted(agent) | Agent::InPath(agent) | Agent::InQuery(agent), _) => *named = Some(agent.clone()),
    }
    Ok(())
}

fn last_event_id(head: &Head<'_>) -> Result<Option<Seq>, Error> {
    let Some(text) = head.last_event_id.map(str::trim).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let is_number = text.bytes().all(|digit| digit.is_ascii_digit());
    match text.parse() {
        Ok(seq) if is_number => Ok(Some(seq)),
        _ => Err(Error::invalid("Last-Event-ID", "must be the number of an event of this task, or 0")),
    }
}

fn idempotency_key(head: &Head<'_>) -> Result<Option<IdempotencyKey>, Error> {
    let Some(text) = head.idempotency_key else {
        return Ok(None);
    };
    match IdempotencyKey::parse(text) {
        Ok(key) => Ok(Some(key)),
        Err(why) => Err(Error::invalid("Idempotency-Key", why.to_string())),
    }
}
