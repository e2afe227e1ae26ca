//! The protobuf of 1.0: requests and answers, each with one thing that is there very often.

use sabir_proto::prost::Message;
use sabir_proto::prost_types::value::Kind;
use sabir_proto::prost_types::{ListValue, Struct, Value};
use sabir_proto::v1 as proto;
use sabir_proto::v1::part::Content;

use super::Report;
use crate::{Dialect, Operation, Payload, PeerResponse, V1Protobuf};

/// Its name, and the message that repeats its hostile element so often.
type Shape<M> = (&'static str, fn(usize) -> M);

const VALUES: [Shape<Value>; 5] = [
    ("many members", |size| object((0..size).map(|place| (format!("{place:06}"), number(1.0))))),
    ("long names that begin alike", |size| {
        let name = "n".repeat(200);
        object((0..size).map(|place| (format!("{name}{place:06}"), number(0.1))))
    }),
    ("a long list", |size| list(vec![text("é\"\n\u{2028}"); size])),
    ("a long text", |size| text(&"\"\u{85}x".repeat(size))),
    ("deep lists", |size| {
        let deep = (0..40).fold(number(1.0), |inner, _| list(vec![inner]));
        list(vec![deep; size / 50])
    }),
];

const MESSAGES: [Shape<proto::Message>; 7] = [
    ("many texts", |size| proto::Message { parts: vec![part(Content::Text("word".into())); size], ..message() }),
    ("many files", |size| proto::Message { parts: vec![part(Content::Raw(vec![7; 20].into())); size], ..message() }),
    ("one large file", |size| proto::Message {
        parts: vec![part(Content::Raw(vec![7; size * 10].into()))],
        ..message()
    }),
    ("parts without content", |size| proto::Message { parts: vec![proto::Part::default(); size], ..message() }),
    ("many references", |size| proto::Message { reference_task_ids: ids(size), ..message() }),
    ("references that are no ids", |size| proto::Message {
        reference_task_ids: vec!["\n".repeat(20); size],
        ..message()
    }),
    ("many extensions", |size| proto::Message { extensions: ids(size), ..message() }),
];

type MakeMessage = Box<dyn Fn(usize) -> proto::Message>;

fn messages() -> Vec<(String, MakeMessage)> {
    let mut all: Vec<(String, MakeMessage)> = Vec::new();
    for (shape, make) in MESSAGES {
        all.push((shape.to_owned(), Box::new(make)));
    }
    for (shape, value) in VALUES {
        let data = move |size| proto::Message { parts: vec![part(Content::Data(value(size)))], ..message() };
        let metadata = move |size| proto::Message { metadata: Some(as_struct(value(size))), ..message() };
        all.push((format!("{shape} in a data part"), Box::new(data)));
        all.push((format!("{shape} in metadata"), Box::new(metadata)));
    }
    all
}

#[test]
fn requests_are_linear() {
    let mut report = Report::default();
    let mut check = |name: &str, operation: Operation, bytes: &dyn Fn(usize) -> Vec<u8>| {
        report.check(name, bytes, |bytes| drop(V1Protobuf.decode(operation, bytes)));
    };
    for (shape, message) in messages() {
        check(&shape, Operation::Send, &|size| send(message(size)).encode_to_vec());
    }
    for (shape, value) in VALUES {
        check(&format!("{shape} in a cancel"), Operation::Cancel, &|size| {
            let metadata = Some(as_struct(value(size)));
            proto::CancelTaskRequest { id: "t".into(), metadata, ..Default::default() }.encode_to_vec()
        });
    }
    // Messages that follow each other are read as one.
    check("the same request again and again", Operation::Send, &|size| {
        let value = list(vec![object([("a".to_owned(), number(1.0))].into_iter())]);
        let request = send(proto::Message { parts: vec![part(Content::Data(value))], ..message() });
        request.encode_to_vec().repeat(size)
    });
    check("a part that changes its mind", Operation::Send, &|size| {
        let contents = [Content::Data(list(vec![number(1.0)])), Content::Text("a".into())];
        let part = contents.map(|content| part(content).encode_to_vec()).concat().repeat(size);
        let mut bytes = Vec::new();
        sabir_proto::prost::encoding::bytes::encode(5, &part, &mut bytes);
        let mut request = Vec::new();
        sabir_proto::prost::encoding::bytes::encode(2, &bytes, &mut request);
        request
    });
    check("members that nobody knows", Operation::Get, &|size| {
        let mut bytes = Vec::new();
        for _ in 0..size {
            sabir_proto::prost::encoding::bytes::encode(99, &vec![1; 9], &mut bytes);
        }
        bytes
    });
    check("a long id", Operation::Get, &|size| {
        proto::GetTaskRequest { id: "x".repeat(size * 10), ..Default::default() }.encode_to_vec()
    });
    check("a long token", Operation::List, &|size| {
        proto::ListTasksRequest { page_token: "x".repeat(size * 10), ..Default::default() }.encode_to_vec()
    });
    report.assert_linear();
}

#[test]
fn answers_are_linear() {
    let mut report = Report::default();
    let mut check = |name: &str, operation: Operation, bytes: &dyn Fn(usize) -> Vec<u8>| {
        report.check(name, bytes, |bytes| read_and_write(operation, bytes));
    };
    for (shape, message) in messages() {
        check(&shape, Operation::Stream, &|size| frame(message(size)).encode_to_vec());
        check(&format!("{shape} in a history"), Operation::Get, &|size| {
            proto::Task { history: vec![message(size)], ..task() }.encode_to_vec()
        });
    }
    check("a long history", Operation::Get, &|size| {
        let history = vec![proto::Message { parts: vec![part(Content::Text("a".into()))], ..message() }; size];
        proto::Task { history, ..task() }.encode_to_vec()
    });
    check("many artifacts", Operation::Get, &|size| {
        let artifact = proto::Artifact {
            artifact_id: "a".into(),
            parts: vec![part(Content::Data(number(1.0)))],
            ..Default::default()
        };
        proto::Task { artifacts: vec![artifact; size], ..task() }.encode_to_vec()
    });
    check("many tasks", Operation::List, &|size| {
        proto::ListTasksResponse { tasks: vec![task(); size], ..Default::default() }.encode_to_vec()
    });
    check("tasks without a status", Operation::List, &|size| {
        proto::ListTasksResponse { tasks: vec![proto::Task::default(); size], ..Default::default() }.encode_to_vec()
    });
    check("many configs", Operation::PushList, &|size| {
        let config = proto::TaskPushNotificationConfig { url: "u".into(), ..Default::default() };
        let configs = vec![config; size];
        proto::ListTaskPushNotificationConfigsResponse { configs, ..Default::default() }.encode_to_vec()
    });
    for (shape, card) in CARDS {
        check(shape, Operation::ExtendedCard, &|size| card(size).encode_to_vec());
    }
    report.assert_linear();
}

const CARDS: [Shape<proto::AgentCard>; 5] = [
    ("many interfaces", |size| proto::AgentCard { supported_interfaces: vec![interface(); size], ..card() }),
    ("many skills", |size| {
        let skill = proto::AgentSkill { id: "s".into(), tags: vec!["t".into()], ..Default::default() };
        proto::AgentCard { skills: vec![skill; size], ..card() }
    }),
    ("skills without id", |size| proto::AgentCard { skills: vec![Default::default(); size], ..card() }),
    ("schemes without members", |size| {
        let scheme = proto::security_scheme::Scheme::ApiKeySecurityScheme(Default::default());
        let scheme = proto::SecurityScheme { scheme: Some(scheme) };
        let security_schemes = ids(size).into_iter().map(|name| (name, scheme.clone())).collect();
        proto::AgentCard { security_schemes, ..card() }
    }),
    ("many scopes", |size| {
        let list = proto::StringList { list: ids(size) };
        let requirement = proto::SecurityRequirement { schemes: [("s".to_owned(), list)].into() };
        proto::AgentCard { security_requirements: vec![requirement], ..card() }
    }),
];

/// Reads an answer, and writes what was read.
fn read_and_write(operation: Operation, bytes: &[u8]) {
    let Ok(response) = V1Protobuf.decode_response(operation, bytes) else { return };
    let payload = match &response {
        PeerResponse::Task(task) => {
            V1Protobuf.unrepresentable(task);
            Payload::Task(task)
        }
        PeerResponse::Message(message) => Payload::Message(message),
        PeerResponse::Page { page, .. } => Payload::Page(page),
        PeerResponse::PushConfigs(configs) => Payload::PushConfigs(configs),
        PeerResponse::Card(card) => Payload::Card(card),
        other => panic!("{other:?}"),
    };
    V1Protobuf.encode(payload, &mut Vec::new());
}

fn message() -> proto::Message {
    proto::Message { message_id: "m".into(), role: 1, ..Default::default() }
}

fn part(content: Content) -> proto::Part {
    proto::Part { content: Some(content), ..Default::default() }
}

fn send(message: proto::Message) -> proto::SendMessageRequest {
    proto::SendMessageRequest { message: Some(message), ..Default::default() }
}

fn frame(message: proto::Message) -> proto::StreamResponse {
    proto::StreamResponse { payload: Some(proto::stream_response::Payload::Message(message)) }
}

fn task() -> proto::Task {
    let status = Some(proto::TaskStatus { state: 1, ..Default::default() });
    proto::Task { id: "t".into(), status, ..Default::default() }
}

fn card() -> proto::AgentCard {
    proto::AgentCard { name: "n".into(), supported_interfaces: vec![interface()], ..Default::default() }
}

fn interface() -> proto::AgentInterface {
    proto::AgentInterface { url: "u".into(), protocol_binding: "GRPC".into(), ..Default::default() }
}

fn ids(size: usize) -> Vec<String> {
    (0..size).map(|place| format!("{place:06}")).collect()
}

fn number(number: f64) -> Value {
    Value { kind: Some(Kind::NumberValue(number)) }
}

fn text(text: &str) -> Value {
    Value { kind: Some(Kind::StringValue(text.to_owned())) }
}

fn list(values: Vec<Value>) -> Value {
    Value { kind: Some(Kind::ListValue(ListValue { values })) }
}

fn object(members: impl Iterator<Item = (String, Value)>) -> Value {
    Value { kind: Some(Kind::StructValue(Struct { fields: members.collect() })) }
}

/// Metadata is an object; anything else becomes its one member.
fn as_struct(value: Value) -> Struct {
    match value.kind {
        Some(Kind::StructValue(object)) => object,
        _ => Struct { fields: [("a".to_owned(), value)].into() },
    }
}
