use sabir_model::{
    AgentId, Artifact, ArtifactId, Birth, ContextId, Event, Json, Message, MessageId, Owner, Page, Part, PushConfig,
    Role, State, Status, StatusChange, TaskId, Timestamp, Wanted,
};
use std::sync::Arc;

use serde_json::value::RawValue;

use super::*;
use crate::fixture::{self, golden_text};
use crate::v03::V03;

/// A stream moves its responder to another tokio task.
const fn is_shared<T: Send + Sync + 'static>() {}
const _: () = is_shared::<Responder<'static>>();

fn rpc(version: ProtocolVersion, operation: Operation, query: Option<&str>) -> Responder<'static> {
    rpc_with_id("\"r8\"", version, operation, query)
}

fn rpc_with_id<'a>(id: &'a str, version: ProtocolVersion, operation: Operation, query: Option<&str>) -> Responder<'a> {
    let envelope = JsonRpcEnvelope { id: id.into(), version, frames: FrameFormat::of_query(query) };
    Responder::json_rpc(envelope, Some(operation), TaskDialect::OfRequest)
}

fn task() -> Arc<Task> {
    let status = Status { state: State::Working, message: None, time: Timestamp::from_millis(0) };
    Arc::new(Task {
        id: TaskId::parse("t").unwrap(),
        context: ContextId::parse("c").unwrap(),
        agent: AgentId::parse("alpha").unwrap(),
        owner: Owner::anonymous(),
        born: Birth(0),
        created: Timestamp::from_millis(0),
        status,
        turn_over: false,
        artifacts: vec![],
        open: vec![],
        history: vec![],
        metadata: None,
        usage: None,
        seq: 4,
    })
}

fn message(metadata: Option<&str>) -> Box<Message> {
    Box::new(Message {
        id: MessageId::parse("m").unwrap(),
        role: Role::Agent,
        parts: vec![],
        task: None,
        context: None,
        references: vec![],
        extensions: vec![],
        metadata: metadata.map(|text| Json::parse(text).unwrap()),
        request_metadata: None,
        request: None,
        answers: None,
    })
}

