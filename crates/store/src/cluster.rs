//! Several servers (nodes) on one store: who owns which task, and how nodes reach each other.
//!
//! A task at work has one owner, a node, since an epoch. Both are in the task's row, every append names its epoch, and a
//! takeover raises it, so a node that was thought dead cannot write to a task that another node has taken over.
//!
//! | a task                                   | owner in its row        | who may append                              |
//! |------------------------------------------|-------------------------|---------------------------------------------|
//! | at rest: settled, or waits for a message | none                    | any node, which becomes its owner by that    |
//! | left: something is to run                | none, marked as left    | the node that gets it from `Cluster::claim`  |
//! | queued at a node, running, parked        | that node, since epoch e | that node, with `Claim::Hold(e)`            |
//!
//! A node beats: it renews its lease in the database, by the clock of the database. When a node has not beaten for its grace
//! time, others may declare it dead and take its tasks. A node that cannot beat stops its own runs earlier than that.
//!
//! What a caller wants of a task that another node owns is forwarded: a row for that task, which its owner reads, whoever that
//! is by then. An append that does what was asked removes the row in its own transaction, so it is done once. The row expires
//! within seconds unless its sender extends it, so nothing is done for a caller that has been told of a failure.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use sabir_model::{AgentId, ContextId, Owner, Seq};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::{StoreFuture, TaskNo, UnfinishedTask};

/// The part of a store that several nodes share. The same object is a `Store`.
pub trait Cluster: Send + Sync + 'static {
    /// The name of this node. It is the same after a restart on the same machine.
    fn node_name(&self) -> Arc<str>;

    /// The lease of this node, which changes with every beat.
    fn lease(&self) -> watch::Receiver<NodeLease>;

    /// What other nodes have told since the last call. Waits until there is something. Hints are never needed: whoever waits
    /// for something looks for it at intervals of `poll_interval` too.
    fn hints(&self) -> StoreFuture<'_, Hints>;

    /// Whether the database notifies this node of changes by others. Behind a pooler it does not, and the node polls.
    fn receives_hints(&self) -> bool;

    /// How often to look for what other nodes did: seldom where hints arrive, often where they do not (behind a pooler).
    fn poll_interval(&self) -> Duration;

    /// How far these tasks have come. Tasks that do not exist are left out.
    fn progress(&self, tasks: Vec<TaskNo>) -> StoreFuture<'_, Vec<TaskProgress>>;

    /// Takes over tasks that nobody drives and somebody should: those of dead nodes, and those that were left and can run now.
    /// Returns them in order of creation, at most `limit`. Of those that were left only tasks of these agents, which are all that
    /// this node has; of each context at most one, the oldest, and only if the context is free.
    fn claim(&self, agents: Vec<ClaimingAgent>, limit: usize) -> StoreFuture<'_, Vec<ClaimedTask>>;

    /// Gives up tasks that this node owns since these epochs. Tasks that it does not own any more are not changed.
    fn give_back(&self, tasks: Vec<GivenBack>) -> StoreFuture<'static, ()>;

    /// The tasks that this node owns in the store, with their epochs.
    fn owned(&self) -> StoreFuture<'_, Vec<(TaskNo, Epoch)>>;

    /// How many tasks of this agent were left and wait to be claimed, on all nodes.
    fn left_tasks(&self, agent: &AgentId) -> StoreFuture<'_, u64>;

    /// The node where the sessions of this context are, if it is another one.
    fn home(&self, owner: &Owner, agent: &AgentId, context: &ContextId) -> StoreFuture<'_, Option<Home>>;

    /// A number for a call that will be forwarded. No other call has it.
    fn next_forward(&self) -> ForwardNo;

    /// Forwards a call to the node that owns the task. Nobody does what it asks after `until`. If this fails, the call may still be
    /// stored, even later; `forward_state` shows it then.
    fn forward(&self, call: ForwardedCall, until: Instant) -> StoreFuture<'static, ()>;

    /// The calls that were forwarded to tasks of this node, are not answered and have not expired, the oldest first. Each is returned again until an
    /// append has it in a `SideRow::ForwardDone`, `answer_forwarded` is called, or its sender has withdrawn it.
    fn forwarded(&self) -> StoreFuture<'_, Vec<ForwardedCall>>;

    /// Answers a forwarded call without an append, such as by a refusal.
    fn answer_forwarded(&self, call: ForwardNo, answer: Vec<u8>) -> StoreFuture<'static, ()>;

    /// What became of a forwarded call. If it is pending, it expires not before `until` from now on.
    fn forward_state(&self, call: ForwardNo, until: Instant) -> StoreFuture<'_, ForwardState>;

    /// Every node that is alive, and those that died a short time ago.
    fn members(&self) -> StoreFuture<'_, Vec<Member>>;

    /// This node stops: others may take what it left at once.
    fn leave(&self) -> StoreFuture<'_, ()>;
}

/// Identifies a message among those in flight: equal messages of one sender have the same.
pub type SendDigest = [u8; 16];

