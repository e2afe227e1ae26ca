//! What operators see of the tasks of all owners, and do with them. Whoever calls this has been admitted as an operator.
//!
//! Lists and counts come from the store; what only memory knows (queues, when the last event was stored) is added here.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{FutureExt, StreamExt, stream};
use sabir_model::{
    AgentId, Call, Caller, Cancel, ContextId, Cursor, Error, OnFinishedCancel, Owner, State, TaskId, Timestamp,
};
use sabir_store::{
    AuditAction, AuditEntry, DeliveryCounts, DeliveryKind, StoreFacts, SummaryPage, SummaryQuery, TaskCount, TaskNo,
    TaskSummary,
};
use tokio::time::Instant;

use crate::Answer;
use crate::engine::{Engine, RegisteredAgent};
use crate::schedule::QueueLoad;
use crate::sharded::lock;
use crate::topic::TopicKey;

/// A page ends early when its messages have about this many bytes.
const PAGE_BYTES: usize = 8 << 20;
/// So many tasks are canceled, or deliveries retried, at once.
const AT_ONCE: usize = 64;
/// So many are read at once for that.
const SLICE: usize = 256;
/// So many failures are told; the others are only logged.
const MAX_FAILURES: usize = 1000;
/// Looks at lists by the same caller are recorded once in this time: whoever watches a list asks every few seconds.
const LOOKS_APART: Duration = Duration::from_secs(60);
/// Callers whose looks are remembered.
const MAX_LOOKERS: usize = 1000;
/// How many tasks with the same id are told apart.
const MAX_SAME_ID: usize = 20;
/// A shorter text is looked for as a whole id only: a prefix of two or three characters is that of nearly all tasks.
const SHORTEST_PREFIX: usize = 4;
/// Of a prefix that more tasks have, a list would have to read them all to put them in order.
const MOST_WITH_PREFIX: usize = 10_000;

/// Which tasks. What is left out takes all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskFilter {
    /// In one of these states.
    pub states: Option<Vec<State>>,
    /// At work, and without a new event for so long. Of a task on another node, only the time of its last status is known.
    pub silent_for: Option<Duration>,
    /// Of this owner.
    pub owner: Option<Owner>,
    /// Addressed to this agent.
    pub agent: Option<AgentId>,
    /// Of this conversation.
    pub context: Option<ContextId>,
    /// With a status time at or after this.
    pub since: Option<Timestamp>,
    /// With this id.
    pub id: Option<TaskId>,
    /// Whose id begins with this. A text that is too short, or that too many ids begin with, must be a whole id.
    pub id_prefix: Option<TaskId>,
    /// With one of these numbers. They are read one by one, and make up one page.
    pub numbers: Option<Vec<TaskNo>>,
}

/// One task with more of what is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskDetails {
    /// As lists show it.
    pub summary: TaskSummary,
    /// How many webhooks it has.
    pub webhooks: usize,
    /// What it takes in the store.
    pub bytes: u64,
}

/// What became of tasks that were to be canceled.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Canceled {
    /// They are canceled.
    pub canceled: u64,
    /// These are not, each for its reason.
    pub failed: Vec<(TaskNo, TaskId, String)>,
}

/// The work of one agent on this server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentLoad {
    /// Its name in addresses.
    pub id: AgentId,
    /// What its card calls it.
    pub name: String,
    /// Messages that name no agent are for it.
    pub is_default: bool,
    /// Whether everybody may know of it.
    pub is_listed: bool,
    /// Its runs and its queue.
    pub load: QueueLoad,
}

/// When each caller last looked at a list of everybody's tasks.
#[derive(Default)]
pub(crate) struct RecordedLooks(Mutex<HashMap<Owner, Instant>>);

