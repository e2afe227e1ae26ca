//! Tasks, their status and their artifacts as 1.0 spells them.
//!
//! Other versions share these structs and fill in the type parameters: `S` is the name of a state, `M` a message and `P`
//! a part, each as the dialect writes it.

use sabir_model as model;
use sabir_model::{ArtifactId, Birth, TaskId, Wanted};
use serde::{Deserialize, Serialize};

use super::names::StateName;
use crate::peer_response;
use crate::wire_types::{RawJson, Rfc3339, Text, Violations, WireList, non_empty, non_empty_text, object};

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
    /// A list of tasks with artifacts has an empty list here; elsewhere an empty list is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    artifacts: Option<WireList<'a, Artifact<'a, P>, model::Artifact>>,
    #[serde(default, skip_serializing_if = "WireList::is_empty")]
    history: WireList<'a, M, model::Message>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<RawJson<'a>>,
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
    timestamp: Option<Rfc3339>,
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
    parts: WireList<'a, P, model::Part>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<RawJson<'a>>,
    #[serde(default, skip_serializing_if = "WireList::is_empty")]
    extensions: WireList<'a, Text<'a>, String>,
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
            history: WireList::Shared(std::slice::from_ref(&created.message)),
            metadata: created.metadata.as_ref().map(RawJson::from),
        }
    }

    /// A task in a list of tasks; `artifacts` says whether the caller wants them.
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
            timestamp: Some(Rfc3339(created.time)),
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
            metadata: task.metadata.as_ref().map(RawJson::from),
        }
    }
}

impl<'a, S: StateName, M: From<&'a model::Message>> From<&'a model::Status> for Status<S, M> {
    fn from(status: &'a model::Status) -> Self {
        Status {
            state: Some(S::new(status.state)),
            message: status.message.as_deref().map(M::from),
            timestamp: peer_response::timestamp(status.time),
        }
    }
}

impl<'a, P> From<&'a model::Artifact> for Artifact<'a, P> {
    fn from(artifact: &'a model::Artifact) -> Self {
        Artifact {
            artifact_id: Some((&artifact.id).into()),
            name: non_empty_text(&artifact.name),
            description: non_empty_text(&artifact.description),
            parts: (&artifact.parts).into(),
            metadata: artifact.metadata.as_ref().map(RawJson::from),
            extensions: (&artifact.extensions).into(),
        }
    }
}

impl<S, M, P> Task<'_, S, M, P>
where
    S: StateName,
    M: TryInto<model::Message, Error = Violations>,
    P: TryInto<model::Part, Error = Violations>,
{
    pub(crate) fn read(self, born: Birth) -> Result<model::Task, Violations> {
        let mut violations = Violations::default();
        let task = peer_response::ReceivedTask {
            id: violations.required_id("id", self.id, TaskId::parse),
            context: violations.id("contextId", self.context_id, model::ContextId::parse),
            status: violations.required("status", self.status).and_then(|s| violations.check("status", s.try_into())),
            artifacts: self.artifacts.unwrap_or_default().read_each("artifacts", &mut violations, TryInto::try_into),
            history: self.history.read_each("history", &mut violations, TryInto::try_into),
            metadata: violations.object("metadata", self.metadata),
            born,
        };
        violations.finish(task.into_model())
    }
}

impl<S: StateName, M: TryInto<model::Message, Error = Violations>> TryFrom<Status<S, M>> for model::Status {
    type Error = Violations;

    fn try_from(status: Status<S, M>) -> Result<Self, Violations> {
        let mut violations = Violations::default();
        let state = status.state.map_or(Ok(None), S::read);
        let state = violations.check_required("state", state);
        let message: Option<model::Message> =
            status.message.and_then(|message| violations.check("message", message.try_into()));
        let message = message.map(Into::into);
        let time = peer_response::time(status.timestamp);
        violations.finish(state.map(|state| model::Status { state, message, time }))
    }
}

impl<P: TryInto<model::Part, Error = Violations>> TryFrom<Artifact<'_, P>> for model::Artifact {
    type Error = Violations;

    fn try_from(artifact: Artifact<'_, P>) -> Result<Self, Violations> {
        let mut violations = Violations::default();
        let id = violations.required_id("artifactId", artifact.artifact_id, ArtifactId::parse);
        let parts = artifact.parts.read_each("parts", &mut violations, P::try_into);
        let metadata = violations.object("metadata", artifact.metadata);
        let extensions = artifact.extensions.into_wire().into_iter().map(Text::into_string).collect();
        violations.finish(id.map(|id| model::Artifact {
            id,
            name: non_empty(artifact.name),
            description: non_empty(artifact.description),
            parts,
            extensions,
            metadata,
        }))
    }
}
