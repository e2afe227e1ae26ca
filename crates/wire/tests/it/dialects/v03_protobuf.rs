//! The protobuf of 0.3 says what its ProtoJSON says, in both directions and when it is wrong.
//!
//! A library that knows nothing of A2A but the `.proto` files turns the one into the other.

use std::sync::{Arc, OnceLock};

use proptest::prelude::*;
use prost_reflect::prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};
use sabir_model::{
    Artifact, Call, Card, Content, ContextId, Error, Event, Json, Message, Part, PushConfig, Task, TaskId,
};
use sabir_wire::{
    CardFormat, Dialect, JsonDialect, Operation, Payload, PeerResponse, Strictness, V03Proto, V03Protobuf, read_card,
    write_card,
};
use serde_json::{Value, json};

use super::roundtrip::{event, message, push_config, task};
use super::{OPERATIONS, golden};

/// The message of a request.
fn request_type(operation: Operation) -> &'static str {
    match operation {
        Operation::Send | Operation::Stream => "SendMessageRequest",
        Operation::Get => "GetTaskRequest",
        Operation::Cancel => "CancelTaskRequest",
        Operation::Subscribe => "TaskSubscriptionRequest",
        Operation::PushSet => "CreateTaskPushNotificationConfigRequest",
        Operation::PushGet => "GetTaskPushNotificationConfigRequest",
        Operation::PushList => "ListTaskPushNotificationConfigRequest",
        Operation::PushDelete => "DeleteTaskPushNotificationConfigRequest",
        Operation::ExtendedCard => "GetAgentCardRequest",
        Operation::List => panic!("0.3 has no list"),
    }
}

fn response_type(operation: Operation) -> &'static str {
    match operation {
        Operation::Send => "SendMessageResponse",
        Operation::Stream | Operation::Subscribe => "StreamResponse",
        Operation::Get | Operation::Cancel => "Task",
        Operation::PushSet | Operation::PushGet => "TaskPushNotificationConfig",
        Operation::PushList => "ListTaskPushNotificationConfigResponse",
        Operation::ExtendedCard => "AgentCard",
        Operation::List | Operation::PushDelete => panic!("{operation:?} has no message of its own"),
    }
}

fn descriptor(name: &str) -> MessageDescriptor {
    static POOL: OnceLock<DescriptorPool> = OnceLock::new();
    let pool = POOL.get_or_init(|| DescriptorPool::decode(sabir_proto::DESCRIPTORS).unwrap());
    pool.get_message_by_name(&format!("a2a.v1.{name}")).unwrap()
}

/// The bytes of this ProtoJSON.
fn bytes_of(name: &str, json: &str) -> Vec<u8> {
    let mut reader = serde_json::Deserializer::from_str(json);
    let message = DynamicMessage::deserialize(descriptor(name), &mut reader);
    message.unwrap_or_else(|error| panic!("{error}: {json}")).encode_to_vec()
}

/// The ProtoJSON of these bytes.
fn json_of(name: &str, bytes: &[u8]) -> Value {
    serde_json::to_value(DynamicMessage::decode(descriptor(name), bytes).unwrap()).unwrap()
}

fn encoded(payload: Payload<'_>) -> Vec<u8> {
    let mut out = b"before".to_vec();
    V03Protobuf.encode(payload, &mut out);
    assert!(out.starts_with(b"before"));
    out.split_off(6)
}

fn written(payload: Payload<'_>) -> String {
    let mut out = Vec::new();
    V03Proto.encode(payload, &mut out);
    String::from_utf8(out).unwrap()
}

/// The call, or the violations by name.
fn told<T: std::fmt::Debug>(outcome: Result<T, Error>) -> Result<T, String> {
    outcome.map_err(|error| format!("{error:?}"))
}

fn check_request(operation: Operation, params: &str) -> Result<Call, String> {
    let bytes = bytes_of(request_type(operation), params);
    let actual = told(V03Protobuf.decode(operation, &bytes));
    let expected = told(V03Proto.decode(operation, params, Strictness::Strict));
    assert_eq!(actual, expected, "{operation:?} {}", &params[..params.len().min(300)]);
    actual
}

fn check_response(operation: Operation, result: &str) -> Result<PeerResponse, String> {
    let bytes = bytes_of(response_type(operation), result);
    let actual = told(V03Protobuf.decode_response(operation, &bytes));
    assert_eq!(actual, told(V03Proto.decode_response(operation, result)), "{operation:?} {result}");
    actual
}

/// The same message as the ProtoJSON, and read again the same as that.
fn check_payload(operation: Operation, payload: Payload<'_>) {
    let (bytes, json) = (encoded(payload), written(payload));
    let name = response_type(operation);
    assert_eq!(json_of(name, &bytes), json_of(name, &bytes_of(name, &json)), "{json}");
    let actual = V03Protobuf.decode_response(operation, &bytes).unwrap();
    assert_eq!(actual, V03Proto.decode_response(operation, &json).unwrap(), "{json}");
}

