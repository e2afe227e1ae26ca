//! Tasks, their status and their artifacts as 1.0 spells them.
//!
//! Other versions spell them alike but for what is inside: the type parameters are the dialect's own name of a state
//! (`S`), its messages (`M`) and its parts (`P`).

use sabir_model as model;
use sabir_model::{ArtifactId, Birth, TaskId, Wanted};
use serde::{Deserialize, Serialize};

use super::names::StateName;
use crate::heard;
use crate::spelling::{Carried, Moment, Problems, Several, Text, given, object, worth_saying};

#[derive(Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
#[serde(bound(
    serialize = "S: Serialize, M: Serialize + From<&'a model::Message>, P: Serialize + From<&'a model::Part>",
    deserialize = "S: Deserialize<'de>, M: Deserialize<'de>, P: Deserialize<'de>"
))]
pub(crate) struct Task<'a, S, M, P> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    id: Option<Text<'a>>,
    #[serde(alias = "context_id", skip_serializing_if = "Option::is_none")]
    context_id: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status<S, M>>,
    /// An empty list is written where a list of tasks was asked for with its artifacts.
    #[serde(skip_serializing_if = "Option::is_none")]
    artifacts: Option<Several<'a, Artifact<'a, P>, model::Artifact>>,
    #[serde(default, skip_serializing_if = "Several::is_empty")]
    history: Several<'a, M, model::Message>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Carried<'a>>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
#[serde(bound(serialize = "S: Serialize, M: Serialize", deserialize = "S: Deserialize<'de>, M: Deserialize<'de>"))]
pub(crate) struct Status<S, M> {
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<S>,
    /// The protobuf of 0.3 calls it `update`.
    #[serde(alias = "update", skip_serializing_if = "Option::is_none")]
    message: Option<M>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<Moment>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
#[serde(bound(serialize = "P: Serialize + From<&'a model::Part>", deserialize = "P: Deserialize<'de>"))]
pub(crate) struct Artifact<'a, P> {
    #[serde(borrow, alias = "artifact_id", skip_serializing_if = "Option::is_none")]
    artifact_id: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<Text<'a>>,
    #[serde(default)]
    parts: Several<'a, P, model::Part>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Carried<'a>>,
    #[serde(default, skip_serializing_if = "Several::is_empty")]
    extensions: Several<'a, Text<'a>, String>,
}

object! { read Task<'a, S, M, P>; both Status<S, M>; read Artifact<'a, P> }

impl<'a, S, M, P> Serialize for Task<'a, S, M, P>
where
    S: Serialize,
    M: Serialize + From<&'a model::Message>,
    P: Serialize + From<&'a model::Part>,
{
    fn serialize<Se: serde::Serializer>(&self, serializer: Se) -> Result<Se::Ok, Se::Error> {
        Self::serialize(self, serializer)
    }
}

impl<'a, P: Serialize + From<&'a model::Part>> Serialize for Artifact<'a, P> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

impl<'a, S: StateName, M: From<&'a model::Message>, P> Task<'a, S, M, P> {
    /// The task as event 1 shows it.
    pub(crate) fn created(task: &'a TaskId, context: &'a model::ContextId, created: &'a model::Created) -> Self {
        Task {
            id: Some(task.into()),
            context_id: Some(context.into()),
            status: Some(Status::created(created)),
            artifacts: None,
            history: Several::Shared(std::slice::from_ref(&created.message)),
            metadata: created.metadata.as_ref().map(Carried::from),
        }
    }

    /// One of a list, which says whether artifacts are wanted.
    pub(super) fn listed(task: &'a model::Task, artifacts: Wanted) -> Self {
        let artifacts = match artifacts {
            Wanted::Yes => Some((&task.artifacts).into()),
            Wanted::No => None,
        };
        Task { artifacts, ..Task::from(task) }
    }

    pub(super) fn has_artifacts(&self) -> bool {
        self.artifacts.is_some()
    }
}

