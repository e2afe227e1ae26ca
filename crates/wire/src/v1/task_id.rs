//! The params of get, cancel and subscribe, and those of the extended card, which name no task.

use sabir_model::{AgentId, Call, TaskId};
use serde::Deserialize;

use crate::task_request::TaskRequest;
use crate::wire_types::{Int32, RawJson, Text, Violations, object};

#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(crate) struct TaskParams<'a> {
    #[serde(borrow)]
    pub(super) tenant: Option<Text<'a>>,
    pub(super) id: Option<Text<'a>>,
    #[serde(alias = "history_length")]
    pub(super) history_length: Option<Int32>,
    pub(super) metadata: Option<RawJson<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(remote = "Self")]
pub(super) struct ExtendedCardParams<'a> {
    #[serde(borrow)]
    pub(super) tenant: Option<Text<'a>>,
}

object! { read TaskParams<'a>; read ExtendedCardParams<'a> }

impl TryFrom<TaskParams<'_>> for TaskRequest {
    type Error = Violations;

    fn try_from(params: TaskParams<'_>) -> Result<Self, Violations> {
        let mut violations = Violations::default();
        let agent = violations.id("tenant", params.tenant, AgentId::parse);
        let task = violations.required_id("id", params.id, TaskId::parse);
        let history = violations.count("historyLength", params.history_length);
        let metadata = violations.object("metadata", params.metadata);
        violations.finish(task.map(|task| TaskRequest { agent, task, history, metadata }))
    }
}

impl TryFrom<ExtendedCardParams<'_>> for Call {
    type Error = Violations;

    fn try_from(params: ExtendedCardParams<'_>) -> Result<Self, Violations> {
        let mut violations = Violations::default();
        let agent = violations.id("tenant", params.tenant, AgentId::parse);
        violations.finish(Some(Call::ExtendedCard { agent }))
    }
}
