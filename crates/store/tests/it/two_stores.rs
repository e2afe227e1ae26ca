//! Random sequences of calls to two stores, which must answer the same, also after they are opened again.

use std::collections::HashMap;
use std::sync::Arc;

use proptest::prelude::*;
use sabir_model::{Cursor, Event, IdempotencyKey, State, Status, StatusChange, Task, Usage, Wanted, apply};
use sabir_store::{
    AppendResult, Others, Query, Retention, SideRow, Store, StoreError, TaskNo, TaskRow, UnfinishedTask,
};
use sabir_testkit::store_contract::fixture::*;

const OWNERS: [&str; 2] = ["ann", "bob"];
const AGENTS: [&str; 3] = ["echo", "other", "third"];
const TASKS: [&str; 6] = ["t0", "t1", "t2", "t3", "t4", "t5"];
const CONTEXTS: [&str; 3] = ["c0", "c1", "c2"];
const KEYS: [&str; 3] = ["k0", "k1", "k2"];

#[derive(Debug, Clone)]
pub enum StoreStep {
    Create {
        owner: usize,
        agent: usize,
        task: usize,
        context: usize,
        key: Option<usize>,
        time: i64,
        rest: Vec<EventPlan>,
    },
    /// To one of the tasks made so far; `stale` appends begin one event too early.
    Append {
        nth: usize,
        stale: bool,
        snapshot: bool,
        plan: Vec<EventPlan>,
        side_rows: Vec<SideRow>,
    },
    Sweep {
        before: Option<i64>,
        keep: Option<u64>,
    },
    Reopen,
}

#[derive(Debug, Clone)]
pub enum EventPlan {
    Status(usize, i64),
    /// A status with a message, and with input messages for the history; all given by their lengths.
    Messages {
        state: usize,
        time: i64,
        text: Option<usize>,
        input: Vec<usize>,
    },
    Chunks(usize),
}

fn plan() -> impl Strategy<Value = EventPlan> {
    // Some are too long for the row.
    let length = || prop_oneof![6 => 0..40usize, 2 => 400..1_500usize, 1 => 3_000..6_000usize];
    let messages = (0..8usize, 0..40i64, proptest::option::of(length()), proptest::collection::vec(length(), 0..3));
    prop_oneof![
        3 => (0..8usize, 0..40i64).prop_map(|(state, time)| EventPlan::Status(state, time)),
        3 => messages.prop_map(|(state, time, text, input)| EventPlan::Messages { state, time, text, input }),
        2 => (1..12usize).prop_map(EventPlan::Chunks),
    ]
}

fn side_row() -> impl Strategy<Value = SideRow> {
    prop_oneof![
        (0..9usize).prop_map(|length| SideRow::InboxAdd(message(&"x".repeat(length)).into())),
        (0..3usize).prop_map(SideRow::InboxTake),
        (0..3usize).prop_map(SideRow::InboxTakeAt),
        (0..4usize, proptest::option::of(0..OWNERS.len())).prop_map(|(n, sender)| {
            let (key, sender) = (IdempotencyKey::parse(format!("k{n}")).unwrap(), sender.map(|at| owner(OWNERS[at])));
            SideRow::Key(sabir_store::SentKey { key, sender })
        }),
        proptest::option::of(0..9usize).prop_map(|length| SideRow::AgentState(length.map(|length| "s".repeat(length)))),
        Just(SideRow::CancelRequested),
        (0..3u32).prop_map(SideRow::Attempts),
    ]
}

/// One step of a story.
pub fn step() -> impl Strategy<Value = StoreStep> {
    let key = proptest::option::of(0..KEYS.len());
    let rest = proptest::collection::vec(plan(), 0..3);
    let create = (0..OWNERS.len(), 0..AGENTS.len(), 0..TASKS.len(), 0..CONTEXTS.len(), key, 0..40i64, rest);
    let append = (
        0..100usize,
        (proptest::bool::weighted(0.1), proptest::bool::weighted(0.4)),
        proptest::collection::vec(plan(), 0..3),
        proptest::collection::vec(side_row(), 0..3),
    );
    let sweep = (proptest::option::of(0..40i64), proptest::option::of(0..10u64));
    prop_oneof![
        6 => create.prop_map(|(owner, agent, task, context, key, time, rest)| StoreStep::Create {
            owner, agent, task, context, key, time, rest,
        }),
        8 => append.prop_map(|(nth, (stale, snapshot), plan, side_rows)| StoreStep::Append {
            nth, stale, snapshot, plan, side_rows,
        }),
        1 => sweep.prop_map(|(before, keep)| StoreStep::Sweep { before, keep }),
        1 => Just(StoreStep::Reopen),
    ]
}

