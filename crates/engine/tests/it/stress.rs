//! Stress: many tasks that get messages, are watched, are canceled and are left by their senders, on several threads.
//! Whatever the order, at the end every task is at rest, no event number is missing and nothing is left over.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sabir_engine::{AgentError, Answer, ArtifactUpdate, Batch, EngineSettings, Limits, Outcome, Subscription, Turn};
use sabir_model::{
    Artifact, Call, Delivery, Error, IdempotencyKey, List, Part, Required, Send, Seq, State, Task, TaskId, Wanted,
};
use sabir_store::{Durability, MemoryStore, SqliteStore, Store};
use sabir_testkit::faulty::FaultyStore;
use sabir_testkit::scripted::ScriptedAgent;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

use crate::fixture::{Fixture, at_once, stream_of, task_of, text, to, within};

/// Only a task that hangs takes this long.
const PATIENCE: Duration = Duration::from_secs(30);
const STEPS: usize = 8;

struct Dice(u64);

impl Dice {
    /// Each has its own sequence, which is the same in every run.
    fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(1);
        Self(COUNT.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }
}

/// Reports progress, remembers, pauses and asks at random.
fn fickle() -> ScriptedAgent {
    ScriptedAgent::new(|turn: Turn| async move {
        let mut dice = Dice::new();
        let id = turn.new_artifact_id();
        for _ in 0..dice.below(40) {
            match dice.below(6) {
                0 => turn.progress("p").await,
                1 => tokio::task::yield_now().await,
                2 => sleep(Duration::from_millis(dice.below(3))).await,
                3 => turn.remember(Some("m".into())).await,
                _ => {
                    let artifact = Artifact::new(id.clone(), vec![Part::text("word ")]);
                    turn.artifact_update(ArtifactUpdate::new(artifact).append(true)).await;
                }
            }
            if turn.is_cancelled() {
                return Ok(Outcome::Canceled(Vec::new()));
            }
        }
        if dice.below(5) == 0 {
            turn.ask(Required::Input, vec![Part::text("?")]).await?;
        }
        Ok::<_, AgentError>(match dice.below(10) {
            0 => Outcome::Failed(Vec::new()),
            1..5 => Outcome::InputRequired(Vec::new()),
            _ => Outcome::Completed(vec![Part::text("done")]),
        })
    })
}

/// Reads this many batches and checks that no event number is missing or repeated.
async fn watch(mut stream: Subscription, mut last: Option<Seq>, batches: u64) {
    for batch in 0..batches {
        match timeout(PATIENCE, stream.next()).await.expect("a stream ends") {
            None => return,
            Some(Ok(Batch::Snapshot(task))) => last = Some(task.seq),
            Some(Ok(Batch::Events(entries))) => {
                for entry in entries {
                    assert!(last.is_none_or(|last| entry.seq == last + 1), "{} after {last:?}", entry.seq);
                    last = Some(entry.seq);
                }
            }
            Some(Err(error)) => panic!("{error}"),
        }
        if batch % 7 == 0 {
            sleep(Duration::from_millis(batch % 5)).await;
        }
    }
}

/// A caller with one task.
struct StressCaller {
    fixture: Arc<Fixture>,
    number: usize,
    callers: usize,
    dice: Dice,
    watchers: Vec<JoinHandle<()>>,
}

impl StressCaller {
    /// Sends a message; `None`: the task is finished or the store is full.
    async fn send(&self, send: Send) -> Option<Answer> {
        match timeout(PATIENCE, self.fixture.send(send)).await.expect("a sender is answered") {
            Ok(answer) => Some(answer),
            Err(Error::TaskFinished(_) | Error::StoreFull) => None,
            Err(error) => panic!("{error}"),
        }
    }

    async fn create(&mut self) -> Option<TaskId> {
        let callers = self.callers as u64;
        let mut first = within(&format!("c{}", self.dice.below(callers)), at_once("go"));
        if self.dice.below(2) == 0 {
            first.idempotency = Some(key(format!("k{}", self.dice.below(callers / 2))));
        }
        self.send(first).await.map(|answer| task_of(answer).id)
    }

    fn watch(&mut self, stream: Subscription, last: Option<Seq>) {
        let batches = self.dice.below(300);
        self.watchers.push(tokio::spawn(watch(stream, last, batches)));
    }

