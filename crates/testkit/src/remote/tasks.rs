//! The tasks of a remote agent, in memory.
//!
//! They outlive the server: a server that dies and comes back finds them again, unless they are lost on purpose. Each
//! task has a log of events; streams and webhooks are cursors over it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

use super::errors::{ErrorKind, RemoteError};
use super::task::{
    PushConfig, RemoteArtifact, RemoteMessage, RemotePart, RemoteRole, RemoteState, RemoteTask, TaskEvent,
};
use super::time;

#[derive(Clone, Default)]
pub struct RemoteTasks {
    table: Arc<Table>,
}

#[derive(Default)]
struct Table {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// In the order of creation.
    entries: Vec<Entry>,
    /// Where each task is, by its id.
    places: HashMap<String, usize>,
    last_time: u64,
}

struct Entry {
    task: RemoteTask,
    log: Vec<TaskEvent>,
    /// The number of the run that may change the task.
    run: u64,
    /// How many steps of `hold` and `steps` may still pass.
    permits: u32,
}

/// Who makes the ids of tasks: the server, but in 0.1 the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TaskIds {
    MadeByServer,
    MadeByClient,
}

/// A message that was taken in.
pub(super) struct Accepted {
    /// The task as it is then.
    pub task: RemoteTask,
    /// How many events are in it.
    pub seen: usize,
    /// The run that the message starts, if it starts one.
    pub run: Option<RunId>,
    /// A new task announces by itself that it is worked on.
    pub is_new: bool,
}

#[derive(Debug, Clone)]
pub(super) struct RunId {
    pub task: String,
    pub number: u64,
}

pub(super) enum Look<T> {
    Found(T),
    NotYet,
    /// The task is not there any more.
    Gone,
}

/// Ids are unique in the process, so that two remote agents of a test never share one.
pub(super) fn new_id(kind: &str) -> String {
    static LAST: AtomicU64 = AtomicU64::new(0);
    format!("{kind}-{}", LAST.fetch_add(1, Ordering::Relaxed) + 1)
}

impl RemoteTasks {
    pub fn get(&self, id: &str) -> Option<RemoteTask> {
        self.state().find(id).map(|entry| entry.task.clone())
    }

    /// In the order of their creation.
    pub fn all(&self) -> Vec<RemoteTask> {
        self.state().entries.iter().map(|entry| entry.task.clone()).collect()
    }

    /// All that ever happened to a task, in order.
    pub fn events(&self, id: &str) -> Vec<TaskEvent> {
        self.state().find(id).map(|entry| entry.log.clone()).unwrap_or_default()
    }

    /// Lets a task pass one step of `hold` or `steps`.
    pub fn release(&self, id: &str) {
        if let Some(entry) = self.state().find_mut(id) {
            entry.permits += 1;
        }
        self.table.changed.notify_all();
    }

    /// Forgets everything; what runs, ends.
    pub fn lose_all(&self) {
        let mut state = self.state();
        state.entries.clear();
        state.places.clear();
        drop(state);
        self.table.changed.notify_all();
    }

    /// Waits until the tasks are so; false if they are not when the time is over.
    pub fn wait_until(&self, limit: Duration, are_so: impl Fn(&[RemoteTask]) -> bool) -> bool {
        let end = Instant::now() + limit;
        loop {
            if are_so(&self.all()) {
                return true;
            }
            if Instant::now() >= end {
                return false;
            }
            self.wait(Duration::from_millis(20));
        }
    }

    /// Takes a message in: it begins a task, continues one that waits, or is refused.
    pub(super) fn accept(&self, message: RemoteMessage, ids: TaskIds) -> Result<Accepted, RemoteError> {
        let mut state = self.state();
        let accepted = match &message.task_id {
            Some(id) if state.find(id).is_some() => state.resume(&id.clone(), message),
            Some(id) if ids == TaskIds::MadeByServer => Err(RemoteError::task_not_found(id)),
            named => Ok(state.create(&named.clone().unwrap_or_else(|| new_id("task")), message)),
        };
        self.table.changed.notify_all();
        accepted
    }

    /// The task that a message with this id was taken into before.
    pub(super) fn with_message(&self, message_id: &str) -> Option<Accepted> {
        let state = self.state();
        let entry = state.entries.iter().find(|entry| entry.task.history.iter().any(|known| known.id == message_id))?;
        Some(Accepted { task: entry.task.clone(), seen: entry.log.len(), run: None, is_new: false })
    }

