//! A task's id under any of its names: `id`, `taskId`, `task_id`, or `name` with `tasks/` before it; a context's likewise.

use sabir_model::{AgentId, ContextId, TaskId};
use serde::Deserialize;

use crate::asked::Asked;
use crate::spelling::{Carried, Int, Problems, Text, object};

#[derive(Debug, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(crate) struct TaskParams<'a> {
    #[serde(borrow)]
    tenant: Option<Text<'a>>,
    id: Option<Text<'a>>,
    task_id: Option<Text<'a>>,
    #[serde(rename = "task_id")]
    snake_task_id: Option<Text<'a>>,
    name: Option<Text<'a>>,
    #[serde(alias = "history_length")]
    history_length: Option<Int>,
    metadata: Option<Carried<'a>>,
}

object! { read TaskParams<'a> }

impl TryFrom<TaskParams<'_>> for Asked {
    type Error = Problems;

    fn try_from(params: TaskParams<'_>) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let agent = problems.id("tenant", params.tenant, AgentId::parse);
        let names =
            [("id", params.id), ("taskId", params.task_id), ("task_id", params.snake_task_id), ("name", params.name)];
        let task = any_task_id(names, &mut problems);
        let history = problems.count("historyLength", params.history_length);
        let metadata = problems.object("metadata", params.metadata);
        problems.or(task.map(|task| Asked { agent, task, history, metadata }))
    }
}

/// The first of them that is there; another one must say the same. None of them is as if the first were missing.
pub(crate) fn any_task_id<const N: usize>(
    names: [(&str, Option<Text<'_>>); N],
    problems: &mut Problems,
) -> Option<TaskId> {
    let wanted = names[0].0;
    let found = agreed(names, problems)?;
    let Some((name, text)) = found else { return problems.required(wanted, None) };
    TaskId::parse(bare(name, &text)).map_err(|reason| problems.add(name, &reason.to_string())).ok()
}

/// The same for a context, which need not be named at all.
pub(crate) fn any_context_id<const N: usize>(
    names: [(&str, Option<Text<'_>>); N],
    problems: &mut Problems,
) -> Option<ContextId> {
    let (name, text) = agreed(names, problems)??;
    problems.id(name, Some(text), ContextId::parse)
}

/// What all of the names say that are there; `None` if they differ.
pub(super) fn agreed<'n, 't, const N: usize>(
    names: [(&'n str, Option<Text<'t>>); N],
    problems: &mut Problems,
) -> Option<Option<(&'n str, Text<'t>)>> {
    let mut found: Option<(&str, Text<'_>)> = None;
    for (name, text) in names {
        let Some(text) = text.filter(|text| !text.as_str().is_empty()) else { continue };
        match &found {
            None => found = Some((name, text)),
            Some((other, id)) if bare(other, id) != bare(name, &text) => {
                problems.add(name, &format!("differs from {other}"));
                return None;
            }
            Some(_) => {}
        }
    }
    Some(found)
}

fn bare<'t>(name: &str, text: &'t Text<'_>) -> &'t str {
    let text = text.as_str();
    if name == "name" { text.strip_prefix("tasks/").unwrap_or(text) } else { text }
}
