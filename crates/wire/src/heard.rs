//! What a peer answered or streamed, as the model has it: the reading side of `Shown`.
//!
//! A peer's words do not fill a whole task of ours. What they leave open is filled with what says least: nobody's
//! task, made when its status was, without numbers. Whoever takes the task in knows better.

use sabir_model::{
    AgentId, Artifact, Birth, Card, Chunk, ContextId, Event, Json, Message, Owner, Page, Part, PushConfig, State,
    Status, StatusChange, TaskId, Timestamp,
};

use crate::spelling::{Carried, Moment, Problems, Text};
use crate::v1::{self, StateName};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// Alone, as the result of a send or as a frame of a stream.
    Task(Box<sabir_model::Task>),
    Reply(Box<Message>),
    Event {
        task: TaskId,
        context: ContextId,
        event: Box<Event>,
    },
    /// The last frame of a stream that shows with it what the task has made; of the rest the task knows nothing.
    End {
        task: Box<sabir_model::Task>,
        event: Box<Event>,
    },
    /// A peer's token for the next page is its own: only one that is ours is also in `page.next`.
    Page {
        page: Box<Page>,
        next: Option<String>,
    },
    PushConfig(Option<Box<PushConfig>>),
    PushConfigs(Vec<PushConfig>),
    Card(Box<Card>),
    /// Done, with nothing to tell.
    Nothing,
}

/// The members that all dialects read, each in its own spelling.
pub(crate) struct Task {
    pub(crate) id: Option<TaskId>,
    pub(crate) context: Option<ContextId>,
    pub(crate) status: Option<Status>,
    pub(crate) artifacts: Vec<Artifact>,
    pub(crate) history: Vec<Message>,
    pub(crate) metadata: Option<Json>,
    pub(crate) born: Birth,
}

impl Task {
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
pub(crate) struct StatusUpdate<'a, S, M> {
    pub(crate) task: Option<Text<'a>>,
    pub(crate) context: Option<Text<'a>>,
    pub(crate) status: Option<v1::Status<S, M>>,
    pub(crate) metadata: Option<Carried<'a>>,
}

impl<S: StateName, M: TryInto<Message, Error = Problems>> StatusUpdate<'_, S, M> {
    /// `is_final` says whether it is the last update, by the state that it reports.
    pub(crate) fn read(self, is_final: impl FnOnce(State) -> bool) -> Result<Heard, Problems> {
        let mut problems = Problems::default();
        let task = problems.required_id("taskId", self.task, TaskId::parse);
        let context = problems.id("contextId", self.context, ContextId::parse);
        let status = problems.required("status", self.status);
        let status: Option<Status> = status.and_then(|status| problems.keep("status", status.try_into()));
        let metadata = problems.object("metadata", self.metadata);
        problems.or(task.zip(status).map(|(task, status)| {
            let is_final = is_final(status.state);
            let change =
                StatusChange { status, is_final, input: Vec::new(), begins_turn: false, usage: None, metadata };
            event(task, context, Event::Status(change))
        }))
    }
}

/// The members of an artifact update, likewise.
pub(crate) struct ArtifactUpdate<'a, P> {
    pub(crate) task: Option<Text<'a>>,
    pub(crate) context: Option<Text<'a>>,
    pub(crate) artifact: Option<v1::Artifact<'a, P>>,
    pub(crate) append: Option<bool>,
    pub(crate) last_chunk: Option<bool>,
    pub(crate) metadata: Option<Carried<'a>>,
}

impl<P: TryInto<Part, Error = Problems>> ArtifactUpdate<'_, P> {
    pub(crate) fn read(self) -> Result<Heard, Problems> {
        let mut problems = Problems::default();
        let task = problems.required_id("taskId", self.task, TaskId::parse);
        let context = problems.id("contextId", self.context, ContextId::parse);
        let artifact = problems.required("artifact", self.artifact);
        let artifact: Option<Artifact> = artifact.and_then(|artifact| problems.keep("artifact", artifact.try_into()));
        let metadata = problems.object("metadata", self.metadata);
        let (append, last) = (self.append.unwrap_or(false), self.last_chunk.unwrap_or(false));
        problems.or(task.zip(artifact).map(|(task, artifact)| {
            // Its place in the task is for the reader to count.
            let chunk = Chunk { index: 0, artifact: artifact.into(), append, last, metadata };
            event(task, context, Event::Artifact(chunk))
        }))
    }
}

pub(crate) fn event(task: TaskId, named: Option<ContextId>, event: Event) -> Heard {
    Heard::Event { context: context(named, &task), task, event: Box::new(event) }
}

/// A peer that names no context has one for each task.
pub(crate) fn context(named: Option<ContextId>, task: &TaskId) -> ContextId {
    named.unwrap_or_else(|| ContextId::parse(task.as_str()).expect("ids of all kinds follow the same rule"))
}

/// Wire has no clock, so a status without a time is as old as can be.
pub(crate) fn time(told: Option<Moment>) -> Timestamp {
    told.map(|moment| moment.0).unwrap_or_default()
}
