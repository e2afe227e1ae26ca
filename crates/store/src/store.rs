//! The interface of a store, and the values that pass through it.
//!
//! Everything that must become true together is one `Append`, which is stored completely or not at all. The future of
//! an append resolves after the commit, so an event is shown only after this future. Many appends may share one commit;
//! an append that fails does not affect the others.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use sabir_model::{
    AgentId, Birth, ContextId, Cursor, Event, IdempotencyKey, Message, Owner, PushConfigId, Recorded, Seq, State, Task,
    TaskId, Timestamp, Wanted,
};
use serde::{Deserialize, Serialize};

use crate::transfer::ExportTasks;
use crate::{
    AuditEntry, Epoch, ForwardNo, Ownership, StoreError, StoreFacts, SummaryPage, SummaryQuery, TaskCount, TaskSummary,
    Webhook, WebhookSet,
};

pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

pub trait Store: Send + Sync + 'static {
    /// Stores the whole append or nothing. Borrowed values are encoded before this returns, so the future borrows
    /// nothing.
    fn append(&self, append: Append<'_>) -> StoreFuture<'static, AppendResult>;

    /// Finds a task of this owner. Without an agent: a task of any agent; if several agents have a task with this id
    /// (callers of v0.1 choose ids), the newest.
    fn find(&self, owner: &Owner, agent: Option<&AgentId>, task: &TaskId) -> StoreFuture<'_, Option<TaskRow>>;

    /// The tasks of all owners with this id, the newest first, at most `limit`. Only for callers who may see more than their
    /// own: it looks at every owner.
    fn find_of_all(&self, agent: Option<&AgentId>, task: &TaskId, limit: usize) -> StoreFuture<'_, Vec<TaskRow>>;

    /// The task as of its last event. A task with a damaged log is shown as failed as of that event, with a message
    /// that says so, here and in lists and conversations; its row may still have another state.
    fn load(&self, task: TaskNo) -> StoreFuture<'_, Option<Task>>;

    /// The same by id, with the rules of `find`.
    fn get(&self, owner: &Owner, agent: Option<&AgentId>, task: &TaskId) -> StoreFuture<'_, Option<Task>>;

    /// Events after `after`, in order: at most `limit` of them and about a megabyte; empty at the end. For a damaged
    /// log, returns the events before the damage, and `StoreError::Damaged` after those.
    fn events(&self, task: TaskNo, after: Seq, limit: usize) -> StoreFuture<'_, Vec<Recorded>>;

    /// The task as of one of its events. `None` also where the log ends before it.
    fn load_at(&self, task: TaskNo, event: Seq) -> StoreFuture<'_, Option<Task>>;

    fn list(&self, query: Query) -> StoreFuture<'_, Listing>;

    /// The tasks of a context that wait for their caller, oldest first.
    fn waiting(&self, owner: &Owner, agent: &AgentId, context: &ContextId) -> StoreFuture<'_, Vec<TaskRow>>;

    /// The tasks of all callers that have waited for an answer since before this time, the longest wait first.
    fn waiting_since(&self, before: Timestamp, limit: usize) -> StoreFuture<'_, Vec<TaskRow>>;

    /// The newest `limit` tasks of a context, whole, oldest first. If they have more than about `max_bytes`, the oldest
    /// are left out; the newest is always included.
    fn conversation(
        &self,
        owner: &Owner,
        agent: &AgentId,
        context: &ContextId,
        limit: usize,
        max_bytes: usize,
    ) -> StoreFuture<'_, Vec<Task>>;

    /// The task that was created or continued with this idempotency key.
    fn find_by_key(&self, owner: &Owner, agent: &AgentId, key: &IdempotencyKey) -> StoreFuture<'_, Option<TaskRow>>;

    /// What an agent has remembered of a context.
    fn agent_state(&self, owner: &Owner, agent: &AgentId, context: &ContextId) -> StoreFuture<'_, Option<String>>;

    /// What an agent wanted to remember of a task.
    fn task_state(&self, task: TaskNo) -> StoreFuture<'_, Option<String>>;

    /// Messages that wait for a turn of this task, in order of arrival.
    fn inbox(&self, task: TaskNo) -> StoreFuture<'_, Vec<Message>>;

    /// Every task that is not settled, in order of creation, for recovery. Events are not read. A task whose row cannot
    /// be read is logged and left out.
    fn unfinished(&self) -> StoreFuture<'_, Vec<UnfinishedTask>>;

    /// Deletes settled tasks that retention does not keep, the longest settled first. It ends early, so that appends
    /// can run in between; call it again while `more` is set.
    fn sweep(&self, retention: Retention) -> StoreFuture<'_, SweepResult>;

    /// Adds a webhook to a task, or replaces the one with its id. It gets the events that are stored later; of a settled
    /// task it gets the last event.
    fn set_webhook(&self, task: TaskNo, webhook: Webhook, now: Timestamp) -> StoreFuture<'static, WebhookSet>;

    /// The webhooks of a task, in the order in which they were set.
    fn webhooks(&self, task: TaskNo) -> StoreFuture<'_, Vec<Webhook>>;

    /// Removes one webhook of a task, or all, with everything that is still to be sent to it.
    fn remove_webhooks(&self, task: TaskNo, id: Option<&PushConfigId>) -> StoreFuture<'static, ()>;

    /// Tasks of an owner by id and agent, after this place; at most `limit`.
    fn tasks_of(&self, owner: &Owner, after: Option<(TaskId, AgentId)>, limit: usize) -> StoreFuture<'_, Vec<TaskRow>>;

    /// Makes these tasks of one owner those of another, with their keys and with what their agents remember, all or none.
    /// Returns those that were moved: a task at work stays, and so does one whose id the other owner uses at that agent.
    fn assign(&self, tasks: Vec<TaskNo>, from: &Owner, to: &Owner) -> StoreFuture<'static, Vec<TaskNo>>;

    /// Tasks of all owners as operators see them. A page costs at most one look-up for each owner, agent and state that the query
    /// takes, and one for each of its tasks; a query for a context or a prefix costs one for each owner and for each task that
    /// has it.
    fn summaries(&self, query: SummaryQuery) -> StoreFuture<'_, SummaryPage>;

    /// One task as operators see it.
    fn summary(&self, task: TaskNo) -> StoreFuture<'_, Option<TaskSummary>>;

    /// How many bytes one task takes: its row, log and waiting messages. Reads the sizes of all its events.
    fn bytes_of(&self, task: TaskNo) -> StoreFuture<'_, u64>;

    /// How many tasks there are by agent and state, of one owner or of all. Comes from counters; what is zero is left out.
    fn task_counts(&self, owner: Option<&Owner>) -> StoreFuture<'_, Vec<TaskCount>>;

    /// What is known of the store as a whole.
    fn facts(&self) -> StoreFuture<'_, StoreFacts>;

    /// The highest number that any task has had, as far as is known: after a start, that of the newest task in the
    /// store.
    fn highest_no(&self) -> TaskNo;

    /// How many bytes the tasks of each owner take: their rows, logs and waiting messages. Reads the whole store. Changes
    /// after that are in `AppendResult::bytes`.
    fn stored_bytes(&self) -> StoreFuture<'_, Vec<(Owner, u64)>>;

    /// Checks that the store can be read and written now.
    fn check(&self) -> StoreFuture<'_, ()>;

    /// Everything that is stored now, to be read while appends go on. `None`: this store cannot be copied. The calls of an
    /// export may block.
    fn export(&self) -> StoreFuture<'_, Option<Box<dyn ExportTasks>>>;
}

