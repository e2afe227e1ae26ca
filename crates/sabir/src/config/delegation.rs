//! Programs that may ask other agents: whom they name, and whether they reach the server.

use super::origin::{Configured, Problem};
use super::routes::unknown;
use super::sections::{Config, DelegateTo};

/// Lists of agents that do not exist, and programs that could not reach the server.
pub fn check(config: &Configured<Config>) -> Vec<Problem> {
    let subject = &config.subject;
    let mut problems = Vec::new();
    for agent in subject.all_agents() {
        let words = match &agent.program.delegate {
            DelegateTo::Nobody => continue,
            _ if !subject.mcp.enabled => "needs mcp.enabled, since programs ask other agents by MCP".to_owned(),
            _ if subject.server.scheme() != "http" => {
                "needs a server without TLS of its own: programs ask it from this machine, over HTTP; leave TLS to a proxy in \
                 front (server.public_url)"
                    .to_owned()
            }
            DelegateTo::All => continue,
            DelegateTo::Agents(ids) => {
                // What only routing reaches has no address.
                match ids.iter().find(|id| !subject.agents.iter().any(|known| known.id == **id)) {
                    Some(id) => unknown(id, subject.agents.iter()),
                    None if ids.contains(&agent.id) => {
                        format!("names {}, the agent itself, which cannot wait for itself", agent.id)
                    }
                    None => continue,
                }
            }
        };
        let key = format!("agent.{}.delegate", agent.id);
        let origin = config.values.iter().find(|value| value.key == key).map(|value| &value.origin);
        if let Some(origin) = origin {
            problems.push(Problem::of(origin, "delegate", &words));
        }
    }
    problems
}