impl Engine {
    /// A page of the tasks of all owners, the newest status first.
    ///
    /// # Errors
    /// The store cannot be read, what was seen cannot be recorded, or nothing but a longer part of the id says which tasks are
    /// meant.
    pub async fn summaries(
        &self,
        caller: &Caller,
        filter: &TaskFilter,
        from: Option<Cursor>,
        limit: usize,
    ) -> Result<SummaryPage, Error> {
        let page = self.find_by_prefix(filter, from, limit).await?;
        let foreign = page.tasks.iter().filter(|task| task.row.owner != caller.owner).count();
        if foreign > 0 && self.core.recorded_looks.is_due(&caller.owner) {
            let entry = self.entry(caller, AuditAction::List);
            self.record(Some(AuditEntry { detail: format!("{foreign} tasks of other owners"), ..entry })).await?;
        }
        Ok(page)
    }

    /// Looks for a text as a prefix if that reads few enough tasks, and else as a whole id.
    async fn find_by_prefix(
        &self,
        filter: &TaskFilter,
        from: Option<Cursor>,
        limit: usize,
    ) -> Result<SummaryPage, Error> {
        let Some(prefix) = &filter.id_prefix else {
            return self.find_summaries(filter, from, limit).await;
        };
        let is_short = prefix.as_str().chars().count() < SHORTEST_PREFIX;
        if !is_short {
            let page = self.find_summaries(filter, from.clone(), limit).await?;
            if !page.too_many {
                return Ok(page);
            }
        }
        if self.core.store.find_of_all(None, prefix, 1).await?.is_empty() {
            let rule = match is_short {
                true => format!("must have at least {SHORTEST_PREFIX} characters, or be the whole id of a task"),
                false => format!("is how the ids of more than {MOST_WITH_PREFIX} tasks begin; give more of it"),
            };
            return Err(Error::invalid("id", rule));
        }
        let filter = TaskFilter { id: Some(prefix.clone()), id_prefix: None, ..filter.clone() };
        self.find_summaries(&filter, from, limit).await
    }

    async fn find_summaries(
        &self,
        filter: &TaskFilter,
        mut from: Option<Cursor>,
        limit: usize,
    ) -> Result<SummaryPage, Error> {
        if let Some(numbers) = &filter.numbers {
            return self.find_numbers(filter, numbers).await;
        }
        let Some(silent_for) = filter.silent_for else {
            return Ok(self.core.store.summaries(self.query(filter, from, limit)).await?);
        };
        // The store knows when a status was stored, and memory when anything was.
        let mut found = SummaryPage::default();
        loop {
            let page = self.core.store.summaries(self.query(filter, from.clone(), limit)).await?;
            if page.too_many {
                return Ok(page);
            }
            let is_last = !page.more || page.tasks.is_empty();
            for task in page.tasks {
                from = Some(task.cursor());
                if !self.is_silent(&task, silent_for) {
                    continue;
                }
                if found.tasks.len() == limit {
                    return Ok(SummaryPage { more: true, ..found });
                }
                found.tasks.push(task);
            }
            if is_last {
                return Ok(found);
            }
        }
    }

    /// Those of these numbers that pass the other filters.
    async fn find_numbers(&self, filter: &TaskFilter, numbers: &[TaskNo]) -> Result<SummaryPage, Error> {
        let query = self.query(filter, None, numbers.len());
        let mut page = SummaryPage::default();
        for no in numbers {
            let task = self.core.store.summary(*no).await?.filter(|task| query.matches(&task.row));
            let is_wanted = |task: &TaskSummary| filter.silent_for.is_none_or(|silence| self.is_silent(task, silence));
            page.tasks.extend(task.filter(is_wanted));
        }
        Ok(page)
    }

