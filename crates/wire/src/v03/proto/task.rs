//! Tasks and their status in 0.3's ProtoJSON.

use sabir_model as model;
use sabir_model::{ContextId, State, TaskId};
use serde::{Deserialize, Serialize};

use super::message::Message;
use super::part::Part;
use crate::heard;
use crate::spelling::{Carried, Moment, Name, Problems, Several, Text, object};
use crate::v1::{self, Artifact, read_state};

#[derive(Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct Task<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    id: Option<Text<'a>>,
    #[serde(alias = "context_id", skip_serializing_if = "Option::is_none")]
    context_id: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status<'a>>,
    #[serde(default, skip_serializing_if = "Several::is_empty")]
    artifacts: Several<'a, Artifact<'a, Part<'a>>, model::Artifact>,
    #[serde(default, skip_serializing_if = "Several::is_empty")]
    history: Several<'a, Message<'a>, model::Message>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Carried<'a>>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct Status<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    state: Option<Name<'a>>,
    /// Its protobuf name is `update`.
    #[serde(alias = "update", skip_serializing_if = "Option::is_none")]
    message: Option<Message<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<Moment>,
}

object! { both Task<'a>; both Status<'a> }

fn state_name(state: State) -> &'static str {
    match state {
        State::Canceled => "TASK_STATE_CANCELLED",
        state => v1::state_name(state),
    }
}

impl<'a> Task<'a> {
    /// The task as event 1 shows it.
    pub(super) fn created(task: &'a TaskId, context: &'a ContextId, created: &'a model::Created) -> Self {
        Task {
            id: Some(task.into()),
            context_id: Some(context.into()),
            status: Some(Status {
                state: Some(state_name(State::Submitted).into()),
                message: created.note.as_deref().map(Message::from),
                timestamp: Some(Moment(created.time)),
            }),
            artifacts: Several::default(),
            history: Several::Shared(std::slice::from_ref(&created.message)),
            metadata: created.metadata.as_ref().map(Carried::from),
        }
    }
}

impl<'a> From<&'a model::Task> for Task<'a> {
    fn from(task: &'a model::Task) -> Self {
        Task {
            id: Some((&task.id).into()),
            context_id: Some((&task.context).into()),
            status: Some((&task.status).into()),
            artifacts: (&task.artifacts).into(),
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
            context: problems.id("contextId", task.context_id, ContextId::parse),
            status: problems.required("status", task.status).and_then(|s| problems.keep("status", s.try_into())),
            artifacts: task.artifacts.read_each("artifacts", &mut problems, TryInto::try_into),
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
