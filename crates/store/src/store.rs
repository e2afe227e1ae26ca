//! The door to the log, and what passes through it.
//!
//! Everything that must be true together is one `Append`, and is stored together or not at all. The
//! future of an append resolves after the commit, so whoever shows an event awaits it first. Many
//! appends may share one commit; one that fails does not take its neighbours with it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use sabir_model::{
    AgentId, Birth, ContextId, Cursor, Event, IdempotencyKey, Message, Owner, PushConfigId, Recorded, Seq, State, Task,
    TaskId, Timestamp, Wanted,
};

use crate::{StoreError, Webhook, WebhookSet};

pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

pub trait Store: Send + Sync + 'static {
    /// Stores all of it or nothing. What is borrowed is encoded before this returns, so the future
    /// holds nothing of the caller's.
    fn append(&self, append: Append<'_>) -> StoreFuture<'static, AppendResult>;

    /// Finds a task of this owner. Without an agent, any agent's; where two agents have a task of the
    /// same id (callers of v0.1 choose ids), the one that was made last.
    fn find(&self, owner: &Owner, agent: Option<&AgentId>, task: &TaskId) -> StoreFuture<'_, Option<TaskRow>>;

    /// The task as of its last event. One whose log is damaged is shown as failed as of that event, with a message
    /// that says so, here and in lists and conversations; its row may still have another state.
    fn load(&self, task: TaskNo) -> StoreFuture<'_, Option<Task>>;

    /// The same, found as `find` does.
    fn get(&self, owner: &Owner, agent: Option<&AgentId>, task: &TaskId) -> StoreFuture<'_, Option<Task>>;

    /// Events after `after`, in order, at most `limit` of them and about a megabyte; empty at the end.
    /// Of a damaged log it gives what comes before the damage; who asks for more gets `StoreError::Damaged`.
    fn events(&self, task: TaskNo, after: Seq, limit: usize) -> StoreFuture<'_, Vec<Recorded>>;

    /// The task as of one of its events. `None` also where the log ends before it.
    fn load_at(&self, task: TaskNo, event: Seq) -> StoreFuture<'_, Option<Task>>;

    fn list(&self, query: Query) -> StoreFuture<'_, Listing>;

    /// The tasks of a context that wait for their caller, oldest first.
    fn waiting(&self, owner: &Owner, agent: &AgentId, context: &ContextId) -> StoreFuture<'_, Vec<TaskRow>>;

    /// The tasks of all callers that have waited for an answer since before this moment, longest first.
    fn waiting_since(&self, before: Timestamp, limit: usize) -> StoreFuture<'_, Vec<TaskRow>>;

    /// The newest `limit` tasks of a context, whole, oldest first. Those that would make it more than about
    /// `max_bytes` are left out, oldest first too; the newest is always there.
    fn conversation(
        &self,
        owner: &Owner,
        agent: &AgentId,
        context: &ContextId,
        limit: usize,
        max_bytes: usize,
    ) -> StoreFuture<'_, Vec<Task>>;

    /// The task that this key made.
    fn find_by_key(&self, owner: &Owner, agent: &AgentId, key: &IdempotencyKey) -> StoreFuture<'_, Option<TaskRow>>;

    /// What an agent wanted to remember of a context.
    fn agent_state(&self, owner: &Owner, agent: &AgentId, context: &ContextId) -> StoreFuture<'_, Option<String>>;

    /// Messages that wait for a turn of this task, in order of arrival.
    fn inbox(&self, task: TaskNo) -> StoreFuture<'_, Vec<Message>>;

    /// Every task that is not settled, in order of creation: what a start must look at. Events are not read, and a
    /// task whose own row cannot be read is logged and left out.
    fn unfinished(&self) -> StoreFuture<'_, Vec<UnfinishedTask>>;

    /// Deletes settled tasks that retention does not keep, the longest settled first, and ends early so that appends
    /// can come in between. Who wants all of them gone asks again while there is more.
    fn sweep(&self, retention: Retention) -> StoreFuture<'_, SweepResult>;

    /// Adds a webhook to a task, or replaces the one with its id. It gets the events that are stored later; of a settled
    /// task it gets the last event.
    fn set_webhook(&self, task: TaskNo, webhook: Webhook, now: Timestamp) -> StoreFuture<'static, WebhookSet>;

    /// The webhooks of a task, in the order in which they were set.
    fn webhooks(&self, task: TaskNo) -> StoreFuture<'_, Vec<Webhook>>;

    /// Removes one webhook of a task, or all, with everything that is still to be sent to it.
    fn remove_webhooks(&self, task: TaskNo, id: Option<&PushConfigId>) -> StoreFuture<'static, ()>;

    /// The highest number that a task has had, as far as this is known: at the start that of the newest task that is there.
    fn highest_no(&self) -> TaskNo;

    /// Whether it can be read and written now.
    fn check(&self) -> StoreFuture<'_, ()>;
}

