//! The params of get, cancel and subscribe, and those of the extended card, which name no task.

use sabir_model::{AgentId, Call, TaskId};
use serde::Deserialize;

use crate::asked::Asked;
use crate::spelling::{Carried, Int, Problems, Text, object};

#[derive(Debug, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(crate) struct TaskParams<'a> {
    #[serde(borrow)]
    tenant: Option<Text<'a>>,
    id: Option<Text<'a>>,
    #[serde(alias = "history_length")]
    history_length: Option<Int>,
    metadata: Option<Carried<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(remote = "Self")]
pub(super) struct ExtendedCardParams<'a> {
    #[serde(borrow)]
    tenant: Option<Text<'a>>,
}

object! { read TaskParams<'a>; read ExtendedCardParams<'a> }

impl TryFrom<TaskParams<'_>> for Asked {
    type Error = Problems;

    fn try_from(params: TaskParams<'_>) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let agent = problems.id("tenant", params.tenant, AgentId::parse);
        let task = problems.required_id("id", params.id, TaskId::parse);
        let history = problems.count("historyLength", params.history_length);
        let metadata = problems.object("metadata", params.metadata);
        problems.or(task.map(|task| Asked { agent, task, history, metadata }))
    }
}

impl TryFrom<ExtendedCardParams<'_>> for Call {
    type Error = Problems;

    fn try_from(params: ExtendedCardParams<'_>) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let agent = problems.id("tenant", params.tenant, AgentId::parse);
        problems.or(Some(Call::ExtendedCard { agent }))
    }
}