    fn query(&self, filter: &TaskFilter, from: Option<Cursor>, limit: usize) -> SummaryQuery {
        let TaskFilter { states, silent_for, owner, agent, context, since, id, id_prefix, numbers: _ } = filter.clone();
        let before = silent_for.map(|silence| {
            let millis = i64::try_from(silence.as_millis()).unwrap_or(i64::MAX);
            Timestamp::from_millis(self.core.clock.now().as_millis().saturating_sub(millis))
        });
        let states = if silent_for.is_some() { Some(vec![State::Working]) } else { states };
        let id_prefix = id_prefix.map(|prefix| prefix.as_str().to_owned());
        SummaryQuery {
            states,
            owner,
            agent,
            context,
            since,
            before,
            id,
            id_prefix,
            most_with_prefix: MOST_WITH_PREFIX,
            from,
            limit,
            max_bytes: PAGE_BYTES,
        }
    }

    fn is_silent(&self, task: &TaskSummary, silence: Duration) -> bool {
        let topic = self.core.feed.find(&task.row.owner, Some(&task.row.agent), &task.row.task);
        topic.and_then(|topic| topic.since_last_event()).is_none_or(|passed| passed >= silence)
    }

    /// All tasks with this id, the newest first; with a number, the one of these that has it.
    ///
    /// # Errors
    /// The store cannot be read, or what was seen cannot be recorded.
    pub async fn task_details(
        &self,
        caller: &Caller,
        id: &TaskId,
        number: Option<TaskNo>,
    ) -> Result<Vec<TaskDetails>, Error> {
        let mut found = Vec::new();
        match number {
            Some(no) => found.extend(self.core.store.summary(no).await?.filter(|task| task.row.task == *id)),
            None => {
                for row in self.core.store.find_of_all(None, id, MAX_SAME_ID).await? {
                    found.extend(self.core.store.summary(row.no).await?);
                }
            }
        }
        let mut details = Vec::new();
        for summary in found {
            let row = &summary.row;
            if row.owner != caller.owner {
                let entry = AuditEntry {
                    agent: Some(row.agent.clone()),
                    task: Some(row.task.clone()),
                    no: Some(row.no),
                    owner: Some(row.owner.clone()),
                    ..self.entry(caller, AuditAction::Read)
                };
                self.record(Some(entry)).await?;
            }
            let webhooks = self.core.store.webhooks(row.no).await?.len();
            let bytes = self.core.store.bytes_of(row.no).await?;
            details.push(TaskDetails { summary, webhooks, bytes });
        }
        Ok(details)
    }

    /// Cancels every task that matches and is not finished. A task that ends meanwhile counts as neither.
    ///
    /// # Errors
    /// The store cannot be read. What was canceled stays canceled.
    pub async fn cancel_matching(&self, caller: &Caller, filter: &TaskFilter) -> Result<Canceled, Error> {
        let is_open = |state: &State| !state.is_terminal();
        let states = filter.states.clone().unwrap_or_else(|| State::ALL.to_vec());
        let filter = TaskFilter { states: Some(states.into_iter().filter(is_open).collect()), ..filter.clone() };
        let (mut result, mut from) = (Canceled::default(), None);
        loop {
            // A canceled task has a newer status than the cursor, so none is found twice, and new tasks are left alone.
            let SummaryPage { tasks, more, .. } = self.find_summaries(&filter, from, SLICE).await?;
            let is_last = !more || tasks.is_empty();
            from = tasks.last().map(TaskSummary::cursor);
            let mut canceling = Vec::new();
            for task in tasks {
                canceling.push(async move { (self.cancel_one(caller, &task).await, task) }.boxed());
            }
            let mut canceling = stream::iter(canceling).buffer_unordered(AT_ONCE);
            while let Some((canceled, task)) = canceling.next().await {
                match canceled {
                    Ok(_) => result.canceled += 1,
                    // It has ended by itself, or was deleted.
                    Err(Error::NotCancelable(_) | Error::TaskNotFound(_)) => {}
                    Err(error) => {
                        tracing::warn!(task = %task.row.task, %error, "an operator could not cancel a task");
                        if result.failed.len() < MAX_FAILURES {
                            result.failed.push((task.row.no, task.row.task, error.to_string()));
                        }
                    }
                }
            }
            if is_last {
                return Ok(result);
            }
        }
    }

