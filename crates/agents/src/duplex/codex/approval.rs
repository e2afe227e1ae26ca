//! What Codex asks for: leave to run a command or to change files, wider permissions, and words of its user.

use serde_json::{Value, json};

use super::item::{self, Items};
use crate::duplex::interview::{Interview, NOBODY_CAN, Next, Topic};
use crate::duplex::jsonrpc;
use crate::duplex::reading::{carried, list_at, owned_text_at, text_at};
use crate::protocol::Approve;
use crate::update::{Choice, ChoiceKind, Question, Reply};

/// A request that waits for its answer.
pub(super) struct Pending {
    /// As the program wrote it.
    pub(super) id: Value,
    about: About,
}

enum About {
    Leave { question: Question, answers: Vec<Answer> },
    Questions(Interview),
}

/// A choice, and what is written for it.
struct Answer {
    choice: Choice,
    result: Value,
}

/// What comes after an answer, or at once.
pub(super) enum Response {
    Result(Value),
    Ask(Question),
}

impl Pending {
    /// `None`: this kind of request is not known.
    pub(super) fn new(
        id: Value,
        method: &str,
        params: &Value,
        items: &Items,
        approve: Approve,
    ) -> Option<(Self, Response)> {
        let item = text_at(params, "/itemId").and_then(|item| items.running(item));
        let (tool, text, answers) = match method {
            "item/commandExecution/requestApproval" => {
                ("commandExecution", command_text(params, item), decisions(params))
            }
            "item/fileChange/requestApproval" => ("fileChange", change_text(params, item), decisions(params)),
            "item/permissions/requestApproval" => ("permissions", permission_text(params), grants(params)),
            "item/tool/requestUserInput" => return Self::interview(id, params, approve),
            _ => return None,
        };
        let answer = match approve {
            Approve::Ask => None,
            Approve::All => Some(first(&answers, ChoiceKind::AllowOnce)),
            Approve::None => Some(first(&answers, ChoiceKind::RejectOnce)),
        };
        let input = match item {
            Some(item) if tool == "fileChange" => item.get("changes").and_then(carried),
            _ => carried(&input(params)),
        };
        let question = Question {
            id: jsonrpc::spoken(&id),
            text,
            tool: Some(tool.to_owned()),
            input,
            choices: answers.iter().map(|answer| answer.choice.clone()).collect(),
        };
        let response = answer.map_or_else(|| Response::Ask(question.clone()), Response::Result);
        Some((Self { id, about: About::Leave { question, answers } }, response))
    }

    fn interview(id: Value, params: &Value, approve: Approve) -> Option<(Self, Response)> {
        let option = |option: &Value| Some((owned_text_at(option, "/label")?, owned_text_at(option, "/description")));
        let topic = |question: &Value| {
            let options = list_at(question, "/options").iter().filter_map(option).collect();
            Some(Topic { key: owned_text_at(question, "/id")?, text: owned_text_at(question, "/question")?, options })
        };
        let topics: Vec<Topic> = list_at(params, "/questions").iter().filter_map(topic).collect();
        let nobody = answered(topics.iter().map(|topic| (topic.key.clone(), NOBODY_CAN.to_owned())));
        let (interview, first) = Interview::begin(jsonrpc::spoken(&id), "requestUserInput".into(), topics)?;
        let response = if approve == Approve::All { Response::Result(nobody) } else { Response::Ask(first) };
        Some((Self { id, about: About::Questions(interview) }, response))
    }

    pub(super) fn question_id(&self) -> String {
        match &self.about {
            About::Leave { question, .. } => question.id.clone(),
            About::Questions(interview) => interview.question_id(),
        }
    }

    pub(super) fn asks(&self, question: &Question) -> bool {
        match &self.about {
            About::Leave { question: asked, .. } => asked.id == question.id,
            About::Questions(interview) => interview.asks(question),
        }
    }

    pub(super) fn answer(&mut self, reply: &Reply) -> Response {
        match &mut self.about {
            About::Leave { answers, .. } => Response::Result(match reply {
                Reply::Chosen { choice, .. } => answers
                    .iter()
                    .find(|answer| answer.choice.id == *choice)
                    .map_or_else(|| first(answers, ChoiceKind::RejectOnce), |answer| answer.result.clone()),
                // The protocol carries no words, and words are no leave.
                Reply::Said(_) | Reply::Nobody => first(answers, ChoiceKind::RejectOnce),
            }),
            About::Questions(interview) => match interview.answer(reply) {
                Next::Ask(question) => Response::Ask(question),
                Next::GivenUp => Response::Result(json!({"answers": {}})),
                Next::Answered(answers) => Response::Result(answered(answers)),
            },
        }
    }
}

