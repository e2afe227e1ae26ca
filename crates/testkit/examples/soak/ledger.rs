//! What clients sent and what they were told, to be compared with the server's store at the end.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use crate::agents::{Agent, DEFAULT};
use crate::dialect_client::{DialectClient, Event, JsonFormat, TaskView, is_at_rest, is_terminal};
use crate::promise;
use crate::server_processes::{self, MAX_AGE, Retention, ServerProcess};

/// Frames are remembered whole up to this many bytes, and by their hashes beyond.
const WHOLE: usize = 1 << 30;

#[derive(Default)]
pub struct Ledger {
    entries: Mutex<LedgerEntries>,
    moments: AtomicU64,
}

/// A point in the order of all clients' requests, and its time in milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    order: u64,
    pub time: i64,
}

#[derive(Default)]
pub struct LedgerEntries {
    /// By the text, which is unique.
    pub messages: HashMap<String, SentMessage>,
    pub tasks: HashMap<String, TaskRecord>,
    /// By their names, which are unique.
    pub webhooks: HashMap<String, WebhookRecord>,
    pub frames: u64,
    remembered: usize,
}

/// A message that was sent, once or more often under one key.
pub struct SentMessage {
    pub agent: &'static Agent,
    pub context: Option<String>,
    pub is_keyed: bool,
    /// The task that it continues; none where it starts a new one.
    pub continues: Option<String>,
    /// The tasks that the answers to it named.
    pub tasks: HashSet<String>,
    /// The server refused it.
    pub is_refused: bool,
}

impl SentMessage {
    pub fn of(agent: &'static Agent) -> Self {
        Self { agent, context: None, is_keyed: false, continues: None, tasks: HashSet::new(), is_refused: false }
    }
}

/// A webhook that a client has set, or has tried to.
#[derive(Debug)]
pub struct WebhookRecord {
    pub task: WebhookTask,
    /// The index of its dialect.
    pub dialect: usize,
    pub wants_all: bool,
    /// When its client was told that it is set.
    pub set_at: Option<i64>,
}

#[derive(Debug)]
pub enum WebhookTask {
    /// The one that was made of the message with this text, which brought the webhook along.
    OfMessage(String),
    Task(String),
}

/// What clients were told of one task.
#[derive(Default)]
pub struct TaskRecord {
    /// Each answer's dialect, state and artifacts.
    pub answers: Vec<(usize, TaskView)>,
    /// By dialect and number.
    pub frames: BTreeMap<(usize, u64), FramePayload>,
    /// Each snapshot's dialect, number, state and artifacts.
    pub snapshots: Vec<(usize, u64, TaskView)>,
    pub cancel: Cancel,
    /// When a client first asked for a cancel.
    pub cancel_asked: Option<i64>,
    pub agent: Option<&'static Agent>,
    /// When a client first learned of its end, and the final state.
    ended: Option<(Moment, String)>,
    /// The last request whose answer showed that it was not finished.
    unsettled: Option<Moment>,
    /// A client was told that it waits.
    is_waiting: bool,
    /// A client has tried to answer or to cancel it.
    is_touched: bool,
    /// When a client was first told that it does not exist.
    missing: Option<Moment>,
}

impl TaskRecord {
    /// Whether retention may have deleted it by this time. It takes what is settled for longer than its limit; a task
    /// that waits, and that nobody has answered or canceled, stays. (The program gives up waiting by itself.)
    pub fn may_be_swept(&self, processes: &[ServerProcess], time: i64) -> bool {
        let keeps_waiting = self.agent.is_some_and(|agent| agent.kind.waits_for_answers());
        if keeps_waiting && self.is_waiting && !self.is_touched && self.ended.is_none() {
            return false;
        }
        let settled = self.unsettled.filter(|_| self.ended.is_none()).map_or(i64::MIN, |moment| moment.time);
        was_swept(processes, settled, time)
    }
}

/// Whether a sweep by this time may have taken a task that was not settled before that time.
pub fn was_swept(processes: &[ServerProcess], unsettled: i64, time: i64) -> bool {
    let earliest = unsettled.saturating_add(MAX_AGE.as_millis() as i64);
    processes.iter().any(|process| {
        let until = process.end.map_or(time, |end| end.gone.min(time));
        process.settings.retention == Retention::Sweep && process.began <= time && earliest <= until
    })
}

#[derive(Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Cancel {
    #[default]
    Never,
    Tried,
    Acknowledged,
}

/// A frame's payload.
pub enum FramePayload {
    Whole(Box<str>),
    Hash(u64),
}

impl FramePayload {
    pub fn is(&self, data: &str) -> bool {
        match self {
            FramePayload::Whole(seen) => **seen == *data,
            FramePayload::Hash(seen) => *seen == hash(data),
        }
    }

    pub fn text(&self) -> &str {
        match self {
            FramePayload::Whole(seen) => seen,
            FramePayload::Hash(_) => "(only its hash is remembered)",
        }
    }
}

fn hash(data: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    data.hash(&mut hasher);
    hasher.finish()
}

