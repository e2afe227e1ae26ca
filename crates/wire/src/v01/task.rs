//! Tasks and their status as 0.1 spells them.

use sabir_model as model;
use sabir_model::{ContextId, State, TaskId};
use serde::{Deserialize, Serialize};

use super::artifact::Artifacts;
use super::message::Message;
use crate::heard;
use crate::spelling::{Carried, Moment, Problems, Several, Text, object};
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

#[derive(Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct Status<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    state: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Message<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<Moment>,
}

object! { both Task<'a>; both Status<'a> }

/// Two states have no name in 0.1, so they go by the nearest one.
fn state_name(state: State) -> &'static str {
    v03::state_name(match state {
        State::Rejected => State::Failed,
        State::AuthRequired => State::InputRequired,
        other => other,
    })
}

impl<'a> Status<'a> {
    /// The status as event 1 shows it.
    pub(super) fn created(created: &'a model::Created) -> Self {
        Status {
            state: Some(state_name(State::Submitted).into()),
            message: created.note.as_deref().map(Message::from),
            timestamp: Some(Moment(created.time)),
        }
    }
}

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

impl<'a> From<&'a model::Status> for Status<'a> {
    fn from(status: &'a model::Status) -> Self {
        Status {
            state: Some(state_name(status.state).into()),
            message: status.message.as_deref().map(Message::from),
            timestamp: Some(Moment(status.time)),
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
