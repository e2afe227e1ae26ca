//! Large tasks in their wire format: encoded once for all clients that read the same task at the same time, and counted.
//!
//! A client can request a task of many megabytes with a few bytes, any number of times, and then not read. So the bytes
//! of a large task exist once for each encoding, for as long as a client reads them, and count against the budget of the
//! server. A stream is never dropped for being slow; a stream that does not read releases the bytes after a while, and
//! they are encoded again when it continues.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use sabir_engine::{Answer, LogEntry};
use sabir_model::{AgentId, Content, Error, Json, Message, Owner, Part, Seq, Task, TaskId, Timestamp};
use sabir_wire::{Reply, TaskEncoder, TaskShape};

use crate::budget::{Budget, Reservation, SMALL};

/// A byte of JSON becomes at most so many bytes of memory.
const TREE_OF_JSON: usize = 40;

pub(crate) struct EncodedTasks {
    budget: Arc<Budget>,
    known: Mutex<HashMap<EncodedTaskKey, Weak<EncodedTask>>>,
    releasable: Mutex<Vec<Weak<ReleasableBytes>>>,
    events: Mutex<HashMap<usize, Weak<HeldEvent>>>,
    count: AtomicUsize,
}

/// A task at one moment, as far as it is shown, and its encoding.
#[derive(PartialEq, Eq, Hash)]
struct EncodedTaskKey {
    owner: Owner,
    agent: AgentId,
    task: TaskId,
    /// An id can be used again after its task was deleted.
    created: Timestamp,
    seq: Seq,
    history: usize,
    artifacts: usize,
    encoding: (usize, TaskShape),
}

struct EncodedTask {
    made: Mutex<Option<(Bytes, Reservation)>>,
}

/// The bytes of a task, which other clients may read too.
#[derive(Clone)]
pub(crate) struct SharedBytes {
    bytes: Bytes,
    _counted: Arc<EncodedTask>,
}

/// The bytes of a task for a slow reader: released while it does not read, encoded again when it does.
pub(crate) struct ReleasableBytes {
    encoded_tasks: Arc<EncodedTasks>,
    task: Arc<Task>,
    encoder: TaskEncoder,
    length: usize,
    state: Mutex<ReleasableState>,
}

struct ReleasableState {
    shared: Option<SharedBytes>,
    used: Instant,
}

/// A large event that clients read, counted once for all of them.
pub(crate) struct HeldEvent {
    /// Keeps its address from being used again.
    _entry: Arc<LogEntry>,
    _reserved: Reservation,
}

impl EncodedTasks {
    pub(crate) fn new(budget: Arc<Budget>) -> Arc<Self> {
        Arc::new(Self {
            budget,
            known: Mutex::default(),
            releasable: Mutex::default(),
            events: Mutex::default(),
            count: AtomicUsize::new(0),
        })
    }

    /// Counts an answer that was encoded for one reader, if it is large.
    pub(crate) fn counted(&self, reply: Reply) -> Reply {
        if reply.body.len() > SMALL {
            self.count.fetch_add(1, Ordering::Relaxed);
        }
        reply
    }

    /// How often something large was encoded.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// The bytes of a large task, unless there is no memory for them.
    pub(crate) fn share(&self, task: &Task, encoder: &TaskEncoder) -> Result<SharedBytes, Error> {
        let encoded = self.find(EncodedTaskKey::of(task, encoder));
        let mut made = lock(&encoded.made);
        let bytes = match &*made {
            Some((bytes, _)) => bytes.clone(),
            None => {
                let mut reserved = self.budget.nothing();
                reserved.grow_to(weight(task))?;
                // Protobuf makes a tree of carried JSON before it writes it.
                let mut tree = self.budget.nothing();
                if !encoder.is_text() {
                    tree.grow_to(carried(task) * TREE_OF_JSON)?;
                }
                self.count.fetch_add(1, Ordering::Relaxed);
                let bytes = Bytes::from(encoder.encode(task));
                reserved.grow_to(bytes.len())?;
                *made = Some((bytes.clone(), reserved));
                bytes
            }
        };
        drop(made);
        Ok(SharedBytes { bytes, _counted: encoded })
    }

    fn find(&self, key: EncodedTaskKey) -> Arc<EncodedTask> {
        let mut known = lock(&self.known);
        if let Some(encoded) = known.get(&key).and_then(Weak::upgrade) {
            return encoded;
        }
        known.retain(|_, encoded| encoded.strong_count() > 0);
        let encoded = Arc::new(EncodedTask { made: Mutex::default() });
        known.insert(key, Arc::downgrade(&encoded));
        encoded
    }

    /// The same for a stream, which may stop reading for as long as it likes.
    pub(crate) fn lend(self: &Arc<Self>, task: Arc<Task>, encoder: TaskEncoder) -> Result<Arc<ReleasableBytes>, Error> {
        let shared = self.share(&task, &encoder)?;
        let length = shared.bytes.len();
        let state = Mutex::new(ReleasableState { shared: Some(shared), used: Instant::now() });
        let loan = Arc::new(ReleasableBytes { encoded_tasks: self.clone(), task, encoder, length, state });
        let mut releasable = lock(&self.releasable);
        releasable.retain(|loan| loan.strong_count() > 0);
        releasable.push(Arc::downgrade(&loan));
        Ok(loan)
    }

