//! What we ask of others is what we read ourselves; and what protobuf cannot hold is named. `tests/it` compares this
//! dialect with that of JSON.

use sabir_model::{Call, Json, Part, Task};

use super::V1Protobuf;
use crate::{Dialect, JsonDialect, Operation, PeerCall, PeerResponse, Strictness, V1};

#[test]
fn what_we_ask_of_others_we_read_as_it_was_meant() {
    let message = r#""message":{"messageId":"m","contextId":"c","taskId":"t","role":"ROLE_AGENT","metadata":{"a":1},
        "extensions":["urn:a"],"referenceTaskIds":["r"],"parts":[{"text":"a"},{"raw":"AA==","filename":"f"},{"url":"u"},
        {"data":[1,null],"mediaType":"x/y","metadata":{}}]}"#
        .replace(['\n', ' '], "");
    let config = r#""id":"p","url":"u","token":"s","authentication":{"scheme":"Bearer","credentials":"c"}"#;
    let rows = [
        (Operation::Send, format!("{{{message}}}")),
        (Operation::Stream, format!(r#"{{{message},"metadata":{{"x":[]}},"tenant":"alpha"}}"#)),
        (Operation::Send, format!(r#"{{{message},"configuration":{{"returnImmediately":true}}}}"#)),
        (Operation::Send, format!(r#"{{{message},"configuration":{{"historyLength":0}}}}"#)),
        (
            Operation::Stream,
            format!(
                r#"{{{message},"configuration":{{"acceptedOutputModes":["a","b"],"historyLength":3,
                    "taskPushNotificationConfig":{{{config}}}}}}}"#
            ),
        ),
        (Operation::Get, r#"{"id":"t"}"#.to_owned()),
        (Operation::Get, r#"{"id":"t","historyLength":0,"tenant":"alpha"}"#.to_owned()),
        (Operation::List, "{}".to_owned()),
        (
            Operation::List,
            r#"{"tenant":"alpha","contextId":"c","status":8,"pageSize":7,"historyLength":0,"includeArtifacts":true,
                "statusTimestampAfter":"1970-01-01T00:00:00Z"}"#
                .to_owned(),
        ),
        (Operation::Cancel, r#"{"id":"t"}"#.to_owned()),
        (Operation::Cancel, r#"{"id":"t","tenant":"alpha","metadata":{"a":{}}}"#.to_owned()),
        (Operation::Subscribe, r#"{"id":"t","tenant":"alpha"}"#.to_owned()),
        (Operation::PushSet, format!(r#"{{"taskId":"t","tenant":"alpha",{config}}}"#)),
        (Operation::PushSet, r#"{"taskId":"t","url":"u"}"#.to_owned()),
        (Operation::PushGet, r#"{"taskId":"t","id":"p","tenant":"alpha"}"#.to_owned()),
        (Operation::PushList, r#"{"taskId":"t","tenant":"alpha"}"#.to_owned()),
        (Operation::PushList, r#"{"taskId":"t","pageSize":7,"pageToken":"x"}"#.to_owned()),
        (Operation::PushDelete, r#"{"taskId":"t","id":"p","tenant":"alpha"}"#.to_owned()),
        (Operation::ExtendedCard, "{}".to_owned()),
        (Operation::ExtendedCard, r#"{"tenant":"alpha"}"#.to_owned()),
    ];
    for (operation, json) in rows {
        let call = V1.decode(operation, &json, Strictness::Strict).unwrap();
        let peer = PeerCall::new(&call);
        assert_eq!(peer.operation(), operation, "{json}");
        let mut bytes = Vec::new();
        V1Protobuf.write_call(&peer, &mut bytes);
        assert_eq!(V1Protobuf.decode(operation, &bytes).unwrap(), call, "{json}");
    }
}

/// A list continues where the other server says, in its own words.
#[test]
fn a_page_token_is_passed_on() {
    let call = V1.decode(Operation::List, "{}", Strictness::Strict).unwrap();
    let token = "MDAwMQ";
    let mut bytes = Vec::new();
    V1Protobuf.write_call(&PeerCall { page_token: Some(token), ..PeerCall::new(&call) }, &mut bytes);
    let request: sabir_proto::v1::ListTasksRequest = crate::protobuf::read_message(&bytes).unwrap();
    assert_eq!(request.page_token, token);
}

/// Counts that no int32 can hold are as large as they can be.
#[test]
fn large_counts_are_cut() {
    let Ok(Call::Get(mut get)) = V1.decode(Operation::Get, r#"{"id":"t"}"#, Strictness::Strict) else { panic!() };
    get.history = Some(u32::MAX);
    let mut bytes = Vec::new();
    V1Protobuf.write_call(&PeerCall::new(&Call::Get(get.clone())), &mut bytes);
    get.history = Some(i32::MAX as u32);
    assert_eq!(V1Protobuf.decode(Operation::Get, &bytes).unwrap(), Call::Get(get));
}

#[test]
fn what_a_task_cannot_say_in_protobuf_is_named() {
    type Change<'a> = &'a dyn Fn(&mut Task);
    const LONG: &str = r#"{"id":12345678901234567}"#;
    let why = "a double cannot hold this whole number exactly";
    let task = |change: Change<'_>| {
        let message = r#"{"messageId":"m","role":1,"parts":[{"text":"a"},{"data":{"id":1},"metadata":{"b":2}}]}"#;
        let text = format!(
            r#"{{"id":"t","status":{{"state":3,"message":{message}}},"history":[{message},{message}],"metadata":{{}},
                "artifacts":[{{"artifactId":"a","parts":[{{"text":"a"}},{{"raw":"AA=="}},{{"data":[1]}}],"metadata":{{}}}}]}}"#
        );
        let Ok(PeerResponse::Task(mut task)) = V1.decode_response(Operation::Get, &text) else { panic!("{text}") };
        change(&mut task);
        V1Protobuf.unrepresentable(&task)
    };
    let long = || Some(Json::parse(LONG).unwrap());
    let long_part = || Part::data(Json::parse(LONG).unwrap());
    fn own<T: Clone>(shared: &mut std::sync::Arc<T>) -> &mut T {
        std::sync::Arc::make_mut(shared)
    }
    assert_eq!(task(&|_| {}), None);
    let rows: [(&str, Change<'_>); 8] = [
        ("metadata.id", &|task| task.metadata = long()),
        ("history[1].metadata.id", &|task| own(&mut task.history[1]).metadata = long()),
        ("history[0].parts[1].data.id", &|task| own(&mut task.history[0]).parts[1] = long_part()),
        ("history[1].parts[0].metadata.id", &|task| own(&mut task.history[1]).parts[0].metadata = long()),
        ("artifacts[0].parts[2].data.id", &|task| own(&mut task.artifacts[0]).parts[2] = long_part()),
        ("artifacts[0].metadata.id", &|task| {
            own(&mut task.artifacts[0]).metadata = long();
            task.metadata = long();
        }),
        ("status.message.parts[0].data.id", &|task| {
            own(task.status.message.as_mut().unwrap()).parts[0] = long_part();
            own(&mut task.artifacts[0]).metadata = long();
        }),
        ("status.message.metadata.id", &|task| own(task.status.message.as_mut().unwrap()).metadata = long()),
    ];
    for (place, change) in rows {
        assert_eq!(task(change), Some(format!("{place}: {why}")));
    }
}