/// The store's number of a task. It has no meaning elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TaskNo(pub u64);

/// A log with at most this many events is read quickly without a snapshot. Stores keep none, and callers need not make
/// one.
pub const MAX_EVENTS_WITHOUT_SNAPSHOT: Seq = 16;

/// What the row of a task counts in `Store::stored_bytes`, whatever its ids: about the size of the row and its index entries.
pub const TASK_ROW_BYTES: u64 = 512;

/// Changes of one task that are stored together.
#[derive(Debug)]
pub struct Append<'a> {
    pub target: AppendTarget<'a>,
    /// The first of them gets the number `after + 1`.
    pub events: &'a [&'a Event],
    /// The task's last event before these (0 for a new task). If another append came in between, that is a conflict.
    pub after: Seq,
    /// The task as of the last of these events, if the caller has made a snapshot. A store may keep it to make reads
    /// faster, or ignore it if the log is short.
    pub snapshot: Option<&'a Task>,
    /// More rows for the same transaction.
    pub side_rows: &'a [SideRow],
    pub ownership: Ownership,
}

#[derive(Debug)]
pub enum AppendTarget<'a> {
    New(NewTask<'a>),
    Known(TaskNo),
}

#[derive(Debug)]
pub struct NewTask<'a> {
    pub owner: &'a Owner,
    pub agent: &'a AgentId,
    pub task: &'a TaskId,
    pub context: &'a ContextId,
    pub born: Birth,
    pub key: Option<&'a IdempotencyKey>,
    /// Identifies the send among those in flight on all nodes: while the task has an owner, the same digest of the same owner and
    /// agent is `StoreError::Exists`. Stores of a single process ignore it.
    pub send_digest: Option<[u8; 16]>,
}

