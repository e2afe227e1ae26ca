//! Who may do what: the one gate that every call passes, and what a caller may do with a task.
//!
//! | caller                                    | sees                                    | may do there                      |
//! |-------------------------------------------|-----------------------------------------|-----------------------------------|
//! | with `run` for the agent                  | its own tasks                           | everything                        |
//! | with `read` for the agent                 | its own tasks                           | look                              |
//! | with the scope that an agent's approver names | tasks of that agent and its own tenant that wait for it | look, and answer that question |
//! | with `admin`                              | everybody's tasks                       | everything                        |
//!
//! Everything else does not exist for the caller: the answer is that of an id that was never given. Only a right that is
//! missing for an agent, or for a task, that the caller may see is said to be missing.

use std::sync::Arc;

use sabir_model::{
    AgentId, Call, Caller, ContextId, Error, Message, Owner, Purpose, PushCall, QuestionType, Send, Task, TaskId, scope,
};
use sabir_store::{Others, TaskRow};

use crate::Hosted;
use crate::engine::{Engine, RegisteredAgent};
use crate::read::Located;
use crate::topic::TopicKey;

/// What a call does with an agent or a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Looks at a task; approvers may.
    Watch,
    /// Looks at what approvers need not see.
    Read,
    /// Sends a message to a task; approvers may, if it is the answer.
    Answer,
    /// Begins or changes something.
    Run,
}

impl Action {
    /// Every call is here, so a new one does not compile until it is decided who may make it.
    pub(crate) fn of(call: &Call) -> Self {
        match call {
            Call::Send(send) => Self::of_send(send),
            Call::Get(_) | Call::List(_) | Call::Subscribe(_) => Action::Watch,
            Call::Push(PushCall::Get { .. } | PushCall::List { .. }) | Call::ExtendedCard { .. } => Action::Read,
            Call::Cancel(_) | Call::Push(PushCall::Set { .. } | PushCall::Delete { .. }) => Action::Run,
        }
    }

    fn of_send(send: &Send) -> Self {
        if send.message.task.is_some() { Action::Answer } else { Action::Run }
    }

    fn is_for_approvers(self) -> bool {
        matches!(self, Action::Watch | Action::Answer)
    }

    fn scope(self) -> &'static str {
        match self {
            Action::Watch | Action::Read => scope::READ,
            Action::Answer | Action::Run => scope::RUN,
        }
    }

    fn is_granted(self, caller: &Caller, agent: &AgentId) -> bool {
        match self {
            Action::Watch | Action::Read => caller.may_read(agent),
            Action::Answer | Action::Run => caller.may_run(agent),
        }
    }
}

/// What a caller may do with a task that it sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskRights {
    /// What its owner may do, or the part of it that the action needs.
    Owner,
    /// Look at it and answer its question, as long as that is open.
    Approver,
}

/// How many tasks with the same id, of different owners, are looked through for one that waits for an approver.
const MAX_SAME_ID: usize = 1_000;

impl Engine {
    /// The gate: whether the caller may make such a call at the agent that the call names.
    pub(crate) fn check_access(&self, caller: &Caller, call: &Call) -> Result<(), Error> {
        match call.agent() {
            Some(id) => self.agent_for(caller, Some(id), Action::of(call)).map(drop),
            // What is found depends on the task: `locate` and `agent_for` are asked then.
            None => Ok(()),
        }
    }

    /// The agent, if the caller may do this there. `None`: the default agent.
    pub(crate) fn agent_for(
        &self,
        caller: &Caller,
        id: Option<&AgentId>,
        action: Action,
    ) -> Result<&Arc<RegisteredAgent>, Error> {
        let found = self.registered_agent(id).filter(|registered| self.is_visible(caller, &registered.hosted));
        let registered = found.ok_or_else(|| self.agent_not_found(caller, id))?;
        let agent = &registered.hosted.id;
        let is_approver = action.is_for_approvers() && self.may_approve_at(caller, agent);
        if action.is_granted(caller, agent) || is_approver { Ok(registered) } else { Err(lacks(action, agent)) }
    }