    /// Takes the bytes back from streams that have not read for so long.
    pub(crate) fn take_back(&self, unused_for: Duration) {
        for loan in lock(&self.releasable).iter().filter_map(Weak::upgrade) {
            let mut state = lock(&loan.state);
            if state.used.elapsed() >= unused_for {
                state.shared = None;
            }
        }
    }

    /// Counts a large event, whose encoding has this length, while somebody reads it.
    pub(crate) fn hold(&self, entry: &Arc<LogEntry>, length: usize) -> Result<Arc<HeldEvent>, Error> {
        let mut events = lock(&self.events);
        let address = Arc::as_ptr(entry) as usize;
        if let Some(held) = events.get(&address).and_then(Weak::upgrade) {
            return Ok(held);
        }
        let mut reserved = self.budget.nothing();
        // The event itself is about as large as its encoding.
        reserved.grow_to(length.saturating_mul(2))?;
        events.retain(|_, held| held.strong_count() > 0);
        let held = Arc::new(HeldEvent { _entry: entry.clone(), _reserved: reserved });
        events.insert(address, Arc::downgrade(&held));
        Ok(held)
    }
}

impl EncodedTaskKey {
    fn of(task: &Task, encoder: &TaskEncoder) -> Self {
        Self {
            owner: task.owner.clone(),
            agent: task.agent.clone(),
            task: task.id.clone(),
            created: task.created,
            seq: task.seq,
            history: task.history.len(),
            artifacts: task.artifacts.len(),
            encoding: encoder.key(),
        }
    }
}

impl SharedBytes {
    pub(crate) fn bytes(&self) -> &Bytes {
        &self.bytes
    }
}

impl ReleasableBytes {
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// The bytes, encoded again if they were taken back.
    pub(crate) fn bytes(&self) -> Result<Bytes, Error> {
        let mut state = lock(&self.state);
        state.used = Instant::now();
        let shared = match &state.shared {
            Some(shared) => shared.clone(),
            None => self.encoded_tasks.share(&self.task, &self.encoder)?,
        };
        let bytes = shared.bytes.clone();
        state.shared = Some(shared);
        Ok(bytes)
    }
}

/// Whether the encoding of a task is worth sharing and counting.
pub(crate) fn is_large(task: &Task) -> bool {
    weight(task) > SMALL
}

/// About how long the encoding of an answer is that is made for one reader; rather less than more, since what is small
/// is never refused.
pub(crate) fn length_of(answer: &Answer) -> usize {
    match answer {
        Answer::Page(page) => page.tasks.iter().map(weight).sum(),
        Answer::Message(message) => of_message(message),
        // Of a conversation only what was said is shown.
        Answer::Conversation(task, earlier) => {
            let tasks = earlier.iter().chain([&**task]);
            tasks.flat_map(|task| &task.history).map(|message| of_text(&message.parts)).sum()
        }
        _ => 0,
    }
}

/// How long the JSON is that the task carries.
fn carried(task: &Task) -> usize {
    let data = |part: &Part| if let Content::Data(data) = &part.content { data.as_str().len() } else { 0 };
    let of_parts = |parts: &[Part]| parts.iter().map(|part| data(part) + of_json(&part.metadata)).sum::<usize>();
    let messages = task.history.iter().chain(&task.status.message);
    let messages = messages.map(|message| of_parts(&message.parts) + of_json(&message.metadata)).sum::<usize>();
    let artifacts = task.artifacts.iter().map(|artifact| of_parts(&artifact.parts) + of_json(&artifact.metadata));
    messages + artifacts.sum::<usize>() + of_json(&task.metadata)
}

fn of_text(parts: &[Part]) -> usize {
    let text = |part: &Part| if let Content::Text(text) = &part.content { text.len() } else { 0 };
    parts.iter().map(text).sum()
}

/// About how long the encoding of a task is.
fn weight(task: &Task) -> usize {
    let messages = task.history.iter().map(|message| of_message(message)).sum::<usize>();
    let artifacts = task.artifacts.iter().map(|artifact| of_parts(&artifact.parts) + of_json(&artifact.metadata));
    let status = task.status.message.as_ref().map_or(0, |message| of_message(message));
    messages + artifacts.sum::<usize>() + status + of_json(&task.metadata)
}

fn of_message(message: &Message) -> usize {
    of_parts(&message.parts) + of_json(&message.metadata)
}

fn of_parts(parts: &[Part]) -> usize {
    let content = |part: &Part| match &part.content {
        Content::Text(text) | Content::Url(text) => text.len(),
        Content::Bytes(bytes) => bytes.as_str().len(),
        Content::Data(data) => data.as_str().len(),
    };
    // What stands around the content of a part.
    const AROUND: usize = 32;
    parts.iter().map(|part| content(part) + of_json(&part.metadata) + AROUND).sum()
}

fn of_json(json: &Option<Json>) -> usize {
    json.as_ref().map_or(0, |json| json.as_str().len())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
