//! The tasks extension of 2026-07-28 (`io.modelcontextprotocol/tasks`): our tasks as the extension shows them.
//!
//! | ours                          | theirs                                                  |
//! |-------------------------------|---------------------------------------------------------|
//! | submitted, working            | `working`                                               |
//! | input-required, auth-required | `input_required`, with the question as an input request |
//! | completed                     | `completed`, with the result of the call                |
//! | failed, rejected              | `completed`, with a result that is an error             |
//! | canceled                      | `cancelled`                                             |
//!
//! `failed` is for errors of the protocol alone.

use std::collections::BTreeMap;

use sabir_model::{Caller, State, Task};
use serde::Serialize;

use super::client::Client;
use super::elicitation::{InputRequest, QuestionName};
use super::result::ToolResult;
use crate::question::Question;
use crate::words::status_text;

/// The name of the extension.
pub(crate) const TASKS: &str = "io.modelcontextprotocol/tasks";
/// How often clients should ask.
const POLL_INTERVAL_MS: u64 = 1000;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DetailedTask {
    result_type: &'static str,
    task_id: String,
    status: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    status_message: String,
    created_at: String,
    last_updated_at: String,
    /// Sabir keeps tasks as its retention says, which is not the task's own affair.
    ttl_ms: Option<u64>,
    poll_interval_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_requests: Option<BTreeMap<String, InputRequest>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<ToolResult>,
}

impl DetailedTask {
    /// The answer to the call that created the task.
    pub(crate) fn created(task: &Task) -> Self {
        Self { result_type: "task", ..Self::without_details(task, "working") }
    }

    /// The answer to `tasks/get`.
    pub(crate) fn of(client: Client, caller: &Caller, task: &Task) -> Self {
        match task.status.state {
            State::Submitted | State::Working => Self::without_details(task, "working"),
            State::Canceled => Self::without_details(task, "cancelled"),
            State::InputRequired | State::AuthRequired => {
                let question = Question::of(task)
                    .filter(|question| client.asks_users && question.may_be_answered_by(caller, task));
                let requests = question.map(|question| {
                    let name = QuestionName::of(task, &question).text();
                    (name, InputRequest::of(client, &question))
                });
                let input_requests = Some(requests.into_iter().collect());
                Self { input_requests, ..Self::without_details(task, "input_required") }
            }
            State::Completed | State::Failed | State::Rejected => {
                let result = Some(ToolResult::task(client, caller, task, None));
                Self { result, ..Self::without_details(task, "completed") }
            }
        }
    }

    fn without_details(task: &Task, status: &'static str) -> Self {
        Self {
            result_type: "complete",
            task_id: task.id.to_string(),
            status,
            status_message: status_text(task),
            created_at: task.created.to_string(),
            last_updated_at: task.status.time.to_string(),
            ttl_ms: None,
            poll_interval_ms: POLL_INTERVAL_MS,
            input_requests: None,
            result: None,
        }
    }
}
