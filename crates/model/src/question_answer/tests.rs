//! Every spelling of yes and no, alone and in contradiction.

use super::words::words_of;
use super::*;
use crate::{MessageId, Part, Role, TaskId};

fn data(json: &str) -> Part {
    Content::Data(Json::parse(json).unwrap()).into()
}

fn message(parts: Vec<Part>) -> Message {
    Message::new(MessageId::parse("m").unwrap(), Role::User, parts)
}

fn choices(kinds: &[(&str, &str, ChoiceKind)]) -> Vec<Choice> {
    let choice =
        |(id, name, kind): &(&str, &str, ChoiceKind)| Choice { id: (*id).into(), name: (*name).into(), kind: *kind };
    kinds.iter().map(choice).collect()
}

/// Its ids are no words, so that only what is said decides.
fn permission() -> Vec<Choice> {
    choices(&[
        ("proceed_once", "Run it", ChoiceKind::AllowOnce),
        ("proceed_always", "Yes, and don't ask again", ChoiceKind::AllowAlways),
        ("skip_once", "Leave it", ChoiceKind::RejectOnce),
        ("skip_always", "Never run it", ChoiceKind::RejectAlways),
    ])
}

fn say(choices: &[Choice], parts: Vec<Part>) -> String {
    let answer = QuestionAnswer::read(&message(parts), choices);
    let choice = answer.choice.map_or("nothing", |place| &choices[place].id);
    match answer.words {
        Some(words) => format!("{choice}: {words}"),
        None => choice.to_owned(),
    }
}