    async fn cancel_one(&self, caller: &Caller, task: &TaskSummary) -> Result<Answer, Error> {
        let row = &task.row;
        let cancel = Cancel {
            agent: Some(row.agent.clone()),
            task: row.task.clone(),
            metadata: None,
            on_finished: OnFinishedCancel::Refuse,
        };
        let key = TopicKey { owner: row.owner.clone(), agent: row.agent.clone(), task: row.task.clone() };
        let audit = self.begin_audit(caller, &Call::Cancel(cancel));
        let answer = self.cancel_task(caller, &key, &audit).await.map(Answer::Task);
        self.finish_audit(caller, audit, answer).await
    }

    /// How many tasks there are by agent and state, of one owner or of all.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn task_counts(&self, owner: Option<&Owner>) -> Result<Vec<TaskCount>, Error> {
        Ok(self.core.store.task_counts(owner).await?)
    }

    /// What is known of the store as a whole.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn store_facts(&self) -> Result<StoreFacts, Error> {
        Ok(self.core.store.facts().await?)
    }

    /// How many deliveries of webhooks wait, and were given up. `None`: this engine offers no webhooks.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn delivery_counts(&self) -> Result<Option<DeliveryCounts>, Error> {
        match &self.core.webhooks {
            Some(webhooks) => Ok(Some(webhooks.outbox.delivery_counts().await?)),
            None => Ok(None),
        }
    }

    /// Makes all deliveries of a kind due now, or those to this URL. Returns how many.
    ///
    /// # Errors
    /// This engine offers no webhooks, or the store cannot be read or written. What was retried before stays so.
    pub async fn retry_deliveries(&self, caller: &Caller, kind: DeliveryKind, url: Option<&str>) -> Result<u64, Error> {
        let (mut retried, mut after) = (0, 0);
        loop {
            let deliveries = self.deliveries(kind, after, SLICE).await?;
            let Some(last) = deliveries.last() else { return Ok(retried) };
            after = last.number;
            let mut retrying = Vec::new();
            for delivery in deliveries.iter().filter(|delivery| url.is_none_or(|url| delivery.url == url)) {
                retrying.push(self.retry_delivery(caller, kind, delivery.number).boxed());
            }
            let mut retrying = stream::iter(retrying).buffer_unordered(AT_ONCE);
            while let Some(is_found) = retrying.next().await {
                retried += u64::from(is_found?);
            }
        }
    }

    /// What each agent does on this server now, also those that only routers can choose.
    pub fn agent_loads(&self) -> Vec<AgentLoad> {
        let default = self.default_agent();
        let loads = self.core.schedule.loads();
        let registered = self.core.agents.iter().map(|agent| (agent, true));
        let routed = self.core.routed_agents.iter().map(|agent| (agent, false));
        let of_agent = |(agent, has_address): (&Arc<RegisteredAgent>, bool)| {
            let hosted = &agent.hosted;
            AgentLoad {
                id: hosted.id.clone(),
                name: hosted.about().name.clone(),
                is_default: has_address && default == Some(&hosted.id),
                is_listed: has_address && hosted.is_listed,
                load: loads[agent.number],
            }
        };
        registered.chain(routed).map(of_agent).collect()
    }

    /// The name of this server among those that share its store. `None`: it has its store for itself.
    pub fn node_name(&self) -> Option<Arc<str>> {
        self.core.membership.as_ref().map(|membership| membership.cluster.node_name())
    }
}

impl RecordedLooks {
    fn is_due(&self, caller: &Owner) -> bool {
        let mut looks = lock(&self.0);
        let now = Instant::now();
        if looks.get(caller).is_some_and(|last| now.duration_since(*last) < LOOKS_APART) {
            return false;
        }
        if looks.len() >= MAX_LOOKERS {
            looks.clear();
        }
        looks.insert(caller.clone(), now);
        true
    }
}
