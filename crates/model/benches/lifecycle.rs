//! The rules of a task's life by themselves: `cargo bench -p sabir-model`.

use divan::{Bencher, black_box};
use sabir_model::{
    AgentId, Artifact, ArtifactId, Birth, Command, ContextId, Created, Event, Message, MessageId, Outcome, Owner, Part,
    Role, Standing, Task, TaskBirth, TaskId, Timestamp, apply, decide,
};

fn main() {
    divan::main();
}

/// A run takes up the task, makes a chunk, ends: one `decide` each.
#[divan::bench(args = ["begin", "make", "finish"])]
fn decides(bencher: Bencher<'_, '_>, what: &str) {
    let task = working();
    let standing = task.standing();
    let command = || match what {
        "begin" => Command::Begin { input: vec![] },
        "make" => Command::Make { artifact: artifact().into(), append: false, last: true, metadata: None },
        _ => Command::Finish { outcome: Outcome::Completed(None), usage: None, unread: vec![] },
    };
    bencher.with_inputs(command).bench_values(|command| decide(black_box(&standing), command, now()));
}

/// One more chunk for a task that has this many already.
#[divan::bench(args = [0, 100, 10_000])]
fn applies_a_chunk(bencher: Bencher<'_, '_>, before: u64) {
    let mut task = working();
    let mut standing = task.standing();
    let mut next = |task: &mut Task, append| {
        let command = Command::Make { artifact: artifact().into(), append, last: false, metadata: None };
        let events = decide(&standing, command, now());
        for event in &events {
            standing.follow(event);
            apply(task, event);
        }
        events
    };
    for chunk in 0..before {
        next(&mut task, chunk > 0);
    }
    let events: Vec<Event> = next(&mut task, before > 0);
    bencher.with_inputs(|| task.clone()).bench_refs(|task| apply(task, black_box(&events[0])));
}

/// A task from its first message to its end, decided and folded.
#[divan::bench]
fn lives(bencher: Bencher<'_, '_>) {
    bencher.bench(|| {
        let mut task = submitted();
        let mut standing: Standing = task.standing();
        for command in [
            Command::Begin { input: vec![] },
            Command::Make { artifact: artifact().into(), append: false, last: true, metadata: None },
            Command::Finish { outcome: Outcome::Completed(None), usage: None, unread: vec![] },
        ] {
            for event in decide(&standing, command, now()) {
                standing.follow(&event);
                apply(&mut task, &event);
            }
        }
        task
    });
}

fn submitted() -> Task {
    let message = Message {
        id: MessageId::parse("bench-000000000001").expect("an id"),
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
    let birth = TaskBirth {
        context: ContextId::parse("019a1e0c-3f06-7270-8974-eeab62b9e3da").expect("an id"),
        agent: AgentId::parse("demo").expect("an id"),
        owner: Owner::anonymous(),
        born: Birth(1),
    };
    let id = TaskId::parse("019a1e0c-3f06-7270-8974-eeac97a3d228").expect("an id");
    Task::create(id, birth, Created { message: message.into(), metadata: None, note: None, time: now() })
}

fn working() -> Task {
    let mut task = submitted();
    let begun = decide(&task.standing(), Command::Begin { input: vec![] }, now());
    apply(&mut task, &begun[0]);
    task
}

fn artifact() -> Artifact {
    let id = ArtifactId::parse("019a1e0c-3f06-7270-8974-eead44ed78ff").expect("an id");
    Artifact { name: Some("result".into()), ..Artifact::new(id, vec![Part::text("echo: bench 000000000001")]) }
}

fn now() -> Timestamp {
    Timestamp::from_millis(1_770_000_000_000)
}
