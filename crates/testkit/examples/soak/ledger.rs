//! What clients asked for and what they were told, to be held against the server at the end.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use crate::agents::{Agent, DEFAULT, Kind};
use crate::lives::{self, Life, MAX_AGE, Retention};
use crate::promise;
use crate::tongue::{Event, Spelling, Told, Tongue, is_at_rest, is_terminal};

/// Frames are remembered whole up to this many bytes, and by their hashes beyond.
const WHOLE: usize = 1 << 30;

#[derive(Default)]
pub struct Ledger {
    books: Mutex<Books>,
    moments: AtomicU64,
}

/// Before or after other moments, whoever's they are; and when that was, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    order: u64,
    pub time: i64,
}

#[derive(Default)]
pub struct Books {
    /// By the text, which is unique.
    pub wishes: HashMap<String, Asked>,
    pub tasks: HashMap<String, Account>,
    pub frames: u64,
    remembered: usize,
}

/// A message that was sent, once or more often under one key.
pub struct Asked {
    pub agent: &'static Agent,
    pub context: Option<String>,
    pub is_keyed: bool,
    /// The task that it continues; none where it asks for a new one.
    pub continues: Option<String>,
    /// The tasks that its senders were told.
    pub told: HashSet<String>,
    /// The server said that it does not take it.
    pub is_refused: bool,
}

impl Asked {
    pub fn of(agent: &'static Agent) -> Self {
        Self { agent, context: None, is_keyed: false, continues: None, told: HashSet::new(), is_refused: false }
    }
}

/// What was told of one task.
#[derive(Default)]
pub struct Account {
    /// Each answer's tongue, state and artifacts.
    pub answers: Vec<(usize, Told)>,
    /// By tongue and number.
    pub frames: BTreeMap<(usize, u64), Seen>,
    /// Each snapshot's tongue, number, state and artifacts.
    pub snapshots: Vec<(usize, u64, Told)>,
    pub cancel: Cancel,
    pub agent: Option<&'static Agent>,
    /// When somebody had first been told of its end, and by which state.
    ended: Option<(Moment, String)>,
    /// When somebody last asked who was told that it was not at its end.
    unsettled: Option<Moment>,
    /// Somebody was told that it waits.
    is_waiting: bool,
    /// Somebody has tried to answer or to cancel it since it was made.
    is_moved: bool,
    /// When somebody had first been told that it is no more.
    missing: Option<Moment>,
}

impl Account {
    /// Whether retention may have deleted it by this time. It takes what is settled for longer than its limit; a task
    /// that waits, and that nobody has answered or canceled, stays. (The program gives up waiting by itself.)
    pub fn may_be_swept(&self, lives: &[Life], time: i64) -> bool {
        let keeps_waiting = self.agent.is_some_and(|agent| agent.kind == Kind::Demo);
        if keeps_waiting && self.is_waiting && !self.is_moved && self.ended.is_none() {
            return false;
        }
        let settled = self.unsettled.filter(|_| self.ended.is_none()).map_or(i64::MIN, |moment| moment.time);
        was_swept(lives, settled, time)
    }
}