fn answered(answers: impl IntoIterator<Item = (String, String)>) -> Value {
    let answers: Value = answers.into_iter().map(|(key, answer)| (key, json!({"answers": [answer]}))).collect();
    json!({"answers": answers})
}

fn first(answers: &[Answer], kind: ChoiceKind) -> Value {
    let answer = answers.iter().find(|answer| answer.choice.kind == kind);
    answer.map_or_else(|| json!({"decision": "decline"}), |answer| answer.result.clone())
}

/// The decisions that are offered and end with the session at the latest, and to decline, which is always taken though it
/// is not always offered: the turn goes on, while `cancel` ends it.
fn decisions(params: &Value) -> Vec<Answer> {
    let offered = list_at(params, "/availableDecisions");
    let usual = ["accept", "acceptForSession", "decline", "cancel"].map(Value::from);
    let offered = if offered.is_empty() { &usual } else { offered };
    let mut answers: Vec<Answer> = offered.iter().filter_map(decision).collect();
    for needed in ["accept", "decline"] {
        if !answers.iter().any(|answer| answer.choice.id == needed) {
            answers.extend(decision(&needed.into()));
        }
    }
    answers
}

/// A decision is a word, or an object that amends the policy of the program's user: which no caller may.
fn decision(decision: &Value) -> Option<Answer> {
    let id = decision.as_str()?;
    let (name, kind) = match id {
        "accept" => ("Allow", ChoiceKind::AllowOnce),
        "acceptForSession" => ("Allow for this session", ChoiceKind::AllowAlways),
        "decline" => ("Reject", ChoiceKind::RejectOnce),
        "cancel" => ("Reject and stop", ChoiceKind::RejectAlways),
        // How long another one would hold is not known.
        _ => return None,
    };
    let choice = Choice { id: id.to_owned(), name: name.to_owned(), kind };
    Some(Answer { choice, result: json!({"decision": decision}) })
}

/// Wider permissions are granted as they were asked for, or none of them.
fn grants(params: &Value) -> Vec<Answer> {
    let asked: Value = params
        .pointer("/permissions")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter(|(_, permission)| !permission.is_null())
        .map(|(name, permission)| (name.clone(), permission.clone()))
        .collect();
    let answer = |id: &str, name: &str, kind, permissions: &Value, scope: &str| Answer {
        choice: Choice { id: id.into(), name: name.into(), kind },
        result: json!({"permissions": permissions, "scope": scope}),
    };
    vec![
        answer("accept", "Allow", ChoiceKind::AllowOnce, &asked, "turn"),
        answer("acceptForSession", "Allow for this session", ChoiceKind::AllowAlways, &asked, "session"),
        answer("decline", "Reject", ChoiceKind::RejectOnce, &json!({}), "turn"),
    ]
}

fn command_text(params: &Value, item: Option<&Value>) -> String {
    let command = item::command_line(params).or_else(|| item.and_then(item::command_line));
    let text = command.map_or_else(|| "Run a command?".to_owned(), |command| format!("Run \"{command}\"?"));
    with_reason(text, params)
}

fn change_text(params: &Value, item: Option<&Value>) -> String {
    let paths = item.map(item::paths).unwrap_or_default();
    let text = match text_at(params, "/grantRoot") {
        Some(root) => format!("Allow changes in {root}?"),
        None if paths.is_empty() => "Change files?".to_owned(),
        None => format!("Change {}?", paths.join(", ")),
    };
    with_reason(text, params)
}

fn permission_text(params: &Value) -> String {
    let permissions = params.get("permissions").map(Value::to_string).unwrap_or_default();
    with_reason(format!("Give more permissions: {permissions}?"), params)
}

fn with_reason(text: String, params: &Value) -> String {
    match text_at(params, "/reason") {
        Some(reason) => format!("{text} ({reason})"),
        None => text,
    }
}