/// The store's own name for a task. Opaque to everybody else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskNo(pub u64);

/// A log of at most so many events is read quickly without a snapshot, so a store keeps none, and whoever appends need not make one.
pub const MAX_EVENTS_WITHOUT_SNAPSHOT: Seq = 16;

/// Changes of one task that belong together.
#[derive(Debug)]
pub struct Append<'a> {
    pub target: AppendTarget<'a>,
    /// The first of them gets the number after the task's last, which is `after`.
    pub events: &'a [&'a Event],
    /// The last event before these (0 for a new task). Somebody else's append in between is a conflict.
    pub after: Seq,
    /// The task as of the last of these events, given when it settles or waits. A store may keep it to
    /// spare readers the fold, and may leave it when the fold is short.
    pub snapshot: Option<&'a Task>,
    /// More rows for the same transaction.
    pub side_rows: &'a [SideRow],
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
}

/// A row that is stored together with the events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SideRow {
    /// A message that waits for the task's next turn.
    InboxAdd(Arc<Message>),
    /// The oldest so many messages have been taken up.
    InboxTake(usize),
    /// The message at this place, counted from the oldest, has been taken up before its time.
    InboxTakeAt(usize),
    /// What the agent wants to remember of the task's context; `None` forgets.
    AgentState(Option<String>),
    /// A later message of the task had this key: who repeats it finds the task. A key that is known
    /// already keeps its task.
    Key(IdempotencyKey),
    /// A caller asked to cancel the task. Kept until the task settles.
    CancelRequested,
    /// How often recovery has started the present turn; 0 removes the row. Kept until the task settles.
    Attempts(u32),
    /// A webhook of the task. It gets the events of this append too.
    Webhook(Box<Webhook>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AppendResult {
    pub task: TaskNo,
    pub last: Seq,
}

/// What lookups need of a task, without its events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRow {
    pub no: TaskNo,
    pub owner: Owner,
    pub agent: AgentId,
    pub task: TaskId,
    pub context: ContextId,
    pub born: Birth,
    pub state: State,
    /// Of the last status.
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
    /// How often recovery has started the present turn (`SideRow::Attempts`).
    pub attempts: u32,
    /// What of its rows cannot be read, if anything; that part is left out. Nothing is said about its events.
    pub damage: Option<String>,
}

/// Tasks by status time, newest first; equal times by id, descending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    pub owner: Owner,
    pub agent: Option<AgentId>,
    pub context: Option<ContextId>,
    pub state: Option<State>,
    /// Status time at or after this.
    pub since: Option<Timestamp>,
    /// Only what comes after this place.
    pub from: Option<Cursor>,
    pub limit: usize,
    /// The page ends before the task with which it would hold more than about so many bytes. It has at least one task.
    pub max_bytes: usize,
    /// Without their artifacts tasks are cheaper to read, and their `seq` is 0: they are not whole.
    pub artifacts: Wanted,
    /// At most so many messages of each history, the newest; all without a number.
    pub history: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// With what the query wants of them, at most `limit`.
    pub tasks: Vec<Task>,
    /// Whether more follow, in number or because of their bytes.
    pub more: bool,
    /// Matches of the filters, whatever `from` and `limit` say.
    pub total: u64,
}

/// What a sweep has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SweepResult {
    /// So many tasks are gone.
    pub tasks: u64,
    /// There is more to delete: tasks, or what is left of those that are gone.
    pub more: bool,
}

/// Which settled tasks may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    /// Those settled before this.
    pub settled_before: Option<Timestamp>,
    /// All but the newest so many settled ones.
    pub keep: Option<u64>,
    /// Tasks that were settled after this stay while something is to be sent to one of their webhooks.
    pub undelivered_after: Option<Timestamp>,
}