fn events_of(plan: &[EventPlan]) -> Vec<Event> {
    let mut events = Vec::new();
    for plan in plan {
        match plan {
            EventPlan::Status(state, time) => events.push(status(State::ALL[*state], *time)),
            EventPlan::Messages { state, time, text, input } => {
                let Event::Status(change) = status(State::ALL[*state], *time) else { unreachable!() };
                let message = |length: &usize| Arc::new(message(&"x".repeat(*length)));
                let usage = text.map(|length| Usage { input_tokens: length as u64, output_tokens: 1 });
                let status = Status { message: text.as_ref().map(message), ..change.status };
                let input = input.iter().map(message).collect();
                events.push(Event::Status(StatusChange { status, input, usage, ..change }));
            }
            EventPlan::Chunks(count) => events.extend((0..*count).map(|number| chunk(&number.to_string()))),
        }
    }
    events
}

/// A store, and how it is opened again.
pub struct OpenedStore<'a> {
    store: Option<Box<dyn Store>>,
    /// `None`: it forgets everything when it is closed, so it stays open.
    open: Option<&'a dyn Fn() -> Box<dyn Store>>,
}

impl<'a> OpenedStore<'a> {
    pub fn kept_open(store: impl Store) -> Self {
        Self { store: Some(Box::new(store)), open: None }
    }

    pub fn opened_by(open: &'a dyn Fn() -> Box<dyn Store>) -> Self {
        Self { store: Some(open()), open: Some(open) }
    }

    fn store(&self) -> &dyn Store {
        self.store.as_deref().expect("it is closed only while it is opened again")
    }

    fn reopen(&mut self) {
        if let Some(open) = self.open {
            self.store = None;
            self.store = Some(open());
        }
    }
}

/// Two stores, and the numbers that each has given to the tasks.
struct BothStores<'a> {
    one: OpenedStore<'a>,
    other: OpenedStore<'a>,
    made: Vec<(TaskNo, TaskNo)>,
}

/// Takes the steps in both stores, and compares all that they answer.
pub async fn tell_the_same_story(one: OpenedStore<'_>, other: OpenedStore<'_>, steps: &[StoreStep]) {
    let mut stores = BothStores { one, other, made: Vec::new() };
    for step in steps {
        stores.take(step).await;
    }
    stores.compare().await;
}

impl BothStores<'_> {
    async fn take(&mut self, step: &StoreStep) {
        let (one, other) = (self.one.store(), self.other.store());
        match step {
            StoreStep::Create { owner, agent, task, context, key, time, rest } => {
                let name = [OWNERS[*owner], AGENTS[*agent], TASKS[*task], CONTEXTS[*context]];
                let (key, events) = (key.map(|key| KEYS[key]), events_of(rest));
                let ours = start(one, name, key, *time, &events).await;
                let theirs = start(other, name, key, *time, &events).await;
                if let (Ok(ours), Ok(theirs)) = (&ours, &theirs) {
                    self.made.push((ours.task, theirs.task));
                }
                assert_eq!(say(ours), say(theirs));
            }
            StoreStep::Append { nth, stale, snapshot, plan, side_rows } => {
                let Some((ours, theirs)) = self.made.get(nth % self.made.len().max(1)) else { return };
                let events = events_of(plan);
                let ours = append(one, *ours, [*stale, *snapshot], &events, side_rows).await;
                let theirs = append(other, *theirs, [*stale, *snapshot], &events, side_rows).await;
                assert_eq!(say(ours), say(theirs));
            }
            StoreStep::Sweep { before, keep } => {
                let retention = Retention { settled_before: before.map(at), keep: *keep, pending_after: None };
                let ours = sweep_all(one, retention).await;
                assert_eq!(ours, sweep_all(other, retention).await);
            }
            StoreStep::Reopen => {
                self.one.reopen();
                self.other.reopen();
            }
        }
    }

    /// Compares everything that both stores answer.
    async fn compare(&self) {
        let ours = StoreView::of(self.one.store()).await;
        assert_eq!(ours, StoreView::of(self.other.store()).await);
        assert_eq!(ours.total as usize, ours.rows.len());
    }
}

async fn append(
    store: &dyn Store,
    no: TaskNo,
    [stale, snapshot]: [bool; 2],
    events: &[Event],
    side_rows: &[SideRow],
) -> Result<AppendResult, StoreError> {
    let Some(mut task) = store.load(no).await.unwrap() else { return push(store, no, 1, events).await };
    let after = task.seq - u64::from(stale);
    for event in events {
        apply(&mut task, event);
    }
    push_with(store, no, after, events, snapshot.then_some(&task), side_rows).await
}

