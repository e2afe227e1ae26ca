//! Which calls a program may make in the name of its task, and which agents it may ask.

use sabir_model::{
    AgentId, Call, Caller, ContextAlone, ContextId, Delegation, Error, IdempotencyKey, OnUnknown, PushCall, Send, Task,
};

use super::grants::{ChildPlace, turn_is_over};
use crate::engine::Engine;
use crate::executor::Executor;

/// Whether the task exists for this caller, as far as delegation goes: for a program only those that it has delegated do.
pub(crate) fn may_see(caller: &Caller, task: &Task) -> bool {
    caller.delegation.as_ref().is_none_or(|delegation| delegation.made(task))
}

impl Engine {
    /// Who calls with this credential of a program. `None`: it is not known, or no turn of the program is at work.
    pub fn program_caller(&self, credential: &[u8]) -> Option<Caller> {
        self.core.grants.caller(credential)
    }

    /// Refuses what a program has no business with.
    pub(crate) fn check_delegation(&self, caller: &Caller, call: &Call) -> Result<(), Error> {
        let Some(delegation) = &caller.delegation else { return Ok(()) };
        if !self.core.grants.is_active(delegation.turn) {
            return Err(turn_is_over());
        }
        let what = match call {
            Call::Send(send) if send.push.is_some() => "set webhooks",
            Call::Send(send) if !send.further.is_empty() => "answer several questions at once",
            Call::Push(
                PushCall::Set { .. } | PushCall::Get { .. } | PushCall::List { .. } | PushCall::Delete { .. },
            ) => "use webhooks",
            Call::List(_) => "list tasks",
            Call::Send(_) | Call::Get(_) | Call::Cancel(_) | Call::Subscribe(_) | Call::ExtendedCard { .. } => {
                return Ok(());
            }
        };
        Err(Error::Forbidden(format!(
            "a program that works on a task cannot {what}; it asks agents, and waits for them"
        )))
    }

    /// A program names only tasks that it has delegated, and its keys are its own: another task of the owner may use the same.
    pub(crate) fn restrict_send(&self, delegation: &Delegation, send: &mut Send) -> Result<(), Error> {
        send.on_unknown = OnUnknown::Refuse;
        send.context_alone = ContextAlone::StartsTask;
        if let Some(key) = &send.idempotency {
            let parent = &delegation.delegated.parent;
            let own = IdempotencyKey::parse(format!("{}/{}/{key}", parent.agent, parent.task));
            send.idempotency = Some(own.map_err(|_| Error::invalid("idempotency_key", "is too long"))?);
        }
        Ok(())
    }

    /// Whether a program may make this task. Returns its place among the children of the turn.
    pub(crate) fn check_child(
        &self,
        delegation: &Delegation,
        addressed: &AgentId,
        executor: &Executor,
        context: &ContextId,
    ) -> Result<ChildPlace, Error> {
        let (delegated, limits) = (&delegation.delegated, self.core.settings.delegation);
        for agent in [addressed, &executor.agent.hosted.id] {
            if delegated.chain().any(|ancestor| ancestor.agent == *agent) {
                let mut chain: Vec<&str> = delegated.chain().map(|ancestor| ancestor.agent.as_str()).collect();
                chain.push(agent.as_str());
                let chain = chain.join(" -> ");
                return Err(Error::Forbidden(format!(
                    "cycle: {chain}; agent {agent} waits for this task already, so ask another one or do it yourself"
                )));
            }
        }
        if delegated.chain().any(|ancestor| ancestor.context == *context) {
            return Err(Error::Forbidden(format!(
                "context {context} is that of a task which waits for this one; leave the context out, or name another"
            )));
        }
        if delegated.depth() > limits.max_depth {
            return Err(Error::Forbidden(format!(
                "tasks may be delegated {} deep (delegation.max_depth), and this would be deeper; do it yourself",
                limits.max_depth
            )));
        }
        self.core.grants.place_for_child(delegation.turn, limits.max_children)?.ok_or_else(|| {
            Error::Forbidden(format!(
                "a program may delegate {} tasks in one turn (delegation.max_children), and has done so; continue one of \
                 them, or do the rest yourself",
                limits.max_children
            ))
        })
    }
}
