//! Compares what arrived at webhooks with the logs of their tasks.

use std::collections::{HashMap, HashSet};
use std::thread;
use std::time::{Duration, Instant};

use sabir_testkit::http::Http;

use crate::checker::Checker;
use crate::dialect_client::{DIALECTS, DialectClient, Event, JsonFormat, is_at_rest, is_terminal};
use crate::interruptions::time_of;
use crate::ledger::{WebhookRecord, WebhookTask};
use crate::made_text::MadeText;
use crate::promise;
use crate::webhook_receiver::{Arrival, Told};

/// What the last deliveries may take: the longest pause between two attempts, and as much again.
const PATIENCE: Duration = Duration::from_secs(60);
/// What a clock may be off.
const TICK: i64 = 50;

/// The webhooks of the run, by the task or by the message that made the task.
pub type Webhooks<'a> = HashMap<&'a str, Vec<(&'a str, &'a WebhookRecord)>>;

/// An event that a webhook wants.
struct Wanted {
    told: Told,
    /// When it was stored at the earliest.
    time: i64,
}

impl<'a> Checker<'a> {
    pub fn webhooks_by_task(&self) -> Webhooks<'a> {
        let mut webhooks: Webhooks<'a> = HashMap::new();
        for (name, record) in &self.entries.webhooks {
            let (WebhookTask::OfMessage(key) | WebhookTask::Task(key)) = &record.task;
            webhooks.entry(key).or_default().push((name, record));
        }
        webhooks
    }

    /// When nothing fails any more, nothing stays behind.
    pub fn wait_until_delivered(&self) {
        self.receivers.be_kind();
        let began = Instant::now();
        let left = |state: &str| {
            let path = format!("/admin/v1/deliveries?limit=3&state={state}");
            let reply = Http::connect(self.address).and_then(|mut http| http.exchange("GET", &path, &[], b""));
            reply.map_or_else(|error| error.to_string(), |reply| reply.text())
        };
        let is_none = |text: &str| text.starts_with(r#"{"deliveries":[]"#);
        let mut pending = left("pending");
        while !is_none(&pending) && began.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(100));
            pending = left("pending");
        }
        promise::ARRIVES.check(is_none(&pending), || format!("after {PATIENCE:?} there are left: {pending}"));
        let given_up = left("given-up");
        promise::ARRIVES.check(is_none(&given_up), || format!("given up: {given_up}"));
    }

    pub fn check_webhooks(&self, webhooks: &Webhooks<'_>, id: &str, message: &str, events: &[Event]) {
        let of_task = [id, message].into_iter().filter_map(|key| webhooks.get(key)).flatten();
        for (name, record) in of_task {
            let wanted = wanted(&DIALECTS[record.dialect], record.wants_all, events);
            let arrivals = self.receivers.arrivals_of(name);
            let offender = |why: &str| {
                let wanted: Vec<&Told> = wanted.iter().map(|wanted| &wanted.told).collect();
                format!(
                    "{why}: {id} {name} in {}: {record:?} of {wanted:?} got {arrivals:?}",
                    DIALECTS[record.dialect].name
                )
            };
            let first = first_of_each_id(arrivals.iter());
            let taken = first_of_each_id(arrivals.iter().filter(|arrival| arrival.is_taken));
            // What was stored before the webhook was set is not sent.
            let from = wanted.len().checked_sub(first.len());
            let is_in_order = from.is_some_and(|from| {
                wanted[from..].iter().zip(&first).all(|(wanted, told)| Some(&wanted.told) == *told)
            });
            promise::ARRIVES.check(is_in_order, || offender("not in order"));
            promise::ARRIVES.check(first == taken, || offender("not all taken"));
            promise::ARRIVES
                .check(from.is_some_and(|from| from <= must_begin(record, &wanted)), || offender("missing"));
            check_ids(&arrivals, &wanted, offender);
        }
    }
}

/// The number of the first wanted event that must have arrived.
fn must_begin(record: &WebhookRecord, wanted: &[Wanted]) -> usize {
    match (&record.task, record.set_at) {
        (WebhookTask::OfMessage(_), _) => 0,
        // Nobody was told that it is set.
        (WebhookTask::Task(_), None) => wanted.len(),
        (WebhookTask::Task(_), Some(set_at)) => {
            let later = wanted.iter().position(|wanted| wanted.time > set_at + TICK).unwrap_or(wanted.len());
            let is_over = wanted.last().is_some_and(|wanted| match &wanted.told {
                Told::Status { state, .. } | Told::Task { state, .. } => is_terminal(state),
                Told::Artifact { .. } => false,
            });
            // Also a webhook that comes too late gets the end.
            if is_over { later.min(wanted.len() - 1) } else { later }
        }
    }
}

/// What a webhook of this dialect is told of a task with this log.
fn wanted(dialect: &DialectClient, wants_all: bool, events: &[Event]) -> Vec<Wanted> {
    let (mut status, mut now, mut made) = ((String::new(), String::new()), i64::MIN, MadeText::default());
    let mut all = Vec::new();
    for event in events {
        let told = match event {
            Event::Task(_) => continue,
            Event::Status { state, time, .. } => {
                now = time_of(event).unwrap_or(now);
                status = (dialect.state_name(state).to_owned(), time.clone());
                if state == "submitted" && !wants_all {
                    continue;
                }
                let (state, time) = status.clone();
                match dialect.format {
                    JsonFormat::V1 if !is_at_rest(&state) => Told::Status { state, time },
                    _ => Told::Task { state, time, made: made.len() },
                }
            }
            Event::Artifact { text, .. } => {
                made.take(event);
                let (state, time) = status.clone();
                match dialect.format {
                    _ if !wants_all => continue,
                    JsonFormat::V1 => Told::Artifact { text: text.clone() },
                    _ => Told::Task { state, time, made: made.len() },
                }
            }
        };
        all.push(Wanted { told, time: now });
    }
    all
}

fn first_of_each_id<'a>(arrivals: impl Iterator<Item = &'a Arrival>) -> Vec<Option<&'a Told>> {
    let mut ids = HashSet::new();
    arrivals.filter(|arrival| ids.insert(&arrival.id)).map(|arrival| arrival.told.as_ref()).collect()
}

/// What is sent again has the same id and the same body.
fn check_ids(arrivals: &[Arrival], wanted: &[Wanted], offender: impl Fn(&str) -> String) {
    for (place, arrival) in arrivals.iter().enumerate() {
        let is_same = |other: &&Arrival| other.id == arrival.id || other.body_hash == arrival.body_hash;
        let Some(earlier) = arrivals[..place].iter().rfind(is_same) else { continue };
        let is_one = earlier.id == arrival.id && earlier.body_hash == arrival.body_hash;
        // Two events of one moment can look the same.
        let twins = || wanted.iter().filter(|wanted| Some(&wanted.told) == arrival.told.as_ref()).count() > 1;
        promise::SAME_ID.check(is_one || (earlier.id != arrival.id && twins()), || offender("another id or body"));
    }
}
