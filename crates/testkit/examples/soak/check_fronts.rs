//! Compares the tasks of fronts with what their remote agents know to be true.

use std::collections::{BTreeSet, HashMap};

use sabir_testkit::remote::{RemoteProtocol, RemoteRole, RemoteState, RemoteTask, TaskEvent};

use crate::agents::Kind;
use crate::checker::{CheckedTask, Checker};
use crate::dialect_client::Event;
use crate::interruptions::time_of;
use crate::log_parser::Ending;
use crate::made_text::MadeText;
use crate::nodes::TAKEOVER_MS;
use crate::promise;
use crate::server_processes::Recovery;
use crate::upstream_faults::Trouble;
use crate::upstreams::Upstream;

/// What a clock may be off between two processes, and what a busy machine may add.
const TICK: i64 = 200;
/// Within this time a server that has sent a message has stored the ids of the remote task.
const IDS_STORED: i64 = 1500;
/// What a cancel may take that is sent when the task has already ended here.
const LATE_CANCEL: i64 = 1000;

/// What a remote agent has, and where each message is.
struct Truth<'a> {
    upstream: &'a Upstream,
    protocol: RemoteProtocol,
    tasks: Vec<RemoteTask>,
    /// By the text of a message, the places of the tasks that have it: more than one if it was taken more than once.
    places: HashMap<String, Vec<usize>>,
}

/// How a task ended here.
struct End<'a> {
    state: &'a str,
    words: &'a str,
    time: i64,
    /// When its last run began.
    began: i64,
}

impl Checker<'_> {
    pub fn check_fronts(&self, found: &[CheckedTask]) {
        for (front, upstream) in self.upstreams.all() {
            let Kind::Front(protocol) = front.kind else { continue };
            let truth = Truth::of(upstream, protocol);
            for task in found.iter().filter(|task| task.agent == front) {
                self.check_front(task, &truth);
            }
            self.check_sent_once(&truth);
        }
    }

    fn check_front(&self, task: &CheckedTask, truth: &Truth<'_>) {
        let (Some(log), Some(end)) = (&task.log, End::of(&task.events)) else { return };
        match log.ending {
            Ending::Canceled | Ending::Interrupted(_) => self.check_ended_there(task, truth, &end),
            Ending::ByAgent => {
                let newest = task.messages.iter().rev().find_map(|message| truth.task_of(&message.text));
                let is_as_there = newest.is_some_and(|remote| end.is_as(remote, truth.protocol));
                if end.state == "failed" && !is_as_there {
                    promise::FAULTED.check(self.is_excused(task, truth, &end), || {
                        format!(
                            "{} {}: {}; there: {newest:?}; {}",
                            task.agent.id,
                            task.id,
                            end.words,
                            truth.around(&end)
                        )
                    });
                    return;
                }
                let (made, there) = (MadeText::of(&task.events).text(), truth.text_of(task));
                promise::FRONTED.check(is_as_there && made == there, || {
                    let offender = format!("{} {} is {} {:?}", task.agent.id, task.id, end.state, end.words);
                    format!("{offender} and has {made:?}; there: {newest:?}, in all {there:?}; {}", truth.around(&end))
                });
            }
        }
    }

    /// Whether something that happened to the remote agent or to the server explains that the task failed here.
    fn is_excused(&self, task: &CheckedTask, truth: &Truth<'_>, end: &End<'_>) -> bool {
        let had = |troubles: &[Trouble]| truth.upstream.had(troubles, end.began - TICK, end.time + TICK);
        if end.words.starts_with("outcome unknown: ") {
            // Another node resumes the turn some time after the end of its own.
            let is_of_nodes = self.processes.iter().any(|process| process.is_node);
            let takeover = if is_of_nodes { TAKEOVER_MS } else { 0 };
            return had(Trouble::LOSES_ANSWERS) || self.ended_between(end.began - IDS_STORED - takeover, end.time);
        }
        let refusals = ["the remote agent cannot be reached: ", "the remote agent is not available now: "];
        let is_refused = refusals.iter().any(|refusal| end.words.starts_with(refusal));
        let is_there = task.messages.iter().all(|message| truth.places.contains_key(&message.text));
        is_refused && !is_there && had(Trouble::REFUSES)
    }

    /// A task that was ended here is ended at the remote agent too, unless that could not be told, or unless the server was
    /// killed before it had stored the ids of the remote task.
    fn check_ended_there(&self, task: &CheckedTask, truth: &Truth<'_>, end: &End<'_>) {
        let asked = self.entries.tasks.get(&task.id).and_then(|record| record.cancel_asked).unwrap_or(end.time);
        let of_task: BTreeSet<usize> =
            task.messages.iter().filter_map(|message| truth.places.get(&message.text)).flatten().copied().collect();
        for remote in of_task.into_iter().map(|place| &truth.tasks[place]) {
            let is_over = remote.state.is_terminal();
            let ended_there = i64::try_from(remote.status_time).unwrap_or(i64::MAX);
            let is_so = is_over && (remote.state == RemoteState::Canceled || ended_there <= end.time + LATE_CANCEL);
            let created = truth.created(remote);
            let is_untold = truth.upstream.had(Trouble::LOSES_CANCELS, asked - TICK, end.time + LATE_CANCEL);
            let is_unknown = truth.upstream.had(Trouble::LOSES_ANSWERS, created - TICK, created + TICK)
                || self.ended_between(created - TICK, created + IDS_STORED);
            promise::ENDED_THERE.check(is_so || is_untold || is_unknown, || {
                format!(
                    "{} {} ended at {} with {} {:?}, asked for at {asked}; there {remote:?}, created at {created}; {}",
                    task.agent.id,
                    task.id,
                    end.time,
                    end.state,
                    end.words,
                    truth.around(end)
                )
            });
        }
    }

    /// A message is taken twice only where a server that runs tasks again could not know that it was taken.
    fn check_sent_once(&self, truth: &Truth<'_>) {
        for (text, places) in &truth.places {
            let created = places.iter().map(|place| truth.created(&truth.tasks[*place]));
            let (first, last) = (created.clone().min().unwrap_or(0), created.max().unwrap_or(0));
            let is_between = |began: i64| began + TICK >= first && began <= last + TICK;
            let repeats = self
                .processes
                .iter()
                .filter(|process| process.settings.recovery == Recovery::Requeue && is_between(process.began));
            let most = 1 + repeats.count();
            promise::SENT_ONCE.check(places.len() <= most, || {
                let tasks: Vec<&RemoteTask> = places.iter().map(|place| &truth.tasks[*place]).collect();
                format!("{text:?} was taken {} times, between {first} and {last}: {tasks:?}", places.len())
            });
        }
    }

    /// Whether a server process ended between these times.
    fn ended_between(&self, from: i64, until: i64) -> bool {
        self.processes
            .iter()
            .filter_map(|process| process.end)
            .any(|end| end.from <= until + TICK && end.gone + TICK >= from)
    }
}