/// A row that is stored together with the events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SideRow {
    /// A message that waits for the task's next turn.
    InboxAdd(Arc<Message>),
    /// The driver has taken this many of the oldest messages.
    InboxTake(usize),
    /// The driver has taken the message at this index, counted from the oldest.
    InboxTakeAt(usize),
    /// What the agent remembers of the task's context; `None` removes it.
    AgentState(Option<String>),
    /// What the agent remembers of the task itself; `None` removes it. Kept as long as the task.
    TaskState(Option<String>),
    /// The idempotency key of a later message of the task: a repetition by the same sender finds the task. The append is
    /// refused with `StoreError::Exists` if the key is known already, unless it conflicts anyway.
    Key(SentKey),
    /// A caller asked to cancel the task. Kept until the task settles.
    CancelRequested,
    /// How often recovery has started the current turn; 0 removes the row. Kept until the task settles.
    Attempts(u32),
    /// A webhook of the task. It gets the events of this append too.
    Webhook(Box<Webhook>),
    /// An entry of the audit log about this task.
    Audit(Box<AuditEntry>),
    /// The digest of the message that wakes the task (`NewTask::send_digest`). The append is refused with `StoreError::Exists` if
    /// the same message is in flight. Stores of a single process ignore it.
    SendInFlight([u8; 16]),
    /// This append does what a forwarded call wanted (`Cluster::forward`).
    ForwardDone(ForwardNo),
}

/// An idempotency key, which belongs to its sender.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SentKey {
    pub key: IdempotencyKey,
    /// `None`: the owner of the task.
    pub sender: Option<Owner>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AppendResult {
    pub task: TaskNo,
    pub last: Seq,
    /// How many bytes more the task takes (`Store::stored_bytes`). Negative if more was taken from its inbox than was stored.
    pub bytes: i64,
    /// Since when this node owns the task. Stores of a single process do not count epochs.
    pub epoch: Epoch,
}

/// A task without its events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRow {
    pub no: TaskNo,
    pub owner: Owner,
    pub agent: AgentId,
    pub task: TaskId,
    pub context: ContextId,
    pub born: Birth,
    pub state: State,
    /// The time of the last status.
    pub time: Timestamp,
    /// The last status ended its turn.
    pub turn_over: bool,
    pub created: Timestamp,
    /// The number of the last event.
    pub seq: Seq,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnfinishedTask {
    pub row: TaskRow,
    pub inbox: Vec<Message>,
    /// A caller asked to cancel the task (`SideRow::CancelRequested`).
    pub cancel_requested: bool,
    /// How often recovery has started the current turn (`SideRow::Attempts`).
    pub attempts: u32,
    /// Which of its rows cannot be read, if any; these are left out. Events are not checked.
    pub damage: Option<String>,
}

/// A query for tasks by status time, newest first; for equal times by id, then by agent, then by number, descending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    pub owner: Owner,
    /// Of the owner's tasks, only those of these agents; `None`: of all.
    pub own_agents: Option<Vec<AgentId>>,
    /// Which tasks are listed beside the owner's.
    pub others: Others,
    pub agent: Option<AgentId>,
    pub context: Option<ContextId>,
    pub state: Option<State>,
    /// Only tasks with a status time at or after this.
    pub since: Option<Timestamp>,
    /// Only tasks after this place of the order.
    pub from: Option<Cursor>,
    pub limit: usize,
    /// The page ends before the task with which it would have more than about this many bytes. It has at least one
    /// task.
    pub max_bytes: usize,
    /// Tasks without artifacts are cheaper to read. Their `seq` is 0, since they are not complete.
    pub artifacts: Wanted,
    /// At most this many messages of each history, the newest; `None`: all.
    pub history: Option<u32>,
}

/// Which tasks are listed beside the owner's.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Others {
    #[default]
    None,
    /// Everybody's.
    All,
    /// Those of these agents, in the owner's tenant, that wait for the answer of an approver with the scope beside the agent.
    ForApproval(Vec<(AgentId, String)>),
}

impl Query {
    /// Whether the owner's tasks of this agent are listed.
    pub(crate) fn lists_own(&self, agent: &AgentId) -> bool {
        self.own_agents.as_ref().is_none_or(|agents| agents.contains(agent))
    }

    /// Whether the task is listed because it waits for an approver.
    pub(crate) fn awaits_approval(&self, task: &Task) -> bool {
        let Others::ForApproval(scopes) = &self.others else { return false };
        let Some(approver) = task.approver().filter(|_| task.owner.shares_tenant_with(&self.owner)) else {
            return false;
        };
        scopes.iter().any(|(agent, scope)| *agent == task.agent && *scope == approver)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// At most `limit` tasks, with the parts that the query wants.
    pub tasks: Vec<Task>,
    /// Whether more tasks follow.
    pub more: bool,
    /// How many tasks match the filters, independent of `from` and `limit`.
    pub total: u64,
    /// The number of the last task, if the query is for tasks of several owners.
    pub last: Option<TaskNo>,
}

/// The result of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SweepResult {
    /// How many tasks were deleted.
    pub tasks: u64,
    /// There is more to delete: tasks, or the remaining rows of deleted tasks.
    pub more: bool,
}

/// Which settled tasks a sweep deletes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    /// Tasks that settled before this time.
    pub settled_before: Option<Timestamp>,
    /// All but this many of the newest settled tasks.
    pub keep: Option<u64>,
    /// Tasks that were settled after this stay while something is to be sent to one of their webhooks.
    pub pending_after: Option<Timestamp>,
}
