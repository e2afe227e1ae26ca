//! What another A2A server answers or streams, as the model has it: the reading side of `Payload`.
//!
//! A peer's task lacks members that a task of ours has. They get neutral values: an anonymous owner, created at the
//! time of its status, no event numbers. Whoever stores the task sets them.

use sabir_model::{
    AgentId, Artifact, Birth, Card, Chunk, ContextId, Event, Json, Message, Owner, Page, Part, PushConfig, State,
    Status, StatusChange, TaskId, Timestamp,
};

use crate::v1::{self, StateName};
use crate::wire_types::{RawJson, Rfc3339, Text, Violations, WireList};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeerResponse {
    /// The result of a get, a cancel or a send, or a frame of a stream.
    Task(Box<sabir_model::Task>),
    Message(Box<Message>),
    Event {
        task: TaskId,
        context: ContextId,
        event: Box<Event>,
    },
    /// The last frame of a stream in 0.1, with the artifacts of the task. The task has no history and no metadata.
    FinalEvent {
        task: Box<sabir_model::Task>,
        event: Box<Event>,
    },
    /// `next` is the peer's token for the next page. Only a token in our own format is also in `page.next`.
    Page {
        page: Box<Page>,
        next: Option<String>,
    },
    PushConfig(Option<Box<PushConfig>>),
    PushConfigs(Vec<PushConfig>),
    Card(Box<Card>),
    /// Done, without a result.
    Empty,
}

/// The members of a task that all dialects read.
pub(crate) struct ReceivedTask {
    pub(crate) id: Option<TaskId>,
    pub(crate) context: Option<ContextId>,
    pub(crate) status: Option<Status>,
    pub(crate) artifacts: Vec<Artifact>,
    pub(crate) history: Vec<Message>,
    pub(crate) metadata: Option<Json>,
    pub(crate) born: Birth,
}

impl ReceivedTask {
    pub(crate) fn into_model(self) -> Option<sabir_model::Task> {
        let (id, status) = self.id.zip(self.status)?;
        Some(sabir_model::Task {
            context: context(self.context, &id),
            id,
            agent: AgentId::parse("remote").expect("a short word is an id"),
            owner: Owner::anonymous(),
            born: self.born,
            created: status.time,
            turn_over: status.state.is_terminal(),
            status,
            artifacts: self.artifacts.into_iter().map(Into::into).collect(),
            open: Vec::new(),
            history: self.history.into_iter().map(Into::into).collect(),
            metadata: self.metadata,
            usage: None,
            seq: 0,
        })
    }
}

/// The members of a status update, as the dialects that name a context have them.
pub(crate) struct ReceivedStatus<'a, T> {
    pub(crate) task: Option<Text<'a>>,
    pub(crate) context: Option<Text<'a>>,
    pub(crate) status: Option<T>,
    pub(crate) metadata: Option<RawJson<'a>>,
}

impl<S: StateName, M: TryInto<Message, Error = Violations>> ReceivedStatus<'_, v1::Status<S, M>> {
    /// `is_final` says whether it is the last update, by the state that it reports.
    pub(crate) fn read(self, is_final: impl FnOnce(State) -> bool) -> Result<PeerResponse, Violations> {
        self.read_with(is_final, TryInto::try_into)
    }
}

impl<T> ReceivedStatus<'_, T> {
    /// The same for a status that is no JSON.
    pub(crate) fn read_with(
        self,
        is_final: impl FnOnce(State) -> bool,
        read: impl FnOnce(T) -> Result<Status, Violations>,
    ) -> Result<PeerResponse, Violations> {
        let mut violations = Violations::default();
        let task = violations.required_id("taskId", self.task, TaskId::parse);
        let context = violations.id("contextId", self.context, ContextId::parse);
        let status = violations.required("status", self.status);
        let status = status.and_then(|status| violations.check("status", read(status)));
        let metadata = violations.object("metadata", self.metadata);
        violations.finish(task.zip(status).map(|(task, status)| {
            let is_final = is_final(status.state);
            let change =
                StatusChange { status, is_final, input: Vec::new(), begins_turn: false, usage: None, metadata };
            event(task, context, Event::Status(change))
        }))
    }
}

/// The members of an artifact update, likewise.
pub(crate) struct ReceivedArtifact<'a, T> {
    pub(crate) task: Option<Text<'a>>,
    pub(crate) context: Option<Text<'a>>,
    pub(crate) artifact: Option<T>,
    pub(crate) append: Option<bool>,
    pub(crate) last_chunk: Option<bool>,
    pub(crate) metadata: Option<RawJson<'a>>,
}

impl<'a, P: TryInto<Part, Error = Violations>> ReceivedArtifact<'a, v1::Artifact<'a, P>> {
    pub(crate) fn read(self) -> Result<PeerResponse, Violations> {
        self.read_with(TryInto::try_into)
    }
}

impl<T> ReceivedArtifact<'_, T> {
    /// The same for an artifact that is no JSON.
    pub(crate) fn read_with(
        self,
        read: impl FnOnce(T) -> Result<Artifact, Violations>,
    ) -> Result<PeerResponse, Violations> {
        let mut violations = Violations::default();
        let task = violations.required_id("taskId", self.task, TaskId::parse);
        let context = violations.id("contextId", self.context, ContextId::parse);
        let artifact = violations.required("artifact", self.artifact);
        let artifact = artifact.and_then(|artifact| violations.check("artifact", read(artifact)));
        let metadata = violations.object("metadata", self.metadata);
        let (append, last) = (self.append.unwrap_or(false), self.last_chunk.unwrap_or(false));
        violations.finish(task.zip(artifact).map(|(task, artifact)| {
            // No version but 0.1 says which artifact of the task it is; whoever stores it counts.
            let chunk = Chunk { index: 0, artifact: artifact.into(), append, last, metadata };
            event(task, context, Event::Artifact(chunk))
        }))
    }
}

/// The answer to a request for all webhooks of a task; `member` is the name of the list.
pub(crate) fn push_configs<W, M>(configs: WireList<'_, W, M>, member: &str) -> Result<PeerResponse, Violations>
where
    W: TryInto<PushConfig, Error = Violations>,
{
    let mut violations = Violations::default();
    let configs = configs.read_each(member, &mut violations, TryInto::try_into);
    violations.finish(Some(PeerResponse::PushConfigs(configs)))
}

pub(crate) fn event(task: TaskId, named: Option<ContextId>, event: Event) -> PeerResponse {
    PeerResponse::Event { context: context(named, &task), task, event: Box::new(event) }
}

/// A peer that names no context gets one context for each task.
pub(crate) fn context(named: Option<ContextId>, task: &TaskId) -> ContextId {
    named.unwrap_or_else(|| ContextId::parse(task.as_str()).expect("ids of all kinds follow the same rule"))
}

/// This crate has no clock, so a status without a time gets the oldest time there is.
pub(crate) fn time(timestamp: Option<Rfc3339>) -> Timestamp {
    timestamp.map(|time| time.0).unwrap_or_default()
}

/// The reverse: a time that nobody named is not written.
pub(crate) fn timestamp(time: Timestamp) -> Option<Rfc3339> {
    (time != Timestamp::default()).then_some(Rfc3339(time))
}
