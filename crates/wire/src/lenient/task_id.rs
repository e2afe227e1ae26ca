//! A task's id under any of its names: `id`, `taskId`, `task_id`, or `name` with `tasks/` before it; a context's likewise.

use sabir_model::{AgentId, ContextId, TaskId};
use serde::Deserialize;

use crate::task_request::TaskRequest;
use crate::wire_types::{Int32, RawJson, Text, Violations, object};

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
    history_length: Option<Int32>,
    metadata: Option<RawJson<'a>>,
}

object! { read TaskParams<'a> }

impl TryFrom<TaskParams<'_>> for TaskRequest {
    type Error = Violations;

    fn try_from(params: TaskParams<'_>) -> Result<Self, Violations> {
        let mut violations = Violations::default();
        let agent = violations.id("tenant", params.tenant, AgentId::parse);
        let names =
            [("id", params.id), ("taskId", params.task_id), ("task_id", params.snake_task_id), ("name", params.name)];
        let task = any_task_id(names, &mut violations);
        let history = violations.count("historyLength", params.history_length);
        let metadata = violations.object("metadata", params.metadata);
        violations.finish(task.map(|task| TaskRequest { agent, task, history, metadata }))
    }
}

/// The first one that is there; the others must be equal to it. If all are missing, the first is reported as missing.
pub(crate) fn any_task_id<const N: usize>(
    names: [(&str, Option<Text<'_>>); N],
    violations: &mut Violations,
) -> Option<TaskId> {
    let wanted = names[0].0;
    let found = agreed(names, violations)?;
    let Some((name, text)) = found else { return violations.required(wanted, None) };
    TaskId::parse(bare(name, &text)).map_err(|reason| violations.add(name, &reason.to_string())).ok()
}

/// The same for a context, which may be missing.
pub(crate) fn any_context_id<const N: usize>(
    names: [(&str, Option<Text<'_>>); N],
    violations: &mut Violations,
) -> Option<ContextId> {
    let (name, text) = agreed(names, violations)??;
    violations.id(name, Some(text), ContextId::parse)
}

/// The name and value of the first one that is there; `None` if others differ from it.
pub(super) fn agreed<'n, 't, const N: usize>(
    names: [(&'n str, Option<Text<'t>>); N],
    violations: &mut Violations,
) -> Option<Option<(&'n str, Text<'t>)>> {
    let mut found: Option<(&str, Text<'_>)> = None;
    for (name, text) in names {
        let Some(text) = text.filter(|text| !text.as_str().is_empty()) else { continue };
        match &found {
            None => found = Some((name, text)),
            Some((other, id)) if bare(other, id) != bare(name, &text) => {
                violations.add(name, &format!("differs from {other}"));
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
