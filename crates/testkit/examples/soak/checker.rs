//! The check at the end of the run: everything that clients were told is compared with what the server has stored.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use sabir_testkit::sse::SseFrame;

use crate::agents::{Agent, DEFAULT, Kind, PROGRAM, Records};
use crate::check_webhooks::Webhooks;
use crate::checker_connection::CheckerConnection;
use crate::dialect_client::{
    CallerMessage, ClientMessage, DIALECTS, Delivery, DialectClient, Event, JsonFormat, LISTING_DIALECTS, Operation,
    REFERENCE, STREAMING_DIALECTS, is_at_rest, is_terminal,
};
use crate::front_log;
use crate::interruptions::{self, time_of};
use crate::ledger::{Cancel, LedgerEntries, TaskRecord};
use crate::log_parser::{self, Ending, ParsedLog};
use crate::made_text::{MadeText, was_made};
use crate::promise;
use crate::random::Random;
use crate::server_processes::{self, ServerProcess};
use crate::upstreams::Upstreams;
use crate::webhook_receiver::WebhookReceivers;

const CHECKERS: usize = 4;
/// What the settling after a start may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A task as the server has it at the end of the run.
pub struct CheckedTask {
    pub id: String,
    pub agent: &'static Agent,
    context: String,
    pub state: String,
    pub messages: Vec<CallerMessage>,
    pub events: Vec<Event>,
    pub log: Option<ParsedLog>,
    ran: Option<(i64, i64)>,
}

pub struct Checker<'a> {
    pub address: SocketAddr,
    pub entries: &'a LedgerEntries,
    pub processes: &'a [ServerProcess],
    pub records: Records,
    pub receivers: &'a WebhookReceivers,
    pub upstreams: &'a Upstreams,
    pub seed: u64,
}

