//! A topic: the state in memory of a task that somebody works on or watches.
//!
//! A topic holds stored events only. The driver adds events after their commit. A reader takes them by its cursor: from
//! the tail while it keeps up, from the store when it has fallen behind. So the tail can be short, and no slow reader
//! is ever disconnected.

use std::collections::VecDeque;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sabir_model::{AgentId, Event, Owner, RunState, Seq, Standing, Task, TaskBirth, TaskId, apply};
use sabir_store::{MAX_EVENTS_WITHOUT_SNAPSHOT, Store, StoreError, TaskNo};
use tokio::sync::{OnceCell, mpsc};
use tokio::time::Instant;

use crate::LogEntry;
use crate::drive::Control;
use crate::log_entry::task_weight;
use crate::log_pages::LogPages;
use crate::sharded::lock;
use crate::watch_cell::WatchCell;

const TAIL_ENTRIES: usize = 1024;
const TAIL_WEIGHT: usize = 512 * 1024;
/// The most that a reader takes at once.
const BATCH_ENTRIES: usize = 128;
const BATCH_WEIGHT: usize = 64 * 1024;
/// Reading a smaller log is cheaper than writing a snapshot of it.
const MIN_SNAPSHOT_WEIGHT: usize = 16 * 1024;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct TopicKey {
    pub(crate) owner: Owner,
    pub(crate) agent: AgentId,
    pub(crate) task: TaskId,
}

pub(crate) struct Topic {
    pub(crate) key: TopicKey,
    state: Mutex<TopicState>,
    position: WatchCell<LogPosition>,
    loaded: OnceCell<()>,
    /// For readers whose cursor is older than the tail.
    pub(crate) pages: LogPages,
    /// The weight that the topic cache counts for this topic; 0: it is not in the cache.
    pub(crate) cached_weight: AtomicUsize,
}

#[derive(Default)]
struct TopicState {
    no: Option<TaskNo>,
    task: Option<Arc<Task>>,
    /// The last driver leaves it for the next one, so that it need not be computed from the whole task.
    standing: Option<Standing>,
    /// Approximate bytes: of the whole task, of the events since the last snapshot, and of the task at that snapshot.
    weight: usize,
    log_weight: usize,
    snapshot_weight: usize,
    tail: VecDeque<Arc<LogEntry>>,
    tail_weight: usize,
    driver: Option<mpsc::UnboundedSender<Control>>,
    /// An append of the driver is in progress, so the log may have more than the topic.
    is_storing: bool,
    /// When events were last shown here.
    last_event: Option<Instant>,
    /// Why the store refuses the next events.
    failure: Option<Arc<str>>,
}

/// The last event of the log, and whether a reader can expect more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogPosition {
    pub(crate) seq: Seq,
    pub(crate) activity: TaskActivity,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskActivity {
    /// A run works, or is about to.
    Busy,
    /// A run waits for its caller's answer.
    Parked,
    /// No run; the next message starts a turn.
    Waiting,
    Finished,
    /// The store refuses the next events. Nobody knows when it will accept them.
    StoreFailing,
}

/// The result of a read at a cursor.
pub(crate) enum TailRead {
    Entries(Vec<Arc<LogEntry>>),
    /// The cursor is older than the tail: read from the store.
    Behind(TaskNo),
    /// Nothing new.
    Nothing,
}

impl Topic {
    pub(crate) fn new(key: TopicKey) -> Self {
        let position = WatchCell::new(LogPosition { seq: 0, activity: TaskActivity::Busy });
        Self {
            key,
            state: Mutex::default(),
            position,
            loaded: OnceCell::new(),
            pages: LogPages::default(),
            cached_weight: AtomicUsize::new(0),
        }
    }

