//! Requests of Codex: to run a command, to change files, for wider permissions, and questions to its user.

use serde_json::{Value, json};

use super::item::{self, Items, Tool};
use crate::lenient_json::{Object, normalized};
use crate::prompt::Approve;
use crate::protocols::jsonrpc;
use crate::protocols::question_series::{NOBODY_ANSWERS, Next, QuestionSeries, SeriesQuestion};
use crate::update::{Choice, ChoiceKind, Question, Reply};

/// A request that waits for its answer.
pub(super) struct Pending {
    /// As the program wrote it.
    pub(super) id: Value,
    about: About,
}

enum About {
    Permission { question: Question, answers: Vec<Answer> },
    Questions(QuestionSeries),
}

/// A choice, and what is written for it.
struct Answer {
    choice: Choice,
    result: Value,
}

/// What follows a request or an answer.
pub(super) enum Response {
    Result(Value),
    Ask(Question),
}

impl Pending {
    /// `None`: this kind of request is not known.
    pub(super) fn new(
        id: Value,
        method: &str,
        params: &Object,
        items: &Items,
        approve: Approve,
    ) -> Option<(Self, Response)> {
        let item = params.non_empty_text("itemId").and_then(|item| items.running(&item));
        let (tool, text, answers) = match method {
            "item/commandExecution/requestApproval" => {
                ("commandExecution", command_text(params, item), decisions(params))
            }
            "item/fileChange/requestApproval" => ("fileChange", change_text(params, item), decisions(params)),
            "item/permissions/requestApproval" => ("permissions", permission_text(params), grants(params)),
            "item/tool/requestUserInput" => return Self::series(id, params, approve),
            _ => return None,
        };
        let answer = match approve {
            Approve::Ask => None,
            Approve::All => Some(first(&answers, ChoiceKind::AllowOnce)),
            Approve::None => Some(first(&answers, ChoiceKind::RejectOnce)),
        };
        let input = match item {
            Some(item) if tool == "fileChange" => item.changes.clone(),
            _ => normalized(&input(params)),
        };
        let question = Question {
            id: jsonrpc::id_text(&id),
            text,
            tool: Some(tool.to_owned()),
            input,
            choices: answers.iter().map(|answer| answer.choice.clone()).collect(),
        };
        let response = answer.map_or_else(|| Response::Ask(question.clone()), Response::Result);
        Some((Self { id, about: About::Permission { question, answers } }, response))
    }

    fn series(id: Value, params: &Object, approve: Approve) -> Option<(Self, Response)> {
        let option = |option: &Object| Some((option.non_empty_text("label")?, option.non_empty_text("description")));
        let topic = |question: &Object| {
            let options = question.objects("options").iter().filter_map(option).collect();
            Some(SeriesQuestion {
                key: question.non_empty_text("id")?,
                text: question.non_empty_text("question")?,
                options,
            })
        };
        let questions: Vec<SeriesQuestion> = params.objects("questions").iter().filter_map(topic).collect();
        let nobody = answered(questions.iter().map(|topic| (topic.key.clone(), NOBODY_ANSWERS.to_owned())));
        let (series, first) = QuestionSeries::begin(jsonrpc::id_text(&id), "requestUserInput".into(), questions)?;
        let response = if approve == Approve::All { Response::Result(nobody) } else { Response::Ask(first) };
        Some((Self { id, about: About::Questions(series) }, response))
    }

    pub(super) fn question_id(&self) -> String {
        match &self.about {
            About::Permission { question, .. } => question.id.clone(),
            About::Questions(series) => series.question_id(),
        }
    }

    pub(super) fn asks(&self, question: &Question) -> bool {
        match &self.about {
            About::Permission { question: asked, .. } => asked.id == question.id,
            About::Questions(series) => series.asks(question),
        }
    }

