//! Messages, tasks and events: how each dialect reads them from callers, writes them, and reads them from peers.

use sabir_model::{Call, Event, Message, Page, Task, Wanted};

use super::{Report, SIZES, Shape, repeat};
use crate::{Dialect, JsonDialect, Operation, Payload, PeerResponse, Strictness, V01, V1, V03, V03Proto};

const DIALECTS: [(&str, &dyn JsonDialect); 4] =
    [("1.0", &V1), ("0.3", &V03), ("0.3 ProtoJSON", &V03Proto), ("0.1", &V01)];

/// Messages as 1.0 spells them, without the opening bracket, each with one thing that is there very often.
pub(super) const MESSAGES: [Shape; 17] = [
    ("a flag that is there again and again", |size| {
        data(&repeat(size, |_| r#""data_part_compat":true"#.into()), "[1]")
    }),
    ("flags between other members", |size| {
        let metadata = repeat(size, |place| format!(r#""{place}":"}}, ]","data_part_compat":{{"a":[1,2]}} "#));
        data(&metadata, "5")
    }),
    ("blanks around every token", |size| {
        let blanks = " ".repeat(size);
        data(&format!("{blanks}\"a\"{blanks}:{blanks}1{blanks},{blanks}\"data_part_compat\" : true{blanks}"), "5")
    }),
    ("many members of metadata", |size| {
        let metadata = repeat(size, |place| format!(r#""{place}":"x""#));
        format!(r#"{},"metadata":{{{metadata}}}}}"#, head(r#"{"text":"hi"}"#))
    }),
    ("the same member of metadata", |size| {
        let metadata = repeat(size, |_| r#""name":"x""#.into());
        format!(r#"{},"metadata":{{{metadata}}}}}"#, head(r#"{"text":"hi"}"#))
    }),
    ("many members of data", |size| {
        let members = repeat(size, |place| format!(r#""{place}":1"#));
        data("\"data_part_compat\":true", &format!("{{{members}}}"))
    }),
    ("a large value in data", |size| {
        let list = repeat(size, |place| format!("\"{place}\""));
        data("\"data_part_compat\":true", &format!(r#"{{"value":[{list}]}}"#))
    }),
    ("many texts", |size| format!("{}}}", head(&repeat(size, |_| r#"{"text":"word"}"#.into())))),
    ("many data parts", |size| {
        let part = |place: &str| format!(r#"{{"data":[{place}1],"metadata":{{"n":1,"data_part_compat":0}}}}"#);
        format!("{}}}", head(&repeat(size, |place| part(&format!("1{place}")))))
    }),
    ("many files", |size| {
        let part = |place: &str| format!(r#"{{"raw":"aGVsbG8h","filename":"{place}","mediaType":"text/plain"}}"#);
        format!("{}}}", head(&repeat(size, part)))
    }),
    ("one text of many escapes", |size| {
        format!("{}}}", head(&format!(r#"{{"text":"{}"}}"#, r#"\n\u00e9\"\ud83d\ude00"#.repeat(size))))
    }),
    ("one text of many line ends", |size| {
        format!("{}}}", head(&format!(r#"{{"text":"{}"}}"#, "\u{2028}\u{85}x".repeat(size))))
    }),
    ("deep nesting", |size| {
        let deep = repeat(size / 50, |_| format!("{}1{}", "[{\"a\":".repeat(50), "}]".repeat(50)));
        data("\"a\":1", &format!("[{deep}]"))
    }),
    ("a long name with escapes", |size| {
        let name = r#"\u0064ata\/part"#.repeat(size);
        data(&format!(r#""{name}":1,"data_part_compat":true,"{name}":2"#), &format!(r#"{{"{name}":1}}"#))
    }),
    ("long names that begin alike", |size| {
        let name = "n".repeat(200);
        let metadata = repeat(size, |place| format!(r#""{name}{place}":1"#));
        data(&metadata, "[1]")
    }),
    ("many extensions", |size| {
        let list = repeat(size, |place| format!(r#""https://example.com/{place}""#));
        format!(r#"{},"extensions":[{list}]}}"#, head(r#"{"text":"hi"}"#))
    }),
    ("many references", |size| {
        let list = repeat(size, |place| format!(r#""task-{place}""#));
        format!(r#"{},"referenceTaskIds":[{list}]}}"#, head(r#"{"text":"hi"}"#))
    }),
];

/// Members that nobody knows, or that are wrong.
pub(super) const STRANGE: [Shape; 7] = [
    ("unknown members", |size| repeat(size, |place| format!(r#""x{place}":[{{"a":1}},"x"]"#))),
    ("one unknown member again and again", |size| repeat(size, |_| r#""x":null"#.into())),
    ("unknown members with escapes in long names", |size| {
        repeat(size / 10, |place| format!(r#""{}{place}":1"#, r#"\u0041\n"#.repeat(20)))
    }),
    ("an unknown deep member", |size| {
        format!("\"x\":[{}]", repeat(size / 50, |_| format!("{}{}", "[".repeat(50), "]".repeat(50))))
    }),
    ("wrong parts", |size| format!("\"parts\":[{}]", repeat(size, |_| "{}".into()))),
    ("a member twice after many others", |size| {
        format!(r#"{},"extensions":[],"extensions":[]"#, repeat(size, |place| format!(r#""x{place}":1"#)))
    }),
    ("a long number", |size| format!(r#""role":1{}"#, "0".repeat(size * 4))),
];

fn head(parts: &str) -> String {
    format!(r#"{{"messageId":"m","contextId":"c","role":"ROLE_USER","parts":[{parts}]"#)
}

fn data(metadata: &str, data: &str) -> String {
    format!("{}}}", head(&format!(r#"{{"data":{data},"metadata":{{{metadata}}}}}"#)))
}

pub(super) fn message(text: &str) -> Message {
    match V1.decode(Operation::Send, &format!(r#"{{"message":{text}}}"#), Strictness::Strict) {
        Ok(Call::Send(send)) => send.message.or_with_id(|| unreachable!("a strict strictness has checked the id")),
        other => panic!("{other:?}"),
    }
}

/// The params that send a message.
pub(super) fn params(dialect: &dyn JsonDialect, message: &Message) -> String {
    let spelled = encoded(dialect, Payload::Message(message));
    match dialect.birth() {
        birth if birth == V01.birth() => format!(r#"{{"id":"t","message":{spelled}}}"#),
        _ if spelled.starts_with(r#"{"message""#) => spelled,
        _ => format!(r#"{{"message":{spelled}}}"#),
    }
}

fn encoded(dialect: &dyn JsonDialect, shown: Payload<'_>) -> String {
    let mut out = Vec::new();
    dialect.encode(shown, &mut out);
    String::from_utf8(out).unwrap()
}

/// The message everywhere that a task has one, and its parts as an artifact.
pub(super) fn task(message: &str) -> Task {
    let parts = &message[message.find(r#""parts""#).unwrap()..];
    let text = format!(
        r#"{{"id":"t","contextId":"c","status":{{"state":"TASK_STATE_WORKING","message":{message}}},
        "artifacts":[{{"artifactId":"a",{parts},{{"artifactId":"b",{parts}],"history":[{message}]}}"#
    );
    match V1.decode_response(Operation::Get, &text) {
        Ok(PeerResponse::Task(task)) => *task,
        other => panic!("{other:?}"),
    }
}

fn events(message: &str) -> [Event; 3] {
    let parts = &message[message.find(r#""parts""#).unwrap()..];
    let status = format!(
        r#"{{"statusUpdate":{{"taskId":"t","contextId":"c","status":{{"state":"TASK_STATE_COMPLETED","message":{message}}},"metadata":{message}}}}}"#
    );
    let artifact = format!(
        r#"{{"artifactUpdate":{{"taskId":"t","contextId":"c","metadata":{message},"artifact":{{"artifactId":"a",{parts}}}}}"#
    );
    let response = [status, artifact].map(|text| match V1.decode_response(Operation::Stream, &text) {
        Ok(PeerResponse::Event { event, .. }) => *event,
        other => panic!("{other:?}"),
    });
    let [status, artifact] = response;
    let text = format!(
        r#"{{"task":{{"id":"t","contextId":"c","status":{{"state":"TASK_STATE_SUBMITTED"}},"history":[{message}]}}}}"#
    );
    let created = match V1.decode_response(Operation::Stream, &text) {
        Ok(PeerResponse::Task(task)) => Event::Created(sabir_model::Created {
            message: task.history[0].clone(),
            metadata: task.metadata,
            note: None,
            time: task.created,
        }),
        other => panic!("{other:?}"),
    };
    [created, status, artifact]
}

/// All that a dialect can write of a message.
struct Samples {
    message: Message,
    task: Task,
    page: Page,
    events: [Event; 3],
}

impl Samples {
    fn of(text: &str) -> Self {
        let page = Page { tasks: vec![task(text)], artifacts: Wanted::Yes, next: None, page_size: 1, total: 1 };
        Samples { message: message(text), task: task(text), page, events: events(text) }
    }

    fn event(&self, place: usize) -> Payload<'_> {
        Payload::Event { task: &self.task.id, context: &self.task.context, event: &self.events[place] }
    }
}

type HttpAnswer = (&'static str, for<'a> fn(&'a Samples) -> Payload<'a>, Operation);

const ANSWERS: [HttpAnswer; 9] = [
    ("task", |samples| Payload::Task(&samples.task), Operation::Get),
    ("sent", |samples| Payload::SendResult(&samples.task), Operation::Send),
    ("snapshot", |samples| Payload::Snapshot(&samples.task), Operation::Stream),
    ("reply", |samples| Payload::Message(&samples.message), Operation::Send),
    ("page", |samples| Payload::Page(&samples.page), Operation::List),
    ("created", |samples| samples.event(0), Operation::Stream),
    ("status", |samples| samples.event(1), Operation::Stream),
    ("artifact", |samples| samples.event(2), Operation::Stream),
    ("end", |samples| Payload::FinalEvent { task: &samples.task, event: &samples.events[1] }, Operation::Stream),
];

const STRICTNESSES: [Strictness; 3] = [Strictness::Strict, Strictness::Complete, Strictness::Lenient];

const OPERATIONS: [Operation; 11] = [
    Operation::Send,
    Operation::Stream,
    Operation::Get,
    Operation::List,
    Operation::Cancel,
    Operation::Subscribe,
    Operation::PushSet,
    Operation::PushGet,
    Operation::PushList,
    Operation::PushDelete,
    Operation::ExtendedCard,
];

fn decode_response(dialect: &dyn JsonDialect, operation: Operation, text: &str) {
    let response = match dialect.slot() {
        0 => V1.decode_response(operation, text),
        1 => V03.decode_response(operation, text),
        2 => V03Proto.decode_response(operation, text),
        _ => V01.decode_response(operation, text),
    };
    response.unwrap();
}

#[test]
fn decoding_messages_is_linear() {
    let mut report = Report::default();
    for (shape, text) in MESSAGES {
        for (name, dialect) in DIALECTS {
            for strictness in STRICTNESSES {
                report.check(
                    &format!("{name} {strictness:?} reads {shape}"),
                    |size| params(dialect, &message(&text(size))),
                    |params| drop(dialect.decode(Operation::Send, params, strictness)),
                );
            }
        }
    }
    // What 0.x writes has one flag; callers may have written more.
    for (name, dialect) in DIALECTS {
        let params = |size| {
            let flags = repeat(size, |_| r#""data_part_compat":true , "a":1"#.into());
            let params = params(dialect, &message(&data(r#""a":1"#, "[1]")));
            params.replacen(r#""a":1"#, &flags, 1)
        };
        report.check(&format!("{name} reads flags"), params, |params| {
            assert!(dialect.decode(Operation::Send, params, Strictness::Lenient).is_ok(), "{params}");
        });
    }
    report.assert_linear();
}

#[test]
fn decoding_unknown_members_is_linear() {
    let mut report = Report::default();
    for (shape, members) in STRANGE {
        for (name, dialect) in DIALECTS {
            let plain = params(dialect, &message(&MESSAGES[7].1(1)));
            // After the first bracket of the params, of the message, and of its part.
            for (place, (start, _)) in plain.match_indices('{').take(3).enumerate() {
                let insert = |size| [&plain[..=start], &members(size), ",", &plain[start + 1..]].concat();
                for strictness in [Strictness::Strict, Strictness::Lenient] {
                    report.check(&format!("{name} {strictness:?} reads {shape} at {place}"), insert, |params| {
                        OPERATIONS.iter().for_each(|operation| drop(dialect.decode(*operation, params, strictness)));
                    });
                }
            }
        }
    }
    report.assert_linear();
}

/// A part of three bytes must not become hundreds: the body's limit is what limits the memory.
#[test]
fn a_decoded_message_takes_a_small_multiple_of_its_body() {
    const MOST: u64 = 16;
    let smallest = |part: &str| format!("{}}}", head(&repeat(SIZES[1], |_| part.to_owned())));
    let mut bodies: Vec<(&str, String)> = MESSAGES.iter().map(|(shape, text)| (*shape, text(SIZES[1]))).collect();
    bodies.push(("empty texts", smallest(r#"{"text":""}"#)));
    bodies.push(("empty data", smallest(r#"{"data":{}}"#)));
    for (shape, text) in bodies {
        for (name, dialect) in DIALECTS {
            let good = params(dialect, &message(&text));
            // Wrong ones may be smaller still.
            let wrong = good.replace(r#"{"text":""}"#, "{}").replace(r#","text":"""#, "");
            for (params, strictness) in
                [&good, &wrong].into_iter().flat_map(|text| STRICTNESSES.map(|strictness| (text, strictness)))
            {
                let peak =
                    allocation_counter::measure(|| drop(dialect.decode(Operation::Send, params, strictness))).bytes_max;
                let times = peak / params.len() as u64;
                assert!(times <= MOST, "{name} {strictness:?} holds {shape} {times} times over");
            }
        }
    }
}

#[test]
fn encoding_answers_and_decoding_them_as_a_peer_is_linear() {
    let mut report = Report::default();
    for (shape, text) in MESSAGES {
        let both = SIZES.map(|size| Samples::of(&text(size)));
        let samples = |size| &both[usize::from(size == SIZES[1])];
        for (name, dialect) in DIALECTS {
            for (what, shown, operation) in ANSWERS {
                report.check(&format!("{name} writes {shape}: {what}"), samples, |samples| {
                    drop(encoded(dialect, shown(samples)))
                });
                let is_heard = match what {
                    "reply" => dialect.slot() != 3,
                    "page" => dialect.slot() == 0,
                    _ => true,
                };
                if is_heard {
                    report.check(
                        &format!("{name} hears {shape}: {what}"),
                        |size| encoded(dialect, shown(samples(size))),
                        |spelled| decode_response(dialect, operation, spelled),
                    );
                }
            }
        }
    }
    report.assert_linear();
}