    /// Loads the task from the store, once. `false`: the store has no such task.
    pub(crate) async fn load(&self, store: &dyn Store) -> Result<bool, StoreError> {
        let loaded = self
            .loaded
            .get_or_try_init(|| async {
                let row = store.find(&self.key.owner, Some(&self.key.agent), &self.key.task).await;
                let Some(row) = row.map_err(Some)? else { return Err(None) };
                let Some(task) = store.load(row.no).await.map_err(Some)? else { return Err(None) };
                let mut state = lock(&self.state);
                state.no = Some(row.no);
                // The driver of a new task may have been faster.
                if state.task.is_none() {
                    self.position
                        .set(LogPosition { seq: task.seq, activity: activity_of(&task, state.driver.is_some()) });
                    // The size of its last snapshot is unknown, so the next turn writes a new one.
                    state.weight = task_weight(&task);
                    state.log_weight = state.weight;
                    state.task = Some(Arc::new(task));
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

    /// Loads the task again. After a crash, events may be stored that were never shown; readers get those from the
    /// store.
    pub(crate) async fn reload(&self, store: &dyn Store, no: TaskNo) -> Result<(), StoreError> {
        let Some(task) = store.load(no).await? else { return Ok(()) };
        let seq = task.seq;
        {
            let mut state = lock(&self.state);
            state.no = Some(no);
            state.weight = task_weight(&task);
            state.log_weight = state.weight;
            state.task = Some(Arc::new(task));
            state.tail.clear();
            state.tail_weight = 0;
        }
        let _ = self.loaded.set(());
        self.position.modify(|position| position.seq = seq);
        Ok(())
    }

    /// Loads a task of another node again, unless it has a driver here.
    pub(crate) async fn reload_foreign(&self, store: &dyn Store, no: TaskNo, reload: Reload) -> Result<(), StoreError> {
        let Some(task) = store.load(no).await? else { return Ok(()) };
        let seq = task.seq;
        {
            let mut state = lock(&self.state);
            let is_older = state.task.as_ref().is_none_or(|known| known.seq < seq);
            if state.driver.is_some() || (reload == Reload::IfNewer && !is_older) {
                return Ok(());
            }
            state.standing = None;
            state.no = Some(no);
            state.weight = task_weight(&task);
            state.log_weight = state.weight;
            state.task = Some(Arc::new(task));
            state.tail.clear();
            state.tail_weight = 0;
        }
        self.position.modify(|position| position.seq = seq);
        Ok(())
    }

    /// Shows events that another node has stored. `false`: the task has a driver here, which shows its events itself.
    pub(crate) fn show_foreign(&self, entries: &[Arc<LogEntry>]) -> bool {
        let mut state = lock(&self.state);
        if state.driver.is_some() {
            return false;
        }
        state.last_event = Some(Instant::now());
        for entry in entries {
            let Some(task) = &mut state.task else { return false };
            if entry.seq != task.seq + 1 {
                continue;
            }
            apply(Arc::make_mut(task), &entry.event);
            state.weight += entry.weight();
            state.log_weight += entry.weight();
            state.keep(entry.clone());
        }
        let seq = state.task.as_ref().map_or(0, |task| task.seq);
        // Under the lock, so that a driver that begins now comes after this.
        self.position.modify(|position| {
            position.seq = position.seq.max(seq);
            // Until the activity is computed, readers must not take an old one for that of the new events.
            position.activity = TaskActivity::Busy;
        });
        true
    }

    /// The activity of a task that is driven elsewhere, or by nobody.
    pub(crate) fn set_foreign_activity(&self, has_message: bool, has_answer: bool) {
        let state = lock(&self.state);
        let Some(task) = state.task.as_ref().filter(|_| state.driver.is_none()) else { return };
        let activity = match task.run_state() {
            RunState::Parked => activity_of(task, has_answer),
            RunState::None | RunState::Queued | RunState::Active => activity_of(task, has_message),
        };
        // Under the lock, so that a driver that begins now comes after this.
        if self.position.get().activity != activity {
            self.position.modify(|position| position.activity = activity);
        }
    }

    /// How long ago an event was stored. `None`: none was while this topic is in memory.
    pub(crate) fn since_last_event(&self) -> Option<Duration> {
        lock(&self.state).last_event.map(|last| last.elapsed())
    }

    /// The task as of its last stored event.
    pub(crate) fn task(&self) -> Option<Arc<Task>> {
        lock(&self.state).task.clone()
    }

    /// Reads from the task without copying it. `None` until its first event is stored.
    pub(crate) fn with_task<T>(&self, read: impl FnOnce(&Task) -> T) -> Option<T> {
        lock(&self.state).task.as_deref().map(read)
    }

    /// The part of the task that the lifecycle rules need.
    pub(crate) fn standing(&self) -> Option<Standing> {
        let mut state = lock(&self.state);
        let left = state.standing.take();
        let task = state.task.clone()?;
        drop(state);
        Some(left.filter(|standing| standing.seq == task.seq).unwrap_or_else(|| task.standing()))
    }

    /// Whether to write a snapshot with an append that ends with event `last` and has this weight.
    pub(crate) fn wants_snapshot(&self, last: Seq, weight: usize, is_finished: bool) -> bool {
        let state = lock(&self.state);
        let since = state.log_weight + weight;
        last > MAX_EVENTS_WITHOUT_SNAPSHOT && (is_finished || since > state.snapshot_weight.max(MIN_SNAPSHOT_WEIGHT))
    }

    /// Why the store refuses the events of this task.
    pub(crate) fn failure(&self) -> Option<Arc<str>> {
        lock(&self.state).failure.clone()
    }

    pub(crate) fn no(&self) -> Option<TaskNo> {
        lock(&self.state).no
    }

    pub(crate) fn position(&self) -> LogPosition {
        self.position.get()
    }

    /// Waits until the position satisfies the condition.
    pub(crate) async fn until(&self, is_so: impl FnMut(&LogPosition) -> bool) -> LogPosition {
        self.position.until(is_so).await
    }

    /// Shows events that have just been committed.
    pub(crate) fn show(
        &self,
        no: TaskNo,
        birth: Option<&TaskBirth>,
        entries: &[Arc<LogEntry>],
        snapshot: SnapshotWrite,
        activity: impl FnOnce(&Task) -> TaskActivity,
    ) {
        let position = {
            let mut state = lock(&self.state);
            state.no = Some(no);
            state.failure = None;
            state.last_event = Some(Instant::now());
            for entry in entries {
                // Another node may have taken the task over, and its events may be here already.
                if state.task.as_ref().is_some_and(|task| task.seq >= entry.seq) {
                    continue;
                }
                state.weight += entry.weight();
                state.log_weight += entry.weight();
                state.fold(&self.key.task, birth, entry);
                state.keep(entry.clone());
            }
            if snapshot == SnapshotWrite::Stored {
                state.log_weight = 0;
                state.snapshot_weight = state.weight;
            }
            state.task.as_ref().map(|task| LogPosition { seq: task.seq, activity: activity(task) })
        };
        if !self.loaded.initialized() {
            // A concurrent load may set the same.
            let _ = self.loaded.set(());
        }
        if let Some(position) = position {
            self.position.set(position);
        }
    }

    /// Waits until the first event is stored, or the creation has failed.
    pub(crate) async fn until_stored(&self) {
        self.until(|position| position.seq > 0 || position.activity == TaskActivity::Finished).await;
    }

    /// Announces that a run is about to begin, before any of its events is stored.
    pub(crate) fn expect_more(&self) {
        self.position.modify(|position| position.activity = TaskActivity::Busy);
    }

    /// Claims the task for a new driver. `Err`: another driver has it already, and this is the way to it.
    pub(crate) fn claim(&self) -> Result<mpsc::UnboundedReceiver<Control>, mpsc::UnboundedSender<Control>> {
        let mut state = lock(&self.state);
        match &state.driver {
            Some(driver) => Err(driver.clone()),
            None => {
                let (sender, receiver) = mpsc::unbounded_channel();
                (state.driver, state.is_storing) = (Some(sender), false);
                Ok(receiver)
            }
        }
    }

    pub(crate) fn driver(&self) -> Option<mpsc::UnboundedSender<Control>> {
        lock(&self.state).driver.clone()
    }

    /// The driver has begun an append, or the topic shows what it stored.
    pub(crate) fn set_storing(&self, is_storing: bool) {
        lock(&self.state).is_storing = is_storing;
    }

    /// Whether the topic has all that is in the log: its driver is here, and stores nothing at the moment.
    pub(crate) fn is_whole(&self) -> bool {
        let state = lock(&self.state);
        state.driver.is_some() && !state.is_storing
    }

    /// Ends the driver's claim. Messages that arrive after the release are dropped; their senders notice and retry.
    pub(crate) fn release(&self, standing: Option<Standing>) {
        let mut state = lock(&self.state);
        state.driver = None;
        state.standing = standing;
    }

    /// Moves the claim of a crashed driver to its successor.
    pub(crate) fn replace_driver(&self) -> mpsc::UnboundedReceiver<Control> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut state = lock(&self.state);
        (state.driver, state.is_storing) = (Some(sender), false);
        state.standing = None;
        receiver
    }

    /// The task was never created because its first append failed, or another process writes its log.
    pub(crate) fn abandon(&self) {
        self.position.modify(|position| position.activity = TaskActivity::Finished);
    }

    /// The driver adds no events after all; the activity is that of the stored task.
    pub(crate) fn restore_activity(&self) {
        self.set_activity(|task| activity_of(task, false));
    }

    /// Computes the activity again, without a new event.
    pub(crate) fn set_activity(&self, judge: impl FnOnce(&Task) -> TaskActivity) {
        if let Some(activity) = self.with_task(judge) {
            self.position.modify(|position| position.activity = activity);
        }
    }

    /// The server stops: in this process, nothing more happens to the task.
    pub(crate) fn leave_for_restart(&self) {
        self.position.modify(|position| {
            if matches!(position.activity, TaskActivity::Busy | TaskActivity::Parked) {
                position.activity = TaskActivity::Waiting;
            }
        });
    }

    /// The store refuses the next events. Waiting callers and readers get the cause.
    pub(crate) fn set_store_failing(&self, cause: &str) {
        lock(&self.state).failure = Some(cause.into());
        self.position.modify(|position| position.activity = TaskActivity::StoreFailing);
    }

    /// Approximate bytes in memory.
    pub(crate) fn weight(&self) -> usize {
        let state = lock(&self.state);
        state.tail_weight + state.weight
    }

    /// Whether the task waits for its next message and has no driver.
    pub(crate) fn is_waiting(&self) -> bool {
        let state = lock(&self.state);
        let is_waiting = |task: &Arc<Task>| task.turn_over && task.status.state.is_waiting();
        state.driver.is_none() && state.task.as_ref().is_some_and(is_waiting)
    }

    pub(crate) fn read_after(&self, cursor: Seq) -> TailRead {
        let state = lock(&self.state);
        let (Some(no), Some(task)) = (state.no, &state.task) else { return TailRead::Nothing };
        if cursor >= task.seq {
            return TailRead::Nothing;
        }
        let Some(first) = state.tail.front() else { return TailRead::Behind(no) };
        if cursor + 1 < first.seq {
            return TailRead::Behind(no);
        }
        let from = (cursor + 1 - first.seq) as usize;
        let mut weight = 0;
        let entries: Vec<Arc<LogEntry>> = state
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
        TailRead::Entries(entries)
    }
}

/// When a task of another node is loaded again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reload {
    IfNewer,
    /// Also if the store has fewer events than the topic.
    Always,
}

/// Whether an append contained a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum SnapshotWrite {
    #[default]
    None,
    Stored,
}

impl TopicState {
    fn fold(&mut self, id: &TaskId, birth: Option<&TaskBirth>, entry: &LogEntry) {
        match (&mut self.task, &entry.event, birth) {
            (Some(task), event, _) if entry.seq == task.seq + 1 => apply(Arc::make_mut(task), event),
            (Some(_), _, _) => {}
            (None, Event::Created(created), Some(birth)) => {
                self.task = Some(Arc::new(Task::create(id.clone(), birth.clone(), created.clone())));
            }
            (None, _, _) => {}
        }
    }

    fn keep(&mut self, entry: Arc<LogEntry>) {
        self.tail_weight += entry.weight();
        self.tail.push_back(entry);
        while self.tail.len() > TAIL_ENTRIES || (self.tail_weight > TAIL_WEIGHT && self.tail.len() > 1) {
            if let Some(old) = self.tail.pop_front() {
                self.tail_weight -= old.weight();
            }
        }
    }
}

/// `more_comes`: a message waits in the inbox, or events are being stored.
pub(crate) fn activity_of(task: &Task, more_comes: bool) -> TaskActivity {
    match task.run_state() {
        RunState::None if task.status.state.is_terminal() => TaskActivity::Finished,
        RunState::None | RunState::Parked if more_comes => TaskActivity::Busy,
        RunState::None => TaskActivity::Waiting,
        RunState::Parked => TaskActivity::Parked,
        RunState::Queued | RunState::Active => TaskActivity::Busy,
    }
}
