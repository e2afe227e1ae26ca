//! The end of the run: everything that anyone was told is held against what the server has.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use sabir_testkit::sse::Frame;

use crate::agents::{DEFAULT, PROGRAM, Records};
use crate::explain::{self, time_of};
use crate::inquiry::Inquiry;
use crate::ledger::{Account, Books, Cancel};
use crate::lives::{self, Life};
use crate::promise;
use crate::random::Random;
use crate::story::{self, Ending, Story};
use crate::tongue::{
    CallerMessage, Delivery, Event, LISTING, Operation, REFERENCE, Spelling, TONGUES, Tongue, WATCHING, Wish,
    is_at_rest, is_terminal,
};

const CHECKERS: usize = 4;
/// What the settling after a start may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A task as it is at the end.
pub struct Found {
    pub id: String,
    context: String,
    state: String,
    pub messages: Vec<CallerMessage>,
    pub story: Option<Story>,
    ran: Option<(i64, i64)>,
}

pub struct Checker<'a> {
    pub address: SocketAddr,
    pub books: &'a Books,
    pub lives: &'a [Life],
    pub records: Records,
    pub seed: u64,
}

impl Checker<'_> {
    pub fn check(&self) {
        self.wait_until_settled();
        let ids = self.check_lists();
        let listed: HashSet<&str> = ids.iter().map(String::as_str).collect();
        for (id, account) in &self.books.tasks {
            let is_there = listed.contains(id.as_str());
            if !is_there && account.may_be_swept(self.lives, lives::now()) {
                promise::SWEPT.check(true, String::new);
                continue;
            }
            promise::KEPT.check(is_there, || {
                format!(
                    "{id} was told of in {} answers and {} frames, and is gone",
                    account.answers.len(),
                    account.frames.len()
                )
            });
        }
        let found = Mutex::new(Vec::with_capacity(ids.len()));
        thread::scope(|scope| {
            for (place, part) in ids.chunks(ids.len().div_ceil(CHECKERS).max(1)).enumerate() {
                let found = &found;
                scope.spawn(move || {
                    let mut random = Random::new(self.seed ^ place as u64);
                    let mut desk = Inquiry::new(self.address);
                    for id in part {
                        let task = self.check_task(&mut desk, &mut random, id);
                        found.lock().expect("nobody panics over it").extend(task);
                    }
                });
            }
        });
        let found = found.into_inner().expect("nobody panics over it");
        self.check_wishes(&found);
        self.check_program(&found);
        check_contexts(&found);
        self.check_waiting(&found);
    }

    /// After a start nobody is left working, or waits for a place for long.
    fn wait_until_settled(&self) {
        let mut desk = Inquiry::new(self.address);
        // What it asks it gives up in time.
        let mut program = Inquiry::of_agent(self.address, PROGRAM);
        let began = Instant::now();
        loop {
            let left_in = |desk: &mut Inquiry, state: &str| {
                let page = desk.list(REFERENCE, &[("pageSize", "10"), ("status", state)]);
                page.map(|page| (page["totalSize"].as_u64().unwrap_or(u64::MAX), page["tasks"].to_string()))
            };
            let left = [
                left_in(&mut desk, "TASK_STATE_SUBMITTED"),
                left_in(&mut program, "TASK_STATE_INPUT_REQUIRED"),
                left_in(&mut desk, "TASK_STATE_WORKING"),
            ];
            if left.iter().all(|left| matches!(left, Ok((0, _)))) {
                return;
            }
            if began.elapsed() > PATIENCE {
                promise::SETTLED.check(false, || format!("after {PATIENCE:?}: {left:?}"));
                return;
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// All ids, by every list that there is.
    fn check_lists(&self) -> Vec<String> {
        let mut desk = Inquiry::new(self.address);
        let mut all: Option<Vec<String>> = None;
        for tongue in LISTING {
            let ids = desk.pages(tongue, None);
            let distinct: HashSet<&String> = ids.iter().collect();
            promise::TOTALS.check(distinct.len() == ids.len(), || format!("{} lists tasks twice", tongue.name));
            if let Some(all) = &all {
                promise::TOTALS
                    .check(*all == ids, || format!("{} lists {}, 1.0 {}", tongue.name, ids.len(), all.len()));
            }
            all.get_or_insert(ids);
        }
        let all = all.unwrap_or_default();
        let mut by_state = 0;
        for state in
            ["SUBMITTED", "WORKING", "INPUT_REQUIRED", "AUTH_REQUIRED", "COMPLETED", "CANCELED", "FAILED", "REJECTED"]
        {
            by_state += desk.pages(REFERENCE, Some(&format!("TASK_STATE_{state}"))).len();
        }
        promise::TOTALS.check(by_state == all.len(), || format!("{by_state} by state, {} in all", all.len()));
        all
    }

    fn check_task(&self, desk: &mut Inquiry, random: &mut Random, id: &str) -> Option<Found> {
        let nothing = Account::default();
        let account = self.books.tasks.get(id).unwrap_or(&nothing);
        let task = desk.ask(REFERENCE, &Operation::Get(id));
        let is_there = matches!(&task, Ok(Ok(_)));
        promise::KEPT.check(is_there, || format!("{id} is listed, but: {task:?}"));
        let task = task.ok()?.ok()?;
        let told = REFERENCE.read_task(&task)?;
        // The stream of a task that is still at work would not end, so nothing else is asked about it.
        if !promise::SETTLED.check(is_at_rest(&told.state), || format!("{id} is {}", told.state)) {
            return None;
        }
        let messages = Tongue::caller_messages(&task);

        let frames = self.replay(desk, REFERENCE, id, 0)?;
        let events: Vec<Event> = frames.iter().filter_map(|frame| REFERENCE.read_frame(frame)).collect();
        promise::ORDER.check(events.len() == frames.len(), || format!("{id} has frames that are no events"));
        self.check_frames(desk, id, account, &frames);
        // Wherever somebody broke off, and in whatever dialect he comes back.
        let after = random.between(0, frames.len() as u64 - 1);
        let tongue = random.one_of(WATCHING);
        let rest = self.replay(desk, tongue, id, after);
        promise::PICKED_UP.check(rest.is_some_and(|rest| rest.len() as u64 == frames.len() as u64 - after), || {
            format!("{id} after {after} in {}", tongue.name)
        });
        check_answers(id, account, &told.state, &events);
        check_snapshots(id, account, &events);
        let story = self.check_story(id, account, &messages, &events);

        // Of a task that was run again, the last run counts.
        let last_run = story.as_ref().and_then(|story| story.reruns.last().copied()).unwrap_or(0);
        // It may say before what it waits for.
        let ran = events[last_run..].iter().skip_while(|event| event.state() != Some("working"));
        let times: Vec<i64> = ran.filter_map(time_of).collect();
        let was_interrupted = matches!(&story, Some(Story { ending: Ending::Interrupted(_), .. }));
        let ran = (is_terminal(&told.state) && !was_interrupted && times.len() > 1)
            .then(|| (times[0], times[times.len() - 1]));
        let context = task["contextId"].as_str().unwrap_or_default().to_owned();
        Some(Found { id: id.to_owned(), context, state: told.state, messages, story, ran })
    }

    /// The events after a number, which have the numbers after it.
    fn replay(&self, desk: &mut Inquiry, tongue: &Tongue, id: &str, after: u64) -> Option<Vec<Frame>> {
        let frames = desk.replay(tongue, id, after);
        let is_read = frames.is_ok();
        promise::ORDER.check(is_read, || format!("no replay of {id} after {after} in {}: {frames:?}", tongue.name));
        let frames = frames.ok()?;
        let numbers: Vec<Option<u64>> = frames.iter().map(|frame| frame.id).collect();
        let is_gapless = numbers.iter().zip(after + 1..).all(|(number, expected)| *number == Some(expected));
        promise::ORDER
            .check(is_gapless && !numbers.is_empty(), || format!("{id} after {after} in {}: {numbers:?}", tongue.name));
        Some(frames)
    }

    /// Every frame that was seen, in the dialect that it was seen in.
    fn check_frames(&self, desk: &mut Inquiry, id: &str, account: &Account, reference: &[Frame]) {
        let mut by_tongue: BTreeMap<usize, Vec<_>> = BTreeMap::new();
        for ((place, number), seen) in &account.frames {
            by_tongue.entry(*place).or_default().push((*number, seen));
        }
        for (place, seen) in by_tongue {
            let tongue = &TONGUES[place];
            let frames = if place == 0 { Some(reference.to_vec()) } else { self.replay(desk, tongue, id, 0) };
            for (number, seen) in seen {
                let stored = frames.as_ref().and_then(|frames| frames.get((number as usize).wrapping_sub(1)));
                promise::BYTES.check(stored.is_some_and(|stored| seen.is(&stored.data)), || {
                    let stored = stored.map_or("missing", |frame| &frame.data);
                    format!("event {number} of {id} in {} was {} and is {stored}", tongue.name, seen.text())
                });
            }
        }
    }

    /// The log is what the callers' words lead to; where it is cut short or begins again, there is a reason.
    fn check_story(&self, id: &str, account: &Account, messages: &[CallerMessage], events: &[Event]) -> Option<Story> {
        let first = messages.first().map_or("", |message| &message.text);
        let agent = self.books.wishes.get(first).map_or(DEFAULT, |asked| asked.agent);
        let story = story::read(agent.kind, messages, events);
        promise::STORIES.check(story.is_ok(), || format!("{id} {messages:?}: {story:?}"));
        if account.cancel == Cancel::Acknowledged {
            let is_last = matches!(events.last(), Some(Event::Status { state, .. }) if state == "canceled");
            promise::STOPPED.check(is_last, || format!("{id} was canceled, and ends with {:?}", events.last()));
        }
        let story = story.ok()?;
        let times = || {
            let times: Vec<i64> = events.iter().filter_map(time_of).collect();
            format!("its statuses came at {times:?}, the server lived {:?}", explain::around(self.lives, events))
        };
        match &story.ending {
            Ending::Canceled => {
                promise::STOPPED.check(account.cancel != Cancel::Never, || format!("{id} was canceled by nobody"));
            }
            Ending::Interrupted(reason) => {
                let is_so = explain::is_interrupted(self.lives, reason, events);
                promise::INTERRUPTED.check(is_so, || format!("{id}: {reason}; {}", times()));
            }
            Ending::Told => {}
        }
        if !story.reruns.is_empty() {
            let is_so = story.reruns.iter().all(|place| explain::is_rerun(self.lives, events, *place));
            promise::RERUN.check(is_so, || format!("{id} began again at {:?}; {}", story.reruns, times()));
        }
        Some(story)
    }

    /// Every task was asked for by somebody, once; every message is where its sender was told.
    fn check_wishes(&self, found: &[Found]) {
        let mut tasks_of: HashMap<&str, Vec<&str>> = HashMap::new();
        for task in found {
            let first = task.messages.first().map_or("", |message| &message.text);
            let is_asked = self.books.wishes.get(first).is_some_and(|asked| {
                asked.continues.is_none() && asked.context.as_ref().is_none_or(|context| *context == task.context)
            });
            promise::UNASKED.check(is_asked, || format!("{} begins with {:?}", task.id, task.messages));
            for message in &task.messages {
                tasks_of.entry(&message.text).or_default().push(&task.id);
            }
        }
        let now = lives::now();
        let is_swept =
            |id: &String| self.books.tasks.get(id).is_some_and(|account| account.may_be_swept(self.lives, now));
        for (text, asked) in &self.books.wishes {
            let tasks = tasks_of.get(text.as_str()).map_or(&[][..], Vec::as_slice);
            let is_kept = |told: &String| tasks == [told.as_str()] || (tasks.is_empty() && is_swept(told));
            let in_its_task = asked.continues.as_ref().is_none_or(|task| tasks.iter().all(|id| id == task));
            let is_once = tasks.len() <= 1 && asked.told.iter().all(is_kept) && in_its_task;
            let offender = || format!("{text:?} is in {tasks:?}, told were {:?}", asked.told);
            match (&asked.continues, asked.is_keyed) {
                (Some(_), false) => promise::FOLLOW_UPS.check(is_once, offender),
                (Some(_), true) => {
                    promise::FOLLOW_UPS.check(is_once, offender) && promise::ONCE.check(is_once, offender)
                }
                (None, true) => promise::ONCE.check(is_once, offender),
                (None, false) => promise::UNASKED.check(is_once, offender),
            };
            if asked.is_refused && asked.told.is_empty() {
                promise::REFUSED.check(tasks.is_empty(), || format!("{text:?} was refused, and is in {tasks:?}"));
            }
        }
    }

    /// Whoever waits at the end can still be answered.
    fn check_waiting(&self, found: &[Found]) {
        let mut desk = Inquiry::new(self.address);
        for (place, task) in found.iter().filter(|task| !is_terminal(&task.state)).enumerate() {
            // The gateway does not tell how it ends.
            let tongue = &WATCHING[place % WATCHING.len()];
            let name = format!("last-{place}");
            let wish = Wish { task: Some(&task.id), ..Wish::new(&name, "thanks", DEFAULT) };
            let answer = desk.ask(tongue, &Operation::Send(wish, Delivery::WhenSettled));
            let told = answer.as_ref().ok().and_then(|answer| tongue.read_task(answer.as_ref().ok()?));
            promise::WAITING.check(told.is_some_and(|told| told.state == "completed" && told.id == task.id), || {
                format!("{} answered in {}: {answer:?}", task.id, tongue.name)
            });
        }
    }
}

/// States and artifacts that somebody was told.
fn check_answers(id: &str, account: &Account, end: &str, events: &[Event]) {
    let made: String = events.iter().filter_map(text_of).collect();
    for (place, told) in &account.answers {
        let tongue = &TONGUES[*place];
        promise::KEPT.check(true, String::new);
        let was_so = events.iter().filter_map(Event::state).any(|state| tongue.word_for(state) == told.state);
        let is_end = !is_terminal(&told.state) || tongue.word_for(end) == told.state;
        promise::STATES.check(was_so && is_end, || {
            format!("{id} was {} in {}, and is {end}: {:?}", told.state, tongue.name, events.last())
        });
        let Some(told_made) = &told.made else { continue };
        let is_so = match tongue.spelling {
            Spelling::Gateway => made.ends_with(told_made.as_str()),
            _ if is_terminal(&told.state) => made == *told_made,
            _ => made.starts_with(told_made.as_str()),
        };
        promise::MADE.check(is_so, || format!("{id} had {told_made:?} in {}, and has {made:?}", tongue.name));
    }
}

fn check_snapshots(id: &str, account: &Account, events: &[Event]) {
    for (place, number, told) in &account.snapshots {
        let tongue = &TONGUES[*place];
        let Some(before) = events.get(..*number as usize) else {
            promise::SNAPSHOTS.check(false, || format!("{id} has no event {number}, as seen in {}", tongue.name));
            continue;
        };
        let state = before.iter().rev().find_map(Event::state).unwrap_or_default();
        let made: String = before.iter().filter_map(text_of).collect();
        let is_so = tongue.word_for(state) == told.state && told.made.as_ref().is_none_or(|told| *told == made);
        promise::SNAPSHOTS
            .check(is_so, || format!("{id} at {number} in {} was {told:?}, by its log {state} {made:?}", tongue.name));
    }
}

/// Runs of one context do not overlap.
fn check_contexts(found: &[Found]) {
    let mut contexts: HashMap<&str, Vec<(i64, i64, &str)>> = HashMap::new();
    for task in found.iter().filter(|task| task.context.starts_with("shared-")) {
        contexts
            .entry(&task.context)
            .or_default()
            .extend(task.ran.map(|(from, until)| (from, until, task.id.as_str())));
    }
    for (context, mut runs) in contexts {
        runs.sort();
        for pair in runs.windows(2) {
            let ((_, until, first), (from, _, second)) = (pair[0], pair[1]);
            promise::IN_TURN
                .check(until <= from, || format!("{first} until {until}, {second} from {from} in {context}"));
        }
    }
}

fn text_of(event: &Event) -> Option<&str> {
    match event {
        Event::Artifact { text, .. } => Some(text),
        Event::Task(_) | Event::Status { .. } => None,
    }
}