    /// The refusal for an agent that does not exist for the caller.
    pub(crate) fn agent_not_found(&self, caller: &Caller, id: Option<&AgentId>) -> Error {
        let named = id.map_or_else(String::new, ToString::to_string);
        Error::AgentNotFound { named, known: self.visible_agents(caller) }
    }

    /// The ids of the agents that this caller may know of, sorted.
    pub fn visible_agents(&self, caller: &Caller) -> Vec<AgentId> {
        self.agents_for(caller).map(|hosted| hosted.id.clone()).collect()
    }

    /// The agents that this caller may know of, sorted by id: those that are listed, and those that it has a right for.
    /// A program sees those that it may ask.
    pub fn agents_for(&self, caller: &Caller) -> impl Iterator<Item = &Hosted> {
        let is_above = |hosted: &Hosted| {
            let delegation = caller.delegation.as_ref();
            delegation.is_some_and(|delegation| delegation.delegated.chain().any(|each| each.agent == hosted.id))
        };
        self.agents().filter(move |hosted| self.is_visible(caller, hosted) && !is_above(hosted))
    }

    /// Whether this caller may know of this agent.
    pub fn is_visible(&self, caller: &Caller, hosted: &Hosted) -> bool {
        match &caller.delegation {
            Some(delegation) => delegation.allows(&hosted.id) && caller.may_run(&hosted.id),
            None => hosted.is_listed || caller.may_read(&hosted.id) || self.may_approve_at(caller, &hosted.id),
        }
    }

    /// Whether the caller may approve anything at this agent.
    fn may_approve_at(&self, caller: &Caller, agent: &AgentId) -> bool {
        caller.scopes.is_some() && self.core.approvers.iter().any(|scope| caller.has_scope_for(scope, agent))
    }

    /// Which tasks the caller may list beside its own.
    pub(crate) fn listed_others(&self, caller: &Caller) -> Others {
        if caller.is_admin() {
            return Others::All;
        }
        let pairs = self.agents().flat_map(|hosted| {
            let held = self.core.approvers.iter().filter(|scope| caller.has_scope_for(scope, &hosted.id));
            held.map(|scope| (hosted.id.clone(), scope.to_string()))
        });
        let pairs: Vec<(AgentId, String)> = pairs.collect();
        if pairs.is_empty() { Others::None } else { Others::ForApproval(pairs) }
    }

    /// What the caller may do with a task of its own that it has found; `None`: the task does not exist for it.
    pub(crate) fn rights_on_own(
        &self,
        caller: &Caller,
        action: Action,
        agent: &AgentId,
    ) -> Option<Result<TaskRights, Error>> {
        if action.is_granted(caller, agent) {
            return Some(Ok(TaskRights::Owner));
        }
        caller.may_read(agent).then(|| Err(lacks(action, agent)))
    }

    /// Finds a task of another owner, or one of its own that the caller sees as an approver only: the newest.
    pub(crate) async fn locate_of_others(
        &self,
        caller: &Caller,
        agent: Option<&AgentId>,
        id: &TaskId,
        action: Action,
    ) -> Result<Option<Located>, Error> {
        Ok(self.all_of_others(caller, agent, id, action, 1).await?.into_iter().next())
    }

    /// Finds the task of another owner that a message is for. Any caller may choose the id that another's task has, and the
    /// questions of both have the same ids. So an id that several owners have is not enough: whoever read one question must
    /// not answer the other.
    pub(crate) async fn addressed_of_others(
        &self,
        caller: &Caller,
        agent: Option<&AgentId>,
        id: &TaskId,
        context: Option<&ContextId>,
    ) -> Result<Option<Located>, Error> {
        let mut found = self.all_of_others(caller, agent, id, Action::Answer, MAX_SAME_ID).await?;
        // One that does not match is refused later, by its own rules.
        if found.len() > 1 {
            found.retain(|task| context.is_none_or(|context| task.context == *context));
        }
        match found.len() {
            0 | 1 => Ok(found.pop()),
            _ => Err(Error::invalid(
                "message.contextId",
                match context {
                    None => "is required: tasks of several owners have this id",
                    Some(_) => "is not enough: tasks of several owners have this id and this context",
                },
            )),
        }
    }

