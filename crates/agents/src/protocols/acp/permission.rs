//! A request for permission: its question for the caller, and what the answer means. Options are identified by their `kind`,
//! never by their id.
//!
//! The protocol does not say how long `always` lasts. Several programs write it into the settings of their user or of the
//! workspace, where it would hold for every other agent. So Sabir offers it only if the program is known to forget it with
//! its session. For all others "always" means "once".

use serde_json::{Value, json};

use super::tool::{self, Tool};
use crate::lenient_json::Object;
use crate::prompt::Approve;
use crate::protocols::jsonrpc;
use crate::update::{Choice, ChoiceKind, Question, Reply};

/// A request that waits for its answer.
pub(super) struct Pending {
    /// As the program wrote it.
    pub(super) id: Value,
    pub(super) question: Question,
    /// The tool call that it is about.
    call: Option<String>,
}

impl Pending {
    /// `program` is the name that the program gave itself.
    pub(super) fn new(id: Value, params: &Object, tool: Option<&Tool>, program: Option<&str>) -> Self {
        let question = Question {
            id: jsonrpc::id_text(&id),
            text: tool.map_or_else(|| "Allow what it wants to do?".to_owned(), text),
            tool: tool.map(|tool| tool.name.clone()),
            input: tool.and_then(|tool| tool.input.clone()),
            choices: choices(&params.objects("options"), program),
        };
        Self { id, question, call: params.object("toolCall").non_empty_text("toolCallId") }
    }

    /// Whether this notification shows that the program no longer waits: it withdraws the request, or the tool has ended
    /// without the answer.
    pub(super) fn is_withdrawn_by(&self, method: &str, params: &Object) -> bool {
        match method {
            "$/cancel_request" => params.parsed("requestId").as_ref() == Some(&self.id),
            "session/update" => {
                let update = params.object("update");
                let is_over = matches!(update.non_empty_text("status").as_deref(), Some("completed" | "failed"));
                is_over && self.call.is_some() && update.non_empty_text("toolCallId") == self.call
            }
            _ => false,
        }
    }

    /// What the policy answers without asking. `None`: the caller is asked.
    pub(super) fn decided_by(&self, approve: Approve) -> Option<Value> {
        match approve {
            // There is no option to choose.
            _ if self.question.choices.is_empty() => Some(cancelled()),
            Approve::Ask => None,
            Approve::All => Some(self.first_of([ChoiceKind::AllowOnce, ChoiceKind::AllowAlways])),
            Approve::None => Some(self.refusal()),
        }
    }

    pub(super) fn outcome(&self, reply: &Reply) -> Value {
        match reply {
            Reply::Chosen { choice, .. } if self.question.choices.iter().any(|known| known.id == *choice) => {
                selected(choice)
            }
            // The protocol carries no text, and text is no permission.
            Reply::Chosen { .. } | Reply::Text(_) => self.refusal(),
            Reply::Unanswered => cancelled(),
        }
    }

    fn refusal(&self) -> Value {
        self.first_of([ChoiceKind::RejectOnce, ChoiceKind::RejectAlways])
    }

    fn first_of(&self, kinds: [ChoiceKind; 2]) -> Value {
        let choice = kinds.iter().find_map(|kind| self.question.choices.iter().find(|choice| choice.kind == *kind));
        choice.map_or_else(cancelled, |choice| selected(&choice.id))
    }
}

pub(super) fn cancelled() -> Value {
    json!({"outcome": {"outcome": "cancelled"}})
}

fn selected(option: &str) -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": option}})
}

/// Options whose `always` ends with the session, as program and ids, from their source code and recorded runs.
///
/// Not among them: Goose (`permission.yaml` of its user), Qwen Code (settings of the project or the user), Vibe's
/// `allow_always_permanent`, codex-acp's policy amendments, claude-agent-acp (local settings of the workspace), OpenCode (for
/// the project), Copilot (not known).
const SESSION_ONLY: [(&str, &[&str]); 2] = [
    ("gemini-cli", &["proceed_always", "proceed_always_server", "proceed_always_tool"]),
    ("@mistralai/mistral-vibe", &["allow_always"]),
];

fn choices(options: &[Object], program: Option<&str>) -> Vec<Choice> {
    let all: Vec<Choice> = options.iter().filter_map(choice).collect();
    let is_permission = all.iter().any(|choice| choice.kind != ChoiceKind::Other);
    let is_offered = |choice: &Choice| match choice.kind {
        ChoiceKind::AllowOnce | ChoiceKind::RejectOnce => true,
        ChoiceKind::AllowAlways | ChoiceKind::RejectAlways => ends_with_session(program, &choice.id),
        // Next to other options an unknown kind may be a lasting permission; alone it is an answer to a question.
        ChoiceKind::Other => !is_permission,
    };
    all.into_iter().filter(is_offered).collect()
}

