//! Tasks as 0.3 spells them.

use sabir_model as model;
use sabir_model::{ContextId, TaskId, Usage};
use serde::{Deserialize, Serialize};

use super::message::Message;
use super::names::State0_3;
use super::part::Part;
use crate::peer_response;
use crate::v1::{self, Artifact};
use crate::wire_types::{RawJson, Text, Violations, WireList, object};

pub(super) const KIND: &str = "task";

#[derive(Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct Task<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    kind: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_id: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status<'a>>,
    #[serde(default, skip_serializing_if = "WireList::is_empty")]
    artifacts: WireList<'a, Artifact<'a, Part<'a>>, model::Artifact>,
    #[serde(default, skip_serializing_if = "WireList::is_empty")]
    history: WireList<'a, Message<'a>, model::Message>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<RawJson<'a>>,
    /// Tokens and duration, for old clients of this dialect.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    data: Option<Costs>,
}

pub(super) type Status<'a> = v1::Status<State0_3<'a>, Message<'a>>;

object! { both Task<'a> }

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Costs {
    usage: Tokens,
    duration_ms: i64,
}

#[derive(Debug, Serialize)]
struct Tokens {
    input_tokens: u64,
    output_tokens: u64,
    total_tokens: u64,
}

impl<'a> Task<'a> {
    /// The task as event 1 shows it.
    pub(super) fn created(task: &'a TaskId, context: &'a ContextId, created: &'a model::Created) -> Self {
        Task {
            kind: Some(KIND.into()),
            id: Some(task.into()),
            context_id: Some(context.into()),
            status: Some(Status::created(created)),
            artifacts: WireList::default(),
            history: WireList::Shared(std::slice::from_ref(&created.message)),
            metadata: created.metadata.as_ref().map(RawJson::from),
            data: None,
        }
    }
}

impl<'a> From<&'a model::Task> for Task<'a> {
    fn from(task: &'a model::Task) -> Self {
        let duration_ms = task.status.time.as_millis().saturating_sub(task.created.as_millis()).max(0);
        Task {
            kind: Some(KIND.into()),
            id: Some((&task.id).into()),
            context_id: Some((&task.context).into()),
            status: Some((&task.status).into()),
            artifacts: (&task.artifacts).into(),
            history: (&task.history).into(),
            metadata: task.metadata.as_ref().map(RawJson::from),
            data: task.usage.map(|usage| Costs { usage: usage.into(), duration_ms }),
        }
    }
}

impl From<Usage> for Tokens {
    fn from(usage: Usage) -> Self {
        let Usage { input_tokens, output_tokens } = usage;
        Tokens { input_tokens, output_tokens, total_tokens: input_tokens.saturating_add(output_tokens) }
    }
}

impl TryFrom<Task<'_>> for model::Task {
    type Error = Violations;

    fn try_from(task: Task<'_>) -> Result<Self, Violations> {
        let mut violations = Violations::default();
        violations.kind(KIND, task.kind);
        let response = peer_response::ReceivedTask {
            id: violations.required_id("id", task.id, TaskId::parse),
            context: violations.id("contextId", task.context_id, ContextId::parse),
            status: violations.required("status", task.status).and_then(|s| violations.check("status", s.try_into())),
            artifacts: task.artifacts.read_each("artifacts", &mut violations, TryInto::try_into),
            history: task.history.read_each("history", &mut violations, TryInto::try_into),
            metadata: violations.object("metadata", task.metadata),
            born: super::dialect::BIRTH,
        };
        violations.finish(response.into_model())
    }
}
