//! The agents of this server with their runs and queues.

use http::StatusCode;
use sabir_engine::{AgentLoad, Engine};
use serde::Serialize;

use super::{AdminReply, ServerFacts, seconds};

#[derive(Serialize)]
struct AgentsView<'a> {
    agents: Vec<AgentView<'a>>,
}

#[derive(Serialize)]
struct AgentView<'a> {
    id: &'a str,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'a str>,
    default: bool,
    listed: bool,
    /// On this server, as all of these.
    running: usize,
    parked: usize,
    queued: usize,
    limit: usize,
    #[serde(rename = "queueLimit")]
    queue_limit: usize,
    #[serde(rename = "oldestQueued", skip_serializing_if = "Option::is_none")]
    oldest_queued: Option<f64>,
}

pub(super) fn list(engine: &Engine, facts: &ServerFacts) -> AdminReply {
    let loads = engine.agent_loads();
    let view = AgentsView { agents: loads.iter().map(|load| AgentView::of(load, facts)).collect() };
    AdminReply::new(StatusCode::OK, &view)
}

impl<'a> AgentView<'a> {
    fn of(agent: &'a AgentLoad, facts: &'a ServerFacts) -> Self {
        let AgentLoad { id, name, is_default, is_listed, load } = agent;
        let kind = facts.agent_kinds.iter().find(|(known, _)| known == id.as_str());
        Self {
            id: id.as_str(),
            name,
            kind: kind.map(|(_, kind)| kind.as_str()),
            default: *is_default,
            listed: *is_listed,
            running: load.running,
            parked: load.parked,
            queued: load.queued,
            limit: load.limit,
            queue_limit: load.queue_limit,
            oldest_queued: load.oldest_queued.map(seconds),
        }
    }
}