impl<'a> Truth<'a> {
    fn of(upstream: &'a Upstream, protocol: RemoteProtocol) -> Self {
        let tasks = upstream.remote.tasks().all();
        let mut places: HashMap<String, Vec<usize>> = HashMap::new();
        for (place, task) in tasks.iter().enumerate() {
            for message in task.history.iter().filter(|message| message.role == RemoteRole::User) {
                places.entry(message.text()).or_default().push(place);
            }
        }
        Self { upstream, protocol, tasks, places }
    }

    /// The task that has this message. If there are several, all but one were given up, and that one got furthest.
    fn task_of(&self, text: &str) -> Option<&RemoteTask> {
        let tasks = self.places.get(text)?.iter().map(|place| &self.tasks[*place]);
        tasks.max_by_key(|task| (task.state != RemoteState::Canceled, task.text().len()))
    }

    /// What was made for all messages of a task of ours.
    fn text_of(&self, task: &CheckedTask) -> String {
        let mut seen: Vec<&str> = Vec::new();
        let mut text = String::new();
        for remote in task.messages.iter().filter_map(|message| self.task_of(&message.text)) {
            if !seen.contains(&remote.id.as_str()) {
                seen.push(&remote.id);
                text += &remote.text();
            }
        }
        text
    }

    fn created(&self, task: &RemoteTask) -> i64 {
        let time = match self.upstream.remote.tasks().events(&task.id).first() {
            Some(TaskEvent::Created(created)) => created.status_time,
            _ => 0,
        };
        i64::try_from(time).unwrap_or(i64::MAX)
    }

    fn around(&self, end: &End<'_>) -> String {
        self.upstream.around(end.time)
    }
}

impl<'a> End<'a> {
    fn of(events: &'a [Event]) -> Option<Self> {
        let mut statuses = events.iter().rev().filter_map(|event| match event {
            Event::Status { state, words, .. } => {
                Some((state.as_str(), words.as_deref().unwrap_or_default(), time_of(event)?))
            }
            Event::Task(_) | Event::Artifact { .. } => None,
        });
        let (state, words, time) = statuses.next()?;
        let began = statuses.find(|(state, _, _)| *state == "working").map_or(time, |(_, _, time)| time);
        Some(Self { state, words, time, began })
    }

    /// Whether the remote agent has the same.
    fn is_as(&self, remote: &RemoteTask, protocol: RemoteProtocol) -> bool {
        let state = match (remote.state, protocol) {
            // 0.1 has fewer states.
            (RemoteState::Rejected, RemoteProtocol::V01JsonRpc) => "failed",
            (RemoteState::AuthRequired, RemoteProtocol::V01JsonRpc) => "input-required",
            (RemoteState::Submitted, _) => "submitted",
            (RemoteState::Working, _) => "working",
            (RemoteState::InputRequired, _) => "input-required",
            (RemoteState::AuthRequired, _) => "auth-required",
            (RemoteState::Completed, _) => "completed",
            (RemoteState::Failed, _) => "failed",
            (RemoteState::Canceled, _) => "canceled",
            (RemoteState::Rejected, _) => "rejected",
        };
        let words = remote.status_message.as_ref().map(|message| message.text()).unwrap_or_default();
        self.state == state && self.words == words
    }
}
