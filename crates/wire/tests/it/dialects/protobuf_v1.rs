//! The protobuf of 1.0 says what the JSON of 1.0 says.
//!
//! An independent reader of `.proto` files turns the one into the other, so the JSON dialect is the model: the same
//! requests mean the same calls, faulty ones give the same violations, and answers have the same content.

use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::sample::{Index, select};
use prost_reflect::prost::Message as _;
use prost_reflect::{DescriptorPool, DeserializeOptions, DynamicMessage, ReflectMessage as _};
use sabir_model::{Card, ContextId, Cursor, Error, Page, Task, TaskId, Timestamp, Wanted};
use sabir_wire::{Dialect, JsonDialect, Operation, Payload, PeerResponse, Strictness, V1, V1Protobuf, read_card};
use serde_json::{Value, json};

use super::{OPERATIONS, TestDialect, golden, roundtrip};

static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| DescriptorPool::decode(sabir_proto::DESCRIPTORS).unwrap());

fn request_type(operation: Operation) -> &'static str {
    match operation {
        Operation::Send | Operation::Stream => "SendMessageRequest",
        Operation::Get => "GetTaskRequest",
        Operation::List => "ListTasksRequest",
        Operation::Cancel => "CancelTaskRequest",
        Operation::Subscribe => "SubscribeToTaskRequest",
        Operation::PushSet => "TaskPushNotificationConfig",
        Operation::PushGet => "GetTaskPushNotificationConfigRequest",
        Operation::PushList => "ListTaskPushNotificationConfigsRequest",
        Operation::PushDelete => "DeleteTaskPushNotificationConfigRequest",
        Operation::ExtendedCard => "GetExtendedAgentCardRequest",
    }
}

fn response_type(operation: Operation) -> &'static str {
    match operation {
        Operation::Send => "SendMessageResponse",
        Operation::Stream | Operation::Subscribe => "StreamResponse",
        Operation::Get | Operation::Cancel => "Task",
        Operation::List => "ListTasksResponse",
        Operation::PushSet | Operation::PushGet => "TaskPushNotificationConfig",
        Operation::PushList => "ListTaskPushNotificationConfigsResponse",
        Operation::PushDelete => "Empty",
        Operation::ExtendedCard => "AgentCard",
    }
}

/// ProtoJSON as the message that it is. Members that the message does not have are ignored in requests only.
fn message_of(name: &str, json: &str, is_answer: bool) -> DynamicMessage {
    let descriptor = POOL.get_message_by_name(&format!("lf.a2a.v1.{name}")).unwrap();
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let options = DeserializeOptions::new().deny_unknown_fields(is_answer);
    DynamicMessage::deserialize_with_options(descriptor, &mut deserializer, &options)
        .unwrap_or_else(|error| panic!("{name}: {error} in {json}"))
}

fn request_bytes(operation: Operation, json: &str) -> Vec<u8> {
    message_of(request_type(operation), json, false).encode_to_vec()
}

/// JSON as protobuf gives it back: names sorted, no space, `5.0` as `5`.
fn canonical(json: &str) -> String {
    fn plain(value: &mut Value) {
        match value {
            Value::Number(number) => {
                let double = number.as_f64().unwrap();
                let is_whole = double.fract() == 0.0 && double.abs() < 1e15;
                *value = if is_whole { json!(double as i64) } else { json!(double) };
            }
            Value::Array(list) => list.iter_mut().for_each(plain),
            Value::Object(members) => members.values_mut().for_each(plain),
            Value::Null | Value::Bool(_) | Value::String(_) => {}
        }
    }
    let mut value = serde_json::from_str(json).unwrap();
    plain(&mut value);
    value.to_string()
}

fn check_request(operation: Operation, json: &str) {
    let json = canonical(json);
    let expected = V1.decode(operation, &json, Strictness::Strict);
    let actual = V1Protobuf.decode(operation, &request_bytes(operation, &json));
    match (expected, actual) {
        (Ok(expected), Ok(actual)) => assert_eq!(actual, expected, "{operation:?} {json}"),
        (Err(Error::Invalid(expected)), Err(Error::Invalid(actual))) => {
            assert_eq!(actual, expected, "{operation:?} {json}");
        }
        (expected, actual) => panic!("{operation:?} {json}: {expected:?} became {actual:?}"),
    }
}