/// Every way to spell a verdict, as parts of a message.
fn spellings(words: &[&str], is_yes: bool) -> Vec<Vec<Part>> {
    let mut all = Vec::new();
    for word in words {
        let quoted = Json::of(*word).unwrap();
        let quoted = quoted.as_str();
        all.push(vec![Part::text(*word)]);
        all.push(vec![Part::text(format!(" {}!\n", word.to_uppercase()))]);
        all.push(vec![data(quoted)]);
        for member in ["verdict", "decision", "answer", "choice", "option", "optionId", "action", "result", "outcome"] {
            all.push(vec![data(&format!(r#"{{"{member}":{quoted}}}"#))]);
            all.push(vec![data(&format!(r#"{{"result":{{"{member}":{quoted}}}}}"#))]);
        }
    }
    let is_not = !is_yes;
    all.push(vec![data(&is_yes.to_string())]);
    for member in ["approved", "approve", "allow", "allowed", "accepted", "Approved", "is_ok"] {
        let member = member.trim_start_matches("is_");
        all.push(vec![data(&format!(r#"{{"{member}":{is_yes}}}"#))]);
        all.push(vec![data(&format!(r#"{{"{member}":"{is_yes}"}}"#))]);
        all.push(vec![data(&format!(r#"{{"decision":{{"result":{{"{member}":{is_yes}}}}}}}"#))]);
    }
    if is_not {
        for member in ["denied", "reject", "cancelled", "deny"] {
            all.push(vec![data(&format!(r#"{{"{member}":true}}"#))]);
        }
        // A no counts also where an answer does not have it.
        all.push(vec![data(r#"{"some":{"where":[{"approved":false}]}}"#)]);
        all.push(vec![data(r#"{"approved":[false]}"#)]);
        all.push(vec![data(r#"{"approved":0}"#)]);
    }
    all
}

fn all_yes() -> Vec<Vec<Part>> {
    [spellings(words_of(Verdict::Yes), true), alone(words_of(Verdict::Always))].concat()
}

fn all_no() -> Vec<Vec<Part>> {
    [spellings(words_of(Verdict::No), false), alone(words_of(Verdict::Never))].concat()
}

fn alone(words: &[&str]) -> Vec<Vec<Part>> {
    words.iter().map(|word| vec![Part::text(*word)]).collect()
}

#[test]
fn every_spelling_alone() {
    for parts in all_yes() {
        assert!(say(&permission(), parts.clone()).starts_with("proceed_"), "{parts:?}");
    }
    for parts in all_no() {
        assert!(say(&permission(), parts.clone()).starts_with("skip_"), "{parts:?}");
    }
}

#[test]
fn a_no_anywhere_wins_over_a_yes_anywhere() {
    let (yes, no) = (all_yes(), all_no());
    let check = |yes: &Vec<Part>, no: &Vec<Part>| {
        for parts in [[yes.clone(), no.clone()].concat(), [no.clone(), yes.clone()].concat()] {
            assert!(say(&permission(), parts.clone()).starts_with("skip_"), "{parts:?}");
        }
    };
    // Each with every 23rd of the others, which are of all shapes: all pairs would be half a million.
    yes.iter().for_each(|yes| no.iter().step_by(23).for_each(|no| check(yes, no)));
    no.iter().for_each(|no| yes.iter().step_by(23).for_each(|yes| check(yes, no)));
    // In one object, in either order, and under one name.
    for (yes, no) in [
        (r#""approved":true"#, r#""approved":false"#),
        (r#""action":"resume""#, r#""result":{"approved":false}"#),
        (r#""action":"resume""#, r#""result":false"#),
        (r#""result":true"#, r#""action":"cancel""#),
        (r#""optionId":"proceed_once""#, r#""approved":false"#),
        (r#""optionId":"proceed_always""#, r#""decision":"skip_once""#),
        (r#""approved":true"#, r#""denied":true"#),
        (r#""approved":true"#, r#""reason":"do not do this""#),
        (r#""decision":"allow""#, r#""meta":{"verdict":"deny"}"#),
    ] {
        for json in [format!("{{{yes},{no}}}"), format!("{{{no},{yes}}}")] {
            assert!(say(&permission(), vec![data(&json)]).starts_with("skip_"), "{json}");
        }
    }
}

/// A yes in words, with this beside it.
fn yes_beside(metadata: Option<&str>, file: Option<Content>) -> Vec<Message> {
    let Some(metadata) = metadata.map(|text| Json::parse(text).unwrap()) else {
        let file = Part::from(file.unwrap());
        return vec![message(vec![Part::text("yes"), file.clone()]), message(vec![file, data(r#"{"approved":true}"#)])];
    };
    let with_yes = || message(vec![Part::text("yes")]);
    vec![
        Message { metadata: Some(metadata.clone()), ..with_yes() },
        Message { request_metadata: Some(metadata.clone()), ..with_yes() },
        message(vec![Part { metadata: Some(metadata.clone()), ..Part::text("yes") }]),
        message(vec![Part { metadata: Some(metadata), ..data(r#"{"approved":true}"#) }]),
    ]
}

#[test]
fn a_no_in_metadata_or_in_a_file_wins_over_a_yes_anywhere() {
    let taken = |message: &Message| {
        let answer = QuestionAnswer::read(message, &permission());
        answer.choice.map_or("nothing".to_owned(), |place| permission()[place].id.clone())
    };
    let long = format!(r#"{{"x":"{}"}}"#, "x".repeat(LONGEST));
    for (metadata, expected) in [
        (r#"{"approved":false}"#, "skip_once"),
        (r#"{"decision":{"result":"no"}}"#, "skip_once"),
        (r#"{"deep":[{"er":{"denied":true}}]}"#, "skip_once"),
        (r#"{"verdict":"deny"}"#, "skip_once"),
        (r#"{"anything":"no"}"#, "skip_once"),
        (r#""no""#, "skip_once"),
        // There may be a no in what is too long to be read.
        (&long, "skip_once"),
        (r#"{"traceId":"5","profile":"ROUTINE","blocking":false}"#, "proceed_once"),
        (r#"{"approved":true}"#, "proceed_once"),
        // Only where an answer stands does it say for how long.
        (r#"{"always":true,"optionId":"proceed_always"}"#, "proceed_once"),
        ("{}", "proceed_once"),
    ] {
        for message in yes_beside(Some(metadata), None) {
            assert_eq!(taken(&message), expected, "{message:?}");
        }
    }
    let bytes = |bytes: &[u8]| Content::Bytes(crate::Base64::encode(bytes));
    for (file, expected) in [
        (bytes(b"no"), "skip_once"),
        (bytes(b"\n  No, do not do it!\n"), "skip_once"),
        (bytes(br#"{"approved": false}"#), "skip_once"),
        (bytes(br#"{"approved": false} and more"#), "skip_once"),
        (bytes(br#"[{"result":{"decision":"reject"}}]"#), "skip_once"),
        (bytes(&b"x ".repeat(LONGEST)), "skip_once"),
        // What is not here cannot be read.
        (Content::Url("https://example.com/answer.json".into()), "skip_once"),
        (bytes(b"the report, as agreed"), "proceed_once"),
        (bytes(br#"{"approved": true}"#), "proceed_once"),
        (bytes(&[0x89, b'P', b'N', b'G', 0xff, 0xfe]), "proceed_once"),
    ] {
        for message in yes_beside(None, Some(file.clone())) {
            assert_eq!(taken(&message), expected, "{message:?}");
        }
    }
    // A yes counts in words and data alone.
    let alone = message(vec![bytes(br#"{"approved": true}"#).into()]);
    assert_eq!(taken(&alone), "skip_once");
    let alone = Message { metadata: Some(Json::parse(r#"{"approved":true}"#).unwrap()), ..message(vec![]) };
    assert_eq!(taken(&alone), "skip_once");
}

#[test]
fn only_a_clear_yes_grants() {
    for parts in [
        vec![],
        vec![Part::text("")],
        vec![Part::text("yes?")],
        vec![Part::text("yes, and deploy it")],
        vec![Part::text("not yes")],
        vec![Part::text("maybe")],
        vec![Part::text("yes"), Part::text("but only the tests")],
        vec![data("null")],
        vec![data("5")],
        vec![data("[true]")],
        vec![data(r#"{"approved":"by the board"}"#)],
        vec![data(r#"{"approved":1}"#)],
        vec![data(r#"{"approved":null}"#), Part::text("yes")],
        vec![data(r#"{"approved":"by the board"}"#), Part::text("yes")],
        vec![data(r#"{"approved":[true]}"#)],
        vec![data(r#"{"denied":false}"#)],
        vec![data(r#"{"optionId":"unknown"}"#), Part::text("yes")],
        vec![data(r#"{"action":"resume","result":"Monday"}"#)],
        vec![data(r#"{"action":"resume","result":0}"#)],
        vec![data(r#"{"action":"resume","result":[]}"#)],
        // About something else.
        vec![data(r#"{"user":{"approved":true}}"#)],
        vec![data(r#"{"settings":{"allow":"yes"}}"#)],
        // There may be a no in what is too long to be read, or too deep.
        vec![Part::text("yes"), data(&format!(r#"{{"x":"{}"}}"#, "x".repeat(LONGEST)))],
        vec![Part::text("yes"), data(&format!("{}1{}", "[".repeat(200), "]".repeat(200)))],
    ] {
        assert!(say(&permission(), parts.clone()).starts_with("skip_"), "{parts:?}");
    }
}

#[test]
fn choices_and_words() {
    for (parts, expected) in [
        (vec![Part::text("always")], "proceed_always"),
        (vec![Part::text("never")], "skip_always"),
        (vec![Part::text("2")], "proceed_always"),
        (vec![Part::text("Run It")], "proceed_once"),
        // A name may have any words in it.
        (vec![Part::text("yes, and don't ask again")], "proceed_always"),
        (vec![data(r#"{"optionId":"proceed_always"}"#)], "proceed_always"),
        (vec![data(r#"{"option":2}"#)], "proceed_always"),
        (vec![data(r#"{"choice":"leave it"}"#)], "skip_once"),
        (vec![data(r#"{"outcome":{"outcome":"selected","optionId":"proceed_once"}}"#)], "proceed_once"),
        (vec![data(r#"{"behavior":"allow","updatedInput":{"force":false}}"#)], "proceed_once"),
        (vec![data(r#"{"approved":true,"always":true}"#)], "proceed_always"),
        (vec![data(r#"{"approved":true,"always":false}"#)], "proceed_once"),
        (vec![data(r#"{"approved":true,"optionId":"proceed_always"}"#)], "proceed_always"),
        // Where two allow, the narrower one.
        (vec![data(r#"{"option":"proceed_always","choice":"proceed_once"}"#)], "proceed_once"),
        (vec![data(r#"{"action":"resume","result":{"path":"/tmp"}}"#)], "proceed_once"),
        (vec![data(r#"{"approved":false,"reason":"too risky"}"#)], "skip_once: too risky"),
        (vec![data(r#"{"approved":true}"#), Part::text("approved by Ada")], "proceed_once: approved by Ada"),
        (vec![Part::text("use the other folder")], "skip_once: use the other folder"),
        (vec![data(r#"{"answer":"use the other folder"}"#)], "skip_once: use the other folder"),
        (vec![data(r#"{"note":1}"#), Part::text("yes")], "proceed_once"),
    ] {
        assert_eq!(say(&permission(), parts.clone()), expected, "{parts:?}");
    }
}

#[test]
fn whatever_the_agent_calls_no_does_not_allow() {
    let turned = choices(&[("no", "No", ChoiceKind::AllowOnce), ("yes", "Yes", ChoiceKind::RejectOnce)]);
    for parts in [vec![Part::text("no")], vec![data(r#"{"optionId":"no"}"#)], vec![Part::text("yes")]] {
        assert_eq!(say(&turned, parts.clone()), "yes", "the choice that rejects: {parts:?}");
    }
    let only_yes = choices(&[("yes", "Yes", ChoiceKind::AllowOnce)]);
    assert_eq!(say(&only_yes, vec![Part::text("no")]), "nothing");
    assert_eq!(say(&only_yes, vec![Part::text("hm")]), "nothing: hm");
}

#[test]
fn questions_for_input_take_any_words() {
    let colours = choices(&[("red", "Red", ChoiceKind::Other), ("blue", "Blue", ChoiceKind::Other)]);
    let sure = choices(&[("a", "Yes", ChoiceKind::Other), ("b", "No", ChoiceKind::Other)]);
    for (choices, parts, expected) in [
        (&colours, vec![Part::text("blue")], "blue: blue"),
        (&colours, vec![Part::text("2")], "blue: 2"),
        (&colours, vec![Part::text("no idea, something green")], "nothing: no idea, something green"),
        (&colours, vec![data(r#"{"optionId":"blue"}"#)], "blue: blue"),
        (&colours, vec![data(r#"{"choice":["red","blue"]}"#)], "nothing: red, blue"),
        (&colours, vec![data(r#"{"answer":"green"}"#)], "nothing: green"),
        (&sure, vec![Part::text("no")], "b: no"),
        (&sure, vec![data(r#"{"optionId":"a"}"#), Part::text("no")], "b: no"),
        (&vec![], vec![Part::text("y")], "nothing: y"),
        (&vec![], vec![data(r#"{"approved":false}"#)], "nothing: no"),
        (&vec![], vec![data(r#"{"text":"on Monday"}"#)], "nothing: on Monday"),
    ] {
        assert_eq!(say(choices, parts.clone()), expected, "{parts:?}");
    }
}

#[test]
fn what_is_only_an_approval() {
    let text = |text: &str| vec![Part::text(text)];
    for (parts, expected) in [
        (text("yes"), true),
        (text(" No! "), true),
        (text("go ahead"), true),
        (text("always"), true),
        (text("yes, and deploy it"), false),
        (text("which?"), false),
        (text(""), false),
        (vec![], false),
        (vec![data(r#"{"approved":false}"#)], true),
        (vec![data("true")], true),
        (vec![data(r#""deny""#)], true),
        (vec![data(r#"{"target_id":"t","decision_id":"d","action":"resume","result":{"approved":true}}"#)], true),
        (vec![data(r#"{"result":{"approved":true}}"#)], true),
        (vec![data(r#"{"questionId":"q1"}"#)], true),
        (vec![data(r#"{"action":"create_user","result":{"name":"x"}}"#)], false),
        (vec![data(r#"{"user":{"approved":true}}"#)], false),
        (vec![data(r#"{"approved":"by the board"}"#)], false),
        (vec![data(r#"{"target_id":"server-7"}"#)], false),
        (vec![data("[true]")], false),
        (vec![data("5")], false),
        (vec![data(&format!("{}true{}", r#"{"result":"#.repeat(100), "}".repeat(100)))], true),
        (vec![data(&format!(r#"{{"approved":true,"x":"{}"}}"#, "x".repeat(LONGEST)))], false),
        (vec![Part::text("yes"), data(r#"{"approved":true}"#)], true),
        (vec![Part::text("use this"), data(r#"{"approved":true}"#)], false),
        (vec![Part::text("yes"), Content::Url("file:///x".into()).into()], false),
    ] {
        assert_eq!(message(parts.clone()).is_only_approval(), expected, "{parts:?}");
    }
}

#[test]
fn a_question_is_named_anywhere_in_data_and_metadata() {
    let task = TaskId::parse("t").unwrap();
    let id = QuestionId::issue(&task, 3);
    let other = QuestionId::issue(&TaskId::parse("u").unwrap(), 3);
    let json = |text: &str| Json::parse(text.replace("ID", &id.to_string()).replace("OTHER", &other.to_string()));
    for (text, count) in [
        (r#"{"questionId":"ID","approved":true}"#, 1),
        (r#"{"target_id":"ID","action":"resume"}"#, 1),
        (r#"{"deep":[{"er":["ID"]}]}"#, 1),
        (r#"{"answers":{"ID":"yes"}}"#, 1),
        (r#""ID""#, 1),
        (r#"["ID","ID"]"#, 2),
        (r#"{"questionId":"OTHER"}"#, 1),
        (r#"{"questionId":"fc_perm_1"}"#, 0),
        (r#"{"questionId":"ID "}"#, 1),
        (r#"{"text":"about ID"}"#, 0),
    ] {
        let json = json(text).unwrap();
        let in_data = message(vec![Content::Data(json.clone()).into()]);
        let words = || vec![Part::text("yes")];
        let in_metadata = Message { metadata: Some(json.clone()), ..message(words()) };
        let of_request = Message { request_metadata: Some(json.clone()), ..message(words()) };
        let of_part = message(vec![Part { metadata: Some(json), ..Part::text("yes") }]);
        for message in [in_data, in_metadata, of_request, of_part] {
            assert_eq!(message.named_questions().len(), count, "{text}");
        }
    }
}

#[test]
fn a_no_under_a_name_of_its_own_is_a_no() {
    for member in [
        r#""isApproved":false"#,
        r#""is_approved":false"#,
        r#""approved ":false"#,
        r#""approval":false"#,
        r#""approval":"denied""#,
        r#""permission":"deny""#,
        r#""disapproved":true"#,
        r#""notAllowed":true"#,
        r#""userRejected":true"#,
        r#""value":false"#,
        r#""value":"no""#,
        r#""output":"no""#,
        r#""status":"denied""#,
        r#""status":"rejected by user""#,
        r#""note":"no, do not""#,
        r#""whatever":"no""#,
    ] {
        for json in [
            format!(r#"{{"action":"resume","result":{{{member}}}}}"#),
            format!(r#"{{"approved":true,{member}}}"#),
            format!(r#"{{{member},"approved":true}}"#),
        ] {
            let said = say(&permission(), vec![data(&json)]);
            assert!(said.starts_with("skip_once"), "{json}: {said}");
        }
    }
    // The result of a decision may be any JSON.
    for (result, expected) in [
        (r#"{"path":"/tmp"}"#, "proceed_once"),
        (r#"{"approved":true}"#, "proceed_once"),
        (r#"{"isApproved":true}"#, "proceed_once"),
        ("{}", "proceed_once"),
    ] {
        let json = format!(r#"{{"target_id":"t","decision_id":"d","action":"resume","result":{result}}}"#);
        assert_eq!(say(&permission(), vec![data(&json)]), expected, "{json}");
    }
    for words in ["approved: false", r#"{"approved": false}"#, "n, leave it", "\u{ff2e}\u{ff4f}", "n\u{200b}o"] {
        let said = say(&permission(), vec![Part::text(words), data(r#"{"approved":true}"#)]);
        assert!(said.starts_with("skip_once"), "{words:?}: {said}");
    }
}

#[test]
fn a_long_text_does_not_hide_which_question_is_meant() {
    let task = TaskId::parse("t").unwrap();
    let id = QuestionId::issue(&task, 3);
    for json in [
        format!(r#"{{"questionId":"{id}","pad":"{}"}}"#, "x".repeat(2 * LONGEST)),
        format!(r#"{{"pad":"{}","questionId":"{id}"}}"#, "x".repeat(2 * LONGEST)),
    ] {
        let names = Evidence::of_data(&Json::parse(&json).unwrap(), LONGEST).names;
        assert!(names.contains(&id.to_string()), "{names:?}");
    }
}
