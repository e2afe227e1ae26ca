//! Every spelling that clients are known to use.

use sabir_model::Event;
use sabir_wire::{Operation, PeerResponse, Strictness};

use super::TestDialect;
use super::describe::describe;

fn send(dialect: TestDialect, message: &str) -> String {
    send_as(dialect, message, Strictness::Lenient)
}

fn send_as(dialect: TestDialect, message: &str, strictness: Strictness) -> String {
    let id = if dialect == TestDialect::V01 { r#""id":"t","# } else { "" };
    let params = format!(r#"{{{id}"message":{message}}}"#);
    let actual = describe(&dialect.decode(Operation::Send, &params, strictness));
    let mut actual = actual.strip_prefix("send, ").unwrap_or(&actual).to_owned();
    if let Some(end) = actual.rfind(", born") {
        actual.truncate(end);
    }
    actual
}

/// In 0.1 every message goes to a task that the caller has named.
fn named(dialect: TestDialect, expected: &str) -> String {
    match expected.split_once(']') {
        Some((head, rest)) if dialect == TestDialect::V01 && !expected.starts_with("refused") => {
            let rest = rest.strip_prefix(", task t").unwrap_or(rest);
            format!("{head}], task t{rest}")
        }
        _ => expected.to_owned(),
    }
}

#[test]
fn lenient_reading_takes_any_spelling_of_a_message() {
    for (message, expected) in [
        (r#"{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hi"}]}"#, r#"m user ["hi"]"#),
        (r#"{"messageId":"m","role":"user","parts":[{"kind":"text","text":"hi"}]}"#, r#"m user ["hi"]"#),
        (r#"{"messageId":"m","parts":[{"type":"text","text":"hi"}]}"#, r#"m user ["hi"]"#),
        (r#"{"messageId":"m","parts":[{"type":"text","content":"hi"}]}"#, r#"m user ["hi"]"#),
        (r#"{"message_id":"m","role":"agent","content":[{"text":"hi"}]}"#, r#"m agent ["hi"]"#),
        (r#"{"messageId":"m","role":2,"parts":[{"text":"hi","data":null,"file":null}]}"#, r#"m agent ["hi"]"#),
        (r#"{"messageId":"m","role":"ROLE_UNSPECIFIED","parts":[{"text":""}]}"#, r#"m user [""]"#),
        (
            r#"{"messageId":"m","parts":[{"type":"file","file":{"name":"a","mimeType":"t/t","bytes":"AAAA"}}]}"#,
            "m user [bytes AAAA named a type t/t]",
        ),
        (
            r#"{"messageId":"m","parts":[{"file":{"fileWithUri":"http://x"},"filename":"a","mediaType":"t/t"}]}"#,
            "m user [url http://x named a type t/t]",
        ),
        (
            r#"{"messageId":"m","parts":[{"raw":"AAA","name":"a","mimeType":"t/t"},{"url":"http://x"}]}"#,
            "m user [bytes AAA= named a type t/t; url http://x]",
        ),
        (
            r#"{"messageId":"m","task_id":"t","context_id":"c","reference_task_ids":["r"],"parts":[{"data":{"a":1}}]}"#,
            r#"m user [data {"a":1}], task t, in c, about r"#,
        ),
        (
            r#"{"messageId":"m","message_id":"m","contextId":"","context_id":"c","parts":[{"text":"hi"}]}"#,
            r#"m user ["hi"], in c"#,
        ),
        (
            r#"{"messageId":"m","contextId":"c","context_id":"d","parts":[{"text":"hi"}]}"#,
            "refused: invalid parameters: message.context_id differs from contextId",
        ),
        (r#"{"messageId":"m","parts":[]}"#, "refused: invalid parameters: message.parts at least one part is required"),
        (r#"{"messageId":"m"}"#, "refused: invalid parameters: message.parts at least one part is required"),
        (
            r#"{"messageId":"m","role":"boss","parts":[{}]}"#,
            "refused: invalid parameters: message.role is no role of the protocol; \
             message.parts[0] text, a file or data is required",
        ),
        (
            r#"{"messageId":"m","parts":[{"text":"a","url":"b"}]}"#,
            "refused: invalid parameters: message.parts[0] only one of text, a file and data is allowed",
        ),
        (
            r#"{"messageId":"m","parts":[{"kind":"data","text":"a"}]}"#,
            "refused: invalid parameters: message.parts[0].kind does not name what the part holds",
        ),
        (
            r#"{"messageId":"m","parts":[{"type":"file","file":{"bytes":"?"}}]}"#,
            "refused: invalid parameters: message.parts[0].file.bytes must be base64",
        ),
        (
            r#"{"messageId":"m","parts":[{"text":"a","content":"b"}]}"#,
            "refused: invalid parameters: message.parts[0].text is given twice",
        ),
    ] {
        for dialect in TestDialect::ALL {
            assert_eq!(send(dialect, message), named(dialect, expected), "{dialect:?} {message}");
        }
    }
}

#[test]
fn data_is_read_as_its_dialect_spells_it() {
    let nested = r#"{"messageId":"m","parts":[{"data":{"data":{"a":1}}}]}"#;
    let flagged = r#"{"messageId":"m","parts":[{"data":{"value":5},"metadata":{"data_part_compat":true}}]}"#;
    let null = r#"{"messageId":"m","parts":[{"data":null}]}"#;
    for (dialect, message, expected) in [
        (TestDialect::V1, nested, r#"m user [data {"data":{"a":1}}]"#),
        (TestDialect::V03, nested, r#"m user [data {"data":{"a":1}}]"#),
        (TestDialect::V03Proto, nested, r#"m user [data {"a":1}]"#),
        (TestDialect::V1, flagged, r#"m user [data {"value":5} metadata {"data_part_compat":true}]"#),
        (TestDialect::V03, flagged, "m user [data 5]"),
        (TestDialect::V03Proto, flagged, "m user [data 5]"),
        (TestDialect::V01, nested, r#"m user [data {"data":{"a":1}}], task t"#),
        (TestDialect::V01, flagged, "m user [data 5], task t"),
        (TestDialect::V1, null, "m user [data null]"),
    ] {
        assert_eq!(send(dialect, message), expected, "{dialect:?} {message}");
    }
}

#[test]
fn a_missing_message_id_is_left_to_the_engine() {
    for (message, expected) in [
        (r#"{"parts":[{"text":"hi"}]}"#, r#"unnamed user ["hi"], unnamed by its sender"#),
        (r#"{"messageId":"","parts":[{"text":"hi"}]}"#, r#"unnamed user ["hi"], unnamed by its sender"#),
        (r#"{"messageId":null,"parts":[{"text":"hi"}]}"#, r#"unnamed user ["hi"], unnamed by its sender"#),
        (r#"{"messageId":"unnamed","parts":[{"text":"hi"}]}"#, r#"unnamed user ["hi"]"#),
        (
            r#"{"messageId":"\n","parts":[{"text":"hi"}]}"#,
            "refused: invalid parameters: message.messageId must not contain control characters",
        ),
    ] {
        for dialect in TestDialect::ALL {
            assert_eq!(send(dialect, message), named(dialect, expected), "{dialect:?} {message}");
        }
    }
}

#[test]
fn a_complete_message_has_its_id_and_its_role() {
    for (message, expected) in [
        (r#"{"message_id":"m","role":"user","content":[{"type":"text","content":"hi"}]}"#, r#"m user ["hi"]"#),
        (r#"{"messageId":"m","role":2,"parts":[{"kind":"text","text":"hi"}]}"#, r#"m agent ["hi"]"#),
        (
            r#"{"parts":[{"text":"hi"}]}"#,
            "refused: invalid parameters: message.messageId is required; message.role is required",
        ),
        (
            r#"{"messageId":"","role":"ROLE_UNSPECIFIED","parts":[]}"#,
            "refused: invalid parameters: message.messageId is required; message.role is required; \
             message.parts at least one part is required",
        ),
        (
            r#"{"messageId":"m","role":"boss","parts":[{"text":"hi"}]}"#,
            "refused: invalid parameters: message.role is no role of the protocol",
        ),
    ] {
        for dialect in [TestDialect::V1, TestDialect::V03, TestDialect::V03Proto] {
            assert_eq!(send_as(dialect, message, Strictness::Complete), expected, "{dialect:?} {message}");
        }
    }
}

#[test]
fn blocking_and_return_immediately_are_both_read() {
    let message = r#""message":{"messageId":"m","role":"user","parts":[{"text":"hi"}]}"#;
    for (configuration, expected) in [
        (r#"{"returnImmediately":true}"#, "send and return"),
        (r#"{"returnImmediately":false}"#, "send"),
        (r#"{"blocking":false}"#, "send and return"),
        (r#"{"blocking":true}"#, "send"),
    ] {
        let params = format!(r#"{{{message},"configuration":{configuration}}}"#);
        for dialect in [TestDialect::V1, TestDialect::V03, TestDialect::V03Proto] {
            let actual = describe(&dialect.decode(Operation::Send, &params, Strictness::Lenient));
            assert_eq!(actual.split(',').next(), Some(expected), "{dialect:?} {configuration}");
        }
    }
    let strict = |dialect: TestDialect, role: &str, configuration: &str| {
        let message = format!(r#"{{"kind":"message","messageId":"m","role":"{role}","parts":[{{"text":"hi"}}]}}"#);
        let params = format!(r#"{{"message":{message},"configuration":{configuration}}}"#);
        describe(&dialect.decode(Operation::Send, &params, Strictness::Strict)).split(',').next().unwrap().to_owned()
    };
    assert_eq!(strict(TestDialect::V1, "ROLE_USER", r#"{"blocking":false}"#), "send");
    assert_eq!(strict(TestDialect::V03, "user", r#"{"returnImmediately":true}"#), "send");
}

#[test]
fn lenient_reading_takes_request_for_message() {
    let params = r#"{"request":{"messageId":"m","role":"user","parts":[{"text":"hi"}]}}"#;
    assert!(V03_LIKE.iter().all(|dialect| dialect.decode(Operation::Send, params, Strictness::Lenient).is_ok()));
    let strict = describe(&TestDialect::V03.decode(Operation::Send, params, Strictness::Strict));
    assert_eq!(strict, "refused: invalid parameters: message is required");
    let both =
        r#"{"request":{"messageId":"m","parts":[{"text":"a"}]},"message":{"messageId":"m","parts":[{"text":"b"}]}}"#;
    let refused = describe(&TestDialect::V03.decode(Operation::Send, both, Strictness::Lenient));
    assert_eq!(refused, "refused: invalid parameters: request is another name of message; give one of them");
}

const V03_LIKE: [TestDialect; 2] = [TestDialect::V03, TestDialect::V03Proto];

#[test]
fn lenient_reading_takes_any_name_of_the_task_id() {
    for (params, expected) in [
        (r#"{"id":"t"}"#, "get t"),
        (r#"{"taskId":"t"}"#, "get t"),
        (r#"{"task_id":"t","history_length":"3"}"#, "get t, history 3"),
        (r#"{"name":"tasks/t"}"#, "get t"),
        (r#"{"id":"t","taskId":"t","task_id":"t","name":"tasks/t"}"#, "get t"),
        (r#"{"id":"","taskId":"t"}"#, "get t"),
        (r#"{"id":"t","taskId":"u"}"#, "refused: invalid parameters: taskId differs from id"),
        (r#"{"task_id":"t","name":"tasks/u"}"#, "refused: invalid parameters: name differs from task_id"),
        (r#"{}"#, "refused: invalid parameters: id is required"),
        (r#"{"taskId":"a\nb"}"#, "refused: invalid parameters: taskId must not contain control characters"),
    ] {
        for dialect in TestDialect::ALL {
            assert_eq!(
                describe(&dialect.decode(Operation::Get, params, Strictness::Lenient)),
                expected,
                "{dialect:?} {params}"
            );
        }
    }
}

#[test]
fn push_configs_of_0_3_under_any_name_of_the_task() {
    for (operation, params, expected) in [
        (Operation::PushGet, r#"{"taskId":"t"}"#, "get push of t"),
        (Operation::PushList, r#"{"task_id":"t"}"#, "list push of t"),
        (Operation::PushDelete, r#"{"id":"t","pushNotificationConfigId":"c"}"#, "delete push of t, config c"),
        (Operation::PushDelete, r#"{"id":"t"}"#, "delete push of t"),
        (Operation::PushSet, r#"{"id":"t","pushNotificationConfig":{"url":"u"}}"#, "set, push to u, of t"),
        (
            Operation::PushSet,
            r#"{"pushNotificationConfig":{}}"#,
            "refused: invalid parameters: pushNotificationConfig.url is required; taskId is required",
        ),
    ] {
        assert_eq!(describe(&TestDialect::V03.decode(operation, params, Strictness::Lenient)), expected, "{params}");
    }
}

#[test]
fn tasks_and_sessions_of_0_1_under_any_of_their_names() {
    let message = r#""message":{"parts":[{"text":"hi"}]}"#;
    let read = r#"send, unnamed user ["hi"]"#;
    for (names, expected) in [
        (r#""id":"t""#, format!("{read}, task t")),
        (r#""taskId":"t","sessionId":"s""#, format!("{read}, task t, in s")),
        (r#""task_id":"t","session_id":"s""#, format!("{read}, task t, in s")),
        (r#""name":"tasks/t","contextId":"s","context_id":"s""#, format!("{read}, task t, in s")),
        (r#""id":"t","taskId":"t","sessionId":"","contextId":"s""#, format!("{read}, task t, in s")),
        (r#""id":"t","taskId":"u""#, "refused: invalid parameters: taskId differs from id".to_owned()),
        (
            r#""id":"t","sessionId":"s","context_id":"c""#,
            "refused: invalid parameters: context_id differs from sessionId".to_owned(),
        ),
        (r#""sessionId":"s""#, "refused: invalid parameters: id is required".to_owned()),
    ] {
        let params = format!("{{{names},{message}}}");
        let actual = describe(&TestDialect::V01.decode(Operation::Send, &params, Strictness::Lenient));
        let actual = actual.split(", unnamed by").next().unwrap();
        assert_eq!(actual, expected, "{params}");
    }
    // A message of later versions names its place itself.
    for (ids, inner, expected) in [
        (r#""id":"t""#, r#""taskId":"t","contextId":"c""#, "m user [\"hi\"], task t, in c"),
        (r#""id":"t""#, r#""taskId":"u""#, "refused: invalid parameters: id differs from message.taskId"),
        (
            r#""id":"t","sessionId":"s""#,
            r#""contextId":"c""#,
            "refused: invalid parameters: sessionId differs from message.contextId",
        ),
    ] {
        let params = format!(r#"{{{ids},"message":{{"messageId":"m",{inner},"parts":[{{"text":"hi"}}]}}}}"#);
        let actual = describe(&TestDialect::V01.decode(Operation::Send, &params, Strictness::Lenient));
        let actual = actual.strip_prefix("send, ").unwrap_or(&actual).split(", born").next().unwrap();
        assert_eq!(actual, expected, "{params}");
    }
}

#[test]
fn push_configs_of_0_1_under_any_name_of_the_task() {
    for (operation, params, expected) in [
        (Operation::PushGet, r#"{"taskId":"t"}"#, "get push of t"),
        (Operation::PushGet, r#"{"name":"tasks/t"}"#, "get push of t"),
        (Operation::PushSet, r#"{"task_id":"t","pushNotificationConfig":{"url":"u"}}"#, "set, push to u, of t"),
        (
            Operation::PushSet,
            r#"{"pushNotificationConfig":{}}"#,
            "refused: invalid parameters: pushNotificationConfig.url is required; id is required",
        ),
    ] {
        assert_eq!(describe(&TestDialect::V01.decode(operation, params, Strictness::Lenient)), expected, "{params}");
    }
}

/// Frames as the tutorial of 0.1 shows them.
#[test]
fn incomplete_answers_of_0_1_peers_are_read() {
    for (frame, expected) in [
        (r#"{"id":"t","status":{"state":"working"}}"#, "Working, goes on"),
        (r#"{"id":"t","status":{"state":"completed"}}"#, "Completed, final"),
        (r#"{"id":"t","status":{"state":"input-required"},"final":true}"#, "InputRequired, final"),
        (r#"{"id":"t","status":{"state":"cancelled"},"final":null,"artifacts":null}"#, "Canceled, final"),
        (
            r#"{"id":"t","status":{"state":"completed"},"artifacts":[{"name":"report","parts":[]},{"parts":[]},{"index":7,"parts":[]}]}"#,
            "Completed, final, with artifact-0 artifact-1 artifact-7",
        ),
        (r#"{"id":"t","artifact":{"parts":[{"type":"text","text":"x"}]}}"#, "artifact-0 at 0"),
        (
            r#"{"id":"t","artifact":{"index":2,"append":true,"lastChunk":true,"parts":[]}}"#,
            "artifact-2 at 2, appended, last",
        ),
        (r#"{"id":"t","artifact":{"id":"a","parts":[]}}"#, "a at 0"),
        (r#"{"id":"t"}"#, "refused: invalid parameters:  must hold one of status and artifact"),
        (
            r#"{"id":"","artifact":{"index":-1,"parts":[{}]}}"#,
            "refused: invalid parameters: id is required; artifact.index must not be negative; \
             artifact.parts[0].type is required",
        ),
        (
            r#"{"id":"t","status":{"state":"unknown"}}"#,
            "refused: invalid parameters: status.state is no state of the protocol",
        ),
    ] {
        let actual = match TestDialect::V01.decode_response(Operation::Stream, frame) {
            Ok(PeerResponse::Event { event, .. }) => describe_event(&event),
            Ok(PeerResponse::FinalEvent { task, event }) => {
                let made: Vec<&str> = task.artifacts.iter().map(|artifact| artifact.id.as_str()).collect();
                format!("{}, with {}", describe_event(&event), made.join(" "))
            }
            Ok(other) => panic!("{other:?}"),
            Err(error) => format!("refused: {error}"),
        };
        assert_eq!(actual, expected, "{frame}");
    }
    for (config, expected) in [
        ("null", false),
        (r#"{"id":"t","pushNotificationConfig":null}"#, false),
        (r#"{"id":"t","pushNotificationConfig":{"url":"u"}}"#, true),
    ] {
        let Ok(PeerResponse::PushConfig(response)) = TestDialect::V01.decode_response(Operation::PushGet, config)
        else {
            panic!("{config}")
        };
        assert_eq!(response.is_some(), expected, "{config}");
    }
}

fn describe_event(event: &Event) -> String {
    match event {
        Event::Status(change) => {
            format!("{:?}, {}", change.status.state, if change.is_final { "final" } else { "goes on" })
        }
        Event::Artifact(chunk) => {
            let append = if chunk.append { ", appended" } else { "" };
            let last = if chunk.last { ", last" } else { "" };
            format!("{} at {}{append}{last}", chunk.artifact.id, chunk.index)
        }
        Event::Created(_) => panic!("0.1 has no frame for it"),
    }
}
