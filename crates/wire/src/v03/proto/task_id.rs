//! The params of get, cancel and subscribe: a resource name, `tasks/ID`; an `id` is read as well.

use sabir_model::TaskId;
use serde::Deserialize;

use crate::asked::Asked;
use crate::lenient::any_task_id;
use crate::spelling::{Int, Problems, Text, object};

#[derive(Debug, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct TaskParams<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
    id: Option<Text<'a>>,
    #[serde(alias = "history_length")]
    history_length: Option<Int>,
}

object! { read TaskParams<'a> }

impl TryFrom<TaskParams<'_>> for Asked {
    type Error = Problems;

    fn try_from(params: TaskParams<'_>) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let task = any_task_id([("name", params.name), ("id", params.id)], &mut problems);
        let history = problems.count("historyLength", params.history_length);
        problems.or(task.map(|task: TaskId| Asked { agent: None, task, history, metadata: None }))
    }
}
