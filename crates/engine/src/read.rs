//! Reads: one task, or a page of a list. Tasks in memory come from their topics, all others from the store.

use std::sync::Arc;

use sabir_model::{AgentId, Caller, ContextId, Cursor, Error, Get, List, Page, State, Task, TaskId, Wanted};
use sabir_store::{Query, TaskNo, TaskRow};

use crate::Answer;
use crate::access::{Action, TaskRights, may_approve};
use crate::delegation::may_see;
use crate::engine::Engine;
use crate::feed::Lease;
use crate::topic::TopicKey;

/// How many earlier tasks of a context an agent or a client gets.
pub(crate) const CONVERSATION: usize = 100;
/// The oldest of them are left out if all together have more bytes than about this.
pub(crate) const CONVERSATION_BYTES: usize = 16 << 20;

/// A page of a list ends early when its tasks have about this many bytes.
const PAGE_BYTES: usize = 8 << 20;

/// A task that the caller may see.
pub(crate) struct Located {
    pub(crate) key: TopicKey,
    pub(crate) context: ContextId,
    pub(crate) state: State,
    pub(crate) rights: TaskRights,
}

/// A task as a caller may see it.
pub(crate) struct SeenTask {
    pub(crate) task: Arc<Task>,
    pub(crate) rights: TaskRights,
}

/// Where a task was found.
enum TaskLocation {
    /// A driver or a reader has it in memory.
    InMemory(Lease),
    Stored(TaskRow),
}

impl Engine {
    pub(crate) async fn get(&self, caller: &Caller, get: Get) -> Result<Answer, Error> {
        let SeenTask { task, rights } = self.task(caller, get.agent.as_ref(), &get.task).await?;
        if get.earlier == Wanted::Yes {
            let earlier = match rights {
                // The others are not the program's.
                TaskRights::Owner if caller.delegation.is_some() => Vec::new(),
                TaskRights::Owner => self.earlier(&task).await?,
                TaskRights::Approver => Vec::new(),
            };
            return Ok(Answer::Conversation(task, earlier));
        }
        Ok(Answer::Task(task.with_history(get.history)))
    }

    /// The tasks of its context that came before this one, oldest first.
    async fn earlier(&self, task: &Task) -> Result<Vec<Task>, Error> {
        let tasks = self
            .core
            .store
            .conversation(&task.owner, &task.agent, &task.context, CONVERSATION, CONVERSATION_BYTES)
            .await;
        let mut tasks = tasks?;
        // A task that is older than all of them has nothing before it.
        let place = tasks.iter().position(|other| other.id == task.id);
        tasks.truncate(place.unwrap_or(0));
        Ok(tasks)
    }

    pub(crate) async fn list(&self, caller: &Caller, list: List) -> Result<Answer, Error> {
        let query = Query {
            owner: caller.owner.clone(),
            own_agents: caller.readable_agents(),
            others: self.listed_others(caller),
            agent: list.agent,
            context: list.context,
            state: list.state,
            since: list.since,
            from: list.from,
            limit: list.page_size as usize,
            max_bytes: PAGE_BYTES,
            artifacts: list.artifacts,
            history: list.history,
        };
        let listing = self.core.store.list(query).await?;
        let tasks = listing.tasks;
        let next = tasks.last().filter(|_| listing.more).map(|task| Cursor {
            time: task.status.time,
            task: task.id.clone(),
            agent: task.agent.clone(),
            number: listing.last.map(|TaskNo(number)| number),
        });
        let page = Page { tasks, artifacts: list.artifacts, next, page_size: list.page_size, total: listing.total };
        Ok(Answer::Page(Box::new(page)))
    }

    /// The whole task, as of its last stored event.
    pub(crate) async fn task(&self, caller: &Caller, agent: Option<&AgentId>, id: &TaskId) -> Result<SeenTask, Error> {
        if let Some(task) = self.own_task(caller, agent, id).await?
            && caller.may_read(&task.agent)
            && may_see(caller, &task)
        {
            return Ok(SeenTask { task, rights: TaskRights::Owner });
        }
        let Located { key, rights, .. } = self.locate(caller, agent, id, Action::Watch).await?;
        let task = self.task_of(&key).await?;
        // The question may have been answered since.
        if rights == TaskRights::Approver && !may_approve(caller, &task) {
            return Err(Error::TaskNotFound(id.clone()));
        }
        Ok(SeenTask { task, rights })
    }

    async fn own_task(
        &self,
        caller: &Caller,
        agent: Option<&AgentId>,
        id: &TaskId,
    ) -> Result<Option<Arc<Task>>, Error> {
        let preferred = self.preferred_agent(agent);
        let in_memory = self.core.feed.find(&caller.owner, preferred, id).filter(|lease| self.is_current(lease));
        if let Some(task) = in_memory.and_then(|lease| lease.task()) {
            return Ok(Some(task));
        }
        let mut found = None;
        if let Some(preferred) = preferred {
            let key = TopicKey { owner: caller.owner.clone(), agent: preferred.clone(), task: id.clone() };
            found = self.core.reads.get(&*self.core.store, &key).await?;
        }
        if found.is_none() && preferred != agent {
            found = self.core.store.get(&caller.owner, agent, id).await?.map(Arc::new);
        }
        Ok(found)
    }

    /// The same of a task that was found already.
    pub(crate) async fn task_of(&self, key: &TopicKey) -> Result<Arc<Task>, Error> {
        let TopicKey { owner, agent, task } = key;
        let in_memory = self.core.feed.find(owner, Some(agent), task).filter(|lease| self.is_current(lease));
        if let Some(task) = in_memory.and_then(|lease| lease.task()) {
            return Ok(task);
        }
        let found = self.core.reads.get(&*self.core.store, key).await?;
        found.ok_or_else(|| Error::TaskNotFound(task.clone()))
    }

