use sabir_model::{
    AgentId, Artifact, ArtifactId, Birth, ContextId, Event, Json, Message, MessageId, Owner, Page, Part, PushConfig,
    Role, State, Status, StatusChange, TaskId, Timestamp, Wanted,
};
use std::sync::Arc;

use serde_json::value::RawValue;

use super::*;
use crate::fixture::{self, golden_text};
use crate::v03::V03;

/// A stream's voice lives on another task than its request.
const fn is_shared<T: Send + Sync + 'static>() {}
const _: () = is_shared::<Voice<'static>>();

fn rpc(version: ProtocolVersion, operation: Operation, query: Option<&str>) -> Voice<'static> {
    let mut voice = Voice::json_rpc(version, Frames::wanted(query));
    voice.answering("\"r8\"");
    voice.about(version, operation);
    voice
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
        answers: None,
    })
}

fn spelled(dialect: &dyn Dialect, shown: Shown<'_>) -> String {
    let mut out = Vec::new();
    dialect.encode(shown, &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn answers_in_their_envelopes() {
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
    for (operation, answer, shown) in [
        (Operation::Send, Answer::<()>::Task(task.clone()), Some(Shown::Sent(&task))),
        (Operation::Get, Answer::Task(task.clone()), Some(Shown::Task(&task))),
        (Operation::Cancel, Answer::Task(task.clone()), Some(Shown::Task(&task))),
        (Operation::Send, Answer::Message(message.clone()), Some(Shown::Reply(&message))),
        (Operation::List, Answer::Page(page.clone()), Some(Shown::Page(&page))),
        (Operation::PushGet, Answer::PushConfig(Some(Box::new(config.clone()))), Some(Shown::PushConfig(&config))),
        (
            Operation::PushList,
            Answer::PushConfigs(vec![config.clone()]),
            Some(Shown::PushConfigs(std::slice::from_ref(&config))),
        ),
        (Operation::PushGet, Answer::PushConfig(None), None),
        (Operation::PushDelete, Answer::Done, None),
    ] {
        let reply = rpc(ProtocolVersion::V1_0, operation, Some("envelope=none")).answer(&answer);
        let result = shown.map_or("null".to_owned(), |shown| spelled(&V1, shown));
        let expected = format!(r#"{{"jsonrpc":"2.0","id":"r8","result":{result}}}"#);
        assert_eq!((reply.status, reply.content_type), (200, "application/json"));
        assert_eq!(String::from_utf8(reply.body).unwrap(), expected, "{operation:?}");

        for (group, content_type) in [
            (EndpointGroup::V1, "application/a2a+json"),
            (EndpointGroup::Unversioned, "application/a2a+json"),
            (EndpointGroup::V0_3, "application/json"),
            (EndpointGroup::TaskAlias, "application/json"),
        ] {
            let reply = Voice::http_json(group, Some(operation)).answer(&answer);
            let expected = shown.map_or("{}".to_owned(), |shown| spelled(group.dialect(), shown));
            assert_eq!((reply.status, reply.content_type), (200, content_type));
            assert_eq!(String::from_utf8(reply.body).unwrap(), expected, "{group:?} {operation:?}");
        }
    }
}

#[test]
fn frames_are_as_the_goldens_have_them() {
    #[derive(serde::Deserialize)]
    struct Payload<'a> {
        #[serde(borrow)]
        result: &'a RawValue,
    }
    for (case, version) in [
        ("v1.0/jsonrpc/send_streaming_message.sse", ProtocolVersion::V1_0),
        ("v0.3/jsonrpc/message_stream.sse", ProtocolVersion::V0_3),
    ] {
        let voice = rpc(version, Operation::Stream, None).into_owned();
        let text = golden_text(case);
        let mut count = 0;
        for frame in text.split_inclusive("\n\n") {
            let Some(data) = frame.strip_prefix("data: ") else { continue };
            let payload: Payload<'_> = serde_json::from_str(data).unwrap();
            let mut out = Vec::new();
            count += 1;
            voice.frame(Some(count), payload.result.get().as_bytes(), &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), format!("id: {count}\n{frame}"), "{case}");
        }
        assert_eq!(count, 5, "{case}");
    }
}

#[test]
fn frames_of_every_kind() {
    let (task, message) = (task(), message(None));
    let snapshot = spelled(&V03, Shown::Snapshot(&task));
    let reply = spelled(&V03, Shown::Reply(&message));
    let error = r#"{"code":-32603,"message":"Internal error"}"#;
    for (query, open, close) in
        [(None, r#"{"jsonrpc":"2.0","id":"r8","result":"#, "}"), (Some("a=b&envelope=none"), "", "")]
    {
        let voice = rpc(ProtocolVersion::V0_3, Operation::Subscribe, query);
        let mut out = Vec::new();
        voice.snapshot(&task, &mut out);
        voice.reply_frame(&message, &mut out);
        voice.frame(None, b"1", &mut out);
        let expected =
            format!("id: 4\ndata: {open}{snapshot}{close}\n\ndata: {open}{reply}{close}\n\ndata: {open}1{close}\n\n");
        assert_eq!(String::from_utf8(out).unwrap(), expected);

        let mut out = Vec::new();
        voice.error_frame(&Error::internal("x"), &mut out);
        let envelope = if query.is_some() { "" } else { r#""jsonrpc":"2.0","id":"r8","# };
        assert_eq!(String::from_utf8(out).unwrap(), format!("event: error\ndata: {{{envelope}\"error\":{error}}}\n\n"));
    }

    let voice = Voice::http_json(EndpointGroup::V1, Some(Operation::Subscribe));
    let mut out = Vec::new();
    voice.snapshot(&task, &mut out);
    assert_eq!(String::from_utf8(out).unwrap(), format!("id: 4\ndata: {}\n\n", spelled(&V1, Shown::Snapshot(&task))));
    let mut out = Vec::new();
    voice.error_frame(&Error::TaskNotFound(task.id.clone()), &mut out);
    let text = String::from_utf8(out).unwrap();
    assert!(text.starts_with("event: error\ndata: {\"error\":{\"code\":404,"), "{text}");
}

#[test]
fn an_error_in_mid_stream_is_as_the_golden_has_it() {
    let frames = fixture::golden("v1.0/jsonrpc/send_streaming_message_midstream_error.stream.json");
    let mut voice = rpc(ProtocolVersion::V1_0, Operation::Stream, None);
    voice.answering("\"r11\"");
    let mut out = Vec::new();
    voice.error_frame(&Error::internal("x"), &mut out);
    let text = String::from_utf8(out).unwrap();
    let data = text.strip_prefix("event: error\ndata: ").and_then(|text| text.strip_suffix("\n\n")).unwrap();
    assert_eq!(fixture::json(data.as_bytes()), frames[1]);
}

#[test]
fn carried_json_does_not_break_a_frame() {
    let message = message(Some("{\"a\":\n\n 1,\r\n\"b\":\"\\n\"}"));
    let voice = rpc(ProtocolVersion::V1_0, Operation::Stream, None);
    let mut out = Vec::new();
    voice.reply_frame(&message, &mut out);
    let text = String::from_utf8(out).unwrap();
    assert_eq!(text.find('\n'), Some(text.len() - 2), "{text}");
    assert!(!text.contains('\r'));
    assert!(text.contains(r#""b":"\n""#), "what is inside a string stays");
}

#[test]
fn an_id_does_not_break_a_frame() {
    let id = "\"a\u{2028}\u{2029}\u{85}é\\u2028\"";
    let escaped = r#""a\u2028\u2029\u0085é\u2028""#;
    let mut voice = rpc(ProtocolVersion::V0_3, Operation::Subscribe, None);
    voice.answering(id);
    let answer = Answer::<()>::Message(message(None));
    for (what, id, text) in [
        ("event", escaped, frame(|out| voice.frame(Some(1), b"{}", out))),
        ("snapshot", escaped, frame(|out| voice.snapshot(&task(), out))),
        ("reply", escaped, frame(|out| voice.reply_frame(&message(None), out))),
        ("error", escaped, frame(|out| voice.error_frame(&Error::PushNotSupported, out))),
        ("one frame", escaped, frame(|out| out.extend(voice.answer(&answer).body))),
        ("error instead of a stream", escaped, frame(|out| out.extend(voice.error(&Error::PushNotSupported).body))),
        ("answer", id, {
            voice.about(ProtocolVersion::V0_3, Operation::Send);
            frame(|out| out.extend(voice.answer(&answer).body))
        }),
        ("error", id, frame(|out| out.extend(voice.error(&Error::PushNotSupported).body))),
    ] {
        assert!(text.contains(&format!(r#""id":{id},"#)), "{what}: {text}");
    }

    // What an error repeats of the caller's is in the same place.
    let error = Error::AgentNotFound { named: "a\u{2028}b".into(), known: vec![] };
    voice.about(ProtocolVersion::V0_3, Operation::Stream);
    let text = frame(|out| voice.error_frame(&error, out));
    assert!(text.contains(r"there is no agent a\u2028b"), "{text}");
    assert!(frame(|out| out.extend(voice.error(&error).body)).contains(r"a\u2028b"));
}

fn frame(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn what_an_envelope_weighs() {
    let long = format!("\"{}\"", "\u{85}".repeat(511));
    for (id, query, expected) in [
        ("1", None, "id: 18446744073709551615\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":}\n\n".len()),
        ("1", Some("envelope=none"), "id: 18446744073709551615\ndata: \n\n".len()),
        (&long, None, 66 + 511 * 6 + 2),
    ] {
        let mut voice = rpc(ProtocolVersion::V1_0, Operation::Stream, query);
        voice.answering(id);
        assert_eq!(voice.envelope_len(), expected, "{id}");
        let framed = frame(|out| voice.frame(Some(7), b"{\"a\":1}", out));
        assert_eq!(framed.len(), expected - 19 + 7, "{id}");
    }
    assert_eq!(Voice::http_json(EndpointGroup::V1, Some(Operation::Stream)).envelope_len(), 33);
}

#[test]
fn a_method_that_streams_answers_in_frames() {
    let message = message(None);
    let reply = rpc(ProtocolVersion::V0_3, Operation::Stream, None).answer(&Answer::<()>::Message(message.clone()));
    let expected =
        format!("data: {{\"jsonrpc\":\"2.0\",\"id\":\"r8\",\"result\":{}}}\n\n", spelled(&V03, Shown::Reply(&message)));
    assert_eq!((reply.status, reply.content_type), (200, EVENT_STREAM));
    assert_eq!(String::from_utf8(reply.body).unwrap(), expected);
}

#[test]
fn a_stream_is_not_an_answer() {
    let reply = rpc(ProtocolVersion::V1_0, Operation::Get, None).answer(&Answer::Stream(()));
    assert_eq!(fixture::json(&reply.body)["error"]["code"], -32603);
}

#[test]
fn a_task_of_0_1_is_answered_there_where_nobody_says_otherwise() {
    let of_0_1 = Arc::new(Task { born: V01.birth(), ..Task::clone(&task()) });
    for (asked, born_there, born_elsewhere) in [
        (Requested::Nothing, &V01 as &dyn Dialect, &V03 as &dyn Dialect),
        (Requested::Version(ProtocolVersion::V0_1), &V01, &V01),
        (Requested::Version(ProtocolVersion::V0_3), &V03, &V03),
    ] {
        let mut voice = rpc(ProtocolVersion::V0_3, Operation::Get, None);
        voice.sharing(asked);
        for (task, dialect) in [(&of_0_1, born_there), (&task(), born_elsewhere)] {
            let reply = voice.answer(&Answer::<()>::Task(task.clone()));
            let expected = format!(r#"{{"jsonrpc":"2.0","id":"r8","result":{}}}"#, spelled(dialect, Shown::Task(task)));
            assert_eq!(String::from_utf8(reply.body).unwrap(), expected, "{asked:?}");
            let mut out = Vec::new();
            voice.snapshot(task, &mut out);
            assert!(String::from_utf8(out).unwrap().contains(&spelled(dialect, Shown::Snapshot(task))), "{asked:?}");
        }
    }
}

#[test]
fn only_the_end_of_a_stream_of_0_1_wants_its_task() {
    let change = |state| {
        let status = Status { state, message: None, time: Timestamp::from_millis(0) };
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
        let voice = rpc(version, Operation::Stream, None);
        for state in State::ALL {
            let event = change(state);
            assert_eq!(voice.wants_task(&event), wanted && state.is_terminal(), "{version:?} {state:?}");
        }
    }
    let voice = rpc(ProtocolVersion::V0_1, Operation::Stream, None);
    let mut task = Task::clone(&task());
    task.artifacts = vec![Artifact::new(ArtifactId::parse("a").unwrap(), vec![Part::text("x")]).into()];
    let payload = String::from_utf8(voice.spell_end(&task, &change(State::Rejected))).unwrap();
    let expected = r#"{"id":"t","status":{"state":"failed","timestamp":"1970-01-01T00:00:00.000Z"},"final":true,"artifacts":[{"id":"a","index":0,"parts":[{"type":"text","text":"x"}]}]}"#;
    assert_eq!(payload, expected);
}

#[test]
fn the_parts_of_a_reply_are_the_reply() {
    let old = Arc::new(Task { born: V01.birth(), ..Task::clone(&task()) });
    for task in [task(), old] {
        for operation in [Operation::Send, Operation::Get, Operation::Cancel, Operation::Stream, Operation::Subscribe] {
            let mut by_birth = rpc(ProtocolVersion::V0_3, operation, None);
            by_birth.choice = Choice::Birth;
            for voice in [
                rpc(ProtocolVersion::V1_0, operation, None),
                rpc(ProtocolVersion::V0_3, operation, Some("envelope=none")),
                rpc(ProtocolVersion::V0_1, operation, None),
                by_birth,
                Voice::http_json(EndpointGroup::V1, Some(operation)),
                Voice::http_json(EndpointGroup::V0_3, Some(operation)),
            ] {
                let answer = Answer::<()>::Task(task.clone());
                let whole = voice.answer(&answer);
                let TaskReply { content_type, envelope, spelling } = voice.task_parts(&answer).unwrap();
                let parts = [envelope.before, spelling.spell(&task), envelope.after].concat();
                assert_eq!((whole.status, whole.content_type), (200, content_type));
                assert_eq!(String::from_utf8(parts), String::from_utf8(whole.body), "{operation:?}");

                let mut frame = Vec::new();
                voice.snapshot(&task, &mut frame);
                let (envelope, spelling) = voice.snapshot_parts(&task);
                assert_eq!([envelope.before, spelling.spell(&task), envelope.after].concat(), frame);
            }
        }
    }
    let gateway = Voice::gateway(gateway::Asked::Send);
    assert!(gateway.task_parts(&Answer::<()>::Task(task())).is_none());
    assert!(rpc(ProtocolVersion::V1_0, Operation::Get, None).task_parts(&Answer::<()>::Done).is_none());
}
