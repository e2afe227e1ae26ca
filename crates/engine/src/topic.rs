//! A task that somebody works on or watches: what is known of it in memory.
//!
//! It holds only what is stored. The driver puts events in after their commit; readers take them out
//! by their cursor, from the tail while they keep up and from the store when they fell behind, so
//! the tail can be short and nobody is ever dropped.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use sabir_model::{
    AgentId, Event, IdempotencyKey, Message, Owner, Recorded, Seq, State, Task, TaskBirth, TaskId, apply,
};
use sabir_store::{Store, TaskNo};
use tokio::sync::{OnceCell, mpsc, oneshot};

use crate::Entry;
use crate::beacon::Beacon;
use crate::flight::Ticket;
use crate::sharded::lock;

const TAIL_ENTRIES: usize = 512;
const TAIL_WEIGHT: usize = 512 * 1024;
/// What a reader takes at once.
const BATCH_ENTRIES: usize = 256;
const BATCH_WEIGHT: usize = 256 * 1024;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct TopicKey {
    pub(crate) owner: Owner,
    pub(crate) agent: AgentId,
    pub(crate) task: TaskId,
}

pub(crate) struct Topic {
    pub(crate) key: TopicKey,
    held: Mutex<Held>,
    mark: Beacon<Mark>,
    loaded: OnceCell<()>,
}

#[derive(Default)]
struct Held {
    no: Option<TaskNo>,
    task: Option<Arc<Task>>,
    tail: VecDeque<Arc<Entry>>,
    tail_weight: usize,
    run: Option<mpsc::UnboundedSender<Control>>,
}

/// How far the log has come, and whether more is to be expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) seq: Seq,
    pub(crate) rest: Rest,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest {
    /// A run works or is due.
    Busy,
    /// A run waits for its caller's answer.
    Parked,
    /// Nobody works; the next message starts a turn.
    Waiting,
    Finished,
}

/// What a driver is told while it has the task.
pub(crate) enum Control {
    /// In a box, since a channel has room for many of the largest: every running task would pay for it.
    Deliver(Box<Delivered>),
    Cancel {
        done: oneshot::Sender<Result<(), sabir_model::Error>>,
    },
    /// The server stops: settle by policy.
    Settle,
}

/// A message for a task that a driver has.
pub(crate) struct Delivered {
    pub(crate) message: Arc<Message>,
    pub(crate) key: Option<IdempotencyKey>,
    pub(crate) tickets: Vec<Ticket>,
    pub(crate) done: oneshot::Sender<Result<(), sabir_model::Error>>,
}

/// What a reader finds at its cursor.
pub(crate) enum Found {
    Entries(Vec<Arc<Entry>>),
    /// It is too far back for the tail: ask the store.
    Behind(TaskNo),
    /// Nothing new.
    Nothing,
}

impl Topic {
    pub(crate) fn new(key: TopicKey) -> Self {
        let mark = Beacon::new(Mark { seq: 0, rest: Rest::Busy });
        Self { key, held: Mutex::default(), mark, loaded: OnceCell::new() }
    }

    /// Brings in what the store knows, once. `false`: the store knows no such task.
    pub(crate) async fn load(&self, store: &dyn Store) -> Result<bool, sabir_store::StoreError> {
        let loaded = self
            .loaded
            .get_or_try_init(|| async {
                let row = store.find(&self.key.owner, Some(&self.key.agent), &self.key.task).await;
                let Some(row) = row.map_err(Some)? else { return Err(None) };
                let Some(task) = store.load(row.no).await.map_err(Some)? else { return Err(None) };
                let mut held = lock(&self.held);
                held.no = Some(row.no);
                // The driver of a task that is just being made may have been faster.
                if held.task.is_none() {
                    self.mark.set(Mark { seq: task.seq, rest: rest_of(&task, held.run.is_some()) });
                    held.task = Some(Arc::new(task));
                }
                Ok(())
            })
            .await;
        match loaded {
            Ok(()) => Ok(true),
            Err(None) => Ok(false),
            Err(Some(error)) => Err(error),
        }
    }

    /// The task as of its last stored event.
    pub(crate) fn task(&self) -> Option<Arc<Task>> {
        lock(&self.held).task.clone()
    }

    /// Looks at the task without copying it. `None` until its first event is stored.
    pub(crate) fn look<T>(&self, at: impl FnOnce(&Task) -> T) -> Option<T> {
        lock(&self.held).task.as_deref().map(at)
    }

    pub(crate) fn no(&self) -> Option<TaskNo> {
        lock(&self.held).no
    }

    pub(crate) fn mark(&self) -> Mark {
        self.mark.get()
    }

    /// Waits until the mark is like this.
    pub(crate) async fn until(&self, is_so: impl FnMut(&Mark) -> bool) -> Mark {
        self.mark.until(is_so).await
    }

