//! Questions of a program, as its caller sees them, and what the caller's answer means.

use sabir_model::{Content, Json, Message, Part};
use serde::Serialize;
use serde_json::Value;

use crate::update::{Choice, ChoiceKind, Question, Reply};

/// The question in words, and all of it as data for whoever builds a dialog from it.
pub(super) fn parts(question: &Question) -> Vec<Part> {
    let mut text = question.text.clone();
    if !question.choices.is_empty() {
        let names: Vec<&str> = question.choices.iter().map(|choice| choice.name.as_str()).collect();
        text.push_str("\nAnswer with one of: ");
        text.push_str(&names.join(", "));
    }
    let choices = question.choices.iter();
    let choices = choices.map(|choice| Shown { id: &choice.id, name: &choice.name, kind: word(choice.kind) }).collect();
    let data = Asked {
        kind: "question",
        id: &question.id,
        question: &question.text,
        tool: question.tool.as_deref(),
        input: question.input.as_ref(),
        choices,
    };
    let mut parts = vec![Part::text(text)];
    // Texts and carried JSON are always JSON.
    parts.extend(Json::of(&data).ok().map(|data| Part::from(Content::Data(data))));
    parts
}

#[derive(Serialize)]
struct Asked<'a> {
    kind: &'static str,
    id: &'a str,
    question: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<&'a Json>,
    choices: Vec<Shown<'a>>,
}

#[derive(Serialize)]
struct Shown<'a> {
    id: &'a str,
    name: &'a str,
    kind: &'static str,
}

fn word(kind: ChoiceKind) -> &'static str {
    match kind {
        ChoiceKind::AllowOnce => "allow_once",
        ChoiceKind::AllowAlways => "allow_always",
        ChoiceKind::RejectOnce => "reject_once",
        ChoiceKind::RejectAlways => "reject_always",
        ChoiceKind::Other => "other",
    }
}

/// What the caller's message answers. Leave is given only where it is clearly said; other words refuse, and go to the
/// program as the reason.
pub(super) fn understand(question: &Question, message: &Message) -> Reply {
    let by_data = message.parts.iter().filter_map(|part| match &part.content {
        Content::Data(data) => serde_json::from_str(data.as_str()).ok(),
        _ => None,
    });
    if let Some(reply) = by_data.into_iter().find_map(|data: Value| of_data(question, &data)) {
        return reply;
    }
    of_text(question, message.text().trim())
}

/// Names under which a choice is found in a data part.
const CHOICE_NAMES: [&str; 7] = ["optionId", "option", "choice", "decision", "answer", "action", "result"];

fn of_data(question: &Question, data: &Value) -> Option<Reply> {
    match data {
        Value::Bool(yes) => decided(question, *yes, None),
        Value::String(text) => Some(of_text(question, text.trim())),
        Value::Object(members) => {
            let said = ["reason", "message", "text"].iter().find_map(|name| members.get(*name)).and_then(Value::as_str);
            if let Some(yes) = ["approved", "approve", "allow"].iter().find_map(|name| members.get(*name)?.as_bool()) {
                return decided(question, yes, said.map(str::to_owned));
            }
            CHOICE_NAMES.iter().find_map(|name| of_data(question, members.get(*name)?))
        }
        Value::Null | Value::Number(_) | Value::Array(_) => None,
    }
}

fn of_text(question: &Question, text: &str) -> Reply {
    let same = |other: &str| other.eq_ignore_ascii_case(text);
    if let Some(choice) = question.choices.iter().find(|choice| same(&choice.id) || same(&choice.name)) {
        return Reply::Chosen { choice: choice.id.clone(), said: None };
    }
    let numbered = text.parse::<usize>().ok().and_then(|number| question.choices.get(number.checked_sub(1)?));
    if let Some(choice) = numbered {
        return Reply::Chosen { choice: choice.id.clone(), said: None };
    }
    let takes_leave = question.choices.iter().any(|choice| choice.kind.allows() || choice.kind.rejects());
    if !takes_leave {
        return Reply::Said(text.to_owned());
    }
    let word = text.trim_end_matches(['.', '!']).to_ascii_lowercase();
    let reply = match word.as_str() {
        "always" | "yes always" | "allow always" | "always allow" => of_kind(question, ChoiceKind::AllowAlways, None),
        "never" | "reject always" | "always reject" => of_kind(question, ChoiceKind::RejectAlways, None),
        word if YES.contains(&word) => decided(question, true, None),
        word if NO.contains(&word) => decided(question, false, None),
        _ => decided(question, false, Some(text.to_owned()).filter(|text| !text.is_empty())),
    };
    reply.unwrap_or_else(|| Reply::Said(text.to_owned()))
}

const YES: [&str; 14] = [
    "y", "yes", "ok", "okay", "allow", "approve", "approved", "accept", "true", "sure", "go", "go ahead", "resume",
    "continue",
];
const NO: [&str; 12] =
    ["n", "no", "deny", "denied", "reject", "rejected", "decline", "refuse", "false", "cancel", "stop", "don't"];

