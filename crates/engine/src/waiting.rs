//! What a queued task tells its caller: what it waits for, in words.
//!
//! Only tasks of the same caller are named; another caller's task is just another task.

use sabir_model::Part;

use crate::schedule::Behind;

pub(crate) fn note(behind: &Behind) -> Part {
    Part::text(match behind {
        Behind::Task { task, needs_answer: true } => {
            format!("waiting for task {task} of this context, which needs an answer")
        }
        Behind::Task { task, needs_answer: false } => format!("waiting for task {task} of this context"),
        Behind::Folder { task: Some(task) } => format!("waiting for task {task}, which works in the same folder"),
        Behind::Folder { task: None } => "waiting for another task, which works in the same folder".to_owned(),
        Behind::Places { limit: 1 } => "waiting for the agent, which runs one task at a time".to_owned(),
        Behind::Places { limit } => format!("waiting for the agent, which runs {limit} tasks at a time"),
    })
}
