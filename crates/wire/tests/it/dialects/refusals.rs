//! What each dialect refuses when it is read strictly, and how it names the field. Nothing that comes in makes it
//! panic.

use proptest::prelude::*;
use sabir_model::Error;
use sabir_wire::{Operation, Strictness, json};

use super::describe::describe;
use super::{OPERATIONS, STRICTNESSES, TestDialect, golden};

fn check(dialect: TestDialect, rows: &[(Operation, &str, &str)]) {
    for (operation, params, expected) in rows {
        let actual = describe(&dialect.decode(*operation, params, Strictness::Strict));
        let actual = actual.strip_prefix("refused: invalid parameters: ").unwrap_or(&actual);
        assert_eq!(actual, *expected, "{operation:?} {params}");
    }
}

#[test]
fn a_message_of_too_many_parts_is_refused_in_every_dialect() {
    let send = |dialect: TestDialect, count: usize| {
        let (id, part, role) = match dialect {
            TestDialect::V1 => ("", r#"{"text":"a"}"#, "ROLE_USER"),
            TestDialect::V03 | TestDialect::V03Proto => ("", r#"{"kind":"text","text":"a"}"#, "user"),
            TestDialect::V01 => (r#""id":"t","#, r#"{"type":"text","text":"a"}"#, "user"),
        };
        let parts = vec![part; count].join(",");
        let params = format!(r#"{{{id}"message":{{"messageId":"m","role":"{role}","parts":[{parts}]}}}}"#);
        describe(&dialect.decode(Operation::Send, &params, Strictness::Lenient))
    };
    for dialect in TestDialect::ALL {
        let actual = send(dialect, 65_537);
        assert!(
            actual.ends_with("must not have more than 65536 parts"),
            "{dialect:?}: {}",
            &actual[..actual.len().min(300)]
        );
        assert!(!send(dialect, 65_536).starts_with("refused"), "{dialect:?}");
    }
}

#[test]
fn v1_names_every_field_that_is_wrong() {
    check(
        TestDialect::V1,
        &[
            (Operation::Send, "{}", "message is required"),
            (Operation::Send, r#"{"message":null}"#, "message is required"),
            (
                Operation::Send,
                r#"{"message":{"role":"","messageId":"","taskId":"a\u0000"},"metadata":[],"tenant":"\n"}"#,
                "tenant must not contain control characters; message.messageId is required; \
                 message.taskId must not contain control characters; message.role is required; \
                 message.parts at least one part is required; metadata must be an object",
            ),
            (
                Operation::Send,
                r#"{"message":{"messageId":"m","role":"user","parts":[{"text":"a"},{},{"text":"a","raw":""},{"raw":"%"}]}}"#,
                "message.role is no role of the protocol; \
                 message.parts[1] one of text, raw, url and data is required; \
                 message.parts[2] only one of text, raw, url and data is allowed; \
                 message.parts[3].raw must be base64",
            ),
            (
                Operation::Send,
                r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":["a"]}}"#,
                "message.parts[0] expected an object, found a string",
            ),
            (
                Operation::Send,
                r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"a","data":null}]}}"#,
                "message.parts[0] only one of text, raw, url and data is allowed",
            ),
            (Operation::Send, r#"{"message":{"messageId":"m","message_id":"m"}}"#, "message.messageId is given twice"),
            (
                Operation::Send,
                r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"a"}]},
                    "configuration":{"historyLength":-1,"taskPushNotificationConfig":{"authentication":{}}}}"#,
                "configuration.taskPushNotificationConfig.url is required; \
                 configuration.taskPushNotificationConfig.authentication.scheme is required; \
                 configuration.historyLength must not be negative",
            ),
            (
                Operation::Send,
                r#"{"configuration":{"historyLength":5.5}}"#,
                "configuration.historyLength must be a whole number",
            ),
            (
                Operation::Send,
                r#"{"configuration":{"returnImmediately":"true"}}"#,
                "configuration.returnImmediately expected a boolean, found a string",
            ),
            (Operation::Get, r#"{"taskId":"t"}"#, "id is required"),
            (Operation::Get, r#"["t"]"#, "params expected an object, found an array"),
            (Operation::List, r#"{"pageSize":0}"#, "pageSize must be between 1 and 100"),
            (
                Operation::List,
                r#"{"page_size":"101","pageToken":"x"}"#,
                "pageSize must be between 1 and 100; pageToken is not a token of this server",
            ),
            (Operation::List, r#"{"status":"DONE"}"#, "status is no state of the protocol"),
            (Operation::List, r#"{"status":9}"#, "status is no state of the protocol"),
            (
                Operation::List,
                r#"{"statusTimestampAfter":"yesterday"}"#,
                "statusTimestampAfter must be an RFC 3339 time with a zone",
            ),
            (Operation::PushGet, "{}", "taskId is required; id is required"),
            (Operation::PushSet, "{}", "taskId is required; url is required"),
        ],
    );
}

#[test]
fn v1_takes_every_proto_json_form() {
    check(
        TestDialect::V1,
        &[
            (
                Operation::Stream,
                r#"{"tenant":"a","message":{"message_id":"m","role":1,"context_id":"","parts":[{"data":null,"media_type":"x/y","filename":""}],
                    "reference_task_ids":["r"],"unknown":{"deep":[1]}},"configuration":{"history_length":"5","return_immediately":true}}"#,
                "stream, to a, m user [data null type x/y], about r, history 5, born dialect 10",
            ),
            (
                Operation::List,
                r#"{"status":5,"pageSize":100.0,"pageToken":"","includeArtifacts":true,"statusTimestampAfter":"2026-02-03T12:00:00+02:00","tenant":""}"#,
                "list 100, Canceled, since 2026-02-03T10:00:00.000Z, with artifacts",
            ),
            (Operation::List, r#"{"status":"TASK_STATE_UNSPECIFIED","pageSize":null,"contextId":null}"#, "list 50"),
            (Operation::ExtendedCard, r#"{"tenant":"a"}"#, "extended card, to a"),
            (Operation::PushSet, r#"{"url":"u","task_id":"t"}"#, "set, push to u, of t"),
            (Operation::PushList, r#"{"taskId":"t","pageSize":0,"pageToken":""}"#, "list push of t"),
        ],
    );
}

#[test]
fn v03_names_every_field_that_is_wrong() {
    check(
        TestDialect::V03,
        &[
            (Operation::Send, "{}", "message is required"),
            (
                Operation::Send,
                r#"{"message":{"kind":"task","messageId":"m","role":"ROLE_USER","parts":[{"kind":"text"},{"kind":"file","text":"a"},
                    {"file":{"bytes":"AA","uri":"u"}},{"data":[1]},{"kind":"image","text":"a"}]}}"#,
                "message.kind must be message; message.role must be user or agent; \
                 message.parts[0] must hold one of text, file and data, the one its kind names; \
                 message.parts[1] must hold one of text, file and data, the one its kind names; \
                 message.parts[2].file must hold one of bytes and uri; \
                 message.parts[3].data must be an object; \
                 message.parts[4] must hold one of text, file and data, the one its kind names",
            ),
            (
                Operation::Send,
                r#"{"message":{"messageId":"m","role":"user","parts":[{"type":"image","text":"a"},{"type":"file","text":"a"},
                    {"type":"","text":"a"},{"kind":"text","type":"image","text":"a"},{"type":"text","text":"a"}]}}"#,
                "message.parts[0] must hold one of text, file and data, the one its kind names; \
                 message.parts[1] must hold one of text, file and data, the one its kind names; \
                 message.parts[2] must hold one of text, file and data, the one its kind names",
            ),
            (Operation::Get, r#"{"taskId":"t"}"#, "id is required"),
            (Operation::PushSet, r#"{"id":"t","pushNotificationConfig":{"url":"u"}}"#, "taskId is required"),
            (Operation::PushGet, r#"{"taskId":"t"}"#, "id is required"),
            (Operation::List, "{}", "refused: there is no method tasks/list"),
        ],
    );
}

#[test]
fn v03_takes_what_its_examples_show() {
    check(
        TestDialect::V03,
        &[
            (
                Operation::Send,
                r#"{"message":{"messageId":"m","role":"user","parts":[{"text":"a"},{"file":{"fileWithUri":"u","name":"n"}}]},
                    "configuration":{"historyLength":0,"blocking":false}}"#,
                r#"send and return, m user ["a"; url u named n], history 0, born dialect 3, context alone answers"#,
            ),
            (Operation::Get, r#"{"id":"t","historyLength":0,"tenant":"a"}"#, "get t, history 0"),
            (Operation::Subscribe, r#"{"id":"t"}"#, "subscribe t, show the end"),
            (Operation::ExtendedCard, "{}", "extended card"),
        ],
    );
}

#[test]
fn v03_proto_has_its_own_shapes() {
    check(
        TestDialect::V03Proto,
        &[
            (
                Operation::Send,
                r#"{"request":{"message_id":"m","role":"ROLE_USER","content":[{"text":"a"},{"file":{"file_with_bytes":"AA==","mime_type":"t/t","name":"n"}},
                    {"data":{"data":{"value":[1]}},"metadata":{"data_part_compat":true}}]},
                    "configuration":{"history_length":0,"push_notification":{"url":"u","authentication":{"schemes":["Bearer"]}}}}"#,
                r#"send and return, m user ["a"; bytes AA== named n type t/t; data [1]], push to u, as Bearer -, born dialect 3, context alone answers"#,
            ),
            (
                Operation::Send,
                r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"a"}]}}"#,
                "message.content at least one part is required",
            ),
            (
                Operation::Send,
                r#"{"message":{"messageId":"m","role":"ROLE_USER","content":[{"data":{}},{"data":{"data":5}},{"file":{}}]}}"#,
                "message.content[0].data.data is required; message.content[1].data.data must be an object; \
                 message.content[2].file must hold one of fileWithBytes and fileWithUri",
            ),
            (
                Operation::Send,
                r#"{"message":{"messageId":"m","role":"ROLE_USER","content":[{"text":"a"}]}}"#,
                r#"send, m user ["a"], born dialect 3, context alone answers"#,
            ),
            (
                Operation::Send,
                r#"{"message":{},"request":{}}"#,
                "request is another name of message; give one of them; message.messageId is required; \
             message.role is required; message.content at least one part is required",
            ),
            (Operation::Get, r#"{"name":"tasks/t","historyLength":0}"#, "get t"),
            (Operation::Cancel, r#"{"id":"t"}"#, "cancel t"),
            (Operation::Get, "{}", "name is required"),
            (Operation::PushGet, r#"{"name":"tasks/a/b/pushNotificationConfigs/c"}"#, "get push of a/b, config c"),
            (Operation::PushDelete, r#"{"name":"tasks/t/pushNotificationConfigs"}"#, "delete push of t"),
            (Operation::PushList, r#"{"parent":"tasks/t","page_size":"7"}"#, "list push of t, page 7"),
            (Operation::PushGet, r#"{"name":"t"}"#, "name must be tasks/ID or tasks/ID/pushNotificationConfigs/ID"),
            (
                Operation::PushSet,
                r#"{"parent":"tasks/t","configId":"c","config":{"pushNotificationConfig":{"url":"u"}}}"#,
                "set, push to u, config c, of t",
            ),
            (
                Operation::PushSet,
                r#"{"name":"tasks/t/pushNotificationConfigs/c","pushNotificationConfig":{"url":"u","id":"c"}}"#,
                "set, push to u, config c, of t",
            ),
            (Operation::PushSet, r#"{"pushNotificationConfig":{"url":"u"}}"#, "parent is required"),
        ],
    );
}

#[test]
fn v01_names_every_field_that_is_wrong() {
    check(
        TestDialect::V01,
        &[
            (Operation::Send, "{}", "id is required; message is required"),
            (
                Operation::Send,
                r#"{"taskId":"t","sessionId":"a\nb","message":{"parts":[]},"metadata":[],"historyLength":-1,"pushNotification":{}}"#,
                "id is required; sessionId must not contain control characters; message.role is required; \
                 message.parts at least one part is required; pushNotification.url is required; \
                 historyLength must not be negative; metadata must be an object",
            ),
            (
                Operation::Stream,
                r#"{"id":"t","message":{"role":"ROLE_USER","parts":[{"text":"a"},{"type":"text"},{"type":"file","text":"a"},
                    {"type":"file","file":{"bytes":"AA","uri":"u"}},{"type":"data","data":5},{"type":"file","file":{"bytes":"?"}}]}}"#,
                "message.role must be user or agent; message.parts[0].type is required; \
                 message.parts[1] must hold one of text, file and data, the one its type names; \
                 message.parts[2] must hold one of text, file and data, the one its type names; \
                 message.parts[3].file must hold one of bytes and uri; \
                 message.parts[4].data must be an object or an array; \
                 message.parts[5].file.bytes must be base64",
            ),
            (Operation::Get, r#"{"taskId":"t"}"#, "id is required"),
            (Operation::PushSet, r#"{"taskId":"t","pushNotificationConfig":{"url":"u"}}"#, "id is required"),
            (Operation::PushGet, r#"{"taskId":"t"}"#, "id is required"),
            (Operation::List, "{}", "refused: there is no method tasks/list"),
            (Operation::PushList, "{}", "refused: there is no method tasks/pushNotification/list"),
            (Operation::PushDelete, "{}", "refused: there is no method tasks/pushNotification/delete"),
            (Operation::ExtendedCard, "{}", "refused: there is no method agent/getAuthenticatedExtendedCard"),
        ],
    );
}

#[test]
fn v01_takes_what_its_clients_send() {
    check(
        TestDialect::V01,
        &[
            (
                Operation::Send,
                r#"{"id":"t","sessionId":null,"message":{"role":"user","parts":[{"type":"data","data":[1,{"a":2}],"metadata":null}],
                    "metadata":null},"acceptedOutputModes":["text"],"pushNotification":null,"historyLength":0,"metadata":null}"#,
                r#"send, unnamed user [data [1,{"a":2}]], task t, unnamed by its sender, history 0, accepts text, born dialect 1, makes the task it names, wants a task"#,
            ),
            (Operation::Get, r#"{"id":"t","historyLength":1,"metadata":{},"tenant":"a"}"#, "get t, history 1"),
            (Operation::Cancel, r#"{"id":"t","metadata":{"why":1}}"#, r#"cancel t, metadata {"why":1}"#),
            (Operation::Subscribe, r#"{"id":"t"}"#, "subscribe t, show the end"),
        ],
    );
}

/// Whatever comes in is read or refused, and a refusal speaks of the body.
fn check_any(text: &str) -> Result<(), TestCaseError> {
    for dialect in TestDialect::ALL {
        for operation in OPERATIONS {
            for strictness in STRICTNESSES {
                if let Err(error) = dialect.decode(operation, text, strictness) {
                    let expected = matches!(error, Error::Invalid(_) | Error::NotJson(_) | Error::InvalidRequest(_));
                    let is_later = operation == Operation::List || dialect == TestDialect::V01;
                    prop_assert!(
                        expected || is_later && matches!(error, Error::MethodNotFound(_)),
                        "{dialect:?} {operation:?}: {error:?}"
                    );
                    if let Error::Invalid(violations) = &error {
                        prop_assert!(!violations.is_empty());
                        prop_assert!(violations.iter().all(|v| v.field.len() + v.description.len() < 2000));
                    }
                }
            }
            if let Err(error) = dialect.decode_response(operation, text) {
                let expected = matches!(error, Error::Invalid(_) | Error::NotJson(_) | Error::MethodNotFound(_));
                prop_assert!(expected, "{dialect:?} {operation:?}: {error:?}");
            }
        }
    }
    Ok(())
}

/// JSON made of the words that the dialects look for, so that it gets past the first door.
fn any_json() -> impl Strategy<Value = String> {
    let word = proptest::sample::select(vec![
        "message",
        "request",
        "parts",
        "content",
        "text",
        "file",
        "data",
        "metadata",
        "role",
        "messageId",
        "kind",
        "type",
        "id",
        "taskId",
        "task_id",
        "name",
        "configuration",
        "historyLength",
        "raw",
        "url",
        "bytes",
        "uri",
        "status",
        "state",
        "pageSize",
        "pageToken",
        "config",
        "pushNotificationConfig",
        "parent",
        "authentication",
        "schemes",
        "value",
        "data_part_compat",
        "sessionId",
        "pushNotification",
        "index",
        "append",
        "final",
        "artifact",
        "artifacts",
        "history",
        "task",
        "statusUpdate",
        "artifactUpdate",
        "skills",
        "supportedInterfaces",
        "securitySchemes",
        "scheme",
        "flows",
        "$case",
    ]);
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        any::<i64>().prop_map(|number| number.to_string()),
        any::<f64>().prop_filter("JSON has no such number", |f| f.is_finite()).prop_map(|number| format!("{number:e}")),
        any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
        proptest::sample::select(vec![
            r#""user""#,
            r#""ROLE_USER""#,
            r#""TASK_STATE_WORKING""#,
            r#""text""#,
            r#""task""#,
            r#""tasks/t""#,
            r#""http""#,
            r#""oauth2""#,
            r#""AAAA""#,
            r#""2026-02-03T10:15:02Z""#,
            r#""status-update""#,
        ])
        .prop_map(str::to_owned),
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(|list| format!("[{}]", list.join(","))),
            proptest::collection::vec((word.clone(), inner), 0..6).prop_map(|members| {
                let members: Vec<String> = members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

proptest! {
    #[test]
    fn any_json_is_read_or_refused(text in any_json()) {
        check_any(&text)?;
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
        if let Ok(text) = json::check_text(&bytes) {
            check_any(text)?;
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text: String) {
        check_any(&text)?;
    }
}

#[test]
fn damaged_golden_bodies_are_read_or_refused() {
    let bodies = golden::bodies();
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let damage = (0..bodies.len(), any::<proptest::sample::Index>(), 0..20usize, ".{0,3}|[\\[\\]{}\",:0-9a-z]{0,3}");
    runner
        .run(&damage, |(body, at, length, patch)| {
            let text: Vec<char> = bodies[body].2.chars().collect();
            let start = at.index(text.len());
            let end = (start + length).min(text.len());
            let damaged: String =
                text[..start].iter().copied().chain(patch.chars()).chain(text[end..].iter().copied()).collect();
            check_any(&damaged)
        })
        .unwrap();
}

#[test]
fn only_the_first_violations_are_reported() {
    let parts = vec!["{}"; 1_000_000].join(",");
    let params = format!(r#"{{"message":{{"messageId":"m","role":"ROLE_USER","parts":[{parts}]}}}}"#);
    for strictness in STRICTNESSES {
        let Err(Error::Invalid(violations)) = TestDialect::V1.decode(Operation::Send, &params, strictness) else {
            panic!("it was not refused");
        };
        assert_eq!(violations.len(), 20);
        assert_eq!(violations[19].field, "message.parts[19]");
    }
}

#[test]
fn deeply_nested_json_is_refused_before_parsing() {
    let deep = format!(
        r#"{{"metadata":{}1{},"message":{{"parts":[{{"data":{}1{}}}]}}}}"#,
        "[".repeat(100_000),
        "]".repeat(100_000),
        "{\"a\":".repeat(100_000),
        "}".repeat(100_000)
    );
    check_any(&deep).unwrap();
    assert!(matches!(json::check_text(deep.as_bytes()), Err(Error::InvalidRequest(_))));
}
