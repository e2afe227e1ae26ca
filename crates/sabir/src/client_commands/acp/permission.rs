//! Questions for permission: a dialog of the editor, and the answer that its user gives.

use sabir_model::{
    Choice, ChoiceKind, Content, Json, Message, Part, QUESTION, QUESTION_ID, QuestionType, State, Status, TaskId,
};
use serde::{Deserialize, Serialize};

use super::content::Block;
use super::presenter::Presenter;
use super::session_update::{ToolCallUpdate, ToolContent};
use super::tool_calls;
use crate::terminal_text::{visible, visible_lines};

/// The answers to a question that offers none.
const YES: &str = "allow";
const NO: &str = "reject";

/// The parameters of `session/request_permission`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionRequest {
    session_id: String,
    tool_call: ToolCallUpdate,
    options: Vec<PermissionOption>,
    #[serde(skip)]
    offered: Offered,
}

/// Whose choices the user is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Offered {
    ByTheAgent,
    YesOrNo,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PermissionOption {
    option_id: String,
    name: String,
    kind: &'static str,
}

#[derive(Deserialize)]
struct PermissionResponse {
    outcome: Outcome,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outcome {
    outcome: String,
    #[serde(default)]
    option_id: Option<String>,
}

/// Whether a task in this status waits for permission, not for words.
pub fn is_permission(status: &Status) -> bool {
    let question = status.message.as_deref().filter(|_| status.state == State::InputRequired);
    question.is_some_and(|message| message.question_type() == QuestionType::Permission)
}

impl PermissionRequest {
    pub fn of(session_id: &str, task: &TaskId, status: &Status, presenter: &Presenter) -> Option<Self> {
        let message = status.message.as_deref()?;
        let data = message.parts.iter().find_map(|part| match &part.content {
            Content::Data(data) if data.text_of("kind").as_deref() == Some(QUESTION) => Some(data),
            _ => None,
        })?;
        let (name, input) = (data.text_of("tool"), data.member("input"));
        let shown = presenter.tool_asked_for(name.as_deref(), input.as_ref().map(Json::as_str));
        let call =
            shown.map_or_else(|| data.text_of(QUESTION_ID).unwrap_or_else(|| message.id.to_string()), str::to_owned);
        let choices = message.question_choices();
        let (offered, options) = match choices.is_empty() {
            true => {
                let option =
                    |id: &str, name: &str, kind| PermissionOption { option_id: id.into(), name: name.into(), kind };
                (Offered::YesOrNo, vec![option(YES, "Allow", "allow_once"), option(NO, "Reject", "reject_once")])
            }
            false => (Offered::ByTheAgent, choices.into_iter().map(PermissionOption::of).collect()),
        };
        let tool_call = ToolCallUpdate {
            tool_call_id: tool_calls::id(task, &call),
            title: Some(title(&message.question_text())),
            kind: Some(tool_calls::kind(name.as_deref().unwrap_or_default())),
            status: Some("pending"),
            content: content(message, input.as_ref()),
            raw_input: input,
            ..ToolCallUpdate::default()
        };
        Some(PermissionRequest { session_id: session_id.to_owned(), tool_call, options, offered })
    }

    /// The parts of the message that answers the question. Whatever is no clear choice of the user denies.
    pub fn answer(&self, response: &Json, status: &Status, task: &TaskId) -> Vec<Part> {
        let response: Option<PermissionResponse> = serde_json::from_str(response.as_str()).ok();
        let chosen = response.map(|response| response.outcome).filter(|outcome| outcome.outcome == "selected");
        let chosen = chosen.and_then(|outcome| outcome.option_id);
        let chosen = chosen.filter(|id| self.options.iter().any(|option| option.option_id == *id));
        let answer = Answer {
            question_id: status.question_id(task).map(|id| id.to_string()),
            approved: match (self.offered, &chosen) {
                (Offered::ByTheAgent, Some(_)) => None,
                (Offered::YesOrNo, Some(id)) => Some(id == YES),
                (_, None) => Some(false),
            },
            option_id: chosen.filter(|_| self.offered == Offered::ByTheAgent),
        };
        vec![Part::data(Json::of(&answer).expect("texts are JSON"))]
    }
}

/// The data part of an answer.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    #[serde(skip_serializing_if = "Option::is_none")]
    question_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    option_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    approved: Option<bool>,
}

impl PermissionOption {
    fn of(choice: Choice) -> Self {
        let kind = match choice.kind {
            // Editors may be told to say yes to everything: they must not take a choice for a yes that is none.
            ChoiceKind::Other => ChoiceKind::RejectOnce,
            kind => kind,
        };
        PermissionOption { option_id: choice.id, name: visible(&choice.name), kind: kind.name() }
    }
}

/// What permission is asked for. It takes the place of what was shown of the tool before, which the agent may have shown with another
/// input.
fn content(message: &Message, input: Option<&Json>) -> Vec<ToolContent> {
    let tool = message.tool_text().unwrap_or_else(|| visible_lines(&message.question_text()));
    let shown = ToolContent::Content { content: Block::text(tool) };
    [shown].into_iter().chain(input.and_then(tool_calls::diff)).collect()
}

/// A title is one line, in which nothing is hidden.
fn title(question: &str) -> String {
    visible(&question.split_whitespace().collect::<Vec<_>>().join(" "))
}