fn ends_with_session(program: Option<&str>, option: &str) -> bool {
    SESSION_ONLY.iter().any(|(name, options)| Some(*name) == program && options.contains(&option))
}

fn choice(option: &Object) -> Option<Choice> {
    let id = option.non_empty_text("optionId")?;
    let kind = match option.non_empty_text("kind").as_deref() {
        Some("allow_once") => ChoiceKind::AllowOnce,
        Some("allow_always") => ChoiceKind::AllowAlways,
        Some("reject_once") => ChoiceKind::RejectOnce,
        Some("reject_always") => ChoiceKind::RejectAlways,
        _ => ChoiceKind::Other,
    };
    let name = option.non_empty_text("name").unwrap_or_else(|| id.clone());
    Some(Choice { id, name, kind })
}

fn text(tool: &Tool) -> String {
    let is_execution = tool.kind.as_deref() == Some("execute");
    let input = tool.input.as_ref().and_then(|input| Object::parse(input.as_str())).unwrap_or_default();
    if let Some(command) = tool::command(&input).or_else(|| tool.title.clone().filter(|_| is_execution)) {
        return format!("Run \"{command}\"?");
    }
    let mut text = format!("Allow {}", tool.name);
    if let Some(title) = tool.title.as_ref().filter(|title| **title != tool.name) {
        text.push_str(&format!(": {title}"));
    }
    // A title may leave out what the tool works on.
    if let Some(target) = tool::target(&input).filter(|target| !text.contains(target)) {
        text.push_str(&format!(" ({target})"));
    }
    text + "?"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending(options: &[(&str, &str)]) -> Pending {
        asked_by("some-program", options)
    }

    fn asked_by(program: &str, options: &[(&str, &str)]) -> Pending {
        let options: Vec<Value> = options.iter().map(|(id, kind)| json!({"optionId": id, "kind": kind})).collect();
        Pending::new(json!(7), &Object::of(&json!({"options": options})), None, Some(program))
    }

    const ALL: [(&str, &str); 4] =
        [("a", "allow_always"), ("b", "allow_once"), ("c", "reject_always"), ("d", "reject_once")];

    fn said(outcome: Option<Value>) -> String {
        let Some(outcome) = outcome else { return "asked".into() };
        let outcome = Object::of(&outcome).object("outcome");
        outcome.non_empty_text("optionId").or(outcome.non_empty_text("outcome")).unwrap()
    }

    #[test]
    fn the_policy_chooses_by_kind() {
        for (options, approve, expected) in [
            (&ALL[..], Approve::All, "b"),
            (&ALL[..], Approve::None, "d"),
            (&ALL[..], Approve::Ask, "asked"),
            // It is unknown where the program would store it.
            (&ALL[..1], Approve::All, "cancelled"),
            (&ALL[..2], Approve::None, "cancelled"),
            (&ALL[2..], Approve::All, "cancelled"),
            (&[], Approve::Ask, "cancelled"),
        ] {
            assert_eq!(said(pending(options).decided_by(approve)), expected, "{options:?} {approve:?}");
        }
    }

    #[test]
    fn the_answer_of_the_caller() {
        let chosen = |choice: &str| Reply::Chosen { choice: choice.into(), comment: None };
        for (reply, expected) in [
            (chosen("a"), "d"),
            (chosen("b"), "b"),
            (chosen("c"), "d"),
            (chosen("unknown"), "d"),
            (Reply::Text("yes".into()), "d"),
            (Reply::Unanswered, "cancelled"),
        ] {
            assert_eq!(said(Some(pending(&ALL).outcome(&reply))), expected, "{reply:?}");
        }
    }

    #[test]
    fn always_is_offered_where_it_ends_with_the_session() {
        for (program, options, expected) in [
            (
                "gemini-cli",
                &[("proceed_always", "allow_always"), ("proceed_once", "allow_once")][..],
                "proceed_always proceed_once",
            ),
            ("gemini-cli", &[("proceed_always_and_save", "allow_always"), ("cancel", "reject_once")], "cancel"),
            ("qwen-code", &[("proceed_always", "allow_always"), ("proceed_always_user", "allow_always")], ""),
            (
                "@mistralai/mistral-vibe",
                &[("allow_always", "allow_always"), ("allow_always_permanent", "allow_always")],
                "allow_always",
            ),
            // Goose, which gives no name, stores both.
            ("goose", &ALL, "b d"),
            ("@agentclientprotocol/codex-acp", &[("accept_execpolicy_amendment", "allow_always")], ""),
            ("OpenCode", &[("once", "allow_once"), ("always", "allow_always"), ("x", "new_kind")], "once"),
            ("any", &[("red", ""), ("blue", "")], "red blue"),
        ] {
            let question = asked_by(program, options).question;
            let ids: Vec<&str> = question.choices.iter().map(|choice| choice.id.as_str()).collect();
            assert_eq!(ids.join(" "), expected, "{program}");
        }
    }
}