/// Everything that a store answers, without its own numbers.
#[derive(Debug, Default, PartialEq)]
struct StoreView {
    rows: HashMap<String, (TaskRow, Task, Vec<Event>, usize)>,
    anywhere: Vec<Option<TaskRow>>,
    keyed: Vec<Option<TaskRow>>,
    waiting: Vec<Vec<TaskRow>>,
    waiting_since: Vec<Vec<TaskRow>>,
    conversations: Vec<Vec<Task>>,
    remembered: Vec<Option<String>>,
    unfinished: Vec<UnfinishedTask>,
    pages: Vec<(Vec<Task>, bool, u64)>,
    total: u64,
}

fn plain(mut row: TaskRow) -> TaskRow {
    row.no = TaskNo(0);
    row
}

impl StoreView {
    async fn of(store: &dyn Store) -> Self {
        let mut view = Self::default();
        for of in OWNERS {
            view.add_tasks(store, of).await;
            view.add_contexts(store, of).await;
            view.add_lists(store, of).await;
            view.total += list(store, all_of(of)).await.total;
        }
        for pending in store.unfinished().await.unwrap() {
            view.unfinished.push(UnfinishedTask { row: plain(pending.row), ..pending });
        }
        for (before, limit) in [(0, 9), (15, 2), (25, 9), (99, 9)] {
            let waiting = store.waiting_since(at(before), limit).await.unwrap();
            view.waiting_since.push(waiting.into_iter().map(plain).collect());
        }
        view
    }

    async fn add_tasks(&mut self, store: &dyn Store, of: &str) {
        for id in TASKS {
            self.anywhere.push(find(store, of, None, id).await.map(plain));
            for by in AGENTS {
                let Some(row) = find(store, of, Some(by), id).await else { continue };
                let task = load(store, row.no).await;
                assert_eq!(task, fold(store, &row).await);
                assert_eq!((task.status.state, task.status.time, task.seq), (row.state, row.time, row.seq));
                let inbox = store.inbox(row.no).await.unwrap().len();
                let log = events(store, row.no).await;
                self.rows.insert(format!("{of} {by} {id}"), (plain(row), task, log, inbox));
            }
        }
    }

    async fn add_contexts(&mut self, store: &dyn Store, of: &str) {
        for by in AGENTS {
            for name in KEYS {
                let found = store.find_by_key(&owner(of), &agent(by), &key(name)).await.unwrap();
                self.keyed.push(found.map(plain));
            }
            for place in CONTEXTS {
                let (of, by, place) = (owner(of), agent(by), context(place));
                let waiting = store.waiting(&of, &by, &place).await.unwrap();
                self.waiting.push(waiting.into_iter().map(plain).collect());
                for max_bytes in [usize::MAX, 2_000] {
                    self.conversations.push(store.conversation(&of, &by, &place, 2, max_bytes).await.unwrap());
                }
                self.remembered.push(store.agent_state(&of, &by, &place).await.unwrap());
            }
        }
    }

    async fn add_lists(&mut self, store: &dyn Store, of: &str) {
        let from = Cursor { time: at(20), task: task("t3"), agent: agent("echo"), number: None };
        for by in [None, Some("echo")] {
            for place in [None, Some("c1")] {
                for state in [None, Some(State::Completed), Some(State::Working), Some(State::Failed)] {
                    for since in [None, Some(15)] {
                        for from in [None, Some(&from)] {
                            let query = Query {
                                agent: by.map(agent),
                                context: place.map(context),
                                state,
                                since: since.map(at),
                                from: from.cloned(),
                                limit: 2,
                                ..all_of(of)
                            };
                            self.add_page(store, query).await;
                        }
                    }
                }
            }
        }
        for others in [Others::All, Others::ForApproval(vec![(agent("echo"), "ops".to_owned())])] {
            for state in [None, Some(State::Completed), Some(State::Working)] {
                for place in [None, Some("c1")] {
                    for own_agents in
                        [None, Some(vec![agent("echo")])].into_iter().take(if others == Others::All { 1 } else { 2 })
                    {
                        let (others, context) = (others.clone(), place.map(context));
                        let query = Query { others, own_agents, state, context, limit: 3, ..all_of(of) };
                        self.add_page(store, query).await;
                    }
                }
            }
        }
        for artifacts in [Wanted::Yes, Wanted::No] {
            for history in [None, Some(0), Some(1), Some(3)] {
                for max_bytes in [usize::MAX, 2_000] {
                    self.add_page(store, Query { artifacts, history, max_bytes, ..all_of(of) }).await;
                }
            }
        }
    }

    async fn add_page(&mut self, store: &dyn Store, query: Query) {
        let page = list(store, query).await;
        self.pages.push((page.tasks, page.more, page.total));
    }
}
