//! What is written and read again is the same, but for what a dialect has no place for.

use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use sabir_model::{
    AgentId, Artifact, ArtifactId, Base64, Birth, Chunk, Content, ContextId, Created, Event, Json, Message, MessageId,
    Owner, Page, Part, PushAuthentication, PushConfig, PushConfigId, Role, State, Status, StatusChange, Task, TaskId,
    Timestamp, Usage, Wanted,
};
use sabir_wire::{Operation, Payload, PeerResponse};

use super::TestDialect;

proptest! {
    /// Those of 0.1 are no answers of their own; they are in its tasks.
    #[test]
    fn messages_survive_a_round_trip(message in message()) {
        for dialect in [TestDialect::V1, TestDialect::V03, TestDialect::V03Proto] {
            let written = dialect.encode(Payload::Message(&message));
            let response = dialect.decode_response(Operation::Send, &written).unwrap();
            prop_assert_eq!(response, PeerResponse::Message(Box::new(expected_message(dialect, &message))), "{}", written);
        }
    }

    #[test]
    fn tasks_survive_a_round_trip(task in task()) {
        for dialect in TestDialect::ALL {
            let expected = PeerResponse::Task(Box::new(expected_task(dialect, &task)));
            for (operation, shown) in [
                (Operation::Get, Payload::Task(&task)),
                (Operation::Send, Payload::SendResult(&task)),
                (Operation::Subscribe, Payload::Snapshot(&task)),
            ] {
                let written = dialect.encode(shown);
                let response = dialect.decode_response(operation, &written).unwrap();
                if dialect == TestDialect::V01 && operation == Operation::Subscribe {
                    // A status that is not the last one, whatever it says.
                    let change = StatusChange { status: task.status.clone(), is_final: false, input: vec![], begins_turn: false, usage: None, metadata: None };
                    prop_assert_eq!(response, expected_event(dialect, &task.id, &task.context, &Event::Status(change)));
                    continue;
                }
                prop_assert_eq!(&response, &expected, "{}", written);
            }
        }
    }

    #[test]
    fn events_survive_a_round_trip(event in event(), task in id(), context in id()) {
        let (task, context) = (TaskId::parse(task).unwrap(), ContextId::parse(context).unwrap());
        for dialect in TestDialect::ALL {
            let written = dialect.encode(Payload::Event { task: &task, context: &context, event: &event });
            let response = dialect.decode_response(Operation::Stream, &written).unwrap();
            prop_assert_eq!(response, expected_event(dialect, &task, &context, &event), "{}", written);
        }
    }

    #[test]
    fn the_last_frame_of_0_1_has_the_artifacts_of_the_task(task in task(), is_final: bool, metadata in object()) {
        let change = StatusChange { status: task.status.clone(), is_final, input: vec![], begins_turn: false, usage: None, metadata };
        let event = Event::Status(change);
        let written = TestDialect::V01.encode(Payload::FinalEvent { task: &task, event: &event });
        let response = TestDialect::V01.decode_response(Operation::Stream, &written).unwrap();
        let expected = expected_event(TestDialect::V01, &task.id, &task.context, &event);
        if task.artifacts.is_empty() {
            prop_assert_eq!(response, expected);
        } else {
            let PeerResponse::Event { event, context, .. } = expected else { panic!("{expected:?}") };
            let whole = Task { context, history: vec![], metadata: None, ..expected_task(TestDialect::V01, &task) };
            prop_assert_eq!(response, PeerResponse::FinalEvent { task: Box::new(whole), event });
        }
        for dialect in [TestDialect::V1, TestDialect::V03, TestDialect::V03Proto] {
            let plain = dialect.encode(Payload::Event { task: &task.id, context: &task.context, event: &event });
            prop_assert_eq!(dialect.encode(Payload::FinalEvent { task: &task, event: &event }), plain);
        }
    }

    #[test]
    fn pages_survive_a_round_trip(tasks in proptest::collection::vec(task(), 0..3), wanted in select(vec![Wanted::Yes, Wanted::No]), total in 0..99u64) {
        let page = Page { tasks, artifacts: wanted, next: None, page_size: 50, total };
        let written = TestDialect::V1.encode(Payload::Page(&page));
        prop_assert!(written.contains(r#""nextPageToken":"""#));
        prop_assert_eq!(written.contains(r#""artifacts":"#), wanted == Wanted::Yes && !page.tasks.is_empty());
        let mut expected = page.clone();
        for task in &mut expected.tasks {
            *task = expected_task(TestDialect::V1, task);
            if wanted == Wanted::No {
                task.artifacts.clear();
            }
        }
        if page.tasks.is_empty() {
            expected.artifacts = Wanted::No;
        }
        let response = TestDialect::V1.decode_response(Operation::List, &written).unwrap();
        prop_assert_eq!(response, PeerResponse::Page { page: Box::new(expected), next: None });
    }

    #[test]
    fn push_configs_survive_a_round_trip_without_their_secrets(config in push_config()) {
        for dialect in TestDialect::ALL {
            let written = dialect.encode(Payload::PushConfig(&config));
            prop_assert!(!written.contains("token") && !written.contains("secret"), "{}", written);
            let mut expected = config.clone();
            expected.token = None;
            if let Some(authentication) = &mut expected.authentication {
                authentication.credentials = None;
                if dialect == TestDialect::V1 {
                    authentication.schemes.truncate(1);
                }
            }
            if dialect == TestDialect::V01 {
                expected.id = None;
            }
            let response = dialect.decode_response(Operation::PushGet, &written).unwrap();
            prop_assert_eq!(response, PeerResponse::PushConfig(Some(Box::new(expected.clone()))), "{}", written);
            if dialect == TestDialect::V01 {
                continue;
            }
            let written = dialect.encode(Payload::PushConfigs(std::slice::from_ref(&config)));
            prop_assert_eq!(dialect.decode_response(Operation::PushList, &written).unwrap(), PeerResponse::PushConfigs(vec![expected]));
        }
    }
}

#[test]
fn only_kind_json_shows_usage() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut task = task().new_tree(&mut runner).unwrap().current();
    task.created = Timestamp::from_millis(1000);
    task.status.time = Timestamp::from_millis(2500);
    task.usage = Some(Usage { input_tokens: 1200, output_tokens: 340 });
    let data = r#""data":{"usage":{"input_tokens":1200,"output_tokens":340,"total_tokens":1540},"durationMs":1500}"#;
    for dialect in TestDialect::ALL {
        assert_eq!(dialect.encode(Payload::Task(&task)).contains(data), dialect == TestDialect::V03);
    }
}

/// What is left of a message after a dialect has carried it: the lossy rows of the translation tables.
fn expected_message(dialect: TestDialect, message: &Message) -> Message {
    let mut expected = message.clone();
    expected.parts = expected.parts.into_iter().map(|part| expected_part(dialect, part)).collect();
    if matches!(dialect, TestDialect::V03Proto | TestDialect::V01) {
        expected.references.clear();
    }
    if dialect == TestDialect::V01 {
        expected.id = MessageId::parse("unnamed").unwrap();
        (expected.task, expected.context) = (None, None);
        expected.extensions.clear();
    }
    expected
}

fn expected_part(dialect: TestDialect, mut part: Part) -> Part {
    let is_file = matches!(part.content, Content::Bytes(_) | Content::Url(_));
    if dialect != TestDialect::V1 && !is_file {
        (part.filename, part.media_type) = (None, None);
    }
    if dialect != TestDialect::V1
        && matches!(&part.content, Content::Data(data) if !data.is_object())
        && part.metadata.as_ref().is_some_and(|metadata| metadata.as_str() == "{}")
    {
        part.metadata = None;
    }
    part
}

fn expected_artifact(dialect: TestDialect, artifact: &Artifact) -> Artifact {
    let parts = artifact.parts.iter().map(|part| expected_part(dialect, part.clone())).collect();
    let extensions = if dialect == TestDialect::V01 { vec![] } else { artifact.extensions.clone() };
    Artifact { parts, extensions, ..artifact.clone() }
}

fn expected_status(dialect: TestDialect, status: &Status) -> Status {
    let state = match status.state {
        State::Rejected if dialect == TestDialect::V01 => State::Failed,
        State::AuthRequired if dialect == TestDialect::V01 => State::InputRequired,
        state => state,
    };
    let message = status.message.as_ref().map(|message| expected_message(dialect, message).into());
    Status { state, message, ..status.clone() }
}

fn expected_task(dialect: TestDialect, task: &Task) -> Task {
    Task {
        born: match dialect {
            TestDialect::V1 => Birth(10),
            TestDialect::V03 | TestDialect::V03Proto => Birth(3),
            TestDialect::V01 => Birth(1),
        },
        agent: AgentId::parse("remote").unwrap(),
        owner: Owner::anonymous(),
        created: task.status.time,
        turn_over: task.status.state.is_terminal(),
        status: expected_status(dialect, &task.status),
        artifacts: task.artifacts.iter().map(|artifact| expected_artifact(dialect, artifact).into()).collect(),
        history: task.history.iter().map(|message| expected_message(dialect, message).into()).collect(),
        usage: None,
        seq: 0,
        ..task.clone()
    }
}

fn expected_event(dialect: TestDialect, task: &TaskId, context: &ContextId, event: &Event) -> PeerResponse {
    let event = match event {
        Event::Created(created) if dialect == TestDialect::V01 => {
            let status = Status { state: State::Submitted, message: created.note.clone(), time: created.time };
            let status = expected_status(dialect, &status);
            Event::Status(StatusChange {
                status,
                is_final: false,
                input: vec![],
                begins_turn: false,
                usage: None,
                metadata: None,
            })
        }
        Event::Created(created) => {
            let status = Status { state: State::Submitted, message: created.note.clone(), time: created.time };
            return PeerResponse::Task(Box::new(expected_task(
                dialect,
                &Task {
                    id: task.clone(),
                    context: context.clone(),
                    agent: AgentId::parse("a").unwrap(),
                    owner: Owner::anonymous(),
                    born: Birth(0),
                    created: created.time,
                    status,
                    turn_over: false,
                    artifacts: vec![],
                    open: vec![],
                    history: vec![created.message.clone()],
                    metadata: created.metadata.clone(),
                    usage: None,
                    seq: 1,
                },
            )));
        }
        Event::Status(change) => Event::Status(StatusChange {
            status: expected_status(dialect, &change.status),
            // 1.0 does not say it.
            is_final: if dialect == TestDialect::V1 { change.status.state.is_terminal() } else { change.is_final },
            input: vec![],
            begins_turn: false,
            usage: None,
            metadata: change.metadata.clone(),
        }),
        Event::Artifact(chunk) => {
            let index = if dialect == TestDialect::V01 { chunk.index } else { 0 };
            Event::Artifact(Chunk {
                index,
                artifact: expected_artifact(dialect, &chunk.artifact).into(),
                ..chunk.clone()
            })
        }
    };
    let context = match dialect {
        TestDialect::V01 => ContextId::parse(task.as_str()).unwrap(),
        _ => context.clone(),
    };
    PeerResponse::Event { task: task.clone(), context, event: Box::new(event) }
}

fn id() -> impl Strategy<Value = String> {
    "[^\\x00-\\x1f\\x7f-\\x9f]{1,20}"
}

fn name() -> impl Strategy<Value = Option<String>> {
    proptest::option::of(".{1,10}")
}

fn object() -> impl Strategy<Value = Option<Json>> {
    let texts =
        vec!["{}", r#"{"a":1}"#, r#"{ "b":[1e3,12345678901234567], "b":null }"#, r#"{"deep":{"x":{"y":"\u00e9"}}}"#];
    proptest::option::of(select(texts).prop_map(|text| Json::parse(text).unwrap()))
}

fn part() -> impl Strategy<Value = Part> {
    let datas =
        vec!["null", "5.0", "[1, {}]", r#"{"a":1}"#, r#"{"value":1}"#, r#""x""#, "12345678901234567", r#"{"data":{}}"#];
    let content = prop_oneof![
        any::<String>().prop_map(Content::Text),
        any::<Vec<u8>>().prop_map(|bytes| Content::Bytes(Base64::encode(&bytes))),
        any::<String>().prop_map(Content::Url),
        select(datas).prop_map(|text| Content::Data(Json::parse(text).unwrap())),
    ];
    (content, name(), name(), object()).prop_map(|(content, filename, media_type, metadata)| Part {
        content,
        filename,
        media_type,
        metadata,
    })
}

pub(super) fn message() -> impl Strategy<Value = Message> {
    let parts = proptest::collection::vec(part(), 1..4);
    let ids = (id(), proptest::option::of(id()), proptest::option::of(id()), proptest::collection::vec(id(), 0..3));
    let rest = (proptest::collection::vec(any::<String>(), 0..3), object(), any::<bool>());
    (parts, ids, rest).prop_map(|(parts, (id, task, context, references), (extensions, metadata, is_user))| Message {
        id: MessageId::parse(id).unwrap(),
        role: if is_user { Role::User } else { Role::Agent },
        parts,
        task: task.map(|id| TaskId::parse(id).unwrap()),
        context: context.map(|id| ContextId::parse(id).unwrap()),
        references: references.into_iter().map(|id| TaskId::parse(id).unwrap()).collect(),
        extensions,
        metadata,
        request_metadata: None,
        request: None,
        answers: None,
    })
}

fn artifact() -> impl Strategy<Value = Artifact> {
    let parts = proptest::collection::vec(part(), 0..3);
    (id(), name(), name(), parts, proptest::collection::vec(any::<String>(), 0..2), object()).prop_map(
        |(id, name, description, parts, extensions, metadata)| Artifact {
            id: ArtifactId::parse(id).unwrap(),
            name,
            description,
            parts,
            extensions,
            metadata,
        },
    )
}

fn time() -> impl Strategy<Value = Timestamp> {
    (-62_135_596_800_000i64..=253_402_300_799_999).prop_map(Timestamp::from_millis)
}

fn status() -> impl Strategy<Value = Status> {
    (select(State::ALL.to_vec()), proptest::option::of(message()), time()).prop_map(|(state, message, time)| Status {
        state,
        message: message.map(Into::into),
        time,
    })
}

pub(super) fn task() -> impl Strategy<Value = Task> {
    let lists = (proptest::collection::vec(artifact(), 0..3), proptest::collection::vec(message(), 0..3));
    (id(), id(), status(), lists, object()).prop_map(|(id, context, status, (artifacts, history), metadata)| Task {
        id: TaskId::parse(id).unwrap(),
        context: ContextId::parse(context).unwrap(),
        agent: AgentId::parse("a").unwrap(),
        owner: Owner::anonymous(),
        born: Birth(10),
        created: status.time,
        turn_over: false,
        status,
        artifacts: artifacts.into_iter().map(Into::into).collect(),
        open: vec![],
        history: history.into_iter().map(Into::into).collect(),
        metadata,
        usage: None,
        seq: 7,
    })
}

pub(super) fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        (message(), object(), proptest::option::of(message()), time()).prop_map(|(message, metadata, note, time)| {
            Event::Created(Created { message: message.into(), metadata, note: note.map(Into::into), time })
        }),
        (status(), any::<bool>(), proptest::collection::vec(message(), 0..2), object()).prop_map(
            |(status, is_final, input, metadata)| {
                let input = input.into_iter().map(Into::into).collect();
                Event::Status(StatusChange { status, is_final, input, begins_turn: false, usage: None, metadata })
            }
        ),
        (artifact(), any::<bool>(), any::<bool>(), 0..9u32, object()).prop_map(
            |(artifact, append, last, index, metadata)| {
                Event::Artifact(Chunk { index, artifact: artifact.into(), append, last, metadata })
            }
        ),
    ]
}

pub(super) fn push_config() -> impl Strategy<Value = PushConfig> {
    let authentication = proptest::option::of(proptest::collection::vec("[A-Z][a-z]{1,5}", 1..3));
    ("[a-z]{1,9}", "[a-z]{1,9}", authentication).prop_map(|(id, task, schemes)| PushConfig {
        id: Some(PushConfigId::parse(id).unwrap()),
        task: Some(TaskId::parse(task).unwrap()),
        url: "https://example.com/hook".to_owned(),
        token: Some("token".to_owned()),
        authentication: schemes.map(|schemes| PushAuthentication { schemes, credentials: Some("secret".to_owned()) }),
    })
}