impl<'a, S: StateName, M: From<&'a model::Message>> Status<S, M> {
    /// The status as event 1 shows it.
    pub(crate) fn created(created: &'a model::Created) -> Self {
        Status {
            state: Some(S::new(model::State::Submitted)),
            message: created.note.as_deref().map(M::from),
            timestamp: Some(Moment(created.time)),
        }
    }
}

impl<'a, S: StateName, M: From<&'a model::Message>, P> From<&'a model::Task> for Task<'a, S, M, P> {
    fn from(task: &'a model::Task) -> Self {
        Task {
            id: Some((&task.id).into()),
            context_id: Some((&task.context).into()),
            status: Some((&task.status).into()),
            artifacts: (!task.artifacts.is_empty()).then(|| (&task.artifacts).into()),
            history: (&task.history).into(),
            metadata: task.metadata.as_ref().map(Carried::from),
        }
    }
}

impl<'a, S: StateName, M: From<&'a model::Message>> From<&'a model::Status> for Status<S, M> {
    fn from(status: &'a model::Status) -> Self {
        Status {
            state: Some(S::new(status.state)),
            message: status.message.as_deref().map(M::from),
            timestamp: Some(Moment(status.time)),
        }
    }
}

impl<'a, P> From<&'a model::Artifact> for Artifact<'a, P> {
    fn from(artifact: &'a model::Artifact) -> Self {
        Artifact {
            artifact_id: Some((&artifact.id).into()),
            name: worth_saying(&artifact.name),
            description: worth_saying(&artifact.description),
            parts: (&artifact.parts).into(),
            metadata: artifact.metadata.as_ref().map(Carried::from),
            extensions: (&artifact.extensions).into(),
        }
    }
}

impl<S, M, P> Task<'_, S, M, P>
where
    S: StateName,
    M: TryInto<model::Message, Error = Problems>,
    P: TryInto<model::Part, Error = Problems>,
{
    pub(crate) fn read(self, born: Birth) -> Result<model::Task, Problems> {
        let mut problems = Problems::default();
        let task = heard::Task {
            id: problems.required_id("id", self.id, TaskId::parse),
            context: problems.id("contextId", self.context_id, model::ContextId::parse),
            status: problems.required("status", self.status).and_then(|s| problems.keep("status", s.try_into())),
            artifacts: self.artifacts.unwrap_or_default().read_each("artifacts", &mut problems, TryInto::try_into),
            history: self.history.read_each("history", &mut problems, TryInto::try_into),
            metadata: problems.object("metadata", self.metadata),
            born,
        };
        problems.or(task.into_model())
    }
}

impl<S: StateName, M: TryInto<model::Message, Error = Problems>> TryFrom<Status<S, M>> for model::Status {
    type Error = Problems;

    fn try_from(status: Status<S, M>) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let state = status.state.map_or(Ok(None), S::read);
        let state = problems.keep_required("state", state);
        let message: Option<model::Message> =
            status.message.and_then(|message| problems.keep("message", message.try_into()));
        let message = message.map(Into::into);
        let time = heard::time(status.timestamp);
        problems.or(state.map(|state| model::Status { state, message, time }))
    }
}

impl<P: TryInto<model::Part, Error = Problems>> TryFrom<Artifact<'_, P>> for model::Artifact {
    type Error = Problems;

    fn try_from(artifact: Artifact<'_, P>) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let id = problems.required_id("artifactId", artifact.artifact_id, ArtifactId::parse);
        let parts = artifact.parts.read_each("parts", &mut problems, P::try_into);
        let metadata = problems.object("metadata", artifact.metadata);
        let extensions = artifact.extensions.into_read().into_iter().map(Text::into_string).collect();
        problems.or(id.map(|id| model::Artifact {
            id,
            name: given(artifact.name),
            description: given(artifact.description),
            parts,
            extensions,
            metadata,
        }))
    }
}