    async fn step(&mut self, task: &TaskId) {
        match self.dice.below(10) {
            0 => {
                if self.dice.below(3) == 0 {
                    let _ = timeout(PATIENCE, self.fixture.cancel(task)).await.expect("a cancel is answered");
                }
            }
            1 | 2 => {
                let stream = self.fixture.subscribe(task, Some(0)).await.unwrap();
                self.watch(stream, Some(0));
            }
            3 => {
                if let Ok(stream) = self.fixture.subscribe(task, None).await {
                    self.watch(stream, None);
                }
            }
            4 => {
                let impatience = Duration::from_micros(self.dice.below(3000));
                let _ = timeout(impatience, self.fixture.send(to(task, text("hung up")))).await;
            }
            5 => {
                let key = key(format!("d{}-{}", self.number, self.dice.below(2)));
                self.send(Send { idempotency: Some(key), ..to(task, at_once("keyed")) }).await;
            }
            6 => drop(self.send(to(task, text("more"))).await),
            7 => {
                let send = Send { delivery: Delivery::Stream, ..to(task, text("streamed")) };
                if let Some(answer) = self.send(send).await {
                    self.watch(stream_of(answer), None);
                }
            }
            _ => sleep(Duration::from_micros(self.dice.below(4000))).await,
        }
    }

    /// Answers questions for a while, then cancels.
    async fn end(&mut self, task: &TaskId) {
        loop {
            for _ in 0..3 {
                self.send(to(task, text("end"))).await;
            }
            match timeout(PATIENCE, self.fixture.cancel(task)).await.expect("a cancel is answered") {
                Ok(_) | Err(Error::NotCancelable(_)) => return,
                // The cancel could not be stored; the next one will be.
                Err(Error::StoreFull) => sleep(Duration::from_millis(1)).await,
                Err(error) => panic!("{error}"),
            }
        }
    }

    async fn work(mut self) -> Option<TaskId> {
        let task = self.create().await?;
        for _ in 0..STEPS {
            self.step(&task).await;
        }
        self.end(&task).await;
        for watcher in std::mem::take(&mut self.watchers) {
            watcher.await.unwrap();
        }
        Some(task)
    }
}

fn key(key: String) -> IdempotencyKey {
    IdempotencyKey::parse(key).unwrap()
}

async fn check(store: Arc<dyn Store>, callers: usize) {
    let limits = Limits::default().concurrent(50);
    let fixture = Arc::new(Fixture::on(store, fickle(), limits, EngineSettings::default()).await);
    let mut work = JoinSet::new();
    for number in 0..callers {
        let caller =
            StressCaller { fixture: fixture.clone(), number, callers, dice: Dice::new(), watchers: Vec::new() };
        work.spawn(caller.work());
    }
    let mut tasks: Vec<TaskId> = work.join_all().await.into_iter().flatten().collect();
    tasks.sort();
    tasks.dedup();
    assert!(!tasks.is_empty());
    let mut states = Vec::new();
    for id in &tasks {
        let task = fixture.get(id).await;
        nothing_is_left_over(&fixture, &task).await;
        states.push(task.status.state);
    }
    for state in State::ALL {
        let count = states.iter().filter(|each| **each == state).count();
        assert_eq!(tally(&fixture, state).await, count as u64, "{state:?}");
    }
}

async fn nothing_is_left_over(fixture: &Fixture, task: &Task) {
    assert!(task.status.state.is_terminal(), "{} is {:?}", task.id, task.status.state);
    let row = fixture.store.find(&task.owner, None, &task.id).await.unwrap().unwrap();
    let unread = fixture.store.inbox(row.no).await.unwrap();
    assert!(unread.is_empty(), "{} is {:?} and has unread messages: {unread:?}", task.id, task.status.state);
    let events = fixture.store.events(row.no, 0, usize::from(u16::MAX)).await.unwrap();
    let numbers: Vec<Seq> = events.iter().map(|recorded| recorded.seq).collect();
    assert_eq!(numbers, (1..=task.seq).collect::<Vec<_>>());
}

async fn tally(fixture: &Fixture, state: State) -> u64 {
    let list = List {
        agent: None,
        context: None,
        state: Some(state),
        since: None,
        page_size: 1,
        from: None,
        history: None,
        artifacts: Wanted::No,
    };
    match fixture.call(Call::List(list)).await.unwrap() {
        Answer::Page(page) => page.total,
        _ => panic!("expected a page"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn in_memory() {
    for _ in 0..2 {
        check(Arc::new(MemoryStore::new()), 300).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn in_sqlite() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("stress-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let store = SqliteStore::open(&folder.join("sabir.db"), Durability::Process).unwrap();
    check(Arc::new(store), 200).await;
    std::fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn in_a_store_that_is_full_now_and_then() {
    let store = Arc::new(FaultyStore::new(MemoryStore::new()));
    let disk = store.clone();
    let weather = tokio::spawn(async move {
        let mut dice = Dice::new();
        loop {
            sleep(Duration::from_millis(dice.below(40))).await;
            disk.slow_down(Duration::from_millis(dice.below(3)));
            disk.fill();
            sleep(Duration::from_millis(dice.below(4))).await;
            disk.make_room();
        }
    });
    check(store, 300).await;
    weather.abort();
}
