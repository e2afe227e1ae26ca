//! Frames of a stream, which are also the bodies of webhooks; two of them are the results of a send.
//!
//! The frames of 0.3's ProtoJSON differ only in the type parameters (see `task`) and in `final`.

use sabir_model as model;
use sabir_model::{Birth, ContextId, Event, TaskId};
use serde::{Deserialize, Serialize};

use super::names::StateName;
use super::task::{Artifact, Status, Task};
use crate::peer_response::{self, PeerResponse};
use crate::wire_types::{RawJson, Text, Violations, object, raw_json};

/// Exactly one of the members is there.
#[derive(Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
#[serde(bound(
    serialize = "S: Serialize, M: Serialize + From<&'a model::Message>, P: Serialize + From<&'a model::Part>",
    deserialize = "S: Deserialize<'de>, M: Deserialize<'de>, P: Deserialize<'de>"
))]
pub(crate) struct Frame<'a, S, M, P> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    task: Option<Task<'a, S, M, P>>,
    /// The protobuf of 0.3 calls it `msg`.
    #[serde(alias = "msg", skip_serializing_if = "Option::is_none")]
    message: Option<M>,
    #[serde(alias = "status_update", skip_serializing_if = "Option::is_none")]
    status_update: Option<StatusUpdate<'a, S, M>>,
    #[serde(alias = "artifact_update", skip_serializing_if = "Option::is_none")]
    artifact_update: Option<ArtifactUpdate<'a, P>>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
#[serde(bound(serialize = "S: Serialize, M: Serialize", deserialize = "S: Deserialize<'de>, M: Deserialize<'de>"))]
struct StatusUpdate<'a, S, M> {
    #[serde(borrow, alias = "task_id", skip_serializing_if = "Option::is_none")]
    task_id: Option<Text<'a>>,
    #[serde(alias = "context_id", skip_serializing_if = "Option::is_none")]
    context_id: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status<S, M>>,
    #[serde(rename = "final", skip_serializing_if = "Option::is_none")]
    is_final: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<RawJson<'a>>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
#[serde(bound(serialize = "P: Serialize + From<&'a model::Part>", deserialize = "P: Deserialize<'de>"))]
struct ArtifactUpdate<'a, P> {
    #[serde(borrow, alias = "task_id", skip_serializing_if = "Option::is_none")]
    task_id: Option<Text<'a>>,
    #[serde(alias = "context_id", skip_serializing_if = "Option::is_none")]
    context_id: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifact: Option<Artifact<'a, P>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    append: Option<bool>,
    #[serde(alias = "last_chunk", skip_serializing_if = "Option::is_none")]
    last_chunk: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<RawJson<'a>>,
}

object! { read Frame<'a, S, M, P>; read StatusUpdate<'a, S, M>; read ArtifactUpdate<'a, P> }

/// Whether a status update says that it is the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FinalFlag {
    /// 1.0: the state says it.
    None,
    /// 0.3: a `final` that is false is not written.
    WhenTrue,
}

impl<S, M, P> Default for Frame<'_, S, M, P> {
    fn default() -> Self {
        Frame { task: None, message: None, status_update: None, artifact_update: None }
    }
}

impl<'a, S: StateName, M: From<&'a model::Message>, P> Frame<'a, S, M, P> {
    pub(crate) fn task(task: &'a model::Task) -> Self {
        Frame { task: Some(task.into()), ..Frame::default() }
    }

    pub(crate) fn message(message: &'a model::Message) -> Self {
        Frame { message: Some(message.into()), ..Frame::default() }
    }

    pub(crate) fn event(task: &'a TaskId, context: &'a ContextId, event: &'a Event, flag: FinalFlag) -> Self {
        let (task_id, context_id) = (Some(task.into()), Some(context.into()));
        match event {
            Event::Created(created) => Frame { task: Some(Task::created(task, context, created)), ..Frame::default() },
            Event::Status(change) => {
                let update = StatusUpdate {
                    task_id,
                    context_id,
                    status: Some((&change.status).into()),
                    is_final: (flag == FinalFlag::WhenTrue && change.is_final).then_some(true),
                    metadata: raw_json(&change.metadata),
                };
                Frame { status_update: Some(update), ..Frame::default() }
            }
            Event::Artifact(chunk) => {
                let update = ArtifactUpdate {
                    task_id,
                    context_id,
                    artifact: Some((&*chunk.artifact).into()),
                    append: chunk.append.then_some(true),
                    last_chunk: chunk.last.then_some(true),
                    metadata: raw_json(&chunk.metadata),
                };
                Frame { artifact_update: Some(update), ..Frame::default() }
            }
        }
    }
}

impl<S, M, P> Frame<'_, S, M, P>
where
    S: StateName,
    M: TryInto<model::Message, Error = Violations>,
    P: TryInto<model::Part, Error = Violations>,
{
    pub(crate) fn read(self, born: Birth, flag: FinalFlag) -> Result<PeerResponse, Violations> {
        let mut violations = Violations::default();
        let response = match (self.task, self.message, self.status_update, self.artifact_update) {
            (Some(task), None, None, None) => {
                violations.check("task", task.read(born)).map(|task| PeerResponse::Task(Box::new(task)))
            }
            (None, Some(message), None, None) => {
                violations.check("message", message.try_into()).map(|message| PeerResponse::Message(Box::new(message)))
            }
            (None, None, Some(update), None) => violations.check("statusUpdate", update.read(flag)),
            (None, None, None, Some(update)) => violations.check("artifactUpdate", update.read()),
            _ => {
                violations.add("", "exactly one of task, message, statusUpdate and artifactUpdate is required");
                None
            }
        };
        violations.finish(response)
    }
}

impl<S: StateName, M: TryInto<model::Message, Error = Violations>> StatusUpdate<'_, S, M> {
    fn read(self, flag: FinalFlag) -> Result<PeerResponse, Violations> {
        let update = peer_response::ReceivedStatus {
            task: self.task_id,
            context: self.context_id,
            status: self.status,
            metadata: self.metadata,
        };
        update.read(|state| match flag {
            FinalFlag::None => state.is_terminal(),
            FinalFlag::WhenTrue => self.is_final.unwrap_or(false),
        })
    }
}

impl<P: TryInto<model::Part, Error = Violations>> ArtifactUpdate<'_, P> {
    fn read(self) -> Result<PeerResponse, Violations> {
        let update = peer_response::ReceivedArtifact {
            task: self.task_id,
            context: self.context_id,
            artifact: self.artifact,
            append: self.append,
            last_chunk: self.last_chunk,
            metadata: self.metadata,
        };
        update.read()
    }
}

impl<'a, S, M, P> Serialize for Frame<'a, S, M, P>
where
    S: Serialize,
    M: Serialize + From<&'a model::Message>,
    P: Serialize + From<&'a model::Part>,
{
    fn serialize<Se: serde::Serializer>(&self, serializer: Se) -> Result<Se::Ok, Se::Error> {
        Self::serialize(self, serializer)
    }
}

impl<S: Serialize, M: Serialize> Serialize for StatusUpdate<'_, S, M> {
    fn serialize<Se: serde::Serializer>(&self, serializer: Se) -> Result<Se::Ok, Se::Error> {
        Self::serialize(self, serializer)
    }
}

impl<'a, P: Serialize + From<&'a model::Part>> Serialize for ArtifactUpdate<'a, P> {
    fn serialize<Se: serde::Serializer>(&self, serializer: Se) -> Result<Se::Ok, Se::Error> {
        Self::serialize(self, serializer)
    }
}