    /// A task that a message was taken into before.
    pub(super) fn joined(&self, id: &str) -> Option<Accepted> {
        let (task, seen) = self.snapshot(id)?;
        Some(Accepted { task, seen, run: None, is_new: false })
    }

    /// Ends a task for its client.
    pub(super) fn cancel(&self, id: &str) -> Result<RemoteTask, RemoteError> {
        let mut state = self.state();
        let time = state.tick();
        let entry = state.find_mut(id).ok_or_else(|| RemoteError::task_not_found(id))?;
        if entry.task.state.is_terminal() {
            return Err(RemoteError { detail: None, ..RemoteError::of_task(ErrorKind::TaskNotCancelable, id, "") });
        }
        entry.run = 0;
        entry.change_status(RemoteState::Canceled, None, time);
        self.table.changed.notify_all();
        Ok(entry.task.clone())
    }

    /// The task and how many events are in it.
    pub(super) fn snapshot(&self, id: &str) -> Option<(RemoteTask, usize)> {
        self.state().find(id).map(|entry| (entry.task.clone(), entry.log.len()))
    }

    /// The events after the first `seen`, as soon as there are any.
    pub(super) fn events_after(&self, id: &str, seen: usize, patience: Duration) -> Look<Vec<TaskEvent>> {
        self.look(id, patience, |entry| (entry.log.len() > seen).then(|| entry.log[seen..].to_vec()))
    }

    /// The task, as soon as it is settled.
    pub(super) fn settled(&self, id: &str, patience: Duration) -> Look<RemoteTask> {
        self.look(id, patience, |entry| entry.task.state.is_settled().then(|| entry.task.clone()))
    }

    /// Changes the push configs of a task; `None` if there is no such task.
    pub(super) fn change_push<T>(&self, id: &str, change: impl FnOnce(&mut Vec<PushConfig>) -> T) -> Option<T> {
        self.state().find_mut(id).map(|entry| change(&mut entry.task.push_configs))
    }

    /// Wakes all who wait, so that they look at what else may have ended their wait.
    pub(super) fn wake(&self) {
        self.table.changed.notify_all();
    }

    pub(super) fn downgrade(&self) -> WeakTasks {
        WeakTasks(Arc::downgrade(&self.table))
    }

    /// Does a step of a run; false if the run is over.
    pub(super) fn report(&self, run: &RunId, step: impl FnOnce(&mut Reporter<'_>)) -> bool {
        let mut state = self.state();
        let time = state.tick();
        let Some(entry) = state.running(run) else {
            return false;
        };
        step(&mut Reporter { entry, time });
        self.table.changed.notify_all();
        true
    }

    /// Uses up a permit; `None` if the run is over.
    pub(super) fn pass(&self, run: &RunId) -> Option<bool> {
        let mut state = self.state();
        let entry = state.running(run)?;
        let has_permit = entry.permits > 0;
        entry.permits -= u32::from(has_permit);
        Some(has_permit)
    }

    pub(super) fn is_running(&self, run: &RunId) -> bool {
        self.state().running(run).is_some()
    }

    /// Waits for any change, at most this long.
    pub(super) fn wait(&self, patience: Duration) {
        let state = self.state();
        drop(self.table.changed.wait_timeout(state, patience));
    }

    fn look<T>(&self, id: &str, patience: Duration, ready: impl Fn(&Entry) -> Option<T>) -> Look<T> {
        let end = Instant::now() + patience;
        let mut state = self.state();
        loop {
            let Some(entry) = state.find(id) else {
                return Look::Gone;
            };
            if let Some(found) = ready(entry) {
                return Look::Found(found);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Look::NotYet;
            }
            state = match self.table.changed.wait_timeout(state, left) {
                Ok((state, _)) => state,
                Err(_) => return Look::Gone,
            };
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.table.state.lock().expect("no thread panics while it holds this")
    }
}

/// Does not keep the tasks alive: threads that work for them end when nobody else has them.
#[derive(Clone)]
pub(super) struct WeakTasks(Weak<Table>);

impl WeakTasks {
    pub(super) fn upgrade(&self) -> Option<RemoteTasks> {
        self.0.upgrade().map(|table| RemoteTasks { table })
    }
}

/// What a run can say of its task.
pub(super) struct Reporter<'a> {
    entry: &'a mut Entry,
    time: u64,
}

impl Reporter<'_> {
    pub(super) fn status(&mut self, state: RemoteState, text: Option<&str>) {
        let task = &self.entry.task;
        let message = text.map(|text| RemoteMessage {
            id: new_id("message"),
            role: RemoteRole::Agent,
            parts: vec![RemotePart::Text(text.to_owned())],
            context_id: Some(task.context_id.clone()),
            task_id: Some(task.id.clone()),
        });
        self.entry.change_status(state, message, self.time);
    }

