//! Tasks and their status as 0.1 spells them.

use sabir_model as model;
use sabir_model::{ContextId, State, TaskId};
use serde::{Deserialize, Serialize};

use super::artifact::Artifacts;
use super::message::Message;
use crate::heard;
use crate::spelling::{Carried, Problems, Several, Text, object};
use crate::v1::{self, StateName};
use crate::v03::{self, read_state};

#[derive(Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct Task<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    id: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status<'a>>,
    #[serde(default, skip_serializing_if = "Artifacts::is_empty")]
    artifacts: Artifacts<'a>,
    #[serde(default, skip_serializing_if = "Several::is_empty")]
    history: Several<'a, Message<'a>, model::Message>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Carried<'a>>,
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

    fn read(self) -> Result<Option<State>, Problems> {
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
            artifacts: Artifacts::Ours(&task.artifacts),
            history: (&task.history).into(),
            metadata: task.metadata.as_ref().map(Carried::from),
        }
    }
}

impl TryFrom<Task<'_>> for model::Task {
    type Error = Problems;

    fn try_from(task: Task<'_>) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let heard = heard::Task {
            id: problems.required_id("id", task.id, TaskId::parse),
            context: problems.id("sessionId", task.session_id, ContextId::parse),
            status: problems.required("status", task.status).and_then(|s| problems.keep("status", s.try_into())),
            artifacts: task.artifacts.read_each("artifacts", &mut problems),
            history: task.history.read_each("history", &mut problems, TryInto::try_into),
            metadata: problems.object("metadata", task.metadata),
            born: super::dialect::BIRTH,
        };
        problems.or(heard.into_model())
    }
}
