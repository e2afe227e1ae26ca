//! A request for leave: the question that is made of it and what its answer means. Options are told apart by their
//! `kind`, never by their id.

use serde_json::{Value, json};

use super::tool::{self, Tool};
use crate::duplex::jsonrpc;
use crate::duplex::reading::{carried, list_at, text_at};
use crate::protocol::Approve;
use crate::update::{Choice, ChoiceKind, Question, Reply};

/// A request that waits for its answer.
pub(super) struct Pending {
    /// As the program wrote it.
    pub(super) id: Value,
    pub(super) question: Question,
}

impl Pending {
    pub(super) fn new(id: Value, params: &Value, tool: Option<&Tool>) -> Self {
        let question = Question {
            id: jsonrpc::spoken(&id),
            text: tool.map_or_else(|| "Allow what it wants to do?".to_owned(), text),
            tool: tool.map(|tool| tool.name.clone()),
            input: tool.and_then(|tool| carried(&tool.input)),
            choices: list_at(params, "/options").iter().filter_map(choice).collect(),
        };
        Self { id, question }
    }

    /// What the policy answers without asking. `None`: the caller is asked.
    pub(super) fn decided_by(&self, approve: Approve) -> Option<Value> {
        match approve {
            // Nothing can be chosen.
            _ if self.question.choices.is_empty() => Some(cancelled()),
            Approve::Ask => None,
            // Once, not always: some programs write what is always allowed into the settings of their user.
            Approve::All => Some(self.first_of([ChoiceKind::AllowOnce, ChoiceKind::AllowAlways])),
            Approve::None => Some(self.refusal()),
        }
    }

    pub(super) fn outcome(&self, reply: &Reply) -> Value {
        match reply {
            Reply::Chosen { choice, .. } if self.question.choices.iter().any(|known| known.id == *choice) => {
                selected(choice)
            }
            // The protocol carries no words, and words are no leave.
            Reply::Chosen { .. } | Reply::Said(_) => self.refusal(),
            Reply::Nobody => cancelled(),
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

fn choice(option: &Value) -> Option<Choice> {
    let id = text_at(option, "/optionId")?.to_owned();
    let kind = match text_at(option, "/kind") {
        Some("allow_once") => ChoiceKind::AllowOnce,
        Some("allow_always") => ChoiceKind::AllowAlways,
        Some("reject_once") => ChoiceKind::RejectOnce,
        Some("reject_always") => ChoiceKind::RejectAlways,
        _ => ChoiceKind::Other,
    };
    let name = text_at(option, "/name").unwrap_or(&id).to_owned();
    Some(Choice { id, name, kind })
}

fn text(tool: &Tool) -> String {
    let is_execution = tool.kind.as_deref() == Some("execute");
    if let Some(command) = tool::command(&tool.input).or_else(|| tool.title.clone().filter(|_| is_execution)) {
        return format!("Run \"{command}\"?");
    }
    let mut text = format!("Allow {}", tool.name);
    if let Some(title) = tool.title.as_ref().filter(|title| **title != tool.name) {
        text.push_str(&format!(": {title}"));
    }
    // A title may leave out what the tool works on.
    if let Some(target) = tool::target(&tool.input).filter(|target| !text.contains(target)) {
        text.push_str(&format!(" ({target})"));
    }
    text + "?"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending(options: &[(&str, &str)]) -> Pending {
        let options: Vec<Value> = options.iter().map(|(id, kind)| json!({"optionId": id, "kind": kind})).collect();
        Pending::new(json!(7), &json!({"options": options}), None)
    }

    const ALL: [(&str, &str); 4] =
        [("a", "allow_always"), ("b", "allow_once"), ("c", "reject_always"), ("d", "reject_once")];

    fn said(outcome: Option<Value>) -> String {
        let Some(outcome) = outcome else { return "asked".into() };
        text_at(&outcome, "/outcome/optionId").or(text_at(&outcome, "/outcome/outcome")).unwrap().to_owned()
    }

    #[test]
    fn the_policy_chooses_by_kind() {
        for (options, approve, expected) in [
            (&ALL[..], Approve::All, "b"),
            (&ALL[..], Approve::None, "d"),
            (&ALL[..], Approve::Ask, "asked"),
            (&ALL[..1], Approve::All, "a"),
            (&ALL[..2], Approve::None, "cancelled"),
            (&ALL[2..], Approve::All, "cancelled"),
            (&[], Approve::Ask, "cancelled"),
        ] {
            assert_eq!(said(pending(options).decided_by(approve)), expected, "{options:?} {approve:?}");
        }
    }

    #[test]
    fn the_answer_of_the_caller() {
        let chosen = |choice: &str| Reply::Chosen { choice: choice.into(), said: None };
        for (reply, expected) in [
            (chosen("a"), "a"),
            (chosen("unknown"), "d"),
            (Reply::Said("yes".into()), "d"),
            (Reply::Nobody, "cancelled"),
        ] {
            assert_eq!(said(Some(pending(&ALL).outcome(&reply))), expected, "{reply:?}");
        }
    }
}
