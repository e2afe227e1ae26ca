//! The cost of reads: `cargo bench -p sabir-store --bench read`.
//!
//! Pages of 50 short tasks among many, of tasks with large artifacts, and of tasks that still run and have a long log.

use divan::Bencher;
use sabir_model::{
    AgentId, Artifact, ArtifactId, Birth, Chunk, ContextId, Created, Event, Message, MessageId, Owner, Part, Role,
    State, Status, StatusChange, TaskId, Timestamp, Wanted, apply,
};
use sabir_store::{Append, AppendTarget, Durability, NewTask, Ownership, Query, SqliteStore, Store};
use tempfile::TempDir;
use tokio::runtime::Runtime;

fn main() {
    divan::main();
}

const SHORT: usize = 20_000;

#[divan::bench]
fn page_of_short_tasks(bencher: Bencher<'_, '_>) {
    let files = Files::new();
    for number in 0..SHORT {
        files.create(number, &[working(), artifact(0, "echo: bench 000000000001", false), completed()]);
    }
    files.measure_page(bencher, query(50));
}

#[divan::bench]
fn page_of_large_artifacts(bencher: Bencher<'_, '_>) {
    let files = Files::new();
    let text = "0123456789".repeat(38_000);
    for number in 0..50 {
        files.create(number, &[working(), artifact(0, &text, false), completed()]);
    }
    files.measure_page(bencher, query(50));
}

#[divan::bench(sample_count = 10)]
fn page_of_running_tasks(bencher: Bencher<'_, '_>) {
    let files = Files::new();
    for number in 0..20 {
        files.stream(number, 20_000);
    }
    files.measure_page(bencher, query(50));
}

#[divan::bench]
fn one_short_task(bencher: Bencher<'_, '_>) {
    let files = Files::new();
    for number in 0..SHORT {
        files.create(number, &[working(), artifact(0, "echo: bench 000000000001", false), completed()]);
    }
    let mut number = 0;
    bencher.bench_local(|| {
        number = (number + 7_919) % SHORT;
        let got = files.store.get(&Owner::anonymous(), Some(&agent()), &task(number));
        files.runtime.block_on(got).expect("a lookup").expect("the task")
    });
}

#[divan::bench]
fn row_of_one_task(bencher: Bencher<'_, '_>) {
    let files = Files::new();
    for number in 0..SHORT {
        files.create(number, &[working(), artifact(0, "echo: bench 000000000001", false), completed()]);
    }
    let mut number = 0;
    bencher.bench_local(|| {
        number = (number + 7_919) % SHORT;
        let found = files.store.find(&Owner::anonymous(), Some(&agent()), &task(number));
        files.runtime.block_on(found).expect("a lookup").expect("the task")
    });
}

#[divan::bench(sample_count = 10)]
fn start_with_many_waiting_tasks(bencher: Bencher<'_, '_>) {
    let files = Files::new();
    for number in 0..SHORT {
        files.create(number, &[working(), status(State::InputRequired)]);
    }
    bencher.bench_local(|| {
        let unfinished = files.runtime.block_on(files.store.unfinished()).expect("a start");
        assert_eq!(unfinished.len(), SHORT);
    });
}

#[divan::bench(sample_count = 20)]
fn opening_a_file(bencher: Bencher<'_, '_>) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("bench.db");
    drop(SqliteStore::open(&path, Durability::Process).expect("a store"));
    bencher.bench_local(|| SqliteStore::open(&path, Durability::Process).expect("a store"));
}

struct Files {
    store: SqliteStore,
    runtime: Runtime,
    _folder: TempDir,
}

