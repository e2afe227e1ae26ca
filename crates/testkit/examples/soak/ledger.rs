//! What clients asked for and what they were told, to be held against the server at the end.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use crate::promise;
use crate::tongue::{Event, Spelling, Told, Tongue, is_terminal};

/// Frames are remembered whole up to this many bytes, and by their hashes beyond.
const WHOLE: usize = 1 << 30;

#[derive(Default)]
pub struct Ledger {
    books: Mutex<Books>,
    moments: AtomicU64,
}

/// Before or after other moments, whoever's they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(u64);

#[derive(Default)]
pub struct Books {
    /// By the text, which is unique.
    pub wishes: HashMap<String, Asked>,
    pub tasks: HashMap<String, Account>,
    pub frames: u64,
    remembered: usize,
}

/// A message that was sent, once or more often under one key.
#[derive(Default)]
pub struct Asked {
    pub context: Option<String>,
    pub is_keyed: bool,
    /// The task that it answers; none where it asks for a new one.
    pub answers: Option<String>,
    /// The tasks that its senders were told.
    pub told: HashSet<String>,
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
    /// When somebody had first been told of its end, and by which state.
    ended: Option<(Moment, String)>,
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
        self.books().wishes.insert(text.to_owned(), asked);
    }

    /// The sender of this text was told which task it is.
    pub fn hears(&self, text: &str, task: &str) {
        let mut books = self.books();
        books.tasks.entry(task.to_owned()).or_default();
        if let Some(asked) = books.wishes.get_mut(text) {
            asked.told.insert(task.to_owned());
        }
    }

    pub fn now(&self) -> Moment {
        Moment(self.moments.fetch_add(1, Ordering::SeqCst))
    }

    /// Somebody who asked at this moment was told of a task. Who asks after another has heard of its end hears the same.
    pub fn answer(&self, tongue: &Tongue, asked: Moment, told: &Told) {
        let mut books = self.books();
        let account = books.tasks.entry(told.id.clone()).or_default();
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
    }
}