    pub(super) fn answer(&mut self, reply: &Reply) -> Response {
        match &mut self.about {
            About::Permission { answers, .. } => Response::Result(match reply {
                Reply::Chosen { choice, .. } => answers
                    .iter()
                    .find(|answer| answer.choice.id == *choice)
                    .map_or_else(|| first(answers, ChoiceKind::RejectOnce), |answer| answer.result.clone()),
                // The protocol carries no text, and text is no permission.
                Reply::Text(_) | Reply::Unanswered => first(answers, ChoiceKind::RejectOnce),
            }),
            About::Questions(series) => match series.answer(reply) {
                Next::Ask(question) => Response::Ask(question),
                Next::Unanswered => Response::Result(json!({"answers": {}})),
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

/// The offered decisions that end with the session at the latest, and `decline`, which Codex always accepts even if it does
/// not offer it: the turn continues, while `cancel` ends it.
fn decisions(params: &Object) -> Vec<Answer> {
    let mut offered = params.texts("availableDecisions");
    if params.list("availableDecisions").is_empty() {
        offered.extend(["accept", "acceptForSession", "decline", "cancel"].map(str::to_owned));
    }
    let mut answers: Vec<Answer> = offered.iter().filter_map(|offered| decision(offered)).collect();
    for needed in ["accept", "decline"] {
        if !answers.iter().any(|answer| answer.choice.id == needed) {
            answers.extend(decision(needed));
        }
    }
    answers
}

/// Decisions are strings. Objects amend the policy of the program's user, which no caller may do.
fn decision(id: &str) -> Option<Answer> {
    let (name, kind) = match id {
        "accept" => ("Allow", ChoiceKind::AllowOnce),
        "acceptForSession" => ("Allow for this session", ChoiceKind::AllowAlways),
        "decline" => ("Reject", ChoiceKind::RejectOnce),
        "cancel" => ("Reject and stop", ChoiceKind::RejectAlways),
        // It is unknown how long another decision would hold.
        _ => return None,
    };
    let choice = Choice { id: id.to_owned(), name: name.to_owned(), kind };
    Some(Answer { choice, result: json!({"decision": id}) })
}

/// Wider permissions are granted as they were asked for, or none of them.
fn grants(params: &Object) -> Vec<Answer> {
    let permissions = params.object("permissions");
    let names = permissions.names();
    let asked: Value = names.filter_map(|name| Some((name.to_owned(), permissions.parsed(name)?))).collect();
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

fn command_text(params: &Object, item: Option<&Tool>) -> String {
    let command = item::command_line(params).or_else(|| item.and_then(|item| item.command.clone()));
    let text = command.map_or_else(|| "Run a command?".to_owned(), |command| format!("Run \"{command}\"?"));
    with_reason(text, params)
}

fn change_text(params: &Object, item: Option<&Tool>) -> String {
    let paths = item.map_or(&[][..], |item| &item.paths);
    let text = match params.non_empty_text("grantRoot") {
        Some(root) => format!("Allow changes in {root}?"),
        None if paths.is_empty() => "Change files?".to_owned(),
        None => format!("Change {}?", paths.join(", ")),
    };
    with_reason(text, params)
}

fn permission_text(params: &Object) -> String {
    let permissions = params.parsed("permissions").map(|asked| asked.to_string()).unwrap_or_default();
    with_reason(format!("Give more permissions: {permissions}?"), params)
}

fn with_reason(text: String, params: &Object) -> String {
    match params.non_empty_text("reason") {
        Some(reason) => format!("{text} ({reason})"),
        None => text,
    }
}

fn input(params: &Object) -> Value {
    ["command", "cwd", "permissions", "additionalPermissions", "networkApprovalContext", "grantRoot"]
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), params.parsed(name)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending(method: &str, params: Value, approve: Approve) -> (Pending, Response) {
        Pending::new(json!(1), method, &Object::of(&params), &Items::default(), approve).unwrap()
    }

    fn chosen(choice: &str) -> Reply {
        Reply::Chosen { choice: choice.into(), comment: None }
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
        // A decision that outlives the session is not offered.
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
            (Reply::Unanswered, r#"{"decision":"decline"}"#),
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
        let (_, response) = pending("item/tool/requestUserInput", params.clone(), Approve::All);
        let nobody = json!({"answers": [NOBODY_ANSWERS]});
        assert_eq!(result(response), json!({"answers": {"a": nobody, "b": nobody}}).to_string());
        let (mut waiting, asked) = pending("item/tool/requestUserInput", params, Approve::Ask);
        assert_eq!(result(asked), "Colour?");
        assert_eq!(result(waiting.answer(&chosen("red"))), "Size?");
        let expected = r#"{"answers":{"a":{"answers":["red"]},"b":{"answers":["large"]}}}"#;
        assert_eq!(result(waiting.answer(&Reply::Text("large".into()))), expected);
    }

    #[test]
    fn other_requests_are_not_known() {
        assert!(Pending::new(json!(1), "x", &Object::default(), &Items::default(), Approve::Ask).is_none());
    }
}