    /// Finds a task with which the caller may do this: its key, its context and its state, without its content. Tasks of
    /// others are looked for only if there is none of the caller's own.
    pub(crate) async fn locate(
        &self,
        caller: &Caller,
        agent: Option<&AgentId>,
        id: &TaskId,
        action: Action,
    ) -> Result<Located, Error> {
        let own = self.locate_own(caller, agent, id, action).await?;
        if let Some(Ok(found)) = own {
            return Ok(found);
        }
        match self.locate_of_others(caller, agent, id, action).await? {
            Some(found) => Ok(found),
            None => own.unwrap_or_else(|| Err(Error::TaskNotFound(id.clone()))),
        }
    }

    /// The same for a message that names this task, and perhaps its context.
    pub(crate) async fn locate_addressed(
        &self,
        caller: &Caller,
        agent: Option<&AgentId>,
        id: &TaskId,
        context: Option<&ContextId>,
    ) -> Result<Located, Error> {
        let own = self.locate_own(caller, agent, id, Action::Answer).await?;
        if let Some(Ok(found)) = own {
            return Ok(found);
        }
        match self.addressed_of_others(caller, agent, id, context).await? {
            Some(found) => Ok(found),
            None => own.unwrap_or_else(|| Err(Error::TaskNotFound(id.clone()))),
        }
    }

    /// `Some(Err(_))`: the caller sees the task, but may not do this.
    async fn locate_own(
        &self,
        caller: &Caller,
        agent: Option<&AgentId>,
        id: &TaskId,
        action: Action,
    ) -> Result<Option<Result<Located, Error>>, Error> {
        let mut found = self.find(caller, agent, id).await?;
        if agent.is_none() && found.as_ref().is_some_and(|found| !caller.may_read(found.agent())) {
            // Another agent, of which the caller may see the tasks, may have one with the same id.
            found = None;
            for readable in caller.readable_agents().unwrap_or_default() {
                found = self.find(caller, Some(&readable), id).await?;
                if found.is_some() {
                    break;
                }
            }
        }
        let Some(found) = found else { return Ok(None) };
        if caller.delegation.is_some() && !self.is_delegated_by(caller, &found).await? {
            return Ok(None);
        }
        let rights = match self.rights_on_own(caller, action, found.agent()) {
            None => return Ok(None),
            Some(Err(refusal)) => return Ok(Some(Err(refusal))),
            Some(Ok(rights)) => rights,
        };
        Ok(match found {
            TaskLocation::InMemory(lease) => {
                let seen = lease.with_task(|task| (task.context.clone(), task.status.state));
                seen.map(|(context, state)| Ok(Located { key: lease.key.clone(), context, state, rights }))
            }
            TaskLocation::Stored(row) => {
                let key = TopicKey { owner: row.owner, agent: row.agent, task: row.task };
                Some(Ok(Located { key, context: row.context, state: row.state, rights }))
            }
        })
    }

    /// Whether the caller is the program that has delegated the task.
    async fn is_delegated_by(&self, caller: &Caller, found: &TaskLocation) -> Result<bool, Error> {
        Ok(match found {
            TaskLocation::InMemory(lease) => lease.with_task(|task| may_see(caller, task)) == Some(true),
            TaskLocation::Stored(row) => self.core.store.load(row.no).await?.is_some_and(|task| may_see(caller, &task)),
        })
    }

    /// Finds a task of the caller's own.
    async fn find(&self, caller: &Caller, agent: Option<&AgentId>, id: &TaskId) -> Result<Option<TaskLocation>, Error> {
        let preferred = self.preferred_agent(agent);
        if let Some(lease) = self.core.feed.find(&caller.owner, preferred, id).filter(|lease| self.has_current(lease)) {
            return Ok(Some(TaskLocation::InMemory(lease)));
        }
        // Unknown ids are as frequent as known ones, so the first lookup is for any agent: one query shows that there
        // is no such task.
        let found = self.core.store.find(&caller.owner, agent, id).await?;
        let Some(mut row) = found else { return Ok(None) };
        if preferred.is_some_and(|preferred| *preferred != row.agent) {
            let of_preferred = self.core.store.find(&caller.owner, preferred, id).await?;
            row = of_preferred.unwrap_or(row);
        }
        // The copy in memory is never older than the row.
        let lease = self.core.feed.find(&caller.owner, Some(&row.agent), id);
        Ok(Some(match lease.filter(|lease| self.has_current(lease)) {
            Some(lease) => TaskLocation::InMemory(lease),
            None => TaskLocation::Stored(row),
        }))
    }

    /// Whether the topic has the newest of its task.
    fn has_current(&self, lease: &Lease) -> bool {
        self.is_current(lease) && lease.with_task(|_| ()).is_some()
    }

    /// The agent whose task is preferred. Callers who choose ids may use the same id at several agents; a call without
    /// an agent means the default agent's task first, since a message without an agent would go there.
    fn preferred_agent<'a>(&'a self, agent: Option<&'a AgentId>) -> Option<&'a AgentId> {
        agent.or_else(|| self.default_agent())
    }
}

impl TaskLocation {
    fn agent(&self) -> &AgentId {
        match self {
            TaskLocation::InMemory(lease) => &lease.key.agent,
            TaskLocation::Stored(row) => &row.agent,
        }
    }
}
