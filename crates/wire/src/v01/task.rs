//! Tasks and their status as 0.1 spells them.

use sabir_model as model;
use sabir_model::{ContextId, State, TaskId};
use serde::{Deserialize, Serialize};

use super::artifact::ArtifactList;
use super::message::Message;
use crate::peer_response;
use crate::v1::{self, StateName};
use crate::v03::{self, read_state};
use crate::wire_types::{RawJson, Text, Violations, WireList, object};

#[derive(Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct Task<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    id: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status<'a>>,
    #[serde(default, skip_serializing_if = "ArtifactList::is_empty")]
    artifacts: ArtifactList<'a>,
    #[serde(default, skip_serializing_if = "WireList::is_empty")]
    history: WireList<'a, Message<'a>, model::Message>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<RawJson<'a>>,
}

pub(super) type Status<'a> = v1::Status<State0_1<'a>, Message<'a>>;

/// A state as 0.1 names it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct State0_1<'a>(#[serde(borrow)] Text<'a>);

impl StateName for State0_1<'_> {
    fn new(state: State) -> Self {
        // Two states have no name in 0.1, so they go by the nearest one.
        let state = match state {
            State::Rejected => State::Failed,
            State::AuthRequired => State::InputRequired,
            other => other,
        };
        Self(v03::state_name(state).into())
    }

    fn read(self) -> Result<Option<State>, Violations> {
        read_state(self.0).map(Some)
    }
}

object! { both Task<'a> }

impl<'a> From<&'a model::Task> for Task<'a> {
    fn from(task: &'a model::Task) -> Self {
        Task {
            id: Some((&task.id).into()),
            session_id: Some((&task.context).into()),
            status: Some((&task.status).into()),
            artifacts: ArtifactList::Model(&task.artifacts),
            history: (&task.history).into(),
            metadata: task.metadata.as_ref().map(RawJson::from),
        }
    }
}

impl TryFrom<Task<'_>> for model::Task {
    type Error = Violations;

    fn try_from(task: Task<'_>) -> Result<Self, Violations> {
        let mut violations = Violations::default();
        let response = peer_response::ReceivedTask {
            id: violations.required_id("id", task.id, TaskId::parse),
            context: violations.id("sessionId", task.session_id, ContextId::parse),
            status: violations.required("status", task.status).and_then(|s| violations.check("status", s.try_into())),
            artifacts: task.artifacts.read_each("artifacts", &mut violations),
            history: task.history.read_each("history", &mut violations, TryInto::try_into),
            metadata: violations.object("metadata", task.metadata),
            born: super::dialect::BIRTH,
        };
        violations.finish(response.into_model())
    }
}