impl Ledger {
    pub fn entries(&self) -> MutexGuard<'_, LedgerEntries> {
        self.entries.lock().expect("nobody panics over it")
    }

    /// A client is about to send this.
    pub fn record_send(&self, text: &str, sent: SentMessage) {
        let mut entries = self.entries();
        if let Some(task) = &sent.continues {
            entries.tasks.entry(task.clone()).or_default().is_touched = true;
        }
        entries.messages.insert(text.to_owned(), sent);
    }

    /// A client is about to set this webhook.
    pub fn record_webhook(&self, name: &str, record: WebhookRecord) {
        self.entries().webhooks.insert(name.to_owned(), record);
    }

    /// A client was told that this webhook is set.
    pub fn record_webhook_set(&self, name: &str) {
        if let Some(record) = self.entries().webhooks.get_mut(name) {
            record.set_at = Some(server_processes::now());
        }
    }

    /// The answer to this text named its task.
    pub fn record_task(&self, text: &str, task: &str) {
        let mut entries = self.entries();
        let LedgerEntries { messages, tasks, .. } = &mut *entries;
        let record = tasks.entry(task.to_owned()).or_default();
        if let Some(sent) = messages.get_mut(text) {
            sent.tasks.insert(task.to_owned());
            record.agent = Some(sent.agent);
        }
    }

    /// The server refused this text.
    pub fn record_refusal(&self, text: &str) {
        if let Some(sent) = self.entries().messages.get_mut(text) {
            sent.is_refused = true;
        }
    }

    /// The agent of a task.
    pub fn agent_of(&self, task: &str) -> &'static Agent {
        self.entries().tasks.get(task).and_then(|record| record.agent).unwrap_or(DEFAULT)
    }

    pub fn now(&self) -> Moment {
        Moment { order: self.moments.fetch_add(1, Ordering::SeqCst), time: server_processes::now() }
    }

    /// A client was told that there is no such task. Returns whether retention explains that.
    pub fn record_missing(&self, task: &str, processes: &[ServerProcess]) -> bool {
        let now = self.now();
        let mut entries = self.entries();
        let record = entries.tasks.entry(task.to_owned()).or_default();
        record.missing.get_or_insert(now);
        let may_be = record.may_be_swept(processes, now.time);
        promise::SWEPT.check(may_be, || {
            let TaskRecord { ended, unsettled, is_waiting, .. } = record;
            format!("{task} is gone; it ended {ended:?}, was at work {unsettled:?}, waited: {is_waiting}")
        })
    }

    /// The answer to a request of this moment showed a task. Once a client has seen its end, later requests see the same end.
    pub fn record_answer(&self, dialect: &DialectClient, asked_at: Moment, view: &TaskView) {
        let mut entries = self.entries();
        let record = entries.tasks.entry(view.id.clone()).or_default();
        if record.missing.is_some_and(|missing| missing < asked_at) {
            promise::SWEPT.check(false, || format!("{} was gone, and in {} is {view:?}", view.id, dialect.name));
        }
        if !is_terminal(&view.state) {
            record.unsettled = record.unsettled.max(Some(asked_at));
            record.is_waiting |= is_at_rest(&view.state);
        }
        if let Some((_, end)) = record.ended.as_ref().filter(|(seen_at, _)| *seen_at < asked_at) {
            let is_so = dialect.state_name(end) == dialect.state_name(&view.state);
            promise::STATES.check(is_so, || format!("{} was {end}, and in {} is {view:?}", view.id, dialect.name));
        }
        // Dialects with fewer states do not show which end it is.
        if record.ended.is_none() && is_terminal(&view.state) && dialect.format == JsonFormat::V1 {
            record.ended = Some((self.now(), view.state.clone()));
        }
        let answer = (dialect.index(), view.clone());
        // Polling says the same again and again.
        if record.answers.last() != Some(&answer) {
            record.answers.push(answer);
        }
    }

    pub fn record_frame(&self, dialect: &DialectClient, task: &str, number: u64, data: &str) {
        let mut entries = self.entries();
        entries.frames += 1;
        let is_whole = entries.remembered < WHOLE;
        let record = entries.tasks.entry(task.to_owned()).or_default();
        if let Some(seen) = record.frames.get(&(dialect.index(), number)) {
            promise::BYTES.check(seen.is(data), || {
                format!("event {number} of {task} in {} was {} and is {data}", dialect.name, seen.text())
            });
            return;
        }
        let seen = if is_whole { FramePayload::Whole(data.into()) } else { FramePayload::Hash(hash(data)) };
        record.frames.insert((dialect.index(), number), seen);
        entries.remembered += if is_whole { data.len() } else { 0 };
    }

    pub fn record_snapshot(&self, dialect: &DialectClient, number: u64, event: &Event) {
        let view = match event {
            Event::Task(view) => view.clone(),
            Event::Status { task, state, .. } => TaskView { id: task.clone(), state: state.clone(), made: None },
            Event::Artifact { .. } => return,
        };
        let mut entries = self.entries();
        entries.tasks.entry(view.id.clone()).or_default().snapshots.push((dialect.index(), number, view));
    }

    pub fn record_cancel(&self, task: &str, cancel: Cancel) {
        let mut entries = self.entries();
        let record = entries.tasks.entry(task.to_owned()).or_default();
        record.cancel = record.cancel.max(cancel);
        record.cancel_asked.get_or_insert_with(server_processes::now);
        record.is_touched = true;
    }
}