impl Files {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let store = SqliteStore::open(&folder.path().join("bench.db"), Durability::Process).expect("a store");
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        Self { store, runtime, _folder: folder }
    }

    /// Stores a task as the engine does: first its creation, then what the agent reported.
    fn create(&self, number: usize, later: &[Event]) {
        let creation = created();
        let (owner, agent, id, context) = (Owner::anonymous(), agent(), task(number), context(number));
        let new = NewTask {
            owner: &owner,
            agent: &agent,
            task: &id,
            context: &context,
            born: Birth(10),
            key: None,
            send_digest: None,
        };
        let append = Append {
            target: AppendTarget::New(new),
            events: &[&creation],
            after: 0,
            snapshot: None,
            side_rows: &[],
            ownership: Ownership::default(),
        };
        let made = self.runtime.block_on(self.store.append(append)).expect("it is stored");
        let events: Vec<&Event> = later.iter().collect();
        let target = AppendTarget::Known(made.task);
        let append = Append {
            target,
            events: &events,
            after: 1,
            snapshot: None,
            side_rows: &[],
            ownership: Ownership::default(),
        };
        drop(self.store.append(append));
    }

    /// A task with this much output that still runs; a snapshot is given when the log has outgrown the last one.
    fn stream(&self, number: usize, chunks: usize) {
        self.create(number, &[working()]);
        let found = self.store.find(&Owner::anonymous(), Some(&agent()), &task(number));
        let no = self.runtime.block_on(found).expect("a lookup").expect("the task").no;
        let mut folded = self.runtime.block_on(self.store.load(no)).expect("a load").expect("the task");
        let (mut snapshot_bytes, mut since) = (4_096, 0);
        for batch in 0..chunks / 40 {
            let events: Vec<Event> = (0..40).map(|at| artifact(0, "twenty bytes of text", batch + at > 0)).collect();
            for event in &events {
                apply(&mut folded, event);
                since += 180;
            }
            let events: Vec<&Event> = events.iter().collect();
            let offered = since > snapshot_bytes;
            if offered {
                (snapshot_bytes, since) = (20 * folded.seq as usize, 0);
            }
            drop(self.store.append(Append {
                target: AppendTarget::Known(no),
                events: &events,
                after: folded.seq - 40,
                snapshot: offered.then_some(&folded),
                side_rows: &[],
                ownership: Ownership::default(),
            }));
        }
    }

    fn measure_page(&self, bencher: Bencher<'_, '_>, query: Query) {
        self.runtime.block_on(self.store.check()).expect("all of it is stored");
        bencher.bench_local(|| self.runtime.block_on(self.store.list(query.clone())).expect("a page"));
    }
}

fn query(limit: usize) -> Query {
    Query {
        owner: Owner::anonymous(),
        own_agents: None,
        others: sabir_store::Others::None,
        agent: None,
        context: None,
        state: None,
        since: None,
        from: None,
        limit,
        max_bytes: 8 << 20,
        artifacts: Wanted::No,
        history: None,
    }
}

fn agent() -> AgentId {
    AgentId::parse("demo").expect("an id")
}

fn task(number: usize) -> TaskId {
    TaskId::parse(format!("019a1e0c-3f06-7270-8974-{number:012}")).expect("an id")
}

fn context(number: usize) -> ContextId {
    ContextId::parse(format!("019a1e0c-3f06-7270-8975-{number:012}")).expect("an id")
}

fn created() -> Event {
    let id = MessageId::parse("019a1e0c-3f06-7270-8974-eead44ed78fe").expect("an id");
    let message = Message::new(id, Role::User, vec![Part::text("bench 000000000001")]);
    Event::Created(Created { message: message.into(), metadata: None, note: None, time: time() })
}

fn working() -> Event {
    status(State::Working)
}

fn completed() -> Event {
    status(State::Completed)
}

fn status(state: State) -> Event {
    let is_final = state.is_terminal() || state.is_waiting();
    let status = Status { state, message: None, time: time() };
    Event::Status(StatusChange { status, is_final, input: vec![], begins_turn: false, usage: None, metadata: None })
}

fn artifact(index: u32, text: &str, append: bool) -> Event {
    let id = ArtifactId::parse("019a1e0c-3f06-7270-8974-eead44ed78ff").expect("an id");
    let artifact = Artifact::new(id, vec![Part::text(text)]);
    Event::Artifact(Chunk { index, artifact: artifact.into(), append, last: false, metadata: None })
}

fn time() -> Timestamp {
    Timestamp::from_millis(1_770_000_000_000)
}
