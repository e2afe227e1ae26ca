//! The cost of appends: `cargo bench -p sabir-store`.
//!
//! Each append is a whole small task, four events and its row, as a blocking send stores it.

use divan::{Bencher, counter::ItemsCount};
use sabir_model::{
    AgentId, Artifact, ArtifactId, Birth, Chunk, ContextId, Created, Event, Message, MessageId, Owner, Part,
    PushConfigId, Role, State, Status, StatusChange, TaskId, Timestamp,
};
use sabir_store::{
    Append, AppendResult, AppendTarget, Durability, MemoryStore, NewTask, Ownership, SideRow, SqliteStore, Store,
    StoreFuture, Webhook, WebhookEvents,
};

fn main() {
    divan::main();
}

/// This many appends run at the same time; the writer groups them.
const AT_ONCE: [usize; 3] = [1, 16, 64];

#[divan::bench(args = AT_ONCE)]
fn appends_durably(bencher: Bencher<'_, '_>, at_once: usize) {
    sqlite(bencher, at_once, Durability::PowerCut);
}

#[divan::bench(args = AT_ONCE)]
fn appends_for_a_killed_process(bencher: Bencher<'_, '_>, at_once: usize) {
    sqlite(bencher, at_once, Durability::Process);
}

/// As for an agent that starts after the commit: first the creation, then what the agent reported.
#[divan::bench(args = AT_ONCE)]
fn appends_in_two_steps(bencher: Bencher<'_, '_>, at_once: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = SqliteStore::open(&folder.path().join("bench.db"), Durability::Process).expect("a store");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let mut number = 0;
    let events = events();
    let events: Vec<&Event> = events.iter().collect();
    bencher.counter(ItemsCount::new(at_once)).bench_local(|| {
        let firsts: Vec<_> = (0..at_once)
            .map(|_| {
                number += 1;
                create(&store, number, &events[..1], &[])
            })
            .collect();
        runtime.block_on(async {
            let mut seconds = Vec::new();
            for first in firsts {
                let target = AppendTarget::Known(first.await.expect("it is stored").task);
                let append = Append {
                    target,
                    events: &events[1..],
                    after: 1,
                    snapshot: None,
                    side_rows: &[],
                    ownership: Ownership::default(),
                };
                seconds.push(store.append(append));
            }
            for second in seconds {
                second.await.expect("it is stored");
            }
        });
    });
}

/// The same tasks with one webhook each. The difference to `appends_for_a_killed_process` is what a webhook costs a send.
#[divan::bench(args = AT_ONCE)]
fn appends_with_a_webhook(bencher: Bencher<'_, '_>, at_once: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = SqliteStore::open(&folder.path().join("bench.db"), Durability::Process).expect("a store");
    measure(bencher, at_once, &store, &[SideRow::Webhook(Box::new(webhook()))]);
}

#[divan::bench(args = AT_ONCE)]
fn appends_in_memory(bencher: Bencher<'_, '_>, at_once: usize) {
    measure(bencher, at_once, &MemoryStore::new(), &[]);
}

fn sqlite(bencher: Bencher<'_, '_>, at_once: usize, durability: Durability) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = SqliteStore::open(&folder.path().join("bench.db"), durability).expect("a store");
    measure(bencher, at_once, &store, &[]);
}

fn measure(bencher: Bencher<'_, '_>, at_once: usize, store: &dyn Store, side_rows: &[SideRow]) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let mut number = 0;
    let events = events();
    let events: Vec<&Event> = events.iter().collect();
    bencher.counter(ItemsCount::new(at_once)).bench_local(|| {
        let appends: Vec<_> = (0..at_once)
            .map(|_| {
                number += 1;
                create(store, number, &events, side_rows)
            })
            .collect();
        runtime.block_on(async {
            for append in appends {
                append.await.expect("it is stored");
            }
        });
    });
}

fn webhook() -> Webhook {
    Webhook {
        id: PushConfigId::parse("019a1e0c-3f06-7270-8974-eead44ed7900").expect("an id"),
        url: "https://client.example.com/hooks/a2a".to_owned(),
        receiver: "https://client.example.com:443".to_owned(),
        secrets: vec![0; 64],
        dialect: Birth(1),
        events: WebhookEvents::Statuses,
    }
}

fn create(
    store: &dyn Store,
    number: u32,
    events: &[&Event],
    side_rows: &[SideRow],
) -> StoreFuture<'static, AppendResult> {
    let (owner, agent) = (Owner::anonymous(), AgentId::parse("demo").expect("an id"));
    let task = TaskId::parse(format!("task-{number}")).expect("an id");
    let context = ContextId::parse(format!("context-{number}")).expect("an id");
    let new = NewTask {
        owner: &owner,
        agent: &agent,
        task: &task,
        context: &context,
        born: Birth(1),
        key: None,
        send_digest: None,
    };
    store.append(Append {
        target: AppendTarget::New(new),
        events,
        after: 0,
        snapshot: None,
        side_rows,
        ownership: Ownership::default(),
    })
}

fn events() -> Vec<Event> {
    let message = Message {
        id: MessageId::parse("bench-1").expect("an id"),
        role: Role::User,
        parts: vec![Part::text("bench 000000000001")],
        task: None,
        context: None,
        references: vec![],
        extensions: vec![],
        metadata: None,
        request_metadata: None,
        request: None,
        answers: None,
    };
    let time = Timestamp::from_millis(1_770_000_000_000);
    let status = |state: State| {
        let is_final = state.is_terminal();
        Event::Status(StatusChange {
            status: Status { state, message: None, time },
            is_final,
            input: vec![],
            begins_turn: false,
            usage: None,
            metadata: None,
        })
    };
    let artifact = ArtifactId::parse("019a1e0c-3f06-7270-8974-eead44ed78ff").expect("an id");
    let artifact = Artifact::new(artifact, vec![Part::text("echo: bench 000000000001")]);
    vec![
        Event::Created(Created { message: message.into(), metadata: None, note: None, time }),
        status(State::Working),
        Event::Artifact(Chunk { index: 0, artifact: artifact.into(), append: false, last: true, metadata: None }),
        status(State::Completed),
    ]
}