fn input(params: &Value) -> Value {
    let member =
        |name: &str| params.get(name).filter(|value| !value.is_null()).map(|value| (name.to_owned(), value.clone()));
    ["command", "cwd", "permissions", "additionalPermissions", "networkApprovalContext", "grantRoot"]
        .into_iter()
        .filter_map(member)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending(method: &str, params: Value, approve: Approve) -> (Pending, Response) {
        Pending::new(json!(1), method, &params, &Items::default(), approve).unwrap()
    }

    fn chosen(choice: &str) -> Reply {
        Reply::Chosen { choice: choice.into(), said: None }
    }

    fn result(response: Response) -> String {
        match response {
            Response::Result(result) => result.to_string(),
            Response::Ask(question) => question.text,
        }
    }

    #[test]
    fn decisions_end_with_the_session() {
        let params = json!({"command": "/bin/bash -lc 'cd ~/.ssh && cat id_rsa | tee /tmp/k'", "reason": "to see",
            "commandActions": [{"type": "read", "command": "cat id_rsa"}], "availableDecisions":
            ["accept", {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["cat"]}}, "acceptForSession",
             {"applyNetworkPolicyAmendment": {"network_policy_amendment": {"host": "a"}}}, "acceptAlways", "cancel"]});
        let method = "item/commandExecution/requestApproval";
        let (mut waiting, asked) = pending(method, params.clone(), Approve::Ask);
        let Response::Ask(question) = asked else { panic!() };
        assert_eq!(question.text, "Run \"/bin/bash -lc 'cd ~/.ssh && cat id_rsa | tee /tmp/k'\"? (to see)");
        // What would outlive the session is no choice.
        let ids: Vec<&str> = question.choices.iter().map(|choice| choice.id.as_str()).collect();
        assert_eq!(ids, ["accept", "acceptForSession", "cancel", "decline"]);
        let kinds: Vec<ChoiceKind> = question.choices.iter().map(|choice| choice.kind).collect();
        use ChoiceKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce};
        assert_eq!(kinds, [AllowOnce, AllowAlways, RejectAlways, RejectOnce]);
        for (reply, expected) in [
            (chosen("accept"), r#"{"decision":"accept"}"#),
            (chosen("acceptForSession"), r#"{"decision":"acceptForSession"}"#),
            (chosen("acceptWithExecpolicyAmendment"), r#"{"decision":"decline"}"#),
            (chosen("cancel"), r#"{"decision":"cancel"}"#),
            (chosen("unknown"), r#"{"decision":"decline"}"#),
            (Reply::Nobody, r#"{"decision":"decline"}"#),
        ] {
            assert_eq!(result(waiting.answer(&reply)), expected, "{reply:?}");
        }
        assert_eq!(result(pending(method, params.clone(), Approve::All).1), r#"{"decision":"accept"}"#);
        assert_eq!(result(pending(method, params, Approve::None).1), r#"{"decision":"decline"}"#);
    }

    #[test]
    fn permissions_are_granted_as_asked() {
        let params = json!({"permissions": {"network": {"enabled": true}, "fileSystem": null}});
        let (mut waiting, _) = pending("item/permissions/requestApproval", params, Approve::Ask);
        for (reply, expected) in [
            (chosen("accept"), r#"{"permissions":{"network":{"enabled":true}},"scope":"turn"}"#),
            (chosen("acceptForSession"), r#"{"permissions":{"network":{"enabled":true}},"scope":"session"}"#),
            (chosen("decline"), r#"{"permissions":{},"scope":"turn"}"#),
        ] {
            assert_eq!(result(waiting.answer(&reply)), expected);
        }
    }

    #[test]
    fn questions_are_asked_unless_nothing_is() {
        let params = json!({"questions": [{"id": "a", "question": "Colour?", "options": [{"label": "red"}]},
            {"id": "b", "question": "Size?", "options": null}]});
        let (_, told) = pending("item/tool/requestUserInput", params.clone(), Approve::All);
        let nobody = json!({"answers": [NOBODY_CAN]});
        assert_eq!(result(told), json!({"answers": {"a": nobody, "b": nobody}}).to_string());
        let (mut waiting, asked) = pending("item/tool/requestUserInput", params, Approve::Ask);
        assert_eq!(result(asked), "Colour?");
        assert_eq!(result(waiting.answer(&chosen("red"))), "Size?");
        let expected = r#"{"answers":{"a":{"answers":["red"]},"b":{"answers":["large"]}}}"#;
        assert_eq!(result(waiting.answer(&Reply::Said("large".into()))), expected);
    }

    #[test]
    fn other_requests_are_not_known() {
        assert!(Pending::new(json!(1), "x", &json!({}), &Items::default(), Approve::Ask).is_none());
    }
}