#[test]
fn golden_exchanges_mean_the_same() {
    let (mut requests, mut responses) = (0, 0);
    for golden::Exchange { name, operation, request, answers } in golden::exchanges_of_0_3() {
        check_request(operation, &params(operation, &request).to_string()).unwrap_or_else(|e| panic!("{name}: {e}"));
        requests += 1;
        for (operation, answer) in answers {
            if matches!(operation, Operation::PushDelete | Operation::ExtendedCard) {
                continue;
            }
            check_response(operation, &answer.to_string()).unwrap_or_else(|e| panic!("{name}: {e}"));
            responses += 1;
        }
    }
    assert!(requests >= 13 && responses >= 15, "{requests} {responses}");
}

/// The body, with what the path says.
fn params(operation: Operation, request: &Value) -> Value {
    let mut params = request.get("body").filter(|body| body.is_object()).cloned().unwrap_or(json!({}));
    let (path, query) =
        request["path"].as_str().unwrap().split_once('?').unwrap_or((request["path"].as_str().unwrap(), ""));
    let resource = path.trim_start_matches("/v1/");
    match operation {
        Operation::Send | Operation::Stream | Operation::ExtendedCard | Operation::List => {}
        Operation::Get | Operation::Cancel | Operation::Subscribe => {
            let name = resource.trim_end_matches(":cancel").trim_end_matches(":subscribe");
            params["name"] = name.into();
        }
        Operation::PushGet | Operation::PushDelete => params["name"] = resource.into(),
        Operation::PushSet | Operation::PushList => {
            params["parent"] = resource.trim_end_matches("/pushNotificationConfigs").into();
        }
    }
    for (member, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
        params[member] = value.into();
    }
    params
}

