//! The list of the agents behind the gateway.

use sabir_model::AgentId;
use serde::Serialize;

use super::BASE;
use crate::json;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AgentEntry<'a> {
    agent_id: &'a str,
    agent_card_url: String,
    message_send_url: String,
}

/// Appends the list of the agents, in the order they are given.
pub fn write_agent_list<'a>(agents: impl Iterator<Item = &'a AgentId>, out: &mut Vec<u8>) {
    let entries: Vec<AgentEntry<'_>> = agents
        .map(|agent| AgentEntry {
            agent_id: agent.as_str(),
            agent_card_url: format!("{BASE}/{agent}/agent-card"),
            message_send_url: message_send_path(agent),
        })
        .collect();
    json::write(&entries, out);
}

/// The path to which messages for this agent are posted.
pub fn message_send_path(agent: &AgentId) -> String {
    format!("{BASE}/{agent}/message:send")
}