/// Since when a node owns a task: a number that grows with every change of the owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Epoch(pub u64);

/// What an append needs of the owner of its task, and what becomes of it. Stores of a single process ignore it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ownership {
    pub claim: Claim,
    pub context: ContextUse,
    pub then: AfterAppend,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Claim {
    /// The task is new or at rest, and this node becomes its owner. `StoreError::OwnedElsewhere` if it has another one, and
    /// `StoreError::Conflict` if a run would begin while messages wait that only whoever claims the task knows.
    #[default]
    Take,
    /// This node owns the task since this epoch. `StoreError::Conflict` if that is over.
    Hold(Epoch),
}

/// Whether an append begins a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ContextUse {
    /// No run begins, or the task has its context already.
    #[default]
    Unchanged,
    /// A run begins. `StoreError::ContextBusy` if another task of the context has one, or if the agent has this many runs on all
    /// nodes together.
    Begin { most_runs: Option<u32> },
}

/// Who owns the task after an append.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum AfterAppend {
    /// This node.
    #[default]
    Keep,
    /// Nobody: the task is at rest, and its context is free.
    Rest,
    /// Nobody: something is to run, but not here or not now. With a home, only there while that node lives.
    Leave { home: Option<Arc<str>> },
}

/// The lease of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeLease {
    /// No other node takes over a task of this one before this time. After it, this node must stop its runs.
    pub until: Instant,
    /// Grows when this node was declared dead and has begun again: all that it owned before belongs to others.
    pub incarnation: u64,
}

/// What other nodes have told.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hints {
    /// The logs, the inboxes or the owners of these tasks may have changed.
    pub tasks: Vec<TaskNo>,
    /// Calls were forwarded to tasks of this node, or answered.
    pub forwarded: bool,
    /// There may be something to claim.
    pub left: bool,
    /// Some hints were lost, so everything may have changed.
    pub all: bool,
}

/// How far a task has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskProgress {
    pub task: TaskNo,
    /// Whose task it is now: an operator may have given it to somebody else.
    pub belongs_to: Owner,
    /// The number of its last event.
    pub seq: Seq,
    pub owner: TaskOwner,
    /// Messages wait in its inbox.
    pub has_message: bool,
    /// Messages that answer a question wait in its inbox.
    pub has_answer: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskOwner {
    Nobody,
    /// Nobody, but something is to run: `Cluster::claim` will give it to a node.
    Left,
    ThisNode,
    /// The node with this name.
    Other(Arc<str>),
}

/// An agent of this node, which claims tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimingAgent {
    pub id: AgentId,
    /// How many runs it may have on all nodes together. If it has a limit, no more tasks are claimed than may begin now.
    pub most_runs: Option<u32>,
    /// How many more runs it may have on this node now. It counts only beside `most_runs`.
    pub free_slots: u32,
}

/// A task that this node owns now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedTask {
    pub unfinished: UnfinishedTask,
    /// The messages that were sent to it since it was last at rest (`SideRow::SendInFlight`).
    pub sends: Vec<SendDigest>,
    pub epoch: Epoch,
    /// The node that has died with it.
    pub lost_node: Option<Arc<str>>,
    /// The node where its sessions are, if that has been gone for so long that nobody waits for it any more.
    pub lost_home: Option<Arc<str>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenBack {
    pub task: TaskNo,
    pub epoch: Epoch,
    /// `AfterAppend::Keep` changes nothing.
    pub then: AfterAppend,
}

/// Where the sessions of a context are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    pub node: Arc<str>,
    /// It has been dead for so long that nobody waits for it any more.
    pub is_gone: bool,
}

/// The number of a forwarded call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ForwardNo(pub u64);

#[derive(Clone, PartialEq, Eq)]
pub struct ForwardedCall {
    pub number: ForwardNo,
    pub task: TaskNo,
    pub call: Vec<u8>,
}

/// Without the call, which has the content of a message.
impl fmt::Debug for ForwardedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, task, .. } = self;
        f.debug_struct("ForwardedCall").field("number", number).field("task", task).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForwardState {
    /// The owner has not answered yet.
    Pending,
    /// There is no such row: an append has done it, or it was never stored.
    Done,
    /// The owner has answered it without an append: refused, or already done. The row is removed.
    Answered(Vec<u8>),
    /// The task has no owner any more, and nothing was done. The row is removed.
    Withdrawn,
}

/// A node, as operators see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub name: Arc<str>,
    pub version: String,
    /// How long it runs, by the clock of the database.
    pub up: Duration,
    /// How long ago it has beaten.
    pub beat_age: Duration,
    pub grace: Duration,
    pub state: MemberState,
    /// Whether the database notifies it of changes; else it polls.
    pub receives_hints: bool,
    pub is_this: bool,
    /// Tasks that it owns: working, parked with a question, or queued.
    pub working: u64,
    pub parked: u64,
    pub queued: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberState {
    Alive,
    /// It has not beaten for its grace time; others take its tasks.
    Dead,
    /// It has left in order.
    Stopped,
}