fn encoded(dialect: &dyn Dialect, payload: Payload<'_>) -> String {
    let mut out = Vec::new();
    dialect.encode(payload, &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn every_answer_is_written_in_its_envelope() {
    let (task, message) = (task(), message(None));
    let page = Page { tasks: vec![], artifacts: Wanted::No, next: None, page_size: 50, total: 0 };
    let page = Box::new(page);
    let config = PushConfig {
        id: None,
        task: Some(task.id.clone()),
        url: "https://a.b".into(),
        token: None,
        authentication: None,
    };
    for (operation, answer, payload) in [
        (Operation::Send, Answer::<()>::Task(task.clone()), Some(Payload::SendResult(&task))),
        (Operation::Get, Answer::Task(task.clone()), Some(Payload::Task(&task))),
        (Operation::Cancel, Answer::Task(task.clone()), Some(Payload::Task(&task))),
        (Operation::Send, Answer::Message(message.clone()), Some(Payload::Message(&message))),
        (Operation::List, Answer::Page(page.clone()), Some(Payload::Page(&page))),
        (Operation::PushGet, Answer::PushConfig(Some(Box::new(config.clone()))), Some(Payload::PushConfig(&config))),
        (
            Operation::PushList,
            Answer::PushConfigs(vec![config.clone()]),
            Some(Payload::PushConfigs(std::slice::from_ref(&config))),
        ),
        (Operation::PushGet, Answer::PushConfig(None), None),
        (Operation::PushDelete, Answer::Done, None),
    ] {
        let reply = rpc(ProtocolVersion::V1_0, operation, Some("envelope=none")).reply(&answer);
        let result = payload.map_or("null".to_owned(), |payload| encoded(&V1, payload));
        let expected = format!(r#"{{"jsonrpc":"2.0","id":"r8","result":{result}}}"#);
        assert_eq!((reply.status, reply.content_type), (200, "application/json"));
        assert_eq!(String::from_utf8(reply.body).unwrap(), expected, "{operation:?}");

        for (group, content_type) in [
            (EndpointGroup::V1, "application/a2a+json"),
            (EndpointGroup::Unversioned, "application/a2a+json"),
            (EndpointGroup::V0_3, "application/json"),
            (EndpointGroup::TaskAlias, "application/json"),
        ] {
            let reply = Responder::http_json(group, Some(operation)).reply(&answer);
            let expected = payload.map_or("{}".to_owned(), |payload| encoded(group.dialect(), payload));
            assert_eq!((reply.status, reply.content_type), (200, content_type));
            assert_eq!(String::from_utf8(reply.body).unwrap(), expected, "{group:?} {operation:?}");
        }
    }
}

#[test]
fn frames_match_the_golden_streams() {
    #[derive(serde::Deserialize)]
    struct Payload<'a> {
        #[serde(borrow)]
        result: &'a RawValue,
    }
    for (case, version) in [
        ("v1.0/jsonrpc/send_streaming_message.sse", ProtocolVersion::V1_0),
        ("v0.3/jsonrpc/message_stream.sse", ProtocolVersion::V0_3),
    ] {
        let responder = rpc(version, Operation::Stream, None).into_owned();
        let text = golden_text(case);
        let mut count = 0;
        for frame in text.split_inclusive("\n\n") {
            let Some(data) = frame.strip_prefix("data: ") else { continue };
            let payload: Payload<'_> = serde_json::from_str(data).unwrap();
            let mut out = Vec::new();
            count += 1;
            responder.write_frame(Some(count), payload.result.get().as_bytes(), &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), format!("id: {count}\n{frame}"), "{case}");
        }
        assert_eq!(count, 5, "{case}");
    }
}

#[test]
fn frames_of_every_kind() {
    let (task, message) = (task(), message(None));
    let snapshot = encoded(&V03, Payload::Snapshot(&task));
    let reply = encoded(&V03, Payload::Message(&message));
    let error = r#"{"code":-32603,"message":"Internal error"}"#;
    for (query, open, close) in
        [(None, r#"{"jsonrpc":"2.0","id":"r8","result":"#, "}"), (Some("a=b&envelope=none"), "", "")]
    {
        let responder = rpc(ProtocolVersion::V0_3, Operation::Subscribe, query);
        let mut out = Vec::new();
        responder.write_snapshot_frame(&task, &mut out);
        responder.write_message_frame(&message, &mut out);
        responder.write_frame(None, b"1", &mut out);
        let expected =
            format!("id: 4\ndata: {open}{snapshot}{close}\n\ndata: {open}{reply}{close}\n\ndata: {open}1{close}\n\n");
        assert_eq!(String::from_utf8(out).unwrap(), expected);

        let mut out = Vec::new();
        responder.write_error_frame(&Error::internal("x"), &mut out);
        let envelope = if query.is_some() { "" } else { r#""jsonrpc":"2.0","id":"r8","# };
        assert_eq!(String::from_utf8(out).unwrap(), format!("event: error\ndata: {{{envelope}\"error\":{error}}}\n\n"));
    }

    let responder = Responder::http_json(EndpointGroup::V1, Some(Operation::Subscribe));
    let mut out = Vec::new();
    responder.write_snapshot_frame(&task, &mut out);
    assert_eq!(String::from_utf8(out).unwrap(), format!("id: 4\ndata: {}\n\n", encoded(&V1, Payload::Snapshot(&task))));
    let mut out = Vec::new();
    responder.write_error_frame(&Error::TaskNotFound(task.id.clone()), &mut out);
    let text = String::from_utf8(out).unwrap();
    assert!(text.starts_with("event: error\ndata: {\"error\":{\"code\":404,"), "{text}");
}

#[test]
fn an_error_frame_matches_the_golden_stream() {
    let frames = fixture::golden("v1.0/jsonrpc/send_streaming_message_midstream_error.stream.json");
    let responder = rpc_with_id("\"r11\"", ProtocolVersion::V1_0, Operation::Stream, None);
    let mut out = Vec::new();
    responder.write_error_frame(&Error::internal("x"), &mut out);
    let text = String::from_utf8(out).unwrap();
    let data = text.strip_prefix("event: error\ndata: ").and_then(|text| text.strip_suffix("\n\n")).unwrap();
    assert_eq!(fixture::json(data.as_bytes()), frames[1]);
}

#[test]
fn line_ends_in_raw_json_do_not_break_a_frame() {
    let message = message(Some("{\"a\":\n\n 1,\r\n\"b\":\"\\n\"}"));
    let responder = rpc(ProtocolVersion::V1_0, Operation::Stream, None);
    let mut out = Vec::new();
    responder.write_message_frame(&message, &mut out);
    let text = String::from_utf8(out).unwrap();
    assert_eq!(text.find('\n'), Some(text.len() - 2), "{text}");
    assert!(!text.contains('\r'));
    assert!(text.contains(r#""b":"\n""#), "what is inside a string stays");
}

#[test]
fn line_ends_in_the_request_id_do_not_break_a_frame() {
    let id = "\"a\u{2028}\u{2029}\u{85}é\\u2028\"";
    let escaped = r#""a\u2028\u2029\u0085é\u2028""#;
    let of = |operation| rpc_with_id(id, ProtocolVersion::V0_3, operation, None);
    let responder = of(Operation::Subscribe);
    let answer = Answer::<()>::Message(message(None));
    for (what, id, text) in [
        ("event", escaped, frame(|out| responder.write_frame(Some(1), b"{}", out))),
        ("snapshot", escaped, frame(|out| responder.write_snapshot_frame(&task(), out))),
        ("reply", escaped, frame(|out| responder.write_message_frame(&message(None), out))),
        ("error", escaped, frame(|out| responder.write_error_frame(&Error::PushNotSupported, out))),
        ("one frame", escaped, frame(|out| out.extend(responder.reply(&answer).body))),
        (
            "error instead of a stream",
            escaped,
            frame(|out| out.extend(responder.error_reply(&Error::PushNotSupported).body)),
        ),
        ("answer", id, frame(|out| out.extend(of(Operation::Send).reply(&answer).body))),
        ("error", id, frame(|out| out.extend(of(Operation::Send).error_reply(&Error::PushNotSupported).body))),
    ] {
        assert!(text.contains(&format!(r#""id":{id},"#)), "{what}: {text}");
    }

    // What an error repeats of the caller's is in the same place.
    let error = Error::AgentNotFound { named: "a\u{2028}b".into(), known: vec![] };
    let responder = of(Operation::Stream);
    let text = frame(|out| responder.write_error_frame(&error, out));
    assert!(text.contains(r"there is no agent a\u2028b"), "{text}");
    assert!(frame(|out| out.extend(responder.error_reply(&error).body)).contains(r"a\u2028b"));
}

fn frame(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn the_frame_overhead_counts_the_escaped_id() {
    let long = format!("\"{}\"", "\u{85}".repeat(511));
    for (id, query, expected) in [
        ("1", None, "id: 18446744073709551615\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":}\n\n".len()),
        ("1", Some("envelope=none"), "id: 18446744073709551615\ndata: \n\n".len()),
        (&long, None, 66 + 511 * 6 + 2),
    ] {
        let responder = rpc_with_id(id, ProtocolVersion::V1_0, Operation::Stream, query);
        assert_eq!(responder.max_frame_overhead(), expected, "{id}");
        let framed = frame(|out| responder.write_frame(Some(7), b"{\"a\":1}", out));
        assert_eq!(framed.len(), expected - 19 + 7, "{id}");
    }
    assert_eq!(Responder::http_json(EndpointGroup::V1, Some(Operation::Stream)).max_frame_overhead(), 33);
}

#[test]
fn a_method_that_streams_answers_in_frames() {
    let message = message(None);
    let reply = rpc(ProtocolVersion::V0_3, Operation::Stream, None).reply(&Answer::<()>::Message(message.clone()));
    let expected = format!(
        "data: {{\"jsonrpc\":\"2.0\",\"id\":\"r8\",\"result\":{}}}\n\n",
        encoded(&V03, Payload::Message(&message))
    );
    assert_eq!((reply.status, reply.content_type), (200, EVENT_STREAM));
    assert_eq!(String::from_utf8(reply.body).unwrap(), expected);
}

#[test]
fn a_stream_as_a_whole_reply_is_an_internal_error() {
    let reply = rpc(ProtocolVersion::V1_0, Operation::Get, None).reply(&Answer::Stream(()));
    assert_eq!(fixture::json(&reply.body)["error"]["code"], -32603);
}

#[test]
fn a_task_of_0_1_is_answered_in_0_1_if_the_request_fits_several_versions() {
    let of_0_1 = Arc::new(Task { born: V01.birth(), ..Task::clone(&task()) });
    for (version, task_dialect, born_there, born_elsewhere) in [
        (ProtocolVersion::V0_3, TaskDialect::OfBirth, &V01 as &dyn Dialect, &V03 as &dyn Dialect),
        (ProtocolVersion::V0_1, TaskDialect::OfRequest, &V01, &V01),
        (ProtocolVersion::V0_3, TaskDialect::OfRequest, &V03, &V03),
    ] {
        let responder = Responder { task_dialect, ..rpc(version, Operation::Get, None) };
        for (task, dialect) in [(&of_0_1, born_there), (&task(), born_elsewhere)] {
            let reply = responder.reply(&Answer::<()>::Task(task.clone()));
            let expected =
                format!(r#"{{"jsonrpc":"2.0","id":"r8","result":{}}}"#, encoded(dialect, Payload::Task(task)));
            assert_eq!(String::from_utf8(reply.body).unwrap(), expected, "{version:?} {task_dialect:?}");
            let mut out = Vec::new();
            responder.write_snapshot_frame(task, &mut out);
            assert!(
                String::from_utf8(out).unwrap().contains(&encoded(dialect, Payload::Snapshot(task))),
                "{version:?} {task_dialect:?}"
            );
        }
    }
}

#[test]
fn only_the_last_event_of_a_stream_in_0_1_needs_its_task() {
    let change = |state| {
        let status = Status { state, message: None, time: Timestamp::from_millis(1) };
        Event::Status(StatusChange {
            status,
            is_final: true,
            input: vec![],
            begins_turn: false,
            usage: None,
            metadata: None,
        })
    };
    for (version, wanted) in
        [(ProtocolVersion::V0_1, true), (ProtocolVersion::V0_3, false), (ProtocolVersion::V1_0, false)]
    {
        let responder = rpc(version, Operation::Stream, None);
        for state in State::ALL {
            let event = change(state);
            assert_eq!(responder.needs_task(&event), wanted && state.is_terminal(), "{version:?} {state:?}");
        }
    }
    let responder = rpc(ProtocolVersion::V0_1, Operation::Stream, None);
    let mut task = Task::clone(&task());
    task.artifacts = vec![Artifact::new(ArtifactId::parse("a").unwrap(), vec![Part::text("x")]).into()];
    let payload = String::from_utf8(responder.encode_final_event(&task, &change(State::Rejected))).unwrap();
    let expected = r#"{"id":"t","status":{"state":"failed","timestamp":"1970-01-01T00:00:00.001Z"},"final":true,"artifacts":[{"id":"a","index":0,"parts":[{"type":"text","text":"x"}]}]}"#;
    assert_eq!(payload, expected);
}

#[test]
fn a_split_reply_has_the_bytes_of_the_whole_reply() {
    let old = Arc::new(Task { born: V01.birth(), ..Task::clone(&task()) });
    for task in [task(), old] {
        for operation in [Operation::Send, Operation::Get, Operation::Cancel, Operation::Stream, Operation::Subscribe] {
            let mut by_birth = rpc(ProtocolVersion::V0_3, operation, None);
            by_birth.task_dialect = TaskDialect::OfBirth;
            for responder in [
                rpc(ProtocolVersion::V1_0, operation, None),
                rpc(ProtocolVersion::V0_3, operation, Some("envelope=none")),
                rpc(ProtocolVersion::V0_1, operation, None),
                by_birth,
                Responder::http_json(EndpointGroup::V1, Some(operation)),
                Responder::http_json(EndpointGroup::V0_3, Some(operation)),
                Responder::grpc(ProtocolVersion::V1_0, Some(operation)),
                Responder::grpc(ProtocolVersion::V0_3, Some(operation)),
            ] {
                let answer = Answer::<()>::Task(task.clone());
                let whole = responder.reply(&answer);
                let split = responder.split_task_reply(&answer).unwrap();
                let encoded = split.encoder.encode(&task);
                let wrapper = responder.reply_wrapper(&split, encoded.len());
                let parts = [wrapper.before, encoded, wrapper.after].concat();
                assert_eq!((whole.status, whole.content_type), (200, split.content_type));
                assert_eq!(parts, whole.body, "{operation:?}");

                let mut frame = Vec::new();
                responder.write_snapshot_frame(&task, &mut frame);
                let encoded = responder.snapshot_encoder(&task).encode(&task);
                let wrapper = responder.frame_wrapper(Some(task.seq), encoded.len());
                assert_eq!([wrapper.before, encoded, wrapper.after].concat(), frame);
            }
        }
    }
    let gateway = Responder::gateway(gateway::GatewayOperation::Send);
    assert!(gateway.split_task_reply(&Answer::<()>::Task(task())).is_none());
    assert!(rpc(ProtocolVersion::V1_0, Operation::Get, None).split_task_reply(&Answer::<()>::Done).is_none());
}