/// Yes or no, as the question spells it: once rather than for ever.
pub(super) fn decided(question: &Question, yes: bool, said: Option<String>) -> Option<Reply> {
    let kinds = match yes {
        true => [ChoiceKind::AllowOnce, ChoiceKind::AllowAlways],
        false => [ChoiceKind::RejectOnce, ChoiceKind::RejectAlways],
    };
    let choice = kinds.iter().find_map(|kind| question.choices.iter().find(|choice| choice.kind == *kind))?;
    Some(Reply::Chosen { choice: choice.id.clone(), said })
}

fn of_kind(question: &Question, kind: ChoiceKind, said: Option<String>) -> Option<Reply> {
    let choice: Option<&Choice> = question.choices.iter().find(|choice| choice.kind == kind);
    match choice {
        Some(choice) => Some(Reply::Chosen { choice: choice.id.clone(), said }),
        None => decided(question, kind.allows(), said),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sabir_model::{MessageId, Role};

    fn question(kinds: &[(&str, &str, ChoiceKind)]) -> Question {
        let choice = |(id, name, kind): &(&str, &str, ChoiceKind)| Choice {
            id: (*id).into(),
            name: (*name).into(),
            kind: *kind,
        };
        let choices = kinds.iter().map(choice).collect();
        let input = Json::parse(r#"{"command":"ls"}"#).ok();
        Question { id: "q1".into(), text: "Run ls?".into(), tool: Some("Bash".into()), input, choices }
    }

    fn leave() -> Question {
        question(&[
            ("proceed_once", "Allow", ChoiceKind::AllowOnce),
            ("proceed_always", "Always allow", ChoiceKind::AllowAlways),
            ("cancel", "Reject", ChoiceKind::RejectOnce),
        ])
    }

    fn message(parts: Vec<Part>) -> Message {
        Message::new(MessageId::parse("m").unwrap(), Role::User, parts)
    }

    fn data(text: &str) -> Part {
        Content::Data(Json::parse(text).unwrap()).into()
    }

    fn say(reply: Reply) -> String {
        match reply {
            Reply::Chosen { choice, said: None } => choice,
            Reply::Chosen { choice, said: Some(said) } => format!("{choice}: {said}"),
            Reply::Said(text) => format!("said {text}"),
            Reply::Nobody => "nobody".into(),
        }
    }

    #[test]
    fn words_that_give_leave_or_refuse_it() {
        for (text, expected) in [
            ("y", "proceed_once"),
            ("Yes!", "proceed_once"),
            ("always", "proceed_always"),
            ("Always allow", "proceed_always"),
            ("2", "proceed_always"),
            ("PROCEED_ONCE", "proceed_once"),
            ("no", "cancel"),
            ("never", "cancel"),
            ("reject", "cancel"),
            ("use the other folder", "cancel: use the other folder"),
            ("not yes", "cancel: not yes"),
            ("", "cancel"),
        ] {
            assert_eq!(say(understand(&leave(), &message(vec![Part::text(text)]))), expected, "{text:?}");
        }
    }

    #[test]
    fn data_decides_before_words() {
        for (json, expected) in [
            (r#"{"optionId":"proceed_always"}"#, "proceed_always"),
            (r#"{"approved":true}"#, "proceed_once"),
            (r#"{"approved":false,"reason":"too risky"}"#, "cancel: too risky"),
            (r#"{"target_id":"q1","action":"resume"}"#, "proceed_once"),
            (r#"{"target_id":"q1","action":"cancel"}"#, "cancel"),
            (r#"{"decision":"no"}"#, "cancel"),
            ("true", "proceed_once"),
            // Says nothing about it, so the words count.
            (r#"{"note":1}"#, "proceed_once"),
        ] {
            let said = message(vec![Part::text("yes"), data(json)]);
            assert_eq!(say(understand(&leave(), &said)), expected, "{json}");
        }
    }

    #[test]
    fn open_questions_take_any_words() {
        let colours = question(&[("red", "Red", ChoiceKind::Other), ("blue", "Blue", ChoiceKind::Other)]);
        for (text, expected) in [("blue", "blue"), ("2", "blue"), ("something green", "said something green")] {
            assert_eq!(say(understand(&colours, &message(vec![Part::text(text)]))), expected);
        }
        assert_eq!(say(understand(&question(&[]), &message(vec![Part::text("y")]))), "said y");
    }

    #[test]
    fn a_question_is_told_in_words_and_as_data() {
        let parts = parts(&leave());
        assert_eq!(parts[0].as_text(), Some("Run ls?\nAnswer with one of: Allow, Always allow, Reject"));
        let Content::Data(data) = &parts[1].content else { panic!("no data in {parts:?}") };
        let data: Value = serde_json::from_str(data.as_str()).unwrap();
        assert_eq!(data["tool"], "Bash");
        assert_eq!(data["input"]["command"], "ls");
        assert_eq!(data["choices"][1]["kind"], "allow_always");
    }
}
