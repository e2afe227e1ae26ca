//! Questions of tasks as elicitations: a form that the host shows its user, and what the user made of it.
//!
//! The names that Sabir gives (the id of a request, the key of an input request, the state of a retry) hold the task and the
//! question. So whoever gets the response can hand it on: another server behind the balancer, or this one after a restart.
//! They give no rights: the engine asks whether the caller may answer.

use std::sync::atomic::{AtomicU64, Ordering};

use sabir_model::{AgentId, Json, QuestionId, QuestionType, Task, TaskId, base64url, from_base64url, visible};
use serde::{Deserialize, Serialize};

use super::client::{Client, McpVersion};
use super::message::json_of;
use crate::question::{GivenAnswer, Question};

/// What is in front of the names that Sabir gives.
const PREFIX: &str = "sabir-question.";

/// The parameters of `elicitation/create`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Elicitation {
    /// Since 2025-11-25.
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<&'static str>,
    message: String,
    requested_schema: Json,
}

/// An elicitation as an input request of the modern era.
#[derive(Debug, Serialize)]
pub(crate) struct InputRequest {
    method: &'static str,
    params: Elicitation,
}

impl InputRequest {
    pub(crate) fn of(client: Client, question: &Question) -> Self {
        Self { method: "elicitation/create", params: Elicitation::of(client, question) }
    }
}

#[derive(Serialize)]
struct Titled<'a> {
    r#const: &'a str,
    title: String,
}

impl Elicitation {
    pub(crate) fn of(client: Client, question: &Question) -> Self {
        let mode = (client.version >= McpVersion::V2025_11_25).then_some("form");
        let kind = FormKind::of(question);
        let property = match kind {
            FormKind::Choice if client.version >= McpVersion::V2025_11_25 => {
                let titled =
                    question.choices.iter().map(|choice| Titled { r#const: &choice.id, title: visible(&choice.name) });
                let titled = json_of(&titled.collect::<Vec<_>>());
                format!(r#"{{"type":"string","title":"Answer","oneOf":{}}}"#, titled.as_str())
            }
            FormKind::Choice => {
                let ids: Vec<&str> = question.choices.iter().map(|choice| choice.id.as_str()).collect();
                let names: Vec<String> = question.choices.iter().map(|choice| visible(&choice.name)).collect();
                let (ids, names) = (json_of(&ids), json_of(&names));
                format!(
                    r#"{{"type":"string","title":"Answer","enum":{},"enumNames":{}}}"#,
                    ids.as_str(),
                    names.as_str()
                )
            }
            FormKind::Approval => r#"{"type":"boolean","title":"Allow it"}"#.to_owned(),
            FormKind::Words => r#"{"type":"string","title":"Answer"}"#.to_owned(),
        };
        let name = kind.property();
        let schema = format!(r#"{{"type":"object","properties":{{"{name}":{property}}},"required":["{name}"]}}"#);
        let requested_schema = Json::parse(schema).expect("a schema with one property is JSON");
        Self { mode, message: question.shown(), requested_schema }
    }
}

/// What the user made of a form.
#[derive(Debug)]
pub(crate) enum UserAction {
    Accepted(Form),
    /// The user clearly says no to the question as a whole.
    Declined,
    /// The user has closed it, or what came is no answer.
    Dismissed,
}

#[derive(Deserialize)]
struct ElicitResult {
    action: String,
    content: Option<Form>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Form {
    choice: Option<String>,
    approved: Option<bool>,
    answer: Option<String>,
}

impl UserAction {
    pub(crate) fn read(result: Option<&Json>) -> Self {
        let result = result.and_then(|json| serde_json::from_str::<ElicitResult>(json.as_str()).ok());
        match result {
            Some(ElicitResult { action, content: Some(form) }) if action == "accept" => Self::Accepted(form),
            Some(ElicitResult { action, .. }) if action == "decline" => Self::Declined,
            _ => Self::Dismissed,
        }
    }

    /// What is sent to the task; `None`: nothing, and the question stays open. Only what the form of this question asks for counts.
    pub(crate) fn answer(self, question: &Question) -> Option<GivenAnswer> {
        let is_permission = question.question_type == QuestionType::Permission;
        match (self, FormKind::of(question)) {
            (Self::Accepted(Form { choice: Some(id), .. }), FormKind::Choice) => {
                question.choices.iter().any(|choice| choice.id == id).then_some(GivenAnswer::Choice(id))
            }
            (Self::Accepted(Form { approved: Some(true), .. }), FormKind::Approval) => Some(GivenAnswer::Approved),
            (Self::Accepted(Form { approved: Some(false), .. }), FormKind::Approval) => Some(GivenAnswer::Denied),
            (Self::Accepted(Form { answer: Some(words), .. }), FormKind::Words) if !words.trim().is_empty() => {
                Some(GivenAnswer::Words(words))
            }
            (Self::Declined, _) if is_permission => Some(GivenAnswer::Denied),
            _ => None,
        }
    }
}

/// What a form asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FormKind {
    Choice,
    Approval,
    Words,
}

impl FormKind {
    fn of(question: &Question) -> Self {
        match question.question_type {
            _ if !question.choices.is_empty() => Self::Choice,
            QuestionType::Permission => Self::Approval,
            QuestionType::Input => Self::Words,
        }
    }

    /// The property that holds it.
    fn property(self) -> &'static str {
        match self {
            Self::Choice => "choice",
            Self::Approval => "approved",
            Self::Words => "answer",
        }
    }
}

/// A question of a task, as it is named towards clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QuestionName {
    /// Ids of tasks may repeat across agents.
    pub(crate) agent: AgentId,
    pub(crate) task: TaskId,
    pub(crate) question: QuestionId,
}

impl QuestionName {
    pub(crate) fn of(task: &Task, question: &Question) -> Self {
        Self { agent: task.agent.clone(), task: task.id.clone(), question: question.id }
    }

    /// Letters, digits, `-`, `_` and `.`
    pub(crate) fn text(&self) -> String {
        let (agent, task) = (base64url(self.agent.as_str().as_bytes()), base64url(self.task.as_str().as_bytes()));
        format!("{PREFIX}{}.{agent}.{task}", self.question)
    }

    /// The id of a request that asks it. Each time it is another one, as ids of requests must be.
    pub(crate) fn request_id(&self) -> String {
        static ASKED: AtomicU64 = AtomicU64::new(0);
        format!("{}.{}", self.text(), ASKED.fetch_add(1, Ordering::Relaxed))
    }

    /// Reads a name or the id of a request.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut words = text.strip_prefix(PREFIX)?.split('.');
        let question = QuestionId::parse(words.next()?)?;
        let agent = AgentId::parse(String::from_utf8(from_base64url(words.next()?)?).ok()?).ok()?;
        let task = TaskId::parse(String::from_utf8(from_base64url(words.next()?)?).ok()?).ok()?;
        let is_ours = question.is_of(&task) && words.next().is_none_or(|count| count.parse::<u64>().is_ok());
        (is_ours && words.next().is_none()).then_some(Self { agent, task, question })
    }
}

#[cfg(test)]
mod tests {
    use sabir_model::Choice;

