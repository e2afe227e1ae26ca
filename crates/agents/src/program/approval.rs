//! Questions of a program, as its caller sees them, and what the caller's answer means.

use sabir_model::{Content, Json, Message, Part, QUESTION, QuestionAnswer, QuestionType, Verdict, choice_of};
use serde::{Deserialize, Serialize};

use crate::update::{Choice, ChoiceKind, Question, Reply};

/// The question as text, and as data from which a client can build a dialog.
pub(crate) fn parts(question: &Question) -> Vec<Part> {
    let mut text = question.text.clone();
    if !question.choices.is_empty() {
        let names: Vec<&str> = question.choices.iter().map(|choice| choice.name.as_str()).collect();
        text.push_str("\nAnswer with one of: ");
        text.push_str(&names.join(", "));
    }
    let choices = question.choices.iter();
    let choices =
        choices.map(|choice| ChoiceData { id: &choice.id, name: &choice.name, kind: choice.kind.name() }).collect();
    let data = QuestionData {
        kind: QUESTION,
        question_type: if is_permission(question) { QuestionType::Permission } else { QuestionType::Input },
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
struct QuestionData<'a> {
    kind: &'static str,
    #[serde(rename = "type")]
    question_type: QuestionType,
    /// The program's own id. Sabir's id is added when the question is stored.
    id: &'a str,
    question: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<&'a Json>,
    choices: Vec<ChoiceData<'a>>,
}

#[derive(Serialize)]
struct ChoiceData<'a> {
    id: &'a str,
    name: &'a str,
    kind: &'static str,
}

/// Reads a stored question back from its message.
pub(super) fn read(message: &Message) -> Option<Question> {
    let stored = message.parts.iter().find_map(|part| match &part.content {
        Content::Data(data) => {
            serde_json::from_str::<StoredQuestion>(data.as_str()).ok().filter(|data| data.kind == QUESTION)
        }
        Content::Text(_) | Content::Bytes(_) | Content::Url(_) => None,
    })?;
    let choice =
        |choice: StoredChoice| Choice { kind: ChoiceKind::parse(&choice.kind), id: choice.id, name: choice.name };
    Some(Question {
        id: stored.id,
        text: stored.question,
        tool: stored.tool,
        input: stored.input,
        choices: stored.choices.into_iter().map(choice).collect(),
    })
}

#[derive(Deserialize)]
struct StoredQuestion {
    kind: String,
    id: String,
    question: String,
    tool: Option<String>,
    input: Option<Json>,
    choices: Vec<StoredChoice>,
}

#[derive(Deserialize)]
struct StoredChoice {
    id: String,
    name: String,
    kind: String,
}

/// The reply to a question that was asked again. "Always" becomes "once": by now it could allow more than what the caller
/// has seen.
pub(super) fn once(question: &Question, reply: Reply) -> Reply {
    let Reply::Chosen { choice, comment } = &reply else { return reply };
    let is_always = |known: &&Choice| known.id == *choice && known.kind == ChoiceKind::AllowAlways;
    let once = |known: &&Choice| known.kind == ChoiceKind::AllowOnce;
    match question.choices.iter().find(is_always).and_then(|_| question.choices.iter().find(once)) {
        Some(allowed) => Reply::Chosen { choice: allowed.id.clone(), comment: comment.clone() },
        None => reply,
    }
}

/// Whether the program asks for permission, and not only for information.
pub(super) fn is_permission(question: &Question) -> bool {
    question.choices.iter().any(|choice| choice.kind.allows() || choice.kind.rejects())
}

/// What the caller's message answers. Only a clear yes grants permission; anything else denies it, and its words go to
/// the program as the reason.
pub(crate) fn understand(question: &Question, message: &Message) -> Reply {
    let QuestionAnswer { choice, words, .. } = QuestionAnswer::read(message, &question.choices);
    match choice.and_then(|place| question.choices.get(place)) {
        Some(choice) => {
            let comment = words.filter(|_| choice.kind != ChoiceKind::Other);
            Reply::Chosen { choice: choice.id.clone(), comment }
        }
        None if is_permission(question) => Reply::Text(words.unwrap_or_else(|| "no".to_owned())),
        None => Reply::Text(words.unwrap_or_default()),
    }
}

