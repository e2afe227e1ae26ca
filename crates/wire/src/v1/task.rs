//! Tasks, their status and their artifacts as 1.0 spells them.

use sabir_model as model;
use sabir_model::{ArtifactId, TaskId, Wanted};
use serde::{Deserialize, Serialize};

use super::message::Message;
use super::part::Part;
use super::{read_state, state_name};
use crate::heard;
use crate::spelling::{Carried, Moment, Name, Problems, Several, Text, given, object, worth_saying};

#[derive(Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(crate) struct Task<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    id: Option<Text<'a>>,
    #[serde(alias = "context_id", skip_serializing_if = "Option::is_none")]
    context_id: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status<'a>>,
    /// An empty list is written where a list of tasks was asked for with its artifacts.
    #[serde(skip_serializing_if = "Option::is_none")]
    artifacts: Option<Several<'a, Artifact<'a, Part<'a>>, model::Artifact>>,
    #[serde(default, skip_serializing_if = "Several::is_empty")]
    history: Several<'a, Message<'a>, model::Message>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Carried<'a>>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(crate) struct Status<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    state: Option<Name<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Message<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<Moment>,
}

/// An artifact is spelled alike in 1.0 and 0.3, but for the parts in it.
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

object! { both Task<'a>; both Status<'a>; read Artifact<'a, P> }

impl<'a, P: Serialize + From<&'a model::Part>> Serialize for Artifact<'a, P> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

impl<'a> Task<'a> {
    /// The task as event 1 shows it.
    pub(super) fn created(task: &'a TaskId, context: &'a model::ContextId, created: &'a model::Created) -> Self {
        Task {
            id: Some(task.into()),
            context_id: Some(context.into()),
            status: Some(Status {
                state: Some(state_name(model::State::Submitted).into()),
                message: created.note.as_deref().map(Message::from),
                timestamp: Some(Moment(created.time)),
            }),
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

impl<'a> From<&'a model::Task> for Task<'a> {
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

impl<'a> From<&'a model::Status> for Status<'a> {
    fn from(status: &'a model::Status) -> Self {
        Status {
            state: Some(state_name(status.state).into()),
            message: status.message.as_deref().map(Message::from),
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

impl TryFrom<Task<'_>> for model::Task {
    type Error = Problems;

    fn try_from(task: Task<'_>) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let heard = heard::Task {
            id: problems.required_id("id", task.id, TaskId::parse),
            context: problems.id("contextId", task.context_id, model::ContextId::parse),
            status: problems.required("status", task.status).and_then(|s| problems.keep("status", s.try_into())),
            artifacts: task.artifacts.unwrap_or_default().read_each("artifacts", &mut problems, TryInto::try_into),
            history: task.history.read_each("history", &mut problems, TryInto::try_into),
            metadata: problems.object("metadata", task.metadata),
            born: super::dialect::BIRTH,
        };
        problems.or(heard.into_model())
    }
}

impl TryFrom<Status<'_>> for model::Status {
    type Error = Problems;

    fn try_from(status: Status<'_>) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let state = problems.keep_required("state", read_state(status.state));
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