impl Checker<'_> {
    pub fn check(&self) {
        self.wait_until_settled();
        self.wait_until_delivered();
        let webhooks = self.webhooks_by_task();
        let ids = self.check_lists();
        let listed: HashSet<&str> = ids.iter().map(String::as_str).collect();
        for (id, record) in &self.entries.tasks {
            let is_there = listed.contains(id.as_str());
            if !is_there && record.may_be_swept(self.processes, server_processes::now()) {
                promise::SWEPT.check(true, String::new);
                continue;
            }
            promise::KEPT.check(is_there, || {
                format!(
                    "{id} was told of in {} answers and {} frames, and is gone",
                    record.answers.len(),
                    record.frames.len()
                )
            });
        }
        let found = Mutex::new(Vec::with_capacity(ids.len()));
        thread::scope(|scope| {
            for (place, part) in ids.chunks(ids.len().div_ceil(CHECKERS).max(1)).enumerate() {
                let (found, webhooks) = (&found, &webhooks);
                scope.spawn(move || {
                    let mut random = Random::new(self.seed ^ place as u64);
                    let mut connection = CheckerConnection::new(self.address);
                    for id in part {
                        let task = self.check_task(&mut connection, &mut random, webhooks, id);
                        found.lock().expect("nobody panics over it").extend(task);
                    }
                });
            }
        });
        let found = found.into_inner().expect("nobody panics over it");
        self.check_messages(&found);
        self.check_program(&found);
        self.check_fronts(&found);
        check_contexts(&found);
        self.check_waiting(&found);
    }

    /// After a start every task comes to rest.
    fn wait_until_settled(&self) {
        let mut connection = CheckerConnection::new(self.address);
        // The program gives up on its questions in time.
        let mut program = CheckerConnection::of_agent(self.address, PROGRAM);
        let began = Instant::now();
        loop {
            let left_in = |connection: &mut CheckerConnection, state: &str| {
                let page = connection.list(REFERENCE, &[("pageSize", "10"), ("status", state)]);
                page.map(|page| (page["totalSize"].as_u64().unwrap_or(u64::MAX), page["tasks"].to_string()))
            };
            let left = [
                left_in(&mut connection, "TASK_STATE_SUBMITTED"),
                left_in(&mut program, "TASK_STATE_INPUT_REQUIRED"),
                left_in(&mut connection, "TASK_STATE_WORKING"),
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
        let mut connection = CheckerConnection::new(self.address);
        let mut all: Option<Vec<String>> = None;
        for dialect in LISTING_DIALECTS {
            let ids = connection.pages(dialect, None);
            let distinct: HashSet<&String> = ids.iter().collect();
            promise::TOTALS.check(distinct.len() == ids.len(), || format!("{} lists tasks twice", dialect.name));
            if let Some(all) = &all {
                promise::TOTALS
                    .check(*all == ids, || format!("{} lists {}, 1.0 {}", dialect.name, ids.len(), all.len()));
            }
            all.get_or_insert(ids);
        }
        let all = all.unwrap_or_default();
        let mut by_state = 0;
        for state in
            ["SUBMITTED", "WORKING", "INPUT_REQUIRED", "AUTH_REQUIRED", "COMPLETED", "CANCELED", "FAILED", "REJECTED"]
        {
            by_state += connection.pages(REFERENCE, Some(&format!("TASK_STATE_{state}"))).len();
        }
        promise::TOTALS.check(by_state == all.len(), || format!("{by_state} by state, {} in all", all.len()));
        all
    }

    fn check_task(
        &self,
        connection: &mut CheckerConnection,
        random: &mut Random,
        webhooks: &Webhooks<'_>,
        id: &str,
    ) -> Option<CheckedTask> {
        let nothing = TaskRecord::default();
        let record = self.entries.tasks.get(id).unwrap_or(&nothing);
        let task = connection.ask(REFERENCE, &Operation::Get(id));
        let is_there = matches!(&task, Ok(Ok(_)));
        promise::KEPT.check(is_there, || format!("{id} is listed, but: {task:?}"));
        let task = task.ok()?.ok()?;
        let view = REFERENCE.read_task(&task)?;
        // The stream of a task that is still at work would not end, so nothing else is sent about it.
        if !promise::SETTLED.check(is_at_rest(&view.state), || format!("{id} is {}", view.state)) {
            return None;
        }
        let messages = DialectClient::caller_messages(&task);

        let frames = self.replay(connection, REFERENCE, id, 0)?;
        let events: Vec<Event> = frames.iter().filter_map(|frame| REFERENCE.read_frame(frame)).collect();
        promise::ORDER.check(events.len() == frames.len(), || format!("{id} has frames that are no events"));
        self.check_frames(connection, id, record, &frames);
        // A replay works from any event and in any dialect.
        let after = random.between(0, frames.len() as u64 - 1);
        let dialect = random.one_of(STREAMING_DIALECTS);
        let rest = self.replay(connection, dialect, id, after);
        promise::PICKED_UP.check(rest.is_some_and(|rest| rest.len() as u64 == frames.len() as u64 - after), || {
            format!("{id} after {after} in {}", dialect.name)
        });
        let first = messages.first().map_or("", |message| &message.text);
        let agent = self.entries.messages.get(first).map_or(DEFAULT, |sent| sent.agent);
        check_answers(id, agent, record, &view.state, &events);
        check_snapshots(id, record, &events);
        self.check_webhooks(webhooks, id, first, &events);
        let log = self.check_log(id, agent, record, &messages, &events);

        // Of a task that was run again, the last run counts.
        let last_run = log.as_ref().and_then(|log| log.reruns.last().copied()).unwrap_or(0);
        // It may say before what it waits for.
        let ran = events[last_run..].iter().skip_while(|event| event.state() != Some("working"));
        let times: Vec<i64> = ran.filter_map(time_of).collect();
        let was_interrupted = matches!(&log, Some(ParsedLog { ending: Ending::Interrupted(_), .. }));
        let ran = (is_terminal(&view.state) && !was_interrupted && times.len() > 1)
            .then(|| (times[0], times[times.len() - 1]));
        let context = task["contextId"].as_str().unwrap_or_default().to_owned();
        // Other logs are long, and nobody looks at them again.
        let events = if agent.kind.is_front() { events } else { Vec::new() };
        Some(CheckedTask { id: id.to_owned(), agent, context, state: view.state, messages, events, log, ran })
    }

    /// The events after a number, which have the numbers after it.
    fn replay(
        &self,
        connection: &mut CheckerConnection,
        dialect: &DialectClient,
        id: &str,
        after: u64,
    ) -> Option<Vec<SseFrame>> {
        let frames = connection.replay(dialect, id, after);
        let is_read = frames.is_ok();
        promise::ORDER.check(is_read, || format!("no replay of {id} after {after} in {}: {frames:?}", dialect.name));
        let frames = frames.ok()?;
        let numbers: Vec<Option<u64>> = frames.iter().map(|frame| frame.id).collect();
        let is_gapless = numbers.iter().zip(after + 1..).all(|(number, expected)| *number == Some(expected));
        promise::ORDER.check(is_gapless && !numbers.is_empty(), || {
            format!("{id} after {after} in {}: {numbers:?}", dialect.name)
        });
        Some(frames)
    }

    /// Every frame that was seen, in the dialect that it was seen in.
    fn check_frames(&self, connection: &mut CheckerConnection, id: &str, record: &TaskRecord, reference: &[SseFrame]) {
        let mut by_dialect: BTreeMap<usize, Vec<_>> = BTreeMap::new();
        for ((place, number), seen) in &record.frames {
            by_dialect.entry(*place).or_default().push((*number, seen));
        }
        for (place, seen) in by_dialect {
            let dialect = &DIALECTS[place];
            let frames = if place == 0 { Some(reference.to_vec()) } else { self.replay(connection, dialect, id, 0) };
            for (number, seen) in seen {
                let stored = frames.as_ref().and_then(|frames| frames.get((number as usize).wrapping_sub(1)));
                promise::BYTES.check(stored.is_some_and(|stored| seen.is(&stored.data)), || {
                    let stored = stored.map_or("missing", |frame| &frame.data);
                    format!("event {number} of {id} in {} was {} and is {stored}", dialect.name, seen.text())
                });
            }
        }
    }

    /// The log is what the client's messages lead to; where it is cut short or begins again, there is a reason.
    fn check_log(
        &self,
        id: &str,
        agent: &Agent,
        record: &TaskRecord,
        messages: &[CallerMessage],
        events: &[Event],
    ) -> Option<ParsedLog> {
        let is_rerun = |place: usize| interruptions::is_rerun(self.processes, agent.kind, events, place);
        let log = match agent.kind {
            Kind::Front(_) => front_log::parse(messages, events, is_rerun),
            // Where no way to read it explains all that began again, any will do for the report.
            Kind::Demo | Kind::Program => log_parser::parse(agent.kind, messages, events, &is_rerun)
                .or_else(|_| log_parser::parse(agent.kind, messages, events, &|_| true)),
        };
        promise::STORIES.check(log.is_ok(), || format!("{id} {messages:?}: {log:?}"));
        if record.cancel == Cancel::Acknowledged {
            let is_last = matches!(events.last(), Some(Event::Status { state, .. }) if state == "canceled");
            promise::STOPPED.check(is_last, || format!("{id} was canceled, and ends with {:?}", events.last()));
        }
        let log = log.ok()?;
        let times = || {
            let times: Vec<i64> = events.iter().filter_map(time_of).collect();
            format!(
                "its statuses came at {times:?}, the server lived {:?}",
                interruptions::around(self.processes, events)
            )
        };
        match &log.ending {
            Ending::Canceled => {
                promise::STOPPED.check(record.cancel != Cancel::Never, || format!("{id} was canceled by nobody"));
            }
            Ending::Interrupted(reason) => {
                let is_so = interruptions::is_interrupted(self.processes, agent.kind, reason, events);
                promise::INTERRUPTED.check(is_so, || format!("{id}: {reason}; {}", times()));
            }
            Ending::ByAgent => {}
        }
        if !log.reruns.is_empty() {
            let is_so = log.reruns.iter().all(|place| is_rerun(*place));
            promise::RERUN.check(is_so, || format!("{id} began again at {:?}; {}", log.reruns, times()));
        }
        Some(log)
    }

    /// Every task was requested by a client, once; every message is in the task that its sender was told.
    fn check_messages(&self, found: &[CheckedTask]) {
        let mut tasks_of: HashMap<&str, Vec<&str>> = HashMap::new();
        for task in found {
            let first = task.messages.first().map_or("", |message| &message.text);
            let is_asked = self.entries.messages.get(first).is_some_and(|sent| {
                sent.continues.is_none() && sent.context.as_ref().is_none_or(|context| *context == task.context)
            });
            promise::UNASKED.check(is_asked, || format!("{} begins with {:?}", task.id, task.messages));
            for message in &task.messages {
                tasks_of.entry(&message.text).or_default().push(&task.id);
            }
        }
        let now = server_processes::now();
        let is_swept =
            |id: &String| self.entries.tasks.get(id).is_some_and(|record| record.may_be_swept(self.processes, now));
        for (text, sent) in &self.entries.messages {
            let tasks = tasks_of.get(text.as_str()).map_or(&[][..], Vec::as_slice);
            let is_kept = |id: &String| tasks == [id.as_str()] || (tasks.is_empty() && is_swept(id));
            let in_its_task = sent.continues.as_ref().is_none_or(|task| tasks.iter().all(|id| id == task));
            let is_once = tasks.len() <= 1 && sent.tasks.iter().all(is_kept) && in_its_task;
            let offender = || format!("{text:?} is in {tasks:?}, its senders were told {:?}", sent.tasks);
            match (&sent.continues, sent.is_keyed) {
                (Some(_), false) => promise::FOLLOW_UPS.check(is_once, offender),
                (Some(_), true) => {
                    promise::FOLLOW_UPS.check(is_once, offender) && promise::ONCE.check(is_once, offender)
                }
                (None, true) => promise::ONCE.check(is_once, offender),
                (None, false) => promise::UNASKED.check(is_once, offender),
            };
            if sent.is_refused && sent.tasks.is_empty() {
                promise::REFUSED.check(tasks.is_empty(), || format!("{text:?} was refused, and is in {tasks:?}"));
            }
        }
    }

    /// A task that waits at the end can still be answered.
    fn check_waiting(&self, found: &[CheckedTask]) {
        let mut connection = CheckerConnection::new(self.address);
        for (place, task) in found.iter().filter(|task| !is_terminal(&task.state)).enumerate() {
            // The gateway does not tell how it ends.
            let dialect = &STREAMING_DIALECTS[place % STREAMING_DIALECTS.len()];
            let name = format!("last-{place}");
            let message = ClientMessage { task: Some(&task.id), ..ClientMessage::new(&name, "thanks", task.agent) };
            let answer = connection.ask(dialect, &Operation::Send(message, Delivery::WhenSettled));
            let view = answer.as_ref().ok().and_then(|answer| dialect.read_task(answer.as_ref().ok()?));
            promise::WAITING.check(view.is_some_and(|view| view.state == "completed" && view.id == task.id), || {
                format!("{} answered in {}: {answer:?}", task.id, dialect.name)
            });
        }
    }
}

/// States and artifacts that clients were told.
fn check_answers(id: &str, agent: &Agent, record: &TaskRecord, end: &str, events: &[Event]) {
    let made = MadeText::of(events).text();
    for (place, view) in &record.answers {
        let dialect = &DIALECTS[*place];
        promise::KEPT.check(true, String::new);
        let was_so = events.iter().filter_map(Event::state).any(|state| dialect.state_name(state) == view.state);
        let is_end = !is_terminal(&view.state) || dialect.state_name(end) == view.state;
        promise::STATES.check(was_so && is_end, || {
            format!("{id} was {} in {}, and is {end}: {:?}", view.state, dialect.name, events.last())
        });
        let Some(seen_text) = &view.made else { continue };
        let is_so = match dialect.format {
            JsonFormat::Gateway => made.ends_with(seen_text.as_str()),
            _ if is_terminal(&view.state) => made == *seen_text,
            // What a remote agent has sent twice or out of order is replaced.
            _ if agent.kind.is_front() => was_made(events, seen_text),
            _ => made.starts_with(seen_text.as_str()),
        };
        promise::MADE.check(is_so, || format!("{id} had {seen_text:?} in {}, and has {made:?}", dialect.name));
    }
}

fn check_snapshots(id: &str, record: &TaskRecord, events: &[Event]) {
    for (place, number, view) in &record.snapshots {
        let dialect = &DIALECTS[*place];
        let Some(before) = events.get(..*number as usize) else {
            promise::SNAPSHOTS.check(false, || format!("{id} has no event {number}, as seen in {}", dialect.name));
            continue;
        };
        let state = before.iter().rev().find_map(Event::state).unwrap_or_default();
        let made = MadeText::of(before).text();
        let is_so = dialect.state_name(state) == view.state && view.made.as_ref().is_none_or(|view| *view == made);
        promise::SNAPSHOTS
            .check(is_so, || format!("{id} at {number} in {} was {view:?}, by its log {state} {made:?}", dialect.name));
    }
}

/// Runs of one context do not overlap.
fn check_contexts(found: &[CheckedTask]) {
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
