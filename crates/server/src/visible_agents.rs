//! The agents that a caller may know of, for paths and errors.
//!
//! Before it is known who calls, these are the listed ones: so an agent that is not listed and one that does not exist are
//! the same to strangers.

use sabir_engine::Engine;
use sabir_model::{AgentId, Caller};
use sabir_wire::KnownAgents;

pub(crate) struct VisibleAgents<'a> {
    pub(crate) engine: &'a Engine,
    /// `None`: it is not known who calls.
    pub(crate) caller: Option<&'a Caller>,
}

impl KnownAgents for VisibleAgents<'_> {
    fn knows(&self, id: &str) -> bool {
        match (self.engine.agent(id), self.caller) {
            (None, _) => false,
            (Some(agent), None) => agent.is_listed,
            (Some(agent), Some(caller)) => self.engine.is_visible(caller, agent),
        }
    }

    fn ids(&self) -> Vec<AgentId> {
        match self.caller {
            // Without scopes nobody is told apart, so what is not listed is named to nobody.
            Some(caller) if caller.scopes.is_some() => self.engine.visible_agents(caller),
            _ => self.engine.agents().filter(|agent| agent.is_listed).map(|agent| agent.id.clone()).collect(),
        }
    }
}