/// The refusal to use if no answer came.
pub(crate) fn refusal(question: &Question, words: &str) -> Reply {
    match choice_of(&question.choices, Verdict::No) {
        Some(place) => Reply::Chosen { choice: question.choices[place].id.clone(), comment: Some(words.to_owned()) },
        None => Reply::Unanswered,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::update::Choice;
    use sabir_model::{MessageId, Role};
    use serde_json::Value;

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

    fn permission() -> Question {
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
            Reply::Chosen { choice, comment: None } => choice,
            Reply::Chosen { choice, comment: Some(comment) } => format!("{choice}: {comment}"),
            Reply::Text(text) => format!("said {text}"),
            Reply::Unanswered => "nobody".into(),
        }
    }

    #[test]
    fn answers_become_replies() {
        let colours = question(&[("red", "Red", ChoiceKind::Other), ("blue", "Blue", ChoiceKind::Other)]);
        for (question, parts, expected) in [
            (permission(), vec![Part::text("Yes!")], "proceed_once"),
            (permission(), vec![Part::text("2")], "proceed_always"),
            (permission(), vec![Part::text("no")], "cancel"),
            (permission(), vec![Part::text("use the other folder")], "cancel: use the other folder"),
            (permission(), vec![], "cancel"),
            (permission(), vec![data(r#"{"approved":false,"reason":"too risky"}"#)], "cancel: too risky"),
            (permission(), vec![data(r#"{"action":"resume","result":{"approved":false}}"#)], "cancel"),
            (permission(), vec![Part::text("no"), data(r#"{"approved":true}"#)], "cancel"),
            (question(&[("go", "Go", ChoiceKind::AllowOnce)]), vec![Part::text("no")], "said no"),
            (colours.clone(), vec![Part::text("blue")], "blue"),
            (colours, vec![Part::text("something green")], "said something green"),
            (question(&[]), vec![Part::text("y")], "said y"),
        ] {
            assert_eq!(say(understand(&question, &message(parts.clone()))), expected, "{parts:?}");
        }
    }

    #[test]
    fn nobody_answers_with_a_no() {
        assert_eq!(say(refusal(&permission(), "too late")), "cancel: too late");
        assert_eq!(say(refusal(&question(&[]), "too late")), "nobody");
    }

    #[test]
    fn an_answer_that_was_kept_allows_once() {
        for (choice, expected) in
            [("proceed_once", "proceed_once"), ("proceed_always", "proceed_once"), ("cancel", "cancel")]
        {
            let reply = Reply::Chosen { choice: choice.into(), comment: None };
            assert_eq!(say(once(&permission(), reply)), expected);
        }
        assert_eq!(say(once(&permission(), Reply::Text("why?".into()))), "said why?");
    }

    #[test]
    fn a_question_is_told_in_words_and_as_data() {
        let parts = parts(&permission());
        assert_eq!(parts[0].as_text(), Some("Run ls?\nAnswer with one of: Allow, Always allow, Reject"));
        let Content::Data(data) = &parts[1].content else { panic!("no data in {parts:?}") };
        let data: Value = serde_json::from_str(data.as_str()).unwrap();
        assert_eq!(
            (&data["kind"], &data["type"], &data["id"]),
            (&"question".into(), &"permission".into(), &"q1".into())
        );
        assert_eq!(data["tool"], "Bash");
        assert_eq!(data["input"]["command"], "ls");
        assert_eq!(data["choices"][1]["kind"], "allow_always");
    }

    #[test]
    fn a_stored_question_is_read_as_it_was_asked() {
        let spaced = Json::parse(r#"{ "command" : "ls",  "timeout": 1e3 }"#).unwrap();
        for question in [
            permission(),
            Question { input: Some(spaced), ..permission() },
            Question { input: None, tool: None, ..permission() },
            question(&[("red", "Red", ChoiceKind::Other), ("never", "Never", ChoiceKind::RejectAlways)]),
            question(&[]),
        ] {
            assert_eq!(read(&message(parts(&question))), Some(question));
        }
        for parts in
            [vec![Part::text("Go on?")], vec![data(r#"{"kind":"chart"}"#)], vec![data(r#"{"kind":"question"}"#)]]
        {
            assert_eq!(read(&message(parts.clone())), None, "{parts:?}");
        }
    }
}