#[test]
fn requests_mean_the_same() {
    let message = r#""message":{"messageId":"m","role":"ROLE_USER","content":[{"text":"a"}]}"#;
    let send = |rest: &str| format!("{{{message}{rest}}}");
    let parts = |content: &str| {
        format!(
            r#"{{"message":{{"messageId":"m","contextId":"c","taskId":"t","role":2,"content":[{content}],"extensions":["urn:x",""],"metadata":{{"a":[1,null]}}}}}}"#
        )
    };
    let rows = [
        (Operation::Send, send("")),
        (Operation::Stream, send("")),
        (Operation::Stream, send(r#","configuration":{}"#)),
        (Operation::Send, send(r#","configuration":{}"#)),
        (Operation::Send, send(r#","configuration":{"blocking":false}"#)),
        (Operation::Send, send(r#","configuration":{"blocking":true,"historyLength":0}"#)),
        (Operation::Send, send(r#","configuration":{"historyLength":7,"acceptedOutputModes":["a/b","c/d"]},"metadata":{}"#)),
        (Operation::Send, send(r#","metadata":{"a":{"b":[true,2.5,"x"]}}"#)),
        (
            Operation::Send,
            send(r#","configuration":{"blocking":true,"pushNotification":{"id":"p","url":"https://h/","token":"t","authentication":{"schemes":["Bearer","Basic"],"credentials":"s"}}}"#),
        ),
        (Operation::Send, send(r#","configuration":{"pushNotification":{"url":"u","authentication":{}}}"#)),
        (Operation::Send, parts(r#"{"text":""},{"text":"é😀\u0000"}"#)),
        (Operation::Send, parts(r#"{"file":{"fileWithBytes":"","name":"n","mimeType":"a/b"}},{"file":{"fileWithBytes":"-_8"}}"#)),
        (Operation::Send, parts(r#"{"file":{"fileWithUri":"https://h/f","mimeType":"a/b"}},{"file":{"fileWithUri":""}}"#)),
        (Operation::Send, parts(r#"{"data":{"data":{}}},{"data":{"data":{"a":{"b":[]}}},"metadata":{"m":1}}"#)),
        (Operation::Send, parts(r#"{"data":{"data":{"value":[1]}},"metadata":{"data_part_compat":true}}"#)),
        (Operation::Send, parts(r#"{"data":{"data":{"value":null}},"metadata":{"data_part_compat":true,"m":1}}"#)),
        (Operation::Send, parts(r#"{"data":{"data":{"value":1}},"metadata":{"data_part_compat":false}}"#)),
        (Operation::Send, parts(r#"{"data":{"data":{"other":1,"value":1}},"metadata":{"data_part_compat":true}}"#)),
        (Operation::Get, r#"{"name":"tasks/t"}"#.into()),
        (Operation::Get, r#"{"name":"t","historyLength":3}"#.into()),
        (Operation::Get, r#"{"name":"tasks/a/b c:cancel","historyLength":0}"#.into()),
        (Operation::Cancel, r#"{"name":"tasks/t"}"#.into()),
        (Operation::Subscribe, r#"{"name":"tasks/tasks/t"}"#.into()),
        (Operation::PushSet, r#"{"parent":"tasks/t","configId":"c","config":{"pushNotificationConfig":{"url":"u"}}}"#.into()),
        (Operation::PushSet, r#"{"parent":"tasks/t","config":{"pushNotificationConfig":{"id":"c","url":"u","token":"x"}}}"#.into()),
        (Operation::PushSet, r#"{"config":{"name":"tasks/t/pushNotificationConfigs/c","pushNotificationConfig":{"url":"u"}}}"#.into()),
        (Operation::PushSet, r#"{"parent":"tasks/t/pushNotificationConfigs","configId":"d","config":{"name":"tasks/x/pushNotificationConfigs/c","pushNotificationConfig":{"id":"e","url":"u"}}}"#.into()),
        (Operation::PushGet, r#"{"name":"tasks/a/b/pushNotificationConfigs/c"}"#.into()),
        (Operation::PushGet, r#"{"name":"tasks/t"}"#.into()),
        (Operation::PushDelete, r#"{"name":"tasks/t/pushNotificationConfigs"}"#.into()),
        (Operation::PushDelete, r#"{"name":"tasks/t/pushNotificationConfigs/c"}"#.into()),
        (Operation::PushList, r#"{"parent":"tasks/t","pageSize":7,"pageToken":"x"}"#.into()),
        (Operation::PushList, r#"{"parent":"tasks/t/pushNotificationConfigs"}"#.into()),
        (Operation::ExtendedCard, "{}".into()),
    ];
    for (operation, params) in rows {
        let call = check_request(operation, &params);
        assert!(call.is_ok(), "{params}: {call:?}");
    }
}

#[test]
fn faulty_requests_get_the_same_violations() {
    let long = "x".repeat(1025);
    let many = |part: &str, count: usize| {
        let parts = vec![part; count].join(",");
        format!(r#"{{"message":{{"messageId":"m","role":"ROLE_USER","content":[{parts}]}}}}"#)
    };
    let rows = [
        (Operation::Send, "{}".to_owned()),
        (Operation::Send, r#"{"message":{}}"#.into()),
        (Operation::Send, r#"{"message":{"messageId":"a\u0000b","taskId":"\n","contextId":"\t","role":3,"content":[{"text":"a"}]}}"#.into()),
        (Operation::Send, format!(r#"{{"message":{{"messageId":"{long}","role":-1,"content":[]}}}}"#)),
        (Operation::Send, r#"{"message":{"messageId":"m","role":"ROLE_UNSPECIFIED","content":[{},{"text":"a"},{"file":{}},{"data":{}},{"file":{"name":"n"}}]}}"#.into()),
        (Operation::Send, many("{}", 30)),
        (Operation::Send, many(r#"{"text":""}"#, 65_537)),
        (Operation::Stream, r#"{"configuration":{"historyLength":-1,"pushNotification":{"id":"\n","token":"t"}}}"#.into()),
        (Operation::Get, "{}".into()),
        (Operation::Get, r#"{"name":"tasks/","historyLength":-1}"#.into()),
        (Operation::Get, format!(r#"{{"name":"tasks/{long}"}}"#)),
        (Operation::Cancel, "{}".into()),
        (Operation::Cancel, r#"{"name":"tasks/a\nb"}"#.into()),
        (Operation::Subscribe, "{}".into()),
        (Operation::PushSet, "{}".into()),
        (Operation::PushSet, r#"{"parent":"tasks/t"}"#.into()),
        (Operation::PushSet, r#"{"parent":"t","configId":"\n","config":{"name":"x","pushNotificationConfig":{"id":"\n"}}}"#.into()),
        (Operation::PushSet, r#"{"config":{"pushNotificationConfig":{"url":"u"}}}"#.into()),
        (Operation::PushGet, "{}".into()),
        (Operation::PushGet, r#"{"name":"t"}"#.into()),
        (Operation::PushGet, r#"{"name":"tasks/t/pushNotificationConfigs/"}"#.into()),
        (Operation::PushDelete, "{}".into()),
        (Operation::PushDelete, r#"{"name":"tasks/t/pushNotificationConfigsx"}"#.into()),
        (Operation::PushList, "{}".into()),
        (Operation::PushList, r#"{"parent":"x","pageSize":-1}"#.into()),
    ];
    for (operation, params) in rows {
        let refused = check_request(operation, &params).unwrap_err();
        assert!(refused.starts_with("Invalid(["), "{params}: {refused}");
    }
}

#[test]
fn faulty_answers_get_the_same_violations() {
    let artifact = r#"{"artifactId":"a","parts":[{}]}"#;
    let rows = [
        (Operation::Send, "{}".to_owned()),
        (Operation::Stream, r#"{"task":{}}"#.into()),
        (Operation::Stream, r#"{"message":{}}"#.into()),
        (Operation::Stream, r#"{"statusUpdate":{"final":true}}"#.into()),
        (
            Operation::Stream,
            r#"{"statusUpdate":{"taskId":"\n","contextId":"\n","status":{"state":9,"message":{}}}}"#.into(),
        ),
        (Operation::Stream, r#"{"artifactUpdate":{}}"#.into()),
        (Operation::Subscribe, format!(r#"{{"artifactUpdate":{{"taskId":"t","artifact":{artifact}}}}}"#)),
        (Operation::Get, "{}".into()),
        (Operation::Get, r#"{"id":"t","status":{}}"#.into()),
        (
            Operation::Cancel,
            format!(r#"{{"status":{{"state":1}},"artifacts":[{artifact},{{}}],"history":[{{}},{{"role":5}}]}}"#),
        ),
        (Operation::PushSet, "{}".into()),
        (Operation::PushGet, r#"{"name":"x","pushNotificationConfig":{}}"#.into()),
        (Operation::PushList, r#"{"configs":[{"pushNotificationConfig":{"url":"u"}},{}]}"#.into()),
    ];
    for (operation, answer) in rows {
        let refused = check_response(operation, &answer).unwrap_err();
        assert!(refused.starts_with("Invalid(["), "{answer}: {refused}");
    }
}

#[test]
fn what_json_cannot_say_is_refused_too() {
    // Not a number, inside the metadata of the request and of a part.
    let mut request = bytes_of(
        "SendMessageRequest",
        r#"{"message":{"messageId":"m","role":"ROLE_USER","content":[{"text":"a","metadata":{"n":[1]}}]},"metadata":{"x":1}}"#,
    );
    let one = 1f64.to_le_bytes();
    for at in 0..=request.len() - 8 {
        if request[at..at + 8] == one {
            request[at..at + 8].copy_from_slice(&f64::NAN.to_le_bytes());
        }
    }
    let refused = told(V03Protobuf.decode(Operation::Send, &request)).unwrap_err();
    for field in ["\"metadata.x\"", "\"message.content[0].metadata.n[0]\""] {
        assert!(refused.contains(field), "{refused}");
    }
    assert!(matches!(V03Protobuf.decode(Operation::List, b""), Err(Error::MethodNotFound(_))));
    assert!(matches!(V03Protobuf.decode_response(Operation::List, b""), Err(Error::MethodNotFound(_))));
    assert!(matches!(V03Protobuf.decode_response(Operation::PushDelete, b""), Ok(PeerResponse::Empty)));
    assert!(matches!(V03Protobuf.decode(Operation::Send, b"\xff"), Err(Error::InvalidRequest(_))));
}

/// A Struct whose one member is a Struct, and so on.
#[test]
fn nesting_beyond_the_limit_of_protobuf_is_refused() {
    let nested = |levels: usize| {
        let text = format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels));
        let inner = prost_types_struct(&text);
        // The field `metadata` of SendMessageRequest.
        [
            tag(3, &inner),
            bytes_of("SendMessageRequest", r#"{"message":{"messageId":"m","role":1,"content":[{"text":"a"}]}}"#),
        ]
        .concat()
    };
    assert!(V03Protobuf.decode(Operation::Send, &nested(30)).is_ok());
    for levels in [40, 120, 5000] {
        assert!(
            matches!(V03Protobuf.decode(Operation::Send, &nested(levels)), Err(Error::InvalidRequest(_))),
            "{levels}"
        );
    }
}

/// `{"a":{"a":1}}` as the bytes of a Struct.
fn prost_types_struct(text: &str) -> Vec<u8> {
    let levels = text.matches('{').count();
    let mut value = [&[0x11][..], &1f64.to_le_bytes()].concat();
    let mut object = Vec::new();
    for _ in 0..levels {
        let entry = [tag(1, b"a"), tag(2, &value)].concat();
        object = tag(1, &entry);
        value = tag(5, &object);
    }
    object
}

/// A field with a length.
fn tag(number: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut length = content.len();
    while length >= 0x80 {
        out.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend_from_slice(content);
    out
}

/// Where our own JSON is as deep as it may be, every reader of protobuf gets to its end.
#[test]
fn the_deepest_json_that_is_written_can_be_read() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let deep = |open: &str, close: &str| Json::parse(format!("{}1{}", open.repeat(127), close.repeat(127))).unwrap();
    for data in [deep("[", "]"), deep(r#"{"a":"#, "}"), deep(r#"[{"a":"#, "}]")] {
        let mut task = proptest::strategy::ValueTree::current(&task().new_tree(&mut runner).unwrap());
        let mut message = proptest::strategy::ValueTree::current(&message().new_tree(&mut runner).unwrap());
        message.parts = vec![Part { metadata: Some(deep(r#"{"a":"#, "}")), ..Part::data(data) }];
        task.status.message = Some(message.into());
        let reason = V03Protobuf.unrepresentable(&task).unwrap();
        assert!(
            reason.starts_with("status.message.content[0].data.data") && reason.contains("nested deeper"),
            "{reason}"
        );
        V03Protobuf.decode_response(Operation::Stream, &encoded(Payload::Snapshot(&task))).unwrap();
    }
}

#[test]
fn what_protobuf_cannot_hold_is_named() {
    const ID: &str = r#"{"id":12345678901234567}"#;
    let whole = "a double cannot hold this whole number exactly";
    let json = |text: &str| Json::parse(text).unwrap();
    let part = |data: &str, metadata: Option<&str>| Part { metadata: metadata.map(json), ..Part::data(json(data)) };
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut plain = proptest::strategy::ValueTree::current(&task().new_tree(&mut runner).unwrap());
    let mut said = proptest::strategy::ValueTree::current(&message().new_tree(&mut runner).unwrap());
    (said.parts, said.metadata) = (vec![Part::text("a")], None);
    let made =
        Artifact::new(sabir_model::ArtifactId::parse("a").unwrap(), vec![Part::text("a"), part("{}", Some("{}"))]);
    plain.status.message = Some(Arc::new(said.clone()));
    plain.artifacts = vec![Arc::new(made.clone())];
    plain.history = vec![Arc::new(said.clone())];
    plain.metadata = Some(json(r#"{"a":[1,"x"]}"#));
    assert_eq!(V03Protobuf.unrepresentable(&plain), None);
    let in_artifact = |part: Part| Task {
        artifacts: vec![Arc::new(Artifact { parts: [made.parts.clone(), vec![part]].concat(), ..made.clone() })],
        ..plain.clone()
    };
    let message_with = |metadata: &str| Arc::new(Message { metadata: Some(json(metadata)), ..said.clone() });
    let status = sabir_model::Status { message: Some(message_with(ID)), ..plain.status.clone() };
    for (task, expected) in [
        (in_artifact(part(ID, None)), format!("artifacts[0].parts[2].data.data.id: {whole}")),
        (in_artifact(part("[12345678901234567]", None)), format!("artifacts[0].parts[2].data.data.value[0]: {whole}")),
        (in_artifact(part("1", Some(ID))), format!("artifacts[0].parts[2].metadata.id: {whole}")),
        (
            in_artifact(Part { metadata: Some(json(ID)), ..Part::text("x") }),
            format!("artifacts[0].parts[2].metadata.id: {whole}"),
        ),
        (
            Task {
                artifacts: vec![Arc::new(Artifact { metadata: Some(json(r#"{"a":1,"a":2}"#)), ..made.clone() })],
                ..plain.clone()
            },
            "artifacts[0].metadata: a member is there twice".to_owned(),
        ),
        (Task { status, ..plain.clone() }, format!("status.message.metadata.id: {whole}")),
        (
            Task { history: vec![Arc::new(said.clone()), message_with(ID)], ..plain.clone() },
            format!("history[1].metadata.id: {whole}"),
        ),
        (Task { metadata: Some(json(ID)), ..plain.clone() }, format!("metadata.id: {whole}")),
    ] {
        assert_eq!(V03Protobuf.unrepresentable(&task), Some(expected.clone()));
        let shown = json_of("Task", &encoded(Payload::Task(&task))).to_string();
        assert!(shown.contains("sabir:unrepresentable"), "{expected}: {shown}");
    }
}

#[test]
fn the_dialect_is_that_of_0_3_in_other_bytes() {
    assert_eq!(V03Protobuf.birth(), V03Proto.birth());
    assert_eq!(V03Protobuf.push_members(), V03Proto.push_members());
    assert_eq!(V03Protobuf.slot(), 5);
    assert!(!V03Protobuf.is_text() && !V03Protobuf.final_event_needs_task());
}

/// Both cards hold what the JSON of 0.3 does; the golden ones have every member.
#[test]
fn cards_have_the_members_of_the_json() {
    for path in [
        "v0.3/agent_card.json",
        "hybrid/agent_card.json",
        "v1.0/signing/agent_card.signed.json",
        "v0.1/agent_card.json",
    ] {
        check_card(&read_card(&golden::card(path).to_string()).unwrap());
    }
    let flow = |name: &str| json!({name: {"authorizationUrl": "https://a/", "tokenUrl": "https://t/", "refreshUrl": "https://r/", "scopes": {"z": "last", "b": "first"}}});
    for flows in
        ["authorizationCode", "clientCredentials", "implicit", "password"].map(flow).into_iter().chain([json!({})])
    {
        check_card(&card_with(
            json!({"o": {"type": "oauth2", "description": "d", "flows": flows, "oauth2MetadataUrl": "https://m/"}}),
        ));
    }
    check_card(&card_with(json!({
        "k": {"type": "apiKey", "in": "header", "name": "X-Key", "description": "d"},
        "h": {"type": "http", "scheme": "Bearer", "bearerFormat": "JWT"},
        "i": {"type": "openIdConnect", "openIdConnectUrl": "https://i/"},
        "m": {"type": "mutualTLS", "description": "d"},
    })));
}

fn card_with(schemes: Value) -> Card {
    let card = json!({
        "protocolVersion": "0.3.0", "name": "n", "description": "d", "url": "https://a/", "preferredTransport": "GRPC", "version": "1",
        "additionalInterfaces": [{"url": "https://a/", "transport": "GRPC"}, {"url": "https://b/", "transport": "JSONRPC"}],
        "provider": {"organization": "o", "url": "https://o/"}, "documentationUrl": "https://d/", "iconUrl": "https://i/",
        "capabilities": {"streaming": true, "pushNotifications": false, "stateTransitionHistory": true,
            "extensions": [{"uri": "urn:x", "description": "d", "required": true, "params": {"a": [1]}}, {"uri": "urn:y"}]},
        "securitySchemes": schemes, "security": [{"a": ["r", "w"], "b": []}, {}],
        "defaultInputModes": ["a/b"], "defaultOutputModes": ["c/d"],
        "skills": [{"id": "s", "name": "n", "description": "d", "tags": ["t"], "examples": ["e"], "inputModes": ["a/b"],
            "outputModes": ["c/d"], "security": [{"a": ["r"]}]}, {"id": "z", "name": "", "description": "", "tags": []}],
        "supportsAuthenticatedExtendedCard": true,
        "signatures": [{"protected": "p", "signature": "s", "header": {"kid": "k"}}, {"protected": "p", "signature": "s"}],
    });
    read_card(&card.to_string()).unwrap()
}

fn check_card(card: &Card) {
    let bytes = encoded(Payload::Card(card));
    let as_json = proto_card(card);
    let expected = bytes_of("AgentCard", &as_json.to_string());
    assert_eq!(json_of("AgentCard", &bytes), json_of("AgentCard", &expected));
    let Ok(PeerResponse::Card(read)) = V03Protobuf.decode_response(Operation::ExtendedCard, &bytes) else {
        panic!("{as_json}")
    };
    let Ok(PeerResponse::Card(mut expected)) =
        V03Proto.decode_response(Operation::ExtendedCard, &written(Payload::Card(card)))
    else {
        panic!("{as_json}")
    };
    // What protobuf has no place for, and what it cannot leave out.
    expected.capabilities.state_history = None;
    for flag in [
        &mut expected.capabilities.streaming,
        &mut expected.capabilities.push_notifications,
        &mut expected.capabilities.extended_card,
    ] {
        flag.get_or_insert(false);
    }
    expected.security_schemes.sort_by(|a, b| a.0.cmp(&b.0));
    for (_, scheme) in &mut expected.security_schemes {
        if let sabir_model::SecurityKind::OAuth2 { flows, .. } = &mut scheme.kind {
            flows.retain(|flow| flow.name != "deviceCode");
            for flow in flows {
                (flow.pkce_required, flow.device_authorization_url) = (false, None);
                flow.scopes.sort();
                match flow.name.as_str() {
                    "clientCredentials" | "password" => flow.authorization_url = None,
                    "implicit" => flow.token_url = None,
                    _ => {}
                }
            }
        }
    }
    let requirements =
        expected.security.iter_mut().chain(expected.skills.iter_mut().flat_map(|skill| &mut skill.security));
    requirements.for_each(|requirement| requirement.schemes.sort());
    assert_eq!(read, expected);
}

/// The card of 0.3 in the JSON of its protobuf: security as there, and nothing that it has no field for.
fn proto_card(card: &Card) -> Value {
    let mut out = Vec::new();
    write_card(card, CardFormat::V0_3HttpJson, &mut out);
    let mut card: Value = serde_json::from_slice(&out).unwrap();
    card["capabilities"].as_object_mut().unwrap().remove("stateTransitionHistory");
    if let Some(schemes) = card["securitySchemes"].as_object_mut() {
        for scheme in schemes.values_mut() {
            let scheme = scheme.as_object_mut().unwrap();
            scheme.retain(|member, _| member.ends_with("SecurityScheme"));
            if let Some(details) = scheme.get_mut("oauth2SecurityScheme") {
                without_unknown_flows(details["flows"].as_object_mut().unwrap());
            }
        }
    }
    let requirements = |list: &mut Value| {
        for requirement in list.as_array_mut().into_iter().flatten() {
            let schemes = requirement.as_object().unwrap().iter();
            let schemes: serde_json::Map<_, _> =
                schemes.map(|(name, list)| (name.clone(), json!({"list": list}))).collect();
            *requirement = json!({"schemes": schemes});
        }
    };
    if let Some(list) = card.get_mut("security") {
        requirements(list);
    }
    for skill in card["skills"].as_array_mut().unwrap() {
        if let Some(list) = skill.get_mut("security") {
            requirements(list);
        }
    }
    card
}

/// Protobuf has no field for the device flow and for PKCE, and only the URLs that a flow needs.
fn without_unknown_flows(flows: &mut serde_json::Map<String, Value>) {
    flows.remove("deviceCode");
    for (name, flow) in flows {
        let unused = match name.as_str() {
            "clientCredentials" | "password" => "authorizationUrl",
            "implicit" => "tokenUrl",
            _ => "",
        };
        flow.as_object_mut().unwrap().retain(|member, _| member != "pkceRequired" && member != unused);
    }
}

#[test]
fn faulty_cards_name_the_same_fields() {
    let rows = [
        json!({}),
        json!({"name": "n", "url": "u", "protocolVersion": "0.33333333333333333333333333333333333"}),
        json!({"name": "n", "url": "u", "skills": [{"name": "n"}], "signatures": [{}], "capabilities": {"extensions": [{}]}}),
        json!({"name": "n", "url": "u", "securitySchemes": {
            "a": {"apiKeySecurityScheme": {}}, "b": {"httpAuthSecurityScheme": {}}, "c": {"openIdConnectSecurityScheme": {}}, "d": {},
        }}),
    ];
    for card in rows {
        let bytes = bytes_of("AgentCard", &card.to_string());
        let actual = told(V03Protobuf.decode_response(Operation::ExtendedCard, &bytes)).unwrap_err();
        assert_eq!(Err(actual), told(V03Proto.decode_response(Operation::ExtendedCard, &card.to_string())), "{card}");
    }
}

#[test]
fn secrets_of_webhooks_are_never_written() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for _ in 0..20 {
        let config = proptest::strategy::ValueTree::current(&push_config().new_tree(&mut runner).unwrap());
        for bytes in [encoded(Payload::PushConfig(&config)), encoded(Payload::PushConfigs(&[config]))] {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            assert!(!text.contains("secret") && !text.contains("token"), "{text}");
        }
    }
}

proptest! {
    #[test]
    fn messages_are_written_and_read_alike(message in message()) {
        let message = canonical_message(&message);
        check_payload(Operation::Send, Payload::Message(&message));
        check_payload(Operation::Stream, Payload::Message(&message));
    }

    #[test]
    fn tasks_are_written_and_read_alike(task in task()) {
        let task = canonical_task(&task);
        check_payload(Operation::Get, Payload::Task(&task));
        check_payload(Operation::Send, Payload::SendResult(&task));
        check_payload(Operation::Subscribe, Payload::Snapshot(&task));
        prop_assert_eq!(V03Protobuf.unrepresentable(&task), None);
    }

    #[test]
    fn events_are_written_and_read_alike(event in event(), task in task()) {
        let event = canonical_event(&event);
        let (id, context): (&TaskId, &ContextId) = (&task.id, &task.context);
        check_payload(Operation::Stream, Payload::Event { task: id, context, event: &event });
        check_payload(Operation::Subscribe, Payload::FinalEvent { task: &task, event: &event });
    }

    #[test]
    fn webhooks_are_written_and_read_alike(configs in proptest::collection::vec(push_config(), 0..3), ids: bool) {
        let bare = |config: PushConfig| if ids { config } else { PushConfig { id: None, task: None, ..config } };
        let configs: Vec<PushConfig> = configs.into_iter().map(bare).collect();
        check_payload(Operation::PushList, Payload::PushConfigs(&configs));
        for config in &configs {
            check_payload(Operation::PushSet, Payload::PushConfig(config));
            check_payload(Operation::PushGet, Payload::PushConfig(config));
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
        check_bytes(&bytes)?;
    }

    /// Bytes of a message, some of them changed, some cut off.
    #[test]
    fn broken_messages_are_read_or_refused(
        which in any::<proptest::sample::Index>(),
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..6),
        cut in proptest::option::of(any::<proptest::sample::Index>()),
    ) {
        let valid = valid_messages();
        let mut bytes = valid[which.index(valid.len())].clone();
        for (at, byte) in changes {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len() + 1));
        }
        check_bytes(&bytes)?;
    }
}

/// No panic, and only errors that are about the message. What was read can be written.
fn check_bytes(bytes: &[u8]) -> Result<(), TestCaseError> {
    let is_expected = |error: &Error, operation| match error {
        Error::Invalid(violations) => !violations.is_empty(),
        Error::InvalidRequest(_) => true,
        Error::MethodNotFound(_) => operation == Operation::List,
        _ => false,
    };
    for operation in OPERATIONS {
        if let Err(error) = V03Protobuf.decode(operation, bytes) {
            prop_assert!(is_expected(&error, operation), "{operation:?}: {error:?}");
        }
        match V03Protobuf.decode_response(operation, bytes) {
            Err(error) => prop_assert!(is_expected(&error, operation), "{operation:?}: {error:?}"),
            Ok(PeerResponse::Task(task)) => drop(encoded(Payload::Snapshot(&task))),
            Ok(PeerResponse::Event { task, context, event }) => {
                drop(encoded(Payload::Event { task: &task, context: &context, event: &event }));
            }
            Ok(PeerResponse::Card(card)) => drop(encoded(Payload::Card(&card))),
            Ok(_) => {}
        }
    }
    Ok(())
}

/// A request of every operation, and an answer of every kind.
fn valid_messages() -> &'static [Vec<u8>] {
    static MESSAGES: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    MESSAGES.get_or_init(|| {
        let mut messages = Vec::new();
        for golden::Exchange { operation, request, answers, .. } in golden::exchanges_of_0_3() {
            messages.push(bytes_of(request_type(operation), &params(operation, &request).to_string()));
            for (operation, answer) in answers {
                if !matches!(operation, Operation::PushDelete | Operation::ExtendedCard) {
                    messages.push(bytes_of(response_type(operation), &answer.to_string()));
                }
            }
        }
        let schemes = json!({"k": {"type": "apiKey", "in": "header", "name": "X"}});
        messages.push(encoded(Payload::Card(&card_with(schemes))));
        messages
            .push(encoded(Payload::Card(&card_with(json!({"k": {"type": "apiKey", "in": "header", "name": "X"}})))));
        messages
    })
}

/// JSON as a reader of protobuf writes it: members sorted, whole numbers as such, and nothing that doubles cannot hold.
fn canonical(json: &Json) -> Json {
    fn plain(value: &mut Value) {
        match value {
            Value::Number(number) => {
                let number = number.as_f64().unwrap();
                *value = if number.fract() == 0.0 && number.abs() < 9e15 { json!(number as i64) } else { json!(0.5) };
            }
            Value::Array(list) => list.iter_mut().for_each(plain),
            Value::Object(members) => members.values_mut().for_each(plain),
            Value::Null | Value::Bool(_) | Value::String(_) => {}
        }
    }
    let mut value: Value = serde_json::from_str(json.as_str()).unwrap();
    plain(&mut value);
    Json::parse(value.to_string()).unwrap()
}

fn canonical_parts(parts: &mut [Part]) {
    for part in parts {
        if let Content::Data(data) = &mut part.content {
            *data = canonical(data);
        }
        part.metadata = part.metadata.as_ref().map(canonical);
    }
}

fn canonical_message(message: &Message) -> Message {
    let mut message = message.clone();
    canonical_parts(&mut message.parts);
    message.metadata = message.metadata.as_ref().map(canonical);
    message
}

fn canonical_artifact(artifact: &Artifact) -> Artifact {
    let mut artifact = artifact.clone();
    canonical_parts(&mut artifact.parts);
    artifact.metadata = artifact.metadata.as_ref().map(canonical);
    artifact
}

fn canonical_task(task: &Task) -> Task {
    let mut task = task.clone();
    task.status.message = task.status.message.map(|message| canonical_message(&message).into());
    task.artifacts = task.artifacts.iter().map(|artifact| canonical_artifact(artifact).into()).collect();
    task.history = task.history.iter().map(|message| canonical_message(message).into()).collect();
    task.metadata = task.metadata.as_ref().map(canonical);
    task
}

fn canonical_event(event: &Event) -> Event {
    let mut event = event.clone();
    match &mut event {
        Event::Created(created) => {
            created.message = canonical_message(&created.message).into();
            created.note = created.note.as_ref().map(|note| canonical_message(note).into());
            created.metadata = created.metadata.as_ref().map(canonical);
        }
        Event::Status(change) => {
            change.status.message = change.status.message.as_ref().map(|message| canonical_message(message).into());
            change.metadata = change.metadata.as_ref().map(canonical);
        }
        Event::Artifact(chunk) => {
            chunk.artifact = canonical_artifact(&chunk.artifact).into();
            chunk.metadata = chunk.metadata.as_ref().map(canonical);
        }
    }
    event
}
