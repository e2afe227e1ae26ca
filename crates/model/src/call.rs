//! Everything a client can ask for, and what it is answered.
//!
//! Every dialect and binding meets here. Where mounts or dialects differ in behaviour, the call has a
//! field for it, so that the engine never asks which version it talks to.

use std::sync::Arc;

use crate::{
    AgentId, Birth, Card, ContextId, Cursor, Error, IdempotencyKey, IncomingMessage, Json, Message, Part, PushConfig,
    PushConfigId, PushEvents, Seq, State, Task, TaskId, Timestamp, TraceContext,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call {
    Send(Box<Send>),
    Get(Get),
    List(List),
    Cancel(Cancel),
    Subscribe(Subscribe),
    Push(PushCall),
    ExtendedCard { agent: Option<AgentId> },
}

impl Call {
    /// The agent that is named; `None`: the default agent for a message, any agent for all else.
    pub fn agent(&self) -> Option<&AgentId> {
        match self {
            Call::Send(send) => send.agent.as_ref(),
            Call::Get(get) => get.agent.as_ref(),
            Call::List(list) => list.agent.as_ref(),
            Call::Cancel(cancel) => cancel.agent.as_ref(),
            Call::Subscribe(subscribe) => subscribe.agent.as_ref(),
            Call::Push(
                PushCall::Set { agent, .. }
                | PushCall::Get { agent, .. }
                | PushCall::List { agent, .. }
                | PushCall::Delete { agent, .. },
            )
            | Call::ExtendedCard { agent } => agent.as_ref(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Send {
    /// `None`: the default agent.
    pub agent: Option<AgentId>,
    pub message: IncomingMessage,
    /// Of the request, kept on the task.
    pub metadata: Option<Json>,
    pub delivery: Delivery,
    /// At most so many messages of history in the answer.
    pub history: Option<u32>,
    pub accepted_output: Vec<String>,
    /// The extensions that the caller wants to be active.
    pub extensions: Vec<String>,
    /// The trace that the request belongs to.
    pub trace: Option<TraceContext>,
    pub push: Option<PushConfig>,
    pub idempotency: Option<IdempotencyKey>,
    /// `Last-Event-ID`: honoured when the send joins a task that exists.
    pub last_event_id: Option<LastEventId>,
    pub born: Birth,
    pub on_unknown: OnUnknown,
    pub on_finished: OnFinished,
    pub addressee: Addressee,
    pub context_alone: ContextAlone,
    pub direct: Direct,
    /// Further answers of the same request, each about something else: the parts of each.
    pub further: Vec<Vec<Part>>,
}

impl Send {
    /// A message as most dialects mean it: to the default agent, about a task that must exist if it is named, and
    /// answered when the task settles.
    pub fn new(message: impl Into<IncomingMessage>, born: Birth) -> Self {
        Self {
            agent: None,
            message: message.into(),
            metadata: None,
            delivery: Delivery::WhenSettled,
            history: None,
            accepted_output: Vec::new(),
            extensions: Vec::new(),
            trace: None,
            push: None,
            idempotency: None,
            last_event_id: None,
            born,
            on_unknown: OnUnknown::Refuse,
            on_finished: OnFinished::Refuse,
            addressee: Addressee::Any,
            context_alone: ContextAlone::StartsTask,
            direct: Direct::Message,
            further: Vec::new(),
        }
    }
}

/// What a send that streams says in `Last-Event-ID`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastEventId {
    /// The stream goes on after this event.
    Event(Seq),
    /// Not the number of an event. That is an error where the send joins a task, and ignored where it starts one.
    Unusable,
}

impl LastEventId {
    /// Whether a task whose last event is `last` has no such event.
    pub fn is_beyond(self, last: Seq) -> bool {
        match self {
            LastEventId::Event(seq) => seq > last,
            LastEventId::Unusable => true,
        }
    }
}

/// When a send is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// With every event as it happens.
    Stream,
    /// Once, when the task settles or needs its caller.
    WhenSettled,
    /// At once; the client will ask again.
    Immediately,
}

/// What a message to a task that nobody knows means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnUnknown {
    Refuse,
    /// The caller names its tasks itself: this one is new.
    Create,
}

/// In which standing a task must be to take the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addressee {
    Any,
    /// The message is an answer, so there must be a question.
    Waiting,
}

/// What a message to a finished task means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFinished {
    Refuse,
    /// A new task in the same context.
    StartTask,
}

