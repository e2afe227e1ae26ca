//! The params of get, cancel and subscribe: a resource name, `tasks/ID`; an `id` is read as well.

use sabir_model::TaskId;
use serde::Deserialize;

use crate::lenient::any_task_id;
use crate::task_request::TaskRequest;
use crate::wire_types::{Int32, Text, Violations, object};

#[derive(Debug, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(crate) struct TaskParams<'a> {
    #[serde(borrow)]
    pub(crate) name: Option<Text<'a>>,
    pub(crate) id: Option<Text<'a>>,
    #[serde(alias = "history_length")]
    pub(crate) history_length: Option<Int32>,
}

object! { read TaskParams<'a> }

impl TryFrom<TaskParams<'_>> for TaskRequest {
    type Error = Violations;

    fn try_from(params: TaskParams<'_>) -> Result<Self, Violations> {
        let mut violations = Violations::default();
        let task = any_task_id([("name", params.name), ("id", params.id)], &mut violations);
        let history = violations.count("historyLength", params.history_length);
        violations.finish(task.map(|task: TaskId| TaskRequest { agent: None, task, history, metadata: None }))
    }
}
