//! Large tasks as callers read them: spelled once for all who read the same at the same time, and counted.
//!
//! A caller can ask for a task of many megabytes with a few bytes, any number of times, and then not read. So the bytes of
//! a large task exist once for each way to spell it, for as long as somebody reads them, and count against the budget of
//! the server. A stream is never dropped for being slow; one that does not read gives the bytes back after a while,
//! and they are spelled again when it goes on.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use sabir_engine::{Answer, LogEntry};
use sabir_model::{AgentId, Content, Error, Json, Message, Owner, Part, Seq, Task, TaskId, Timestamp};
use sabir_wire::{Reply, TaskEncoder, TaskShape};

use crate::budget::{Budget, Reservation, SMALL};

pub(crate) struct Spellings {
    budget: Arc<Budget>,
    known: Mutex<HashMap<Key, Weak<Spelled>>>,
    loans: Mutex<Vec<Weak<Loan>>>,
    events: Mutex<HashMap<usize, Weak<HeldEvent>>>,
    count: AtomicUsize,
}

/// A task at one moment, as far as it is shown, and how it is spelled.
#[derive(PartialEq, Eq, Hash)]
struct Key {
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

struct Spelled {
    made: Mutex<Option<(Bytes, Reservation)>>,
}

/// The bytes of a task, which others may read too.
#[derive(Clone)]
pub(crate) struct Shared {
    bytes: Bytes,
    _counted: Arc<Spelled>,
}

/// The bytes of a task for a reader that may take any time.
pub(crate) struct Loan {
    spellings: Arc<Spellings>,
    task: Arc<Task>,
    encoder: TaskEncoder,
    length: usize,
    state: Mutex<LoanState>,
}

struct LoanState {
    shared: Option<Shared>,
    used: Instant,
}

/// A large event that somebody reads, counted once for all of them.
pub(crate) struct HeldEvent {
    /// Keeps its address from being used again.
    _entry: Arc<LogEntry>,
    _reserved: Reservation,
}

impl Spellings {
    pub(crate) fn new(budget: Arc<Budget>) -> Arc<Self> {
        Arc::new(Self {
            budget,
            known: Mutex::default(),
            loans: Mutex::default(),
            events: Mutex::default(),
            count: AtomicUsize::new(0),
        })
    }

    /// Counts an answer that was spelled for one reader, if it is large.
    pub(crate) fn counted(&self, reply: Reply) -> Reply {
        if reply.body.len() > SMALL {
            self.count.fetch_add(1, Ordering::Relaxed);
        }
        reply
    }

    /// How often something large was spelled.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// The bytes of a large task, unless there is no memory for them.
    pub(crate) fn share(&self, task: &Task, encoder: &TaskEncoder) -> Result<Shared, Error> {
        let spelled = self.find(Key::of(task, encoder));
        let mut made = lock(&spelled.made);
        let bytes = match &*made {
            Some((bytes, _)) => bytes.clone(),
            None => {
                let mut reserved = self.budget.nothing();
                reserved.grow_to(weight(task))?;
                self.count.fetch_add(1, Ordering::Relaxed);
                let bytes = Bytes::from(encoder.encode(task));
                reserved.grow_to(bytes.len())?;
                *made = Some((bytes.clone(), reserved));
                bytes
            }
        };
        drop(made);
        Ok(Shared { bytes, _counted: spelled })
    }

    fn find(&self, key: Key) -> Arc<Spelled> {
        let mut known = lock(&self.known);
        if let Some(spelled) = known.get(&key).and_then(Weak::upgrade) {
            return spelled;
        }
        known.retain(|_, spelled| spelled.strong_count() > 0);
        let spelled = Arc::new(Spelled { made: Mutex::default() });
        known.insert(key, Arc::downgrade(&spelled));
        spelled
    }

    /// The same for a stream, which may stop reading for as long as it likes.
    pub(crate) fn lend(self: &Arc<Self>, task: Arc<Task>, encoder: TaskEncoder) -> Result<Arc<Loan>, Error> {
        let shared = self.share(&task, &encoder)?;
        let length = shared.bytes.len();
        let state = Mutex::new(LoanState { shared: Some(shared), used: Instant::now() });
        let loan = Arc::new(Loan { spellings: self.clone(), task, encoder, length, state });
        let mut loans = lock(&self.loans);
        loans.retain(|loan| loan.strong_count() > 0);
        loans.push(Arc::downgrade(&loan));
        Ok(loan)
    }

    /// Takes the bytes back from streams that have not read for so long.
    pub(crate) fn take_back(&self, unused_for: Duration) {
        for loan in lock(&self.loans).iter().filter_map(Weak::upgrade) {
            let mut state = lock(&loan.state);
            if state.used.elapsed() >= unused_for {
                state.shared = None;
            }
        }
    }

    /// Counts a large event, whose spelling has this length, while somebody reads it.
    pub(crate) fn hold(&self, entry: &Arc<LogEntry>, length: usize) -> Result<Arc<HeldEvent>, Error> {
        let mut events = lock(&self.events);
        let address = Arc::as_ptr(entry) as usize;
        if let Some(held) = events.get(&address).and_then(Weak::upgrade) {
            return Ok(held);
        }
        let mut reserved = self.budget.nothing();
        // The event itself is about as large as its spelling.
        reserved.grow_to(length.saturating_mul(2))?;
        events.retain(|_, held| held.strong_count() > 0);
        let held = Arc::new(HeldEvent { _entry: entry.clone(), _reserved: reserved });
        events.insert(address, Arc::downgrade(&held));
        Ok(held)
    }
}

impl Key {
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

impl Shared {
    pub(crate) fn bytes(&self) -> &Bytes {
        &self.bytes
    }
}

impl Loan {
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// The bytes, spelled again if they were taken back.
    pub(crate) fn bytes(&self) -> Result<Bytes, Error> {
        let mut state = lock(&self.state);
        state.used = Instant::now();
        let shared = match &state.shared {
            Some(shared) => shared.clone(),
            None => self.spellings.share(&self.task, &self.encoder)?,
        };
        let bytes = shared.bytes.clone();
        state.shared = Some(shared);
        Ok(bytes)
    }
}

/// Whether the spelling of a task is worth sharing and counting.
pub(crate) fn is_large(task: &Task) -> bool {
    weight(task) > SMALL
}

/// About how long the spelling of an answer is that is made for one reader; rather less than more, since what is small
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

fn of_text(parts: &[Part]) -> usize {
    let text = |part: &Part| if let Content::Text(text) = &part.content { text.len() } else { 0 };
    parts.iter().map(text).sum()
}

/// About how long the spelling of a task is.
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