#[test]
fn golden_requests_mean_the_same() {
    let mut seen = 0;
    for (dialect, operation, params) in golden::bodies() {
        if dialect == TestDialect::V1 {
            check_request(operation, &params);
            seen += 1;
        }
    }
    assert!(seen > 20, "only {seen} requests");
}

/// Every one of these is a call.
const REQUESTS: &[(Operation, &str)] = &[
    (Operation::Send, r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":""}]}}"#),
    (
        Operation::Send,
        r#"{"tenant":"alpha","message":{"messageId":"m","contextId":"c","taskId":"t","role":2,"metadata":{},
            "extensions":["urn:a","urn:a"],"referenceTaskIds":["r","s"],"parts":[
            {"text":"é\u0000","filename":"","mediaType":""},{"raw":"","filename":"f"},{"raw":"_-8","mediaType":"a/b"},
            {"url":""},{"url":"https://x/","metadata":{"b":1,"a":[null,true,-1.5]}},{"data":null},{"data":{}},{"data":[]},
            {"data":"x"},{"data":1e300},{"data":false,"metadata":{}}]},
            "configuration":{"acceptedOutputModes":["text/plain","a"],"historyLength":0,"returnImmediately":true,
            "taskPushNotificationConfig":{"tenant":"\n","id":"p","taskId":"t","url":"u","token":"s",
            "authentication":{"scheme":"Bearer","credentials":"c"}}},"metadata":{"x":{"y":[[]]}}}"#,
    ),
    (Operation::Send, r#"{"message":{"messageId":"m","role":1,"parts":[{"text":"a"}]},"configuration":{}}"#),
    (
        Operation::Send,
        r#"{"message":{"messageId":"m","role":1,"parts":[{"text":"a"}]},"configuration":{"historyLength":5,
            "taskPushNotificationConfig":{"url":"u"}},"metadata":{}}"#,
    ),
    (
        Operation::Stream,
        r#"{"message":{"messageId":"m","role":1,"parts":[{"text":"a"}]},"configuration":{"returnImmediately":true}}"#,
    ),
    (Operation::Get, r#"{"id":"t"}"#),
    (Operation::Get, r#"{"id":"t","historyLength":0,"tenant":"alpha"}"#),
    (Operation::Get, r#"{"id":"t/1 é:cancel","historyLength":2147483647,"tenant":""}"#),
    (Operation::List, "{}"),
    (Operation::List, r#"{"pageSize":1,"historyLength":0,"includeArtifacts":false,"status":0}"#),
    (
        Operation::List,
        r#"{"tenant":"alpha","contextId":"c","status":"TASK_STATE_AUTH_REQUIRED","pageSize":100,"historyLength":7,
            "statusTimestampAfter":"1969-12-31T23:59:59.999999Z","includeArtifacts":true}"#,
    ),
    (Operation::List, r#"{"statusTimestampAfter":"1970-01-01T00:00:00Z","pageToken":""}"#),
    (Operation::List, r#"{"statusTimestampAfter":"2026-02-03T10:15:02.5+02:00"}"#),
    (Operation::Cancel, r#"{"id":"t"}"#),
    (Operation::Cancel, r#"{"id":"t","tenant":"alpha","metadata":{"why":"x"}}"#),
    (Operation::Subscribe, r#"{"id":"t"}"#),
    (Operation::Subscribe, r#"{"id":"t","tenant":"alpha"}"#),
    (Operation::PushSet, r#"{"taskId":"t","url":"u"}"#),
    (
        Operation::PushSet,
        r#"{"tenant":"alpha","id":"p","taskId":"t","url":"u","token":"s","authentication":{"scheme":"Basic"}}"#,
    ),
    (Operation::PushGet, r#"{"taskId":"t","id":"p","tenant":"alpha"}"#),
    (Operation::PushList, r#"{"taskId":"t"}"#),
    (Operation::PushList, r#"{"taskId":"t","tenant":"alpha","pageSize":7,"pageToken":"x"}"#),
    (Operation::PushDelete, r#"{"taskId":"t","id":"p","tenant":"alpha"}"#),
    (Operation::ExtendedCard, "{}"),
    (Operation::ExtendedCard, r#"{"tenant":"alpha"}"#),
];

#[test]
fn requests_mean_the_same() {
    for (operation, json) in REQUESTS {
        check_request(*operation, json);
        assert!(V1.decode(*operation, json, Strictness::Strict).is_ok(), "{json}");
    }
    let cursor = Cursor {
        time: Timestamp::from_millis(5),
        task: TaskId::parse("t").unwrap(),
        agent: sabir_model::AgentId::parse("a").unwrap(),
        number: None,
    };
    check_request(Operation::List, &json!({"pageToken": cursor.to_token()}).to_string());
}

#[test]
fn faulty_requests_give_the_same_violations() {
    let long = "x".repeat(1025);
    let many_parts = vec![r#"{"text":"a"}"#; 65_537].join(",");
    let many_empty = vec!["{}"; 65_537].join(",");
    let rows = [
        (Operation::Send, "{}".to_owned()),
        (Operation::Send, r#"{"message":{},"tenant":"\n"}"#.to_owned()),
        (Operation::Send, r#"{"message":{"messageId":"","role":0,"parts":[],"taskId":"a\u0000"}}"#.to_owned()),
        (Operation::Send, r#"{"message":{"messageId":"m","role":3,"parts":[{"text":"a"},{},{"metadata":{}}]}}"#.to_owned()),
        (Operation::Send, r#"{"message":{"messageId":"m","role":-1,"parts":[{}],"referenceTaskIds":["a","","\n"]}}"#.to_owned()),
        (
            Operation::Stream,
            r#"{"message":{"messageId":"m","role":1,"parts":[{"text":"a"}],"contextId":"\t"},
                "configuration":{"historyLength":-1,"taskPushNotificationConfig":{"id":"\n","taskId":"\n","authentication":{}}}}"#
                .to_owned(),
        ),
        (Operation::Send, format!(r#"{{"message":{{"messageId":"{long}","taskId":"{long}","role":1,"parts":[{{"url":"u"}}]}}}}"#)),
        (Operation::Send, format!(r#"{{"message":{{"messageId":"m","role":1,"parts":[{many_parts}]}}}}"#)),
        (Operation::Send, format!(r#"{{"message":{{"messageId":"m","role":1,"parts":[{many_empty}]}}}}"#)),
        (Operation::Get, "{}".to_owned()),
        (Operation::Get, r#"{"id":"","tenant":"\n","historyLength":-2147483648}"#.to_owned()),
        (Operation::List, r#"{"pageSize":0,"historyLength":-1}"#.to_owned()),
        (Operation::List, r#"{"pageSize":101,"pageToken":"x","status":9,"contextId":"\n"}"#.to_owned()),
        (Operation::List, r#"{"pageSize":-1,"status":-7,"tenant":"\n"}"#.to_owned()),
        (Operation::Cancel, r#"{"metadata":{}}"#.to_owned()),
        (Operation::Subscribe, format!(r#"{{"id":"{long}"}}"#)),
        (Operation::PushSet, "{}".to_owned()),
        (Operation::PushSet, r#"{"taskId":"\n","id":"\n","tenant":"\n","authentication":{"credentials":"c"}}"#.to_owned()),
        (Operation::PushGet, "{}".to_owned()),
        (Operation::PushGet, r#"{"taskId":"\n","id":"\n"}"#.to_owned()),
        (Operation::PushList, r#"{"pageSize":-1}"#.to_owned()),
        (Operation::PushDelete, r#"{"taskId":"t"}"#.to_owned()),
        (Operation::ExtendedCard, r#"{"tenant":"\n"}"#.to_owned()),
    ];
    for (operation, json) in rows {
        check_request(operation, &json);
        assert!(V1.decode(operation, &json, Strictness::Strict).is_err(), "{json}");
    }
}

/// The JSON of the test data that protobuf cannot hold, and what stands in its place.
const UNREPRESENTABLE: [(&str, &str); 2] = [
    (r#"{ "b":[1e3,12345678901234567], "b":null }"#, r#"{"sabir:unrepresentable":"a member is there twice"}"#),
    ("12345678901234567", r#"{"sabir:unrepresentable":"a double cannot hold this whole number exactly"}"#),
];

/// The bytes of a payload hold what its JSON holds, and are read as that is read.
fn check_payload(operation: Operation, payload: Payload<'_>) {
    let mut json = Vec::new();
    V1.encode(payload, &mut json);
    let json = String::from_utf8(json).unwrap();
    let json = UNREPRESENTABLE.iter().fold(json, |json, (text, marker)| json.replace(text, marker));
    let mut bytes = Vec::new();
    V1Protobuf.encode(payload, &mut bytes);

    let name = response_type(operation);
    let expected = message_of(name, &json, true);
    let descriptor = expected.descriptor();
    // As bytes: a list that JSON gave as empty is not there.
    let expected = DynamicMessage::decode(descriptor.clone(), expected.encode_to_vec().as_slice()).unwrap();
    let actual = DynamicMessage::decode(descriptor, bytes.as_slice()).unwrap();
    assert!(actual == expected, "{json} became {}", serde_json::to_string(&actual).unwrap());
    assert!(actual.unknown_fields().next().is_none(), "{json}");

    let mut expected = V1.decode_response(operation, &canonical(&json));
    if let Ok(PeerResponse::Page { page, .. }) = &mut expected
        && page.tasks.iter().all(|task| task.artifacts.is_empty())
    {
        // Protobuf does not tell an empty list from none.
        page.artifacts = Wanted::No;
    }
    let actual = V1Protobuf.decode_response(operation, &bytes);
    assert_eq!(actual.map_err(|error| error.to_string()), expected.map_err(|error| error.to_string()), "{json}");
}

proptest! {
    #[test]
    fn messages_have_the_same_content(message in roundtrip::message()) {
        for operation in [Operation::Send, Operation::Stream] {
            check_payload(operation, Payload::Message(&message));
        }
    }

    #[test]
    fn tasks_have_the_same_content(task in roundtrip::task()) {
        check_payload(Operation::Get, Payload::Task(&task));
        check_payload(Operation::Cancel, Payload::Task(&task));
        check_payload(Operation::Send, Payload::SendResult(&task));
        check_payload(Operation::Subscribe, Payload::Snapshot(&task));
        let written = TestDialect::V1.encode(Payload::Task(&task));
        let is_unrepresentable = UNREPRESENTABLE.iter().any(|(text, _)| written.contains(text));
        prop_assert_eq!(V1Protobuf.unrepresentable(&task).is_some(), is_unrepresentable);
    }

    #[test]
    fn events_have_the_same_content(event in roundtrip::event(), task in roundtrip::task()) {
        let context = ContextId::parse("c").unwrap();
        check_payload(Operation::Stream, Payload::Event { task: &task.id, context: &context, event: &event });
        check_payload(Operation::Subscribe, Payload::FinalEvent { task: &task, event: &event });
    }

    #[test]
    fn pages_have_the_same_content(tasks in proptest::collection::vec(roundtrip::task(), 0..3), total: u64, has_next: bool) {
        let next = has_next.then(|| Cursor {
            time: Timestamp::from_millis(5),
            task: TaskId::parse("t").unwrap(),
            agent: sabir_model::AgentId::parse("a").unwrap(),
            number: Some(7),
        });
        for artifacts in [Wanted::Yes, Wanted::No] {
            let page = Page { tasks: tasks.clone(), artifacts, next: next.clone(), page_size: 50, total };
            check_payload(Operation::List, Payload::Page(&page));
        }
    }

    #[test]
    fn push_configs_have_the_same_content(config in roundtrip::push_config()) {
        check_payload(Operation::PushSet, Payload::PushConfig(&config));
        check_payload(Operation::PushGet, Payload::PushConfig(&config));
        check_payload(Operation::PushList, Payload::PushConfigs(&[config.clone(), config]));
        check_payload(Operation::PushList, Payload::PushConfigs(&[]));
    }
}

/// A status without a time has none, while the creation of a task always says when it was.
#[test]
fn times_are_written_where_json_has_them() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut task = proptest::strategy::ValueTree::current(&roundtrip::task().new_tree(&mut runner).unwrap());
    task.status.time = Timestamp::default();
    check_payload(Operation::Get, Payload::Task(&task));
    let message = sabir_model::Message::new(
        sabir_model::MessageId::parse("m").unwrap(),
        sabir_model::Role::User,
        vec![sabir_model::Part::text("a")],
    );
    let created =
        sabir_model::Created { message: message.into(), metadata: None, note: None, time: Timestamp::default() };
    let event = sabir_model::Event::Created(created);
    check_payload(Operation::Stream, Payload::Event { task: &task.id, context: &task.context, event: &event });
}

#[test]
fn golden_answers_have_the_same_content() {
    let mut seen = 0;
    for (dialect, operation, answer) in golden::answers() {
        if dialect != TestDialect::V1 || operation == Operation::PushDelete {
            continue;
        }
        let json = canonical(&answer.to_string());
        let bytes = message_of(response_type(operation), &json, true).encode_to_vec();
        let expected = V1.decode_response(operation, &json).unwrap();
        let mut actual = V1Protobuf.decode_response(operation, &bytes).unwrap();
        if let (PeerResponse::Page { page: actual, .. }, PeerResponse::Page { page: expected, .. }) =
            (&mut actual, &expected)
        {
            actual.artifacts = expected.artifacts;
        }
        assert_eq!(actual, expected, "{json}");
        seen += 1;
    }
    assert!(seen > 30, "only {seen} answers");
    assert_eq!(V1Protobuf.decode_response(Operation::PushDelete, b"").unwrap(), PeerResponse::Empty);
}

fn check_card(card: &Card) {
    check_payload(Operation::ExtendedCard, Payload::Card(card));
}

#[test]
fn cards_have_the_same_content() {
    for path in [
        "v1.0/agent_card.json",
        "v1.0/signing/agent_card.signed.json",
        "v0.3/agent_card.json",
        "v0.2/agent_card_0.2.6.json",
        "v0.1/agent_card.json",
        "hybrid/agent_card.json",
    ] {
        check_card(&read_card(&golden::card(path).to_string()).unwrap());
    }
    let interfaces = json!([{"url": "u", "protocolBinding": "GRPC", "protocolVersion": "1.0", "tenant": "t"}]);
    let code = json!({"authorizationUrl": "a", "tokenUrl": "t", "scopes": {}, "pkceRequired": true});
    let device = json!({"deviceAuthorizationUrl": "d", "tokenUrl": "t", "scopes": {"a": ""}});
    let client = json!({"tokenUrl": "t", "refreshUrl": "r", "scopes": {"b": "x", "a": ""}});
    let implicit = json!({"authorizationUrl": "a", "scopes": {}});
    let oauth =
        |flows: Value| json!({"oauth2SecurityScheme": {"flows": flows, "oauth2MetadataUrl": "m", "description": "d"}});
    let schemes = json!({
        "key": {"apiKeySecurityScheme": {"location": "header", "name": "X", "description": "d"}},
        "http": {"httpAuthSecurityScheme": {"scheme": "Bearer", "bearerFormat": "JWT"}},
        "plain": {"httpAuthSecurityScheme": {"scheme": "Basic"}},
        "code": oauth(json!({"authorizationCode": code, "clientCredentials": client})),
        "device": oauth(json!({"deviceCode": device})),
        "client": oauth(json!({"clientCredentials": client})),
        "implicit": oauth(json!({"implicit": implicit})),
        "password": oauth(json!({"password": client})),
        "none": oauth(json!({})),
        "oidc": {"openIdConnectSecurityScheme": {"openIdConnectUrl": "o"}},
        "mtls": {"mtlsSecurityScheme": {"description": "d"}},
        "bare": {"mtlsSecurityScheme": {}},
        "unknown": {},
    });
    let security = json!([{"schemes": {"key": {}, "code": {"list": ["b", "a"]}}}, {"schemes": {}}]);
    for card in [
        json!({"name": "x", "supportedInterfaces": interfaces}),
        json!({"name": "x", "supportedInterfaces": interfaces, "securitySchemes": schemes, "securityRequirements": security}),
        json!({"name": "x", "supportedInterfaces": interfaces, "provider": {"organization": "o", "url": "p"},
            "documentationUrl": "d", "iconUrl": "i", "defaultInputModes": ["a"], "defaultOutputModes": ["b"],
            "capabilities": {"streaming": false, "pushNotifications": true, "extendedAgentCard": false, "extensions": [
                {"uri": "urn:a", "description": "d", "required": true, "params": {"b": 1, "a": {}}}, {"uri": "urn:b"}]},
            "skills": [{"id": "s", "name": "n", "description": "d", "tags": ["t"], "examples": ["e"], "inputModes": ["i"],
                "outputModes": ["o"], "securityRequirements": security}, {"id": "t"}],
            "signatures": [{"protected": "p", "signature": "s", "header": {"h": 1}}, {"protected": "p", "signature": "s"}]}),
    ] {
        check_card(&read_card(&card.to_string()).unwrap());
    }
}

/// What a peer may get wrong is named alike.
#[test]
fn faulty_answers_give_the_same_violations() {
    for (operation, json) in [
        (Operation::Get, "{}"),
        (Operation::Get, r#"{"id":"\n","contextId":"\n","status":{"state":0,"message":{}}}"#),
        (
            Operation::Cancel,
            r#"{"id":"t","status":{"state":99},"artifacts":[{"parts":[{}]},{"artifactId":"a"}],"history":[{"role":1}]}"#,
        ),
        (Operation::Send, "{}"),
        (Operation::Send, r#"{"task":{}}"#),
        (Operation::Stream, r#"{"message":{"parts":[{}]}}"#),
        (Operation::Stream, r#"{"statusUpdate":{"metadata":{}}}"#),
        (Operation::Stream, r#"{"statusUpdate":{"taskId":"t","status":{}}}"#),
        (Operation::Subscribe, r#"{"artifactUpdate":{"contextId":"\n"}}"#),
        (Operation::Subscribe, r#"{"artifactUpdate":{"taskId":"t","artifact":{"parts":[{"text":"a"},{}]}}}"#),
        (Operation::List, r#"{"tasks":[{},{"id":"t"}],"pageSize":-1,"totalSize":-1}"#),
        (Operation::PushSet, "{}"),
        (Operation::PushGet, r#"{"id":"\n","url":"u","authentication":{}}"#),
        (Operation::PushList, r#"{"configs":[{"url":"u"},{}]}"#),
        (
            Operation::ExtendedCard,
            r#"{"supportedInterfaces":[{},{"url":"u"}],"capabilities":{"extensions":[{}]},"skills":[{}],"signatures":[{}],
                "securitySchemes":{"a":{"apiKeySecurityScheme":{}},"h":{"httpAuthSecurityScheme":{}},
                "o":{"openIdConnectSecurityScheme":{}}}}"#,
        ),
    ] {
        let bytes = message_of(response_type(operation), json, true).encode_to_vec();
        let Err(Error::Invalid(expected)) = V1.decode_response(operation, json) else { panic!("{json}") };
        let Err(Error::Invalid(actual)) = V1Protobuf.decode_response(operation, &bytes) else { panic!("{json}") };
        assert_eq!(actual, expected, "{json}");
    }
    // A card of protobuf has no other place for an address.
    let error = V1Protobuf.decode_response(Operation::ExtendedCard, b"").unwrap_err();
    assert_eq!(error.to_string(), "invalid parameters: supportedInterfaces is required; name is required");
}

#[test]
fn numbers_that_json_does_not_have_are_violations() {
    let object = |number: f64| {
        let value =
            sabir_proto::prost_types::Value { kind: Some(sabir_proto::prost_types::value::Kind::NumberValue(number)) };
        sabir_proto::prost_types::Struct { fields: [("a".to_owned(), value)].into() }
    };
    let why = "must be a number that JSON has, not an infinite one or NaN";
    for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let cancel =
            sabir_proto::v1::CancelTaskRequest { id: "t".into(), metadata: Some(object(number)), ..Default::default() };
        let part = sabir_proto::v1::Part { metadata: Some(object(number)), ..Default::default() };
        let message =
            sabir_proto::v1::Message { parts: vec![part], metadata: Some(object(number)), ..Default::default() };
        let send = sabir_proto::v1::SendMessageRequest { message: Some(message), ..Default::default() };
        for (operation, bytes, expected) in [
            (Operation::Cancel, cancel.encode_to_vec(), format!("metadata.a {why}")),
            (
                Operation::Send,
                send.encode_to_vec(),
                format!(
                    "message.metadata.a {why}; message.messageId is required; message.role is required; \
                     message.parts[0] one of text, raw, url and data is required; message.parts[0].metadata.a {why}"
                ),
            ),
        ] {
            let error = V1Protobuf.decode(operation, &bytes).unwrap_err().to_string();
            assert_eq!(error, format!("invalid parameters: {expected}"));
        }
    }
}

/// Times that RFC 3339 cannot write become the nearest that it can.
#[test]
fn any_time_is_read() {
    for (seconds, nanos, expected) in [
        (i64::MIN, i32::MIN, "0001-01-01T00:00:00.000Z"),
        (i64::MAX, i32::MAX, "9999-12-31T23:59:59.999Z"),
        (-1, 999_999_999, "1969-12-31T23:59:59.999Z"),
        (0, -1, "1970-01-01T00:00:00.000Z"),
    ] {
        let time = sabir_proto::prost_types::Timestamp { seconds, nanos };
        let request = sabir_proto::v1::ListTasksRequest { status_timestamp_after: Some(time), ..Default::default() };
        let call = V1Protobuf.decode(Operation::List, &request.encode_to_vec()).unwrap();
        let sabir_model::Call::List(list) = call else { panic!("{call:?}") };
        assert_eq!(list.since.unwrap().to_string(), expected);
    }
}

/// The bytes of a message that has this one as its member of this number.
fn wrapped(number: u32, message: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    prost_reflect::prost::encoding::bytes::encode(number, &message.to_vec(), &mut bytes);
    bytes
}

#[test]
fn messages_nested_too_deep_are_refused() {
    // Written by hand: whoever builds such a message of structs runs out of stack himself.
    let metadata = |levels: usize| {
        let is_true = vec![4 << 3, 1];
        let value = (0..levels).fold(is_true, |value, _| wrapped(6, &wrapped(1, &value)));
        wrapped(1, &[wrapped(1, b"a"), wrapped(2, &value)].concat())
    };
    let status = wrapped(3, &[1 << 3, 1]);
    for (levels, is_read) in [(1, true), (48, true), (50, false), (5_000, false)] {
        let cancel = [wrapped(2, b"t"), wrapped(3, &metadata(levels))].concat();
        let task = [wrapped(1, b"t"), status.clone(), wrapped(6, &metadata(levels))].concat();
        let outcomes = [
            V1Protobuf.decode(Operation::Cancel, &cancel).map(drop),
            V1Protobuf.decode_response(Operation::Get, &task).map(drop),
        ];
        for outcome in outcomes {
            assert_eq!(outcome.is_ok(), is_read, "{levels}: {outcome:?}");
            assert!(is_read || matches!(outcome, Err(Error::InvalidRequest(_))), "{levels}: {outcome:?}");
        }
    }
}

/// Whatever comes in is read or refused. What is read can be written, and is read again as the same.
fn check_any(bytes: &[u8]) {
    for operation in OPERATIONS {
        if let Err(error) = V1Protobuf.decode(operation, bytes) {
            assert!(matches!(error, Error::Invalid(_) | Error::InvalidRequest(_)), "{operation:?}: {error:?}");
        }
        match V1Protobuf.decode_response(operation, bytes) {
            Err(error) => {
                assert!(matches!(error, Error::Invalid(_) | Error::InvalidRequest(_)), "{operation:?}: {error:?}");
            }
            Ok(PeerResponse::Task(task)) => check_again(operation, &task),
            Ok(_) => {}
        }
    }
}

fn check_again(operation: Operation, task: &Task) {
    if V1Protobuf.unrepresentable(task).is_some() {
        return;
    }
    let payload = match operation {
        Operation::Get | Operation::Cancel => Payload::Task(task),
        _ => Payload::Snapshot(task),
    };
    let mut bytes = Vec::new();
    V1Protobuf.encode(payload, &mut bytes);
    let again = V1Protobuf.decode_response(operation, &bytes).unwrap();
    assert_eq!(again, PeerResponse::Task(Box::new(task.clone())));
}

fn valid_messages() -> Vec<Vec<u8>> {
    let requests = REQUESTS.iter().map(|(operation, json)| request_bytes(*operation, json));
    let is_ours = |(dialect, operation, _): &(TestDialect, Operation, Value)| {
        *dialect == TestDialect::V1 && *operation != Operation::PushDelete
    };
    let answers = golden::answers()
        .into_iter()
        .filter(is_ours)
        .map(|(_, operation, answer)| message_of(response_type(operation), &answer.to_string(), true).encode_to_vec());
    requests.chain(answers).collect()
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
        check_any(&bytes);
    }

    #[test]
    fn changed_messages_are_read_or_refused(
        message in select(valid_messages()),
        changes in proptest::collection::vec((any::<Index>(), any::<u8>(), 0..4u8), 1..6),
    ) {
        let mut bytes = message;
        for (place, byte, how) in changes {
            if bytes.is_empty() {
                break;
            }
            let at = place.index(bytes.len());
            match how {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                2 => drop(bytes.remove(at)),
                _ => bytes.truncate(at),
            }
        }
        check_any(&bytes);
    }
}
