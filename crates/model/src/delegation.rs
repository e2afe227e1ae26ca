//! Delegation: a program asks other agents in the name of the task that it works on.
//!
//! The task that it makes (the child) stores with its first message which tasks it comes from. That is what decides who may see it,
//! what it waits for, and with which task it is canceled, also after a restart.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{AgentId, ContextId, Task, TaskId};

/// A task whose program has asked another agent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Ancestor {
    /// The agent that it is addressed to.
    pub agent: AgentId,
    /// Its id.
    pub task: TaskId,
    /// The conversation that it belongs to.
    pub context: ContextId,
}

/// Which tasks a child comes from. All of them have the same owner.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Delegated {
    /// The task whose program has made it.
    pub parent: Ancestor,
    /// The ancestors of the parent, beginning with the one that a caller has made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<Ancestor>,
}

impl Delegated {
    /// All tasks that it comes from, beginning with the one that a caller has made. The last is the parent.
    pub fn chain(&self) -> impl Iterator<Item = &Ancestor> {
        self.earlier.iter().chain([&self.parent])
    }

    /// How many delegations lie between the task and the one that a caller has made.
    pub fn depth(&self) -> usize {
        self.earlier.len() + 1
    }

    /// About how many bytes of text it holds.
    pub(crate) fn weight(&self) -> usize {
        let weight = |each: &Ancestor| {
            size_of::<Ancestor>() + each.agent.as_str().len() + each.task.as_str().len() + each.context.as_str().len()
        };
        self.chain().map(weight).sum()
    }
}

/// What a program may do in the name of its task, beside what the rights of the caller say.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Delegation {
    /// What its tasks store.
    pub delegated: Arc<Delegated>,
    /// The agents that it may ask; `None`: all that the caller may run.
    pub agents: Option<Vec<AgentId>>,
    /// The turn that it belongs to, by a number that the engine of this process has given. The delegation ends with the turn.
    pub turn: u64,
}

impl Delegation {
    /// Whether the program may ask this agent, as far as its list goes.
    pub fn allows(&self, agent: &AgentId) -> bool {
        self.agents.as_ref().is_none_or(|agents| agents.contains(agent))
    }

    /// Whether the task was made by the program of the same parent: the only tasks that exist for this one.
    pub fn made(&self, task: &Task) -> bool {
        task.delegated().is_some_and(|delegated| delegated.parent == self.delegated.parent)
    }
}

impl Task {
    /// Which tasks it comes from, if a program has made it.
    pub fn delegated(&self) -> Option<&Arc<Delegated>> {
        self.history.first()?.request.as_ref()?.delegated.as_ref()
    }
}