    pub(super) fn artifact(&mut self, artifact: RemoteArtifact, append: bool, last_chunk: bool) {
        let known = self.entry.task.artifacts.iter_mut().find(|known| known.id == artifact.id);
        match known {
            Some(known) if append => known.parts.extend(artifact.parts.iter().cloned()),
            Some(known) => *known = artifact.clone(),
            None => self.entry.task.artifacts.push(artifact.clone()),
        }
        self.entry.log.push(TaskEvent::Artifact { artifact, append, last_chunk });
    }
}

impl State {
    fn find(&self, id: &str) -> Option<&Entry> {
        self.places.get(id).map(|place| &self.entries[*place])
    }

    fn find_mut(&mut self, id: &str) -> Option<&mut Entry> {
        self.places.get(id).map(|place| &mut self.entries[*place])
    }

    fn running(&mut self, run: &RunId) -> Option<&mut Entry> {
        self.find_mut(&run.task).filter(|entry| entry.run == run.number && !entry.task.state.is_terminal())
    }

    /// The present time, later than any before, so that lists have one order.
    fn tick(&mut self) -> u64 {
        self.last_time = time::now().max(self.last_time + 1);
        self.last_time
    }

    fn create(&mut self, id: &str, mut message: RemoteMessage) -> Accepted {
        let context_id = message.context_id.clone().unwrap_or_else(|| new_id("context"));
        message.context_id = Some(context_id.clone());
        message.task_id = Some(id.to_owned());
        let task = RemoteTask {
            id: id.to_owned(),
            context_id,
            state: RemoteState::Submitted,
            status_message: None,
            status_time: self.tick(),
            artifacts: Vec::new(),
            history: vec![message],
            push_configs: Vec::new(),
        };
        let run = RunId { task: id.to_owned(), number: new_run() };
        let log = vec![TaskEvent::Created(Box::new(task.clone()))];
        self.places.insert(id.to_owned(), self.entries.len());
        self.entries.push(Entry { task: task.clone(), log, run: run.number, permits: 0 });
        Accepted { task, seen: 1, run: Some(run), is_new: true }
    }

    fn resume(&mut self, id: &str, mut message: RemoteMessage) -> Result<Accepted, RemoteError> {
        let time = self.tick();
        let entry = self.find_mut(id).expect("the caller has found it");
        if message.context_id.as_ref().is_some_and(|context| *context != entry.task.context_id) {
            return Err(RemoteError::invalid("message.contextId", "does not match the task"));
        }
        if entry.task.state.is_terminal() {
            let kind = ErrorKind::UnsupportedOperation;
            return Err(RemoteError::of_task(kind, id, "the task is finished"));
        }
        message.context_id = Some(entry.task.context_id.clone());
        let waits = entry.task.state.is_settled();
        // The question belongs to the exchange that it asked for.
        let question = if waits { entry.task.status_message.take() } else { None };
        entry.task.history.extend(question);
        entry.task.history.push(message);
        let run = waits.then(|| RunId { task: id.to_owned(), number: new_run() });
        if let Some(run) = &run {
            entry.run = run.number;
            entry.change_status(RemoteState::Working, None, time);
        }
        Ok(Accepted { task: entry.task.clone(), seen: entry.log.len(), run, is_new: false })
    }
}

impl Entry {
    fn change_status(&mut self, state: RemoteState, message: Option<RemoteMessage>, time: u64) {
        self.task.state = state;
        self.task.status_message = message.clone();
        self.task.status_time = time;
        self.log.push(TaskEvent::Status { state, message, time });
    }
}

fn new_run() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}
