//! What we ask of others, our own reader takes as we meant it, and it is what the ProtoJSON asks.

use prost_reflect::prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage};
use sabir_model::{
    Call, Cancel, ContextAlone, ContextId, Delivery, Error, Get, IncomingMessage, Json, List, MessageId,
    OnFinishedCancel, OnFinishedSubscribe, Part, PushAuthentication, PushCall, PushConfig, PushConfigId, PushEvents,
    Role, Send, Subscribe, TaskId, Wanted,
};

use super::super::dialect::BIRTH;
use super::super::write_proto_call;
use super::V03Protobuf;
use crate::peer::PeerCall;

fn task() -> TaskId {
    TaskId::parse("t/1 é:cancel").unwrap()
}

fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

fn webhook() -> PushConfig {
    PushConfig {
        id: Some(PushConfigId::parse("p1").unwrap()),
        task: Some(task()),
        url: "https://example.com/hook".into(),
        token: Some("token".into()),
        authentication: Some(PushAuthentication { schemes: vec!["Bearer".into()], credentials: Some("secret".into()) }),
    }
}

/// With everything that 0.3 has a field for.
fn send(delivery: Delivery) -> Send {
    let parts = vec![
        Part::text("hello"),
        Part::file("a.txt", "text/plain", b"bytes"),
        Part::url("https://example.com/f"),
        Part::data(json(r#"{"n":1}"#)),
        Part { metadata: Some(json(r#"{"m":true}"#)), ..Part::data(json("[1,null]")) },
    ];
    let message = IncomingMessage {
        task: Some(task()),
        context: Some(ContextId::parse("c1").unwrap()),
        extensions: vec!["urn:x".into()],
        metadata: Some(json(r#"{"m":[2.5]}"#)),
        ..IncomingMessage::new(Some(MessageId::parse("m1").unwrap()), Role::User, parts)
    };
    Send {
        delivery,
        history: Some(3),
        accepted_output: vec!["text/plain".into()],
        push: Some(PushConfig { task: None, ..webhook() }),
        metadata: Some(json(r#"{"r":2}"#)),
        context_alone: ContextAlone::AnswersWaiting,
        ..Send::new(message, BIRTH)
    }
}

/// Every call but the list.
fn calls() -> Vec<Call> {
    let config = Some(PushConfigId::parse("p1").unwrap());
    let least = Send {
        context_alone: ContextAlone::AnswersWaiting,
        ..Send::new(
            IncomingMessage::new(Some(MessageId::parse("m").unwrap()), Role::Agent, vec![Part::text("")]),
            BIRTH,
        )
    };
    let set = |config| Call::Push(PushCall::Set { agent: None, config, born: BIRTH, events: PushEvents::default() });
    vec![
        Call::Send(Box::new(send(Delivery::WhenSettled))),
        Call::Send(Box::new(send(Delivery::Immediately))),
        Call::Send(Box::new(send(Delivery::Stream))),
        Call::Send(Box::new(least)),
        Call::Get(Get { agent: None, task: task(), history: Some(5), earlier: Wanted::No }),
        Call::Get(Get { agent: None, task: task(), history: None, earlier: Wanted::No }),
        Call::Cancel(Cancel { agent: None, task: task(), metadata: None, on_finished: OnFinishedCancel::Refuse }),
        Call::Subscribe(Subscribe {
            agent: None,
            task: task(),
            after: None,
            on_finished: OnFinishedSubscribe::ShowEnd,
        }),
        set(webhook()),
        set(PushConfig { id: None, token: None, authentication: None, ..webhook() }),
        Call::Push(PushCall::Get { agent: None, task: task(), config: config.clone() }),
        Call::Push(PushCall::List { agent: None, task: task(), page_size: None, page_token: None }),
        Call::Push(PushCall::List { agent: None, task: task(), page_size: Some(7), page_token: Some("x".into()) }),
        Call::Push(PushCall::Delete { agent: None, task: task(), config }),
        Call::ExtendedCard { agent: None },
    ]
}

fn written(call: &Call) -> Vec<u8> {
    let mut out = b"before".to_vec();
    V03Protobuf.write_call(&PeerCall::new(call), &mut out).unwrap();
    assert!(out.starts_with(b"before"));
    out.split_off(6)
}

#[test]
fn our_own_reader_takes_a_call_as_it_was_meant() {
    for call in calls() {
        let operation = PeerCall::new(&call).operation();
        assert_eq!(V03Protobuf.decode(operation, &written(&call)).unwrap(), call);
    }
}

/// Bodies of HTTP are the whole message where the path says nothing.
#[test]
fn a_call_has_the_message_of_its_proto_json() {
    let pool = DescriptorPool::decode(sabir_proto::DESCRIPTORS).unwrap();
    let mut seen = 0;
    for call in calls() {
        let name = match &call {
            Call::Send(_) => "a2a.v1.SendMessageRequest",
            Call::Push(PushCall::Set { .. }) => "a2a.v1.CreateTaskPushNotificationConfigRequest",
            _ => continue,
        };
        let mut body = Vec::new();
        write_proto_call(&PeerCall::new(&call), &mut body).unwrap();
        let descriptor = pool.get_message_by_name(name).unwrap();
        let mut reader = serde_json::Deserializer::from_slice(&body);
        let expected = DynamicMessage::deserialize(descriptor.clone(), &mut reader).unwrap().encode_to_vec();
        let [actual, expected] = [written(&call), expected]
            .map(|bytes| serde_json::to_value(DynamicMessage::decode(descriptor.clone(), &*bytes).unwrap()).unwrap());
        assert_eq!(actual, expected);
        seen += 1;
    }
    assert_eq!(seen, 6);
}

/// Each row: what is asked, and what is left of it.
#[test]
fn what_0_3_has_no_words_for() {
    let get = |history| Call::Get(Get { agent: None, task: task(), history, earlier: Wanted::No });
    let of_config = |config| Call::Push(PushCall::Get { agent: None, task: task(), config });
    for (call, expected) in [
        // 0 cannot be told from a missing number, and a number is an int32.
        (get(Some(0)), get(None)),
        (get(Some(u32::MAX)), get(Some(i32::MAX as u32))),
        // Where nobody chose an id, it is the task's.
        (of_config(None), of_config(Some(PushConfigId::parse(task().as_str()).unwrap()))),
    ] {
        let operation = PeerCall::new(&call).operation();
        assert_eq!(V03Protobuf.decode(operation, &written(&call)).unwrap(), expected);
    }
    let list = Call::List(List {
        agent: None,
        context: None,
        state: None,
        since: None,
        page_size: 1,
        from: None,
        history: None,
        artifacts: Wanted::No,
    });
    let refused = V03Protobuf.write_call(&PeerCall::new(&list), &mut Vec::new());
    assert!(matches!(refused, Err(Error::MethodNotFound(_))), "{refused:?}");
}
