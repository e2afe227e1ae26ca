//! Every spelling that clients are known to use.

use sabir_wire::{Operation, Reading};

use super::Tongue;
use super::say::say;

fn send(tongue: Tongue, message: &str) -> String {
    send_as(tongue, message, Reading::Lenient)
}

fn send_as(tongue: Tongue, message: &str, reading: Reading) -> String {
    let params = format!(r#"{{"message":{message}}}"#);
    let said = say(&tongue.decode(Operation::Send, &params, reading));
    let mut said = said.strip_prefix("send, ").unwrap_or(&said).to_owned();
    if let Some(end) = said.rfind(", born") {
        said.truncate(end);
    }
    said
}

#[test]
fn messages_in_any_spelling() {
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
        for tongue in Tongue::ALL {
            assert_eq!(send(tongue, message), expected, "{tongue:?} {message}");
        }
    }
}

#[test]
fn data_is_read_as_its_dialect_spells_it() {
    let nested = r#"{"messageId":"m","parts":[{"data":{"data":{"a":1}}}]}"#;
    let flagged = r#"{"messageId":"m","parts":[{"data":{"value":5},"metadata":{"data_part_compat":true}}]}"#;
    let null = r#"{"messageId":"m","parts":[{"data":null}]}"#;
    for (tongue, message, expected) in [
        (Tongue::V1, nested, r#"m user [data {"data":{"a":1}}]"#),
        (Tongue::V03, nested, r#"m user [data {"data":{"a":1}}]"#),
        (Tongue::V03Proto, nested, r#"m user [data {"a":1}]"#),
        (Tongue::V1, flagged, r#"m user [data {"value":5} metadata {"data_part_compat":true}]"#),
        (Tongue::V03, flagged, "m user [data 5]"),
        (Tongue::V03Proto, flagged, "m user [data 5]"),
        (Tongue::V1, null, "m user [data null]"),
    ] {
        assert_eq!(send(tongue, message), expected, "{tongue:?} {message}");
    }
}

#[test]
fn a_missing_message_id_is_left_to_be_made() {
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
        for tongue in Tongue::ALL {
            assert_eq!(send(tongue, message), expected, "{tongue:?} {message}");
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
        for tongue in Tongue::ALL {
            assert_eq!(send_as(tongue, message, Reading::Complete), expected, "{tongue:?} {message}");
        }
    }
}

#[test]
fn a_task_under_any_of_its_names() {
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
        for tongue in Tongue::ALL {
            assert_eq!(say(&tongue.decode(Operation::Get, params, Reading::Lenient)), expected, "{tongue:?} {params}");
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
        assert_eq!(say(&Tongue::V03.decode(operation, params, Reading::Lenient)), expected, "{params}");
    }
}