    use super::*;

    fn name() -> QuestionName {
        let task = TaskId::parse("t/1 é").unwrap();
        QuestionName { agent: AgentId::parse("a.b").unwrap(), question: QuestionId::issue(&task, 7), task }
    }

    #[test]
    fn a_name_holds_agent_task_and_question() {
        let name = name();
        assert_eq!(QuestionName::parse(&name.text()), Some(name.clone()));
        assert_eq!(QuestionName::parse(&name.request_id()), Some(name.clone()));
        assert_ne!(name.request_id(), name.request_id());
        let of_other_task = name.text().replace(&base64url("t/1 é".as_bytes()), &base64url(b"t2"));
        for text in
            ["", "sabir-question.", "sabir-question.q7", "x.q7.dDE.dDE", &of_other_task, &format!("{}.x", name.text())]
        {
            assert_eq!(QuestionName::parse(text), None, "{text}");
        }
    }

    #[test]
    fn only_what_the_form_asks_for_is_an_answer() {
        let task = TaskId::parse("t").unwrap();
        let question = |question_type, choices: &[&str]| Question {
            id: QuestionId::issue(&task, 3),
            question_type,
            words: "?".into(),
            tool: None,
            choices: choices
                .iter()
                .map(|id| Choice { id: (*id).to_owned(), name: "n".into(), kind: sabir_model::ChoiceKind::Other })
                .collect(),
            approver: None,
        };
        let input = question(QuestionType::Input, &[]);
        let permission = question(QuestionType::Permission, &[]);
        let choice = question(QuestionType::Permission, &["allow", "reject"]);
        let accept = |content: &str| format!(r#"{{"action":"accept","content":{content}}}"#);
        for (question, text, expected) in [
            (&choice, accept(r#"{"choice":"allow"}"#), Some(GivenAnswer::Choice("allow".into()))),
            (&choice, accept(r#"{"choice":"other"}"#), None),
            (&choice, accept(r#"{"approved":true}"#), None),
            (&choice, r#"{"action":"decline"}"#.into(), Some(GivenAnswer::Denied)),
            (&choice, r#"{"action":"cancel"}"#.into(), None),
            (&permission, accept(r#"{"approved":true}"#), Some(GivenAnswer::Approved)),
            (&permission, accept(r#"{"approved":false,"choice":"allow"}"#), Some(GivenAnswer::Denied)),
            (&permission, accept(r#"{"approved":"yes"}"#), None),
            (&permission, accept(r#"{"answer":"yes"}"#), None),
            (&input, accept(r#"{"answer":"Monday"}"#), Some(GivenAnswer::Words("Monday".into()))),
            (&input, accept(r#"{"answer":" "}"#), None),
            (&input, r#"{"action":"accept"}"#.into(), None),
            (&input, r#"{"action":"decline"}"#.into(), None),
            (&input, "7".into(), None),
        ] {
            let action = UserAction::read(Some(&Json::parse(text.as_str()).unwrap()));
            assert_eq!(action.answer(question), expected, "{text}");
        }
        assert_eq!(UserAction::read(None).answer(&input), None);
    }
}
