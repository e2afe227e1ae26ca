//! What is written and read again is the same, but for what a dialect has no place for.

use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use sabir_model::{
    AgentId, Artifact, ArtifactId, Base64, Birth, Chunk, Content, ContextId, Created, Event, Json, Message, MessageId,
    Owner, Page, Part, PushAuthentication, PushConfig, PushConfigId, Role, State, Status, StatusChange, Task, TaskId,
    Timestamp, Usage, Wanted,
};
use sabir_wire::{Heard, Operation, Shown};

use super::Tongue;

proptest! {
    /// Those of 0.1 are no answers of their own; they are in its tasks.
    #[test]
    fn messages(message in message()) {
        for tongue in [Tongue::V1, Tongue::V03, Tongue::V03Proto] {
            let written = tongue.encode(Shown::Reply(&message));
            let heard = tongue.hear(Operation::Send, &written).unwrap();
            prop_assert_eq!(heard, Heard::Reply(Box::new(told_message(tongue, &message))), "{}", written);
        }
    }

    #[test]
    fn tasks(task in task()) {
        for tongue in Tongue::ALL {
            let expected = Heard::Task(Box::new(told_task(tongue, &task)));
            for (operation, shown) in [
                (Operation::Get, Shown::Task(&task)),
                (Operation::Send, Shown::Sent(&task)),
                (Operation::Subscribe, Shown::Snapshot(&task)),
            ] {
                let written = tongue.encode(shown);
                let heard = tongue.hear(operation, &written).unwrap();
                if tongue == Tongue::V01 && operation == Operation::Subscribe {
                    // A status that is not the last one, whatever it says.
                    let change = StatusChange { status: task.status.clone(), is_final: false, input: vec![], begins_turn: false, usage: None, metadata: None };
                    prop_assert_eq!(heard, told_event(tongue, &task.id, &task.context, &Event::Status(change)));
                    continue;
                }
                prop_assert_eq!(&heard, &expected, "{}", written);
            }
        }
    }

    #[test]
    fn events(event in event(), task in id(), context in id()) {
        let (task, context) = (TaskId::parse(task).unwrap(), ContextId::parse(context).unwrap());
        for tongue in Tongue::ALL {
            let written = tongue.encode(Shown::Event { task: &task, context: &context, event: &event });
            let heard = tongue.hear(Operation::Stream, &written).unwrap();
            prop_assert_eq!(heard, told_event(tongue, &task, &context, &event), "{}", written);
        }
    }

    #[test]
    fn the_last_frame_of_0_1_shows_what_the_task_has_made(task in task(), is_final: bool, metadata in object()) {
        let change = StatusChange { status: task.status.clone(), is_final, input: vec![], begins_turn: false, usage: None, metadata };
        let event = Event::Status(change);
        let written = Tongue::V01.encode(Shown::End { task: &task, event: &event });
        let heard = Tongue::V01.hear(Operation::Stream, &written).unwrap();
        let told = told_event(Tongue::V01, &task.id, &task.context, &event);
        if task.artifacts.is_empty() {
            prop_assert_eq!(heard, told);
        } else {
            let Heard::Event { event, context, .. } = told else { panic!("{told:?}") };
            let whole = Task { context, history: vec![], metadata: None, ..told_task(Tongue::V01, &task) };
            prop_assert_eq!(heard, Heard::End { task: Box::new(whole), event });
        }
        for tongue in [Tongue::V1, Tongue::V03, Tongue::V03Proto] {
            let plain = tongue.encode(Shown::Event { task: &task.id, context: &task.context, event: &event });
            prop_assert_eq!(tongue.encode(Shown::End { task: &task, event: &event }), plain);
        }
    }

    #[test]
    fn pages(tasks in proptest::collection::vec(task(), 0..3), wanted in select(vec![Wanted::Yes, Wanted::No]), total in 0..99u64) {
        let page = Page { tasks, artifacts: wanted, next: None, page_size: 50, total };
        let written = Tongue::V1.encode(Shown::Page(&page));
        prop_assert!(written.contains(r#""nextPageToken":"""#));
        prop_assert_eq!(written.contains(r#""artifacts":"#), wanted == Wanted::Yes && !page.tasks.is_empty());
        let mut expected = page.clone();
        for task in &mut expected.tasks {
            *task = told_task(Tongue::V1, task);
            if wanted == Wanted::No {
                task.artifacts.clear();
            }
        }
        if page.tasks.is_empty() {
            expected.artifacts = Wanted::No;
        }
        let heard = Tongue::V1.hear(Operation::List, &written).unwrap();
        prop_assert_eq!(heard, Heard::Page { page: Box::new(expected), next: None });
    }

    #[test]
    fn push_configs_without_their_secrets(config in push_config()) {
        for tongue in Tongue::ALL {
            let written = tongue.encode(Shown::PushConfig(&config));
            prop_assert!(!written.contains("token") && !written.contains("secret"), "{}", written);
            let mut expected = config.clone();
            expected.token = None;
            if let Some(authentication) = &mut expected.authentication {
                authentication.credentials = None;
                if tongue == Tongue::V1 {
                    authentication.schemes.truncate(1);
                }
            }
            if tongue == Tongue::V01 {
                expected.id = None;
            }
            let heard = tongue.hear(Operation::PushGet, &written).unwrap();
            prop_assert_eq!(heard, Heard::PushConfig(Some(Box::new(expected.clone()))), "{}", written);
            if tongue == Tongue::V01 {
                continue;
            }
            let written = tongue.encode(Shown::PushConfigs(std::slice::from_ref(&config)));
            prop_assert_eq!(tongue.hear(Operation::PushList, &written).unwrap(), Heard::PushConfigs(vec![expected]));
        }
    }
}

#[test]
fn usage_is_on_the_task_in_kind_json_alone() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut task = task().new_tree(&mut runner).unwrap().current();
    task.created = Timestamp::from_millis(1000);
    task.status.time = Timestamp::from_millis(2500);
    task.usage = Some(Usage { input_tokens: 1200, output_tokens: 340 });
    let data = r#""data":{"usage":{"input_tokens":1200,"output_tokens":340,"total_tokens":1540},"durationMs":1500}"#;
    for tongue in Tongue::ALL {
        assert_eq!(tongue.encode(Shown::Task(&task)).contains(data), tongue == Tongue::V03);
    }
}

/// What is left of a message after a dialect has carried it: the lossy rows of the translation tables.
fn told_message(tongue: Tongue, message: &Message) -> Message {
    let mut told = message.clone();
    told.parts = told.parts.into_iter().map(|part| told_part(tongue, part)).collect();
    if matches!(tongue, Tongue::V03Proto | Tongue::V01) {
        told.references.clear();
    }
    if tongue == Tongue::V01 {
        told.id = MessageId::parse("unnamed").unwrap();
        (told.task, told.context) = (None, None);
        told.extensions.clear();
    }
    told
}

fn told_part(tongue: Tongue, mut part: Part) -> Part {
    let is_file = matches!(part.content, Content::Bytes(_) | Content::Url(_));
    if tongue != Tongue::V1 && !is_file {
        (part.filename, part.media_type) = (None, None);
    }
    if tongue != Tongue::V1
        && matches!(&part.content, Content::Data(data) if !data.is_object())
        && part.metadata.as_ref().is_some_and(|metadata| metadata.as_str() == "{}")
    {
        part.metadata = None;
    }
    part
}

fn told_artifact(tongue: Tongue, artifact: &Artifact) -> Artifact {
    let parts = artifact.parts.iter().map(|part| told_part(tongue, part.clone())).collect();
    let extensions = if tongue == Tongue::V01 { vec![] } else { artifact.extensions.clone() };
    Artifact { parts, extensions, ..artifact.clone() }
}

fn told_status(tongue: Tongue, status: &Status) -> Status {
    let state = match status.state {
        State::Rejected if tongue == Tongue::V01 => State::Failed,
        State::AuthRequired if tongue == Tongue::V01 => State::InputRequired,
        state => state,
    };
    let message = status.message.as_ref().map(|message| told_message(tongue, message).into());
    Status { state, message, ..status.clone() }
}

fn told_task(tongue: Tongue, task: &Task) -> Task {
    Task {
        born: match tongue {
            Tongue::V1 => Birth(10),
            Tongue::V03 | Tongue::V03Proto => Birth(3),
            Tongue::V01 => Birth(1),
        },
        agent: AgentId::parse("remote").unwrap(),
        owner: Owner::anonymous(),
        created: task.status.time,
        turn_over: task.status.state.is_terminal(),
        status: told_status(tongue, &task.status),
        artifacts: task.artifacts.iter().map(|artifact| told_artifact(tongue, artifact).into()).collect(),
        history: task.history.iter().map(|message| told_message(tongue, message).into()).collect(),
        usage: None,
        seq: 0,
        ..task.clone()
    }
}

fn told_event(tongue: Tongue, task: &TaskId, context: &ContextId, event: &Event) -> Heard {
    let event = match event {
        Event::Created(created) if tongue == Tongue::V01 => {
            let status = Status { state: State::Submitted, message: created.note.clone(), time: created.time };
            let status = told_status(tongue, &status);
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
            return Heard::Task(Box::new(told_task(
                tongue,
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
            status: told_status(tongue, &change.status),
            // 1.0 does not say it.
            is_final: if tongue == Tongue::V1 { change.status.state.is_terminal() } else { change.is_final },
            input: vec![],
            begins_turn: false,
            usage: None,
            metadata: change.metadata.clone(),
        }),
        Event::Artifact(chunk) => {
            let index = if tongue == Tongue::V01 { chunk.index } else { 0 };
            Event::Artifact(Chunk { index, artifact: told_artifact(tongue, &chunk.artifact).into(), ..chunk.clone() })
        }
    };
    let context = match tongue {
        Tongue::V01 => ContextId::parse(task.as_str()).unwrap(),
        _ => context.clone(),
    };
    Heard::Event { task: task.clone(), context, event: Box::new(event) }
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

fn message() -> impl Strategy<Value = Message> {
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

fn task() -> impl Strategy<Value = Task> {
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

fn event() -> impl Strategy<Value = Event> {
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

fn push_config() -> impl Strategy<Value = PushConfig> {
    let authentication = proptest::option::of(proptest::collection::vec("[A-Z][a-z]{1,5}", 1..3));
    ("[a-z]{1,9}", "[a-z]{1,9}", authentication).prop_map(|(id, task, schemes)| PushConfig {
        id: Some(PushConfigId::parse(id).unwrap()),
        task: Some(TaskId::parse(task).unwrap()),
        url: "https://example.com/hook".to_owned(),
        token: Some("token".to_owned()),
        authentication: schemes.map(|schemes| PushAuthentication { schemes, credentials: Some("secret".to_owned()) }),
    })
}
