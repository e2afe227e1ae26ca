//! The end of the run: everything that anyone was told is held against what the server has.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use sabir_testkit::http::Http;
use sabir_testkit::sse::{self, Frame};
use serde_json::Value;

use crate::ledger::{Account, Books, Cancel};
use crate::lives::{End, GRACE, How};
use crate::promise;
use crate::random::Random;
use crate::story::{self, Ending};
use crate::tongue::{
    Delivery, Event, LISTING, Operation, REFERENCE, Spelling, TONGUES, Tongue, WATCHING, Wish, is_at_rest, is_terminal,
};

const CHECKERS: usize = 4;
/// What a clock may be off between two processes.
const TICK: i64 = 50;
/// What the settling after a start may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A task as it is at the end.
struct Found {
    id: String,
    context: String,
    state: String,
    texts: Vec<String>,
    ran: Option<(i64, i64)>,
}

pub struct Checker<'a> {
    pub address: SocketAddr,
    pub books: &'a Books,
    pub ends: &'a [End],
    pub seed: u64,
}

impl Checker<'_> {
    pub fn check(&self) {
        self.wait_until_settled();
        let ids = self.check_lists();
        let listed: HashSet<&str> = ids.iter().map(String::as_str).collect();
        for (id, account) in &self.books.tasks {
            promise::KEPT.check(listed.contains(id.as_str()), || {
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
                    let mut desk = Desk { address: self.address, http: None };
                    for id in part {
                        let task = self.check_task(&mut desk, &mut random, id);
                        found.lock().expect("nobody panics over it").extend(task);
                    }
                });
            }
        });
        let found = found.into_inner().expect("nobody panics over it");
        self.check_wishes(&found);
        check_contexts(&found);
        self.check_waiting(&found);
    }

    /// After a start nobody is left working, or waits for a place for long.
    fn wait_until_settled(&self) {
        let mut desk = Desk { address: self.address, http: None };
        let began = Instant::now();
        loop {
            let left = ["TASK_STATE_WORKING", "TASK_STATE_SUBMITTED"].map(|state| {
                let page = desk.list(REFERENCE, &[("pageSize", "10"), ("status", state)]);
                page.map(|page| (page["totalSize"].as_u64().unwrap_or(u64::MAX), page["tasks"].to_string()))
            });
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
        let mut desk = Desk { address: self.address, http: None };
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

    fn check_task(&self, desk: &mut Desk, random: &mut Random, id: &str) -> Option<Found> {
        let nothing = Account::default();
        let account = self.books.tasks.get(id).unwrap_or(&nothing);
        let task = desk.ask(REFERENCE, &Operation::Get(id));
        let is_there = matches!(&task, Ok(Ok(_)));
        promise::KEPT.check(is_there, || format!("{id} is listed, but: {task:?}"));
        let task = task.ok()?.ok()?;
        let told = REFERENCE.read_task(&task)?;
        promise::SETTLED.check(is_at_rest(&told.state), || format!("{id} is {}", told.state));
        let history = task["history"].as_array().into_iter().flatten();
        let said = history.filter(|message| message["role"] == "ROLE_USER");
        let texts: Vec<String> = said.map(|message| REFERENCE.text_of(message)).collect();

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
        self.check_story(id, account, &texts, &events);

        let times: Vec<i64> = events.iter().filter_map(time_of).collect();
        let was_interrupted = matches!(events.last(), Some(Event::Status { words: Some(words), .. }) if words.starts_with("interrupted: "));
        let ran = (is_terminal(&told.state) && !was_interrupted && times.len() > 1)
            .then(|| (times[0], times[times.len() - 1]));
        let context = task["contextId"].as_str().unwrap_or_default().to_owned();
        Some(Found { id: id.to_owned(), context, state: told.state, texts, ran })
    }

    /// The events after a number, which have the numbers after it.
    fn replay(&self, desk: &mut Desk, tongue: &Tongue, id: &str, after: u64) -> Option<Vec<Frame>> {
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
    fn check_frames(&self, desk: &mut Desk, id: &str, account: &Account, reference: &[Frame]) {
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

    /// The log is what the caller's words lead to; where it is cut short, there is a reason.
    fn check_story(&self, id: &str, account: &Account, texts: &[String], events: &[Event]) {
        let ending = story::read(texts, events);
        promise::STORIES.check(ending.is_ok(), || format!("{id} {texts:?}: {ending:?}"));
        match ending {
            Ok(Ending::Canceled) => {
                promise::STOPPED.check(account.cancel != Cancel::Never, || format!("{id} was canceled by nobody"));
            }
            Ok(Ending::Interrupted(reason)) => {
                let is_so = self.is_explained(&reason, events);
                promise::INTERRUPTED.check(is_so, || {
                    let times: Vec<i64> = events.iter().filter_map(time_of).collect();
                    format!("{id}: {reason} at {times:?}, the server ended {:?}", self.ends)
                });
            }
            Ok(Ending::Told) | Err(_) => {}
        }
        if account.cancel == Cancel::Acknowledged {
            let is_last = matches!(events.last(), Some(Event::Status { state, .. }) if state == "canceled");
            promise::STOPPED.check(is_last, || format!("{id} was canceled, and ends with {:?}", events.last()));
        }
    }

    /// An interruption needs an end of the server between it and what came before it.
    fn is_explained(&self, reason: &str, events: &[Event]) -> bool {
        let times: Vec<i64> = events.iter().filter_map(time_of).collect();
        let [.., before, at] = times[..] else { return false };
        self.ends.iter().any(|end| match (end.how, reason) {
            // Settled by the next start, before or just after it is ready.
            (_, "interrupted: the server was restarted while the task was running") => {
                let is_killed = end.how == How::Killed;
                is_killed && before <= end.gone + TICK && at + TICK >= end.from && at <= end.until.saturating_add(1000)
            }
            // Settled by itself, when its time to finish was over.
            (How::Stopped, "interrupted: the server was stopped") => {
                let grace = GRACE.as_millis() as i64;
                at + TICK >= end.from + grace && at <= end.gone + TICK
            }
            _ => false,
        })
    }

    /// Every task was asked for by somebody, once.
    fn check_wishes(&self, found: &[Found]) {
        let mut tasks_of: HashMap<&str, Vec<&str>> = HashMap::new();
        for task in found {
            let first = task.texts.first().map_or("", String::as_str);
            let is_asked = self.books.wishes.get(first).is_some_and(|asked| {
                asked.answers.is_none() && asked.context.as_ref().is_none_or(|context| *context == task.context)
            });
            promise::UNASKED.check(is_asked, || format!("{} begins with {:?}", task.id, task.texts));
            for text in &task.texts {
                tasks_of.entry(text).or_default().push(&task.id);
            }
        }
        for (text, asked) in &self.books.wishes {
            let tasks = tasks_of.get(text.as_str()).map_or(&[][..], Vec::as_slice);
            let is_heard = !asked.told.is_empty();
            let told_tasks = asked.told.iter().all(|told| tasks == [told.as_str()]);
            let in_its_task = asked.answers.as_ref().is_none_or(|task| tasks.iter().all(|id| id == task));
            let is_once = tasks.len() <= 1 && told_tasks && in_its_task;
            let offender = || format!("{text:?} is in {tasks:?}, told were {:?}", asked.told);
            if asked.is_keyed {
                promise::ONCE.check(is_once, offender);
            } else {
                promise::UNASKED.check(is_once, offender);
            }
            promise::KEPT.check(!is_heard || !tasks.is_empty(), || format!("{text:?} was heard, and is nowhere"));
        }
    }

    /// Whoever waits at the end can still be answered.
    fn check_waiting(&self, found: &[Found]) {
        let mut desk = Desk { address: self.address, http: None };
        for (place, task) in found.iter().filter(|task| !is_terminal(&task.state)).enumerate() {
            // The gateway does not tell how it ends.
            let tongue = &WATCHING[place % WATCHING.len()];
            let name = format!("last-{place}");
            let wish = Wish { name: &name, text: "thanks", context: None, task: Some(&task.id) };
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

/// When a status came, in milliseconds since 1970.
fn time_of(event: &Event) -> Option<i64> {
    let Event::Status { time, .. } = event else { return None };
    let number = |from: usize, to: usize| time.get(from..to)?.parse::<i64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    // Days since 1970, with years that begin in March.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468;
    let seconds = (days * 24 + number(11, 13)?) * 3600 + number(14, 16)? * 60 + number(17, 19)?;
    Some(seconds * 1000 + number(20, 23).unwrap_or(0))
}

/// One who asks, on one connection as long as it lasts.
struct Desk {
    address: SocketAddr,
    http: Option<Http>,
}

impl Desk {
    fn exchange(
        &mut self,
        tongue: &Tongue,
        operation: &Operation<'_>,
        headers: &[(&str, &str)],
    ) -> io::Result<sabir_testkit::http::Reply> {
        let request = tongue.request(operation);
        let mut http = self.http.take().map_or_else(|| Http::connect(self.address), Ok)?;
        let headers = tongue.headers(headers);
        let reply = http.exchange(request.method, &request.path, &headers, request.body.as_bytes())?;
        if reply.header("connection") != Some("close") {
            self.http = Some(http);
        }
        Ok(reply)
    }

    fn ask(&mut self, tongue: &Tongue, operation: &Operation<'_>) -> io::Result<Result<Value, i64>> {
        Ok(tongue.read(&self.exchange(tongue, operation, &[])?))
    }

    fn list(&mut self, tongue: &Tongue, filters: &[(&str, &str)]) -> Result<Value, String> {
        match self.ask(tongue, &Operation::List(filters)) {
            Ok(Ok(page)) => Ok(page),
            Ok(Err(code)) => Err(code.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The ids of all tasks of a state, page by page; every page says the same total, and it is right.
    fn pages(&mut self, tongue: &Tongue, state: Option<&str>) -> Vec<String> {
        let mut ids = Vec::new();
        let mut token = String::new();
        let mut total = None;
        loop {
            let mut filters = vec![("pageSize", "100")];
            filters.extend(state.map(|state| ("status", state)));
            if !token.is_empty() {
                filters.push(("pageToken", &token));
            }
            let page = match self.list(tongue, &filters) {
                Ok(page) => page,
                Err(error) => {
                    promise::TOTALS.check(false, || format!("no page in {}: {error}", tongue.name));
                    return ids;
                }
            };
            let said = page["totalSize"].as_u64();
            promise::TOTALS.check(said == *total.get_or_insert(said), || format!("{said:?} after {total:?}"));
            let tasks = page["tasks"].as_array().into_iter().flatten();
            ids.extend(tasks.filter_map(|task| task["id"].as_str()).map(str::to_owned));
            token = page["nextPageToken"].as_str().unwrap_or_default().to_owned();
            if token.is_empty() {
                break;
            }
        }
        let count = ids.len() as u64;
        promise::TOTALS.check(total == Some(Some(count)), || format!("{count} of {state:?}, and a total of {total:?}"));
        ids
    }

    fn replay(&mut self, tongue: &Tongue, id: &str, after: u64) -> Result<Vec<Frame>, String> {
        let after = after.to_string();
        let headers = [("Last-Event-ID", after.as_str())];
        let reply = self.exchange(tongue, &Operation::Subscribe(id), &headers).map_err(|error| error.to_string())?;
        if reply.status != 200
            || !reply.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"))
        {
            return Err(reply.text());
        }
        Ok(sse::frames(&reply.text()))
    }
}