    /// Shows what has just been stored.
    pub(crate) fn show(
        &self,
        no: TaskNo,
        birth: Option<&TaskBirth>,
        entries: &[Arc<Entry>],
        rest: impl FnOnce(&Task) -> Rest,
    ) {
        let mark = {
            let mut held = lock(&self.held);
            held.no = Some(no);
            for entry in entries {
                held.fold(&self.key.task, birth, entry);
                held.keep(entry.clone());
            }
            held.task.as_ref().map(|task| Mark { seq: task.seq, rest: rest(task) })
        };
        if !self.loaded.initialized() {
            // Somebody may be loading at this moment; then the same is set by them.
            let _ = self.loaded.set(());
        }
        if let Some(mark) = mark {
            self.mark.set(mark);
        }
    }

    /// Waits until the first event is stored, or will not be.
    pub(crate) async fn until_stored(&self) {
        self.until(|mark| mark.seq > 0 || mark.rest == Rest::Finished).await;
    }

    /// Says that a run is due, before anything of it is stored.
    pub(crate) fn expect_more(&self) {
        self.mark.modify(|mark| mark.rest = Rest::Busy);
    }

    /// Takes the task for a new driver, unless one has it: then the one who has it is returned.
    pub(crate) fn take(&self) -> Result<mpsc::UnboundedReceiver<Control>, mpsc::UnboundedSender<Control>> {
        let mut held = lock(&self.held);
        match &held.run {
            Some(run) => Err(run.clone()),
            None => {
                let (sender, receiver) = mpsc::unbounded_channel();
                held.run = Some(sender);
                Ok(receiver)
            }
        }
    }

    pub(crate) fn driver(&self) -> Option<mpsc::UnboundedSender<Control>> {
        lock(&self.held).run.clone()
    }

    /// The driver lets the task go. Whatever was sent to it too late is answered by dropping it, and its
    /// sender tries again.
    pub(crate) fn release(&self) {
        lock(&self.held).run = None;
    }

    /// The task will not come to be: its first append failed.
    pub(crate) fn abandon(&self) {
        self.release();
        self.mark.modify(|mark| mark.rest = Rest::Finished);
    }

    /// What was expected does not come: the task is as it was.
    pub(crate) fn rest_on(&self) {
        if let Some(rest) = self.look(|task| rest_of(task, false)) {
            self.mark.modify(|mark| mark.rest = rest);
        }
    }

    pub(crate) fn after(&self, cursor: Seq) -> Found {
        let held = lock(&self.held);
        let (Some(no), Some(task)) = (held.no, &held.task) else { return Found::Nothing };
        if cursor >= task.seq {
            return Found::Nothing;
        }
        let Some(first) = held.tail.front() else { return Found::Behind(no) };
        if cursor + 1 < first.seq {
            return Found::Behind(no);
        }
        let from = (cursor + 1 - first.seq) as usize;
        let mut weight = 0;
        let entries: Vec<Arc<Entry>> = held
            .tail
            .range(from..)
            .take(BATCH_ENTRIES)
            .take_while(|entry| {
                let fits = weight < BATCH_WEIGHT;
                weight += entry.weight();
                fits
            })
            .cloned()
            .collect();
        Found::Entries(entries)
    }
}

impl Held {
    fn fold(&mut self, id: &TaskId, birth: Option<&TaskBirth>, entry: &Entry) {
        match (&mut self.task, &entry.event, birth) {
            (Some(task), event, _) if entry.seq == task.seq + 1 => apply(Arc::make_mut(task), event),
            (Some(_), _, _) => {}
            (None, Event::Created(created), Some(birth)) => {
                self.task = Some(Arc::new(Task::create(id.clone(), birth.clone(), created.clone())));
            }
            (None, _, _) => {}
        }
    }

    fn keep(&mut self, entry: Arc<Entry>) {
        self.tail_weight += entry.weight();
        self.tail.push_back(entry);
        while self.tail.len() > TAIL_ENTRIES || (self.tail_weight > TAIL_WEIGHT && self.tail.len() > 1) {
            if let Some(old) = self.tail.pop_front() {
                self.tail_weight -= old.weight();
            }
        }
    }
}

pub(crate) fn rest_of(task: &Task, has_run: bool) -> Rest {
    match task.status.state {
        state if state.is_terminal() => Rest::Finished,
        State::InputRequired | State::AuthRequired if !task.turn_over => Rest::Parked,
        State::InputRequired | State::AuthRequired if !has_run => Rest::Waiting,
        _ => Rest::Busy,
    }
}

/// Entries that came from the store, for a reader who fell behind.
pub(crate) fn entries_of(recorded: Vec<Recorded>) -> Vec<Arc<Entry>> {
    recorded.into_iter().map(|recorded| Arc::new(Entry::new(recorded.seq, recorded.event))).collect()
}