/// Whether a sweep by this time may have taken a task that was not settled before that time.
pub fn was_swept(lives: &[Life], unsettled: i64, time: i64) -> bool {
    let earliest = unsettled.saturating_add(MAX_AGE.as_millis() as i64);
    lives.iter().any(|life| {
        let until = life.end.map_or(time, |end| end.gone.min(time));
        life.settings.retention == Retention::Sweep && life.began <= time && earliest <= until
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
pub enum Seen {
    Whole(Box<str>),
    Hash(u64),
}

impl Seen {
    pub fn is(&self, data: &str) -> bool {
        match self {
            Seen::Whole(seen) => **seen == *data,
            Seen::Hash(seen) => *seen == hash(data),
        }
    }

    pub fn text(&self) -> &str {
        match self {
            Seen::Whole(seen) => seen,
            Seen::Hash(_) => "(only its hash is remembered)",
        }
    }
}

fn hash(data: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    data.hash(&mut hasher);
    hasher.finish()
}

impl Ledger {
    pub fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().expect("nobody panics over the books")
    }

    /// Somebody is about to send this.
    pub fn asks(&self, text: &str, asked: Asked) {
        let mut books = self.books();
        if let Some(task) = &asked.continues {
            books.tasks.entry(task.clone()).or_default().is_moved = true;
        }
        books.wishes.insert(text.to_owned(), asked);
    }

    /// The sender of this text was told which task it is.
    pub fn hears(&self, text: &str, task: &str) {
        let mut books = self.books();
        let Books { wishes, tasks, .. } = &mut *books;
        let account = tasks.entry(task.to_owned()).or_default();
        if let Some(asked) = wishes.get_mut(text) {
            asked.told.insert(task.to_owned());
            account.agent = Some(asked.agent);
        }
    }

    /// The sender of this text was told that it is not taken.
    pub fn refuses(&self, text: &str) {
        if let Some(asked) = self.books().wishes.get_mut(text) {
            asked.is_refused = true;
        }
    }

    /// Who works on a task.
    pub fn agent_of(&self, task: &str) -> &'static Agent {
        self.books().tasks.get(task).and_then(|account| account.agent).unwrap_or(DEFAULT)
    }

    pub fn now(&self) -> Moment {
        Moment { order: self.moments.fetch_add(1, Ordering::SeqCst), time: lives::now() }
    }

    /// Somebody was told that there is no such task. Whether that may be.
    pub fn misses(&self, task: &str, lives: &[Life]) -> bool {
        let now = self.now();
        let mut books = self.books();
        let account = books.tasks.entry(task.to_owned()).or_default();
        account.missing.get_or_insert(now);
        let may_be = account.may_be_swept(lives, now.time);
        promise::SWEPT.check(may_be, || {
            let Account { ended, unsettled, is_waiting, .. } = account;
            format!("{task} is gone; it ended {ended:?}, was at work {unsettled:?}, waited: {is_waiting}")
        })
    }

    /// Somebody who asked at this moment was told of a task. Who asks after another has heard of its end hears the same.
    pub fn answer(&self, tongue: &Tongue, asked: Moment, told: &Told) {
        let mut books = self.books();
        let account = books.tasks.entry(told.id.clone()).or_default();
        if account.missing.is_some_and(|missing| missing < asked) {
            promise::SWEPT.check(false, || format!("{} was gone, and in {} is {told:?}", told.id, tongue.name));
        }
        if !is_terminal(&told.state) {
            account.unsettled = account.unsettled.max(Some(asked));
            account.is_waiting |= is_at_rest(&told.state);
        }
        if let Some((_, end)) = account.ended.as_ref().filter(|(heard, _)| *heard < asked) {
            let is_so = tongue.word_for(end) == tongue.word_for(&told.state);
            promise::STATES.check(is_so, || format!("{} was {end}, and in {} is {told:?}", told.id, tongue.name));
        }
        // Dialects with fewer words do not tell which end it is.
        if account.ended.is_none() && is_terminal(&told.state) && tongue.spelling == Spelling::V1 {
            account.ended = Some((self.now(), told.state.clone()));
        }
        let answer = (tongue.place(), told.clone());
        // Polling says the same again and again.
        if account.answers.last() != Some(&answer) {
            account.answers.push(answer);
        }
    }

    pub fn frame(&self, tongue: &Tongue, task: &str, number: u64, data: &str) {
        let mut books = self.books();
        books.frames += 1;
        let is_whole = books.remembered < WHOLE;
        let account = books.tasks.entry(task.to_owned()).or_default();
        if let Some(seen) = account.frames.get(&(tongue.place(), number)) {
            promise::BYTES.check(seen.is(data), || {
                format!("event {number} of {task} in {} was {} and is {data}", tongue.name, seen.text())
            });
            return;
        }
        let seen = if is_whole { Seen::Whole(data.into()) } else { Seen::Hash(hash(data)) };
        account.frames.insert((tongue.place(), number), seen);
        books.remembered += if is_whole { data.len() } else { 0 };
    }

    pub fn snapshot(&self, tongue: &Tongue, number: u64, event: &Event) {
        let told = match event {
            Event::Task(told) => told.clone(),
            Event::Status { task, state, .. } => Told { id: task.clone(), state: state.clone(), made: None },
            Event::Artifact { .. } => return,
        };
        let mut books = self.books();
        books.tasks.entry(told.id.clone()).or_default().snapshots.push((tongue.place(), number, told));
    }

    pub fn cancel(&self, task: &str, cancel: Cancel) {
        let mut books = self.books();
        let account = books.tasks.entry(task.to_owned()).or_default();
        account.cancel = account.cancel.max(cancel);
        account.is_moved = true;
    }
}