/// What a message with a context and no task means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContextAlone {
    /// It answers the one task of the context that waits, if there is one.
    AnswersWaiting,
    StartsTask,
}

/// What becomes of an agent's direct message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direct {
    Message,
    /// The dialect knows tasks only: a stored, completed one.
    StoredTask,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Get {
    /// `None`: any agent's task.
    pub agent: Option<AgentId>,
    pub task: TaskId,
    pub history: Option<u32>,
    /// Also the tasks of its context that came before it.
    pub earlier: Wanted,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List {
    pub agent: Option<AgentId>,
    pub context: Option<ContextId>,
    pub state: Option<State>,
    /// Status time at or after this.
    pub since: Option<Timestamp>,
    pub page_size: u32,
    pub from: Option<Cursor>,
    pub history: Option<u32>,
    pub artifacts: Wanted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    Yes,
    No,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cancel {
    pub agent: Option<AgentId>,
    pub task: TaskId,
    pub metadata: Option<Json>,
    pub on_finished: OnFinishedCancel,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFinishedCancel {
    Refuse,
    /// Answer with the task as it is.
    Leave,
    /// The same, but refuse where the task was born in this dialect.
    LeaveUnlessBorn(Birth),
}

impl OnFinishedCancel {
    /// Whether a finished task that was born there is answered as it is.
    pub fn leaves(self, born: Birth) -> bool {
        match self {
            OnFinishedCancel::Refuse => false,
            OnFinishedCancel::Leave => true,
            OnFinishedCancel::LeaveUnlessBorn(other) => born != other,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscribe {
    pub agent: Option<AgentId>,
    pub task: TaskId,
    /// `Last-Event-ID`: exactly the events after this one, and no snapshot.
    pub after: Option<Seq>,
    pub on_finished: OnFinishedSubscribe,
}

/// What a subscription without `Last-Event-ID` to a finished task means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFinishedSubscribe {
    Refuse,
    /// The snapshot, the last event once more, and the end.
    ShowEnd,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PushCall {
    Set { agent: Option<AgentId>, config: PushConfig, born: Birth, events: PushEvents },
    Get { agent: Option<AgentId>, task: TaskId, config: Option<PushConfigId> },
    List { agent: Option<AgentId>, task: TaskId, page_size: Option<u32>, page_token: Option<String> },
    Delete { agent: Option<AgentId>, task: TaskId, config: Option<PushConfigId> },
}

/// What a call is answered, `S` being the stream of events that the engine hands out.
#[derive(Debug)]
pub enum Answer<S> {
    /// Shared with everybody else who reads the same task at the same moment.
    Task(Arc<Task>),
    /// A task and those of its context that came before it, oldest first.
    Conversation(Arc<Task>, Vec<Task>),
    /// A task that was sent several answers, and what became of each.
    Answered(Arc<Task>, Vec<Result<(), Error>>),
    /// A direct message; there is no task.
    Message(Box<Message>),
    Page(Box<Page>),
    Stream(S),
    PushConfig(Option<Box<PushConfig>>),
    PushConfigs(Vec<PushConfig>),
    /// What the agents that the caller may see say of themselves.
    Card(Box<Card>),
    /// Done, with nothing to tell.
    Done,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    pub tasks: Vec<Task>,
    pub artifacts: Wanted,
    pub next: Option<Cursor>,
    pub page_size: u32,
    /// Matches before paging.
    pub total: u64,
}
