//! Reading a request and writing an answer by themselves: `cargo bench -p sabir-wire`.

use divan::{Bencher, black_box};
use sabir_model::{
    AgentId, Answer, Artifact, ArtifactId, Birth, Chunk, ContextId, Event, Message, MessageId, Owner, Part, Role,
    State, Status, Task, TaskId, Timestamp,
};
use sabir_wire::{Compat, Decoded, KnownAgents, RequestHead, Responder, Surface, locate};

fn main() {
    divan::main();
}

const DIALECTS: [&str; 3] = ["1.0", "0.3", "0.1"];

/// From the head and the body to a `Call`.
#[divan::bench(args = DIALECTS)]
fn decodes_a_send(bencher: Bencher<'_, '_>, dialect: &str) {
    let body = send(dialect);
    bencher.bench(|| decode(dialect, black_box(&body)).call.is_ok());
}

/// A completed task as the body of a reply.
#[divan::bench(args = DIALECTS)]
fn encodes_a_task(bencher: Bencher<'_, '_>, dialect: &str) {
    let body = send(dialect);
    let responder = responder(dialect, &body);
    let answer: Answer<()> = Answer::Task(task().into());
    bencher.bench(|| responder.reply(black_box(&answer)));
}

/// A chunk as its readers share it: done once per event and dialect.
#[divan::bench(args = DIALECTS)]
fn encodes_an_event(bencher: Bencher<'_, '_>, dialect: &str) {
    let body = send(dialect);
    let (responder, task, event) = (responder(dialect, &body), task(), chunk());
    bencher.bench(|| responder.encode_event(black_box(&task.id), black_box(&task.context), black_box(&event)));
}

/// The frame around it: done once per event and reader.
#[divan::bench(args = DIALECTS)]
fn frames_an_event(bencher: Bencher<'_, '_>, dialect: &str) {
    let body = send(dialect);
    let (responder, task) = (responder(dialect, &body), task());
    let payload = responder.encode_event(&task.id, &task.context, &chunk());
    let mut out = Vec::with_capacity(1024);
    bencher.bench_local(|| {
        out.clear();
        responder.write_frame(Some(black_box(42)), &payload, &mut out);
        out.len()
    });
}

fn send(dialect: &str) -> Vec<u8> {
    let text = match dialect {
        "1.0" => {
            r#"{"jsonrpc":"2.0","id":"000000000001","method":"SendMessage","params":{"message":{"messageId":"bench-1",
               "role":"ROLE_USER","parts":[{"text":"bench 000000000001"}]}}}"#
        }
        "0.3" => {
            r#"{"jsonrpc":"2.0","id":"000000000001","method":"message/send","params":{"message":{"kind":"message",
               "messageId":"bench-1","role":"user","parts":[{"kind":"text","text":"bench 000000000001"}]}}}"#
        }
        _ => {
            r#"{"jsonrpc":"2.0","id":"000000000001","method":"tasks/send","params":{"id":"bench-1","message":{
               "role":"user","parts":[{"type":"text","text":"bench 000000000001"}]}}}"#
        }
    };
    text.as_bytes().to_vec()
}

fn decode<'a>(dialect: &str, body: &'a [u8]) -> Decoded<'a> {
    let version = (dialect == "1.0").then_some("1.0");
    let head = RequestHead { verb: "POST", path: "/a2a/jsonrpc", version, ..RequestHead::default() };
    match locate(&head, &Agents) {
        Surface::Call(endpoint) => endpoint.decode(&head, body, Compat::default(), &Agents),
        _ => panic!("a JSON-RPC mount"),
    }
}

fn responder<'a>(dialect: &str, body: &'a [u8]) -> Responder<'a> {
    let Decoded { call, responder } = decode(dialect, body);
    call.expect("a good request");
    responder
}

struct Agents;

impl KnownAgents for Agents {
    fn knows(&self, id: &str) -> bool {
        id == "demo"
    }

    fn ids(&self) -> Vec<AgentId> {
        vec![agent()]
    }
}

fn agent() -> AgentId {
    AgentId::parse("demo").expect("an id")
}

fn task() -> Task {
    let id = TaskId::parse("019a1e0c-3f06-7270-8974-eeac97a3d228").expect("an id");
    let context = ContextId::parse("019a1e0c-3f06-7270-8974-eeab62b9e3da").expect("an id");
    let time = Timestamp::from_millis(1_770_000_000_000);
    let said = Message {
        id: MessageId::parse("bench-1").expect("an id"),
        role: Role::User,
        parts: vec![Part::text("bench 000000000001")],
        task: Some(id.clone()),
        context: Some(context.clone()),
        references: vec![],
        extensions: vec![],
        metadata: None,
        request_metadata: None,
        request: None,
        answers: None,
    };
    Task {
        id,
        context,
        agent: agent(),
        owner: Owner::anonymous(),
        born: Birth(1),
        created: time,
        status: Status { state: State::Completed, message: None, time },
        turn_over: true,
        artifacts: vec![artifact().into()],
        history: vec![said.into()],
        metadata: None,
        usage: None,
        seq: 4,
        open: Vec::new(),
    }
}

fn chunk() -> Event {
    Event::Artifact(Chunk { index: 0, artifact: artifact().into(), append: true, last: false, metadata: None })
}

fn artifact() -> Artifact {
    let id = ArtifactId::parse("019a1e0c-3f06-7270-8974-eead44ed78ff").expect("an id");
    Artifact { name: Some("result".into()), ..Artifact::new(id, vec![Part::text("chunk 42\n")]) }
}