    /// The tasks with this id that the caller sees by other rights than an owner's, the newest first.
    async fn all_of_others(
        &self,
        caller: &Caller,
        agent: Option<&AgentId>,
        id: &TaskId,
        action: Action,
        limit: usize,
    ) -> Result<Vec<Located>, Error> {
        if caller.is_admin() {
            let rows = self.core.store.find_of_all(agent, id, limit).await?;
            return Ok(rows.into_iter().map(|row| located(row, TaskRights::Owner)).collect());
        }
        let mut found = Vec::new();
        let is_approver = action.is_for_approvers() && self.listed_others(caller) != Others::None;
        if !is_approver {
            return Ok(found);
        }
        for row in self.core.store.find_of_all(agent, id, MAX_SAME_ID).await? {
            if row.state.is_waiting()
                && row.owner.shares_tenant_with(&caller.owner)
                && self.may_approve_at(caller, &row.agent)
                && let Some(task) = self.core.store.load(row.no).await?
                && may_approve(caller, &task)
            {
                found.push(located(row, TaskRights::Approver));
                if found.len() == limit {
                    break;
                }
            }
        }
        Ok(found)
    }
}

fn located(row: TaskRow, rights: TaskRights) -> Located {
    let key = TopicKey { owner: row.owner, agent: row.agent, task: row.task };
    Located { key, context: row.context, state: row.state, rights }
}

/// Whether the task waits for an approver, and the caller is one.
pub(crate) fn may_approve(caller: &Caller, task: &Task) -> bool {
    task.approver().is_some_and(|scope| is_approver(caller, &scope, &task.owner, &task.agent))
}

/// A scope counts within the tenant that its holder belongs to: tenants do not know of each other's tasks.
fn is_approver(caller: &Caller, scope: &str, owner: &Owner, agent: &AgentId) -> bool {
    caller.is_admin() || (caller.owner.shares_tenant_with(owner) && caller.has_scope_for(scope, agent))
}

fn lacks(action: Action, agent: &AgentId) -> Error {
    Error::Forbidden(format!("the credential lacks the scope {} for agent {agent}", action.scope()))
}

/// Whether the sender may send this message to a task as it stands now: asked when it is known what the message is for.
///
/// `purpose` is what the message would be for, and `approver` the scope without which nobody may answer the open question. A
/// message of the owner while an approval is pending would be taken for the answer, so it is refused. An approver may only
/// answer, and must do so recognizably. A program never gives permission: a person does.
pub(crate) fn check_message(
    sender: &Caller,
    key: &TopicKey,
    message: &Message,
    purpose: Result<Purpose, Error>,
    question: Option<&Message>,
) -> Result<Purpose, Error> {
    let is_for_permission = question.is_some_and(|question| question.question_type() == QuestionType::Permission);
    if sender.delegation.is_some() && is_for_permission && matches!(purpose, Ok(Purpose::Answer(_))) {
        return Err(Error::Forbidden(format!(
            "task {} waits for a permission, which only a person gives, in the console or as a client of this server; \
             wait for the task",
            key.task
        )));
    }
    let approver = question.and_then(Message::approver);
    let approver = approver.as_deref();
    let has_owners_rights = sender.is_admin() || (sender.owner == key.owner && sender.may_run(&key.agent));
    let scope = match (&purpose, approver) {
        (Ok(Purpose::Answer(_)), Some(scope)) => scope,
        _ if has_owners_rights => return purpose,
        // The question is closed, so for an approver the task does not exist any more.
        _ => return Err(Error::TaskNotFound(key.task.clone())),
    };
    match (is_approver(sender, scope, &key.owner, &key.agent), has_owners_rights) {
        (true, true) => purpose,
        (true, false) if message.is_only_approval() || !message.named_questions().is_empty() => purpose,
        (true, false) => Err(Error::invalid(
            "message.parts",
            "must be the answer to the question: yes or no, or data that names it by its questionId",
        )),
        (false, true) => Err(Error::Forbidden(format!(
            "task {} waits for an approval: only callers with the scope {scope} may answer its question; \
             the task can be canceled",
            key.task
        ))),
        (false, false) => Err(Error::TaskNotFound(key.task.clone())),
    }
}
