//! The head of a task: the part of its log that is in its row.
//!
//! A short log is completely in the row, so most tasks are one row and nothing else. A longer log is in the table
//! `events`. Then the head has what a list shows without artifacts: the `created` and `status` events, and once it has
//! been shortened, a `summary` of the earlier ones. So a page of a list reads one row per task, independent of the
//! length of the logs and the size of the artifacts.
//!
//! The size of a head is bounded. Messages of the history that do not fit are left out, oldest first; a list that wants
//! them reads the log.

use std::sync::Arc;

use sabir_model::{
    AgentId, Birth, ContextId, Created, Event, Json, Message, Owner, Seq, Status, StatusChange, Task, TaskBirth,
    TaskId, Timestamp, Usage, apply_owned,
};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

/// A head that would become longer than this is shortened.
const MAX_BYTES: usize = 4 << 10;

/// A summary is at most this long, so that there is room for later events.
const MAX_SUMMARY: usize = MAX_BYTES / 2;

/// A log up to these limits is in the row.
const MAX_LOG_BYTES: usize = 2 << 10;
const MAX_LOG_EVENTS: Seq = 16;

/// The head of a task, and whether it is the whole log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RowLog {
    pub head: Option<Vec<u8>>,
    /// The number of events, if the head is the whole log.
    pub all: Option<Seq>,
}

/// Where the events of an append are stored.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// In the row, with all of the log.
    Row(RowLog),
    /// In the table `events`, after the others.
    Log {
        /// The events that the row held until now; they move to the table first.
        moved: Option<(Seq, Vec<u8>)>,
        /// The new head, if it changes.
        row: Option<RowLog>,
    },
}

impl RowLog {
    /// The head of a task before its first event.
    pub fn empty() -> Self {
        Self { head: Some(Vec::new()), all: Some(0) }
    }

    /// Decides where `count` more events (`more`, encoded) are stored. `change` is their effect on the head.
    pub fn place(self, more: &[u8], count: Seq, change: &HeadChange) -> Placement {
        let (log, after) = match self {
            RowLog { head: Some(log), all: Some(after) } => (log, after),
            RowLog { all: None, .. } if *change == HeadChange::Keep => {
                return Placement::Log { moved: None, row: None };
            }
            RowLog { head, all: _ } => {
                let row = RowLog { head: change.apply(head), all: None };
                return Placement::Log { moved: None, row: Some(row) };
            }
        };
        if log.len() + more.len() <= MAX_LOG_BYTES && after + count <= MAX_LOG_EVENTS {
            return Placement::Row(RowLog { head: Some([log.as_slice(), more].concat()), all: Some(after + count) });
        }
        let head = change.apply(without_artifacts(&log));
        let moved = (after > 0).then_some((after, log));
        Placement::Log { moved, row: Some(RowLog { head, all: None }) }
    }
}

/// The effect of an append on the head of a log that is in the table `events`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HeadChange {
    /// None: the append has no status event.
    Keep,
    /// These events are added.
    Extend(Vec<u8>),
    Replace(Vec<u8>),
    /// The result is too long for a head. The next summary makes a new one.
    Drop,
}

/// A task without its artifacts, as read from its head.
#[derive(Clone)]
pub(crate) struct Head {
    pub task: Task,
    /// The oldest messages of the history are missing.
    pub is_cut: bool,
}

/// An item of a head, for reading.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum HeadItem {
    Summary(Summary<Arc<Message>>),
    Created(Created),
    Status(StatusChange),
    /// A status event without its input, which is too long for a head.
    Cut(StatusChange),
    Artifact(IgnoredAny),
}

/// Items that exist only in heads. The other items are events, encoded as in the log.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum HeadOnlyItem {
    Summary(Summary<Box<RawValue>>),
    Cut(StatusChange),
}

/// `M` is a decoded message for reading, and an encoded one for writing.
#[derive(Serialize, Deserialize)]
struct Summary<M> {
    created: Timestamp,
    status: Status,
    #[serde(default, skip_serializing_if = "is_false")]
    turn_over: bool,
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    history: Vec<M>,
    /// Older messages are left out.
    #[serde(default, skip_serializing_if = "is_false")]
    cut: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    metadata: Option<Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
}

fn is_false(value: &bool) -> bool {
    !value
}

impl HeadChange {
    /// For a new task, from its first events and their encoded bodies.
    pub fn of_new<'a>(events: &[&Event], bodies: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut head = Vec::new();
        for (event, body) in events.iter().zip(bodies) {
            if is_shown(event) {
                head.extend_from_slice(body);
            }
        }
        if head.len() <= MAX_BYTES {
            return HeadChange::Replace(head);
        }
        let [Event::Created(created), later @ ..] = events else { return HeadChange::Drop };
        let (id, birth) = placeholder();
        let mut task = Task::create(id, birth, created.clone());
        for event in later.iter().filter(|event| is_shown(event)) {
            apply_owned(&mut task, (*event).clone());
        }
        HeadChange::of_task(&task)
    }

    pub fn of_later<'a>(events: &[&Event], bodies: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut head = Vec::new();
        for (event, body) in events.iter().zip(bodies) {
            match event {
                Event::Status(_) if body.len() <= MAX_SUMMARY => head.extend_from_slice(body),
                Event::Status(change) => {
                    let cut = HeadOnlyItem::Cut(StatusChange { input: Vec::new(), ..change.clone() });
                    match serde_json::to_vec(&cut) {
                        Ok(cut) if cut.len() <= MAX_SUMMARY => head.extend(cut),
                        _ => return HeadChange::Drop,
                    }
                }
                Event::Created(_) | Event::Artifact(_) => {}
            }
        }
        if head.is_empty() { HeadChange::Keep } else { HeadChange::Extend(head) }
    }

    /// Replaces the whole head, from the task as it is after the append.
    pub fn of_task(task: &Task) -> Self {
        summary(task, false).map_or(HeadChange::Drop, HeadChange::Replace)
    }

    /// Computes the new head from the old one; `None`: there is no head.
    fn apply(&self, head: Option<Vec<u8>>) -> Option<Vec<u8>> {
        match self {
            HeadChange::Keep => head,
            HeadChange::Replace(head) => Some(head.clone()),
            HeadChange::Drop => None,
            HeadChange::Extend(more) => {
                let mut head = head?;
                head.extend_from_slice(more);
                if head.len() > MAX_BYTES {
                    let (id, birth) = placeholder();
                    let Head { task, is_cut } = Head::read(id, birth, &head)?;
                    head = summary(&task, is_cut)?;
                }
                Some(head)
            }
        }
    }
}

impl Head {
    /// `None`: the head cannot be read, but the log can.
    pub fn read(id: TaskId, birth: TaskBirth, head: &[u8]) -> Option<Self> {
        // UTF-8 is checked once here, not for each string.
        let head = str::from_utf8(head).ok()?;
        let mut items = serde_json::Deserializer::from_str(head).into_iter::<HeadItem>();
        let mut head = match items.next()?.ok()? {
            HeadItem::Created(created) => Self { task: Task::create(id, birth, created), is_cut: false },
            HeadItem::Summary(summary) => {
                let is_cut = summary.cut;
                Self { task: summary.into_task(id, birth), is_cut }
            }
            HeadItem::Status(_) | HeadItem::Cut(_) | HeadItem::Artifact(_) => return None,
        };
        for item in items {
            match item.ok()? {
                HeadItem::Status(change) => apply_owned(&mut head.task, Event::Status(change)),
                HeadItem::Cut(change) => {
                    apply_owned(&mut head.task, Event::Status(change));
                    // The missing input comes after all earlier messages, so those cannot be shown either.
                    (head.task.history, head.is_cut) = (Vec::new(), true);
                }
                HeadItem::Artifact(IgnoredAny) => {}
                HeadItem::Created(_) | HeadItem::Summary(_) => return None,
            }
        }
        Some(head)
    }

    /// The task with at most this many messages; `None`: the head does not have enough.
    pub fn with_history(mut self, history: Option<u32>) -> Option<Task> {
        let has_enough = history.is_some_and(|wanted| self.task.history.len() >= wanted as usize);
        if self.is_cut && !has_enough {
            return None;
        }
        self.task.trim_history(history);
        Some(self.task)
    }
}

impl Summary<Arc<Message>> {
    fn into_task(self, id: TaskId, birth: TaskBirth) -> Task {
        Task {
            id,
            context: birth.context,
            agent: birth.agent,
            owner: birth.owner,
            born: birth.born,
            created: self.created,
            status: self.status,
            turn_over: self.turn_over,
            artifacts: Vec::new(),
            open: Vec::new(),
            history: self.history,
            metadata: self.metadata,
            usage: self.usage,
            seq: 0,
        }
    }
}

/// `None`: it is too long even without a history.
fn summary(task: &Task, is_cut: bool) -> Option<Vec<u8>> {
    // All fields are named, so that a new field is not forgotten here.
    let Task {
        id: _,
        context: _,
        agent: _,
        owner: _,
        born: _,
        created,
        status,
        turn_over,
        artifacts: _,
        open: _,
        history,
        metadata,
        usage,
        seq: _,
    } = task;
    let mut summary = Summary::<Box<RawValue>> {
        created: *created,
        status: status.clone(),
        turn_over: *turn_over,
        history: Vec::new(),
        cut: is_cut,
        metadata: metadata.clone(),
        usage: *usage,
    };
    let encode = |summary| serde_json::to_vec(&HeadOnlyItem::Summary(summary)).ok();
    let mut room = MAX_SUMMARY.checked_sub(serde_json::to_vec(&summary).ok()?.len())?;
    for message in history.iter().rev() {
        let message = to_raw_value(message).ok()?;
        let Some(rest) = room.checked_sub(message.get().len()) else {
            summary.cut = true;
            break;
        };
        room = rest;
        summary.history.push(message);
    }
    summary.history.reverse();
    encode(summary)
}

/// The events of a log without artifacts, still encoded.
fn without_artifacts(log: &[u8]) -> Option<Vec<u8>> {
    let mut others = Vec::new();
    for event in serde_json::Deserializer::from_slice(log).into_iter::<&RawValue>() {
        let event = event.ok()?.get();
        if !event.starts_with("{\"artifact\":") {
            others.extend_from_slice(event.as_bytes());
        }
    }
    Some(others)
}

fn is_shown(event: &Event) -> bool {
    match event {
        Event::Created(_) | Event::Status(_) => true,
        Event::Artifact(_) => false,
    }
}

/// Ids for a task that is folded and never shown.
fn placeholder() -> (TaskId, TaskBirth) {
    let context = ContextId::parse("-").expect("a short text is an id");
    let agent = AgentId::parse("-").expect("a short text is an id");
    let birth = TaskBirth { context, agent, owner: Owner::anonymous(), born: Birth(0) };
    (TaskId::parse("-").expect("a short text is an id"), birth)
}

#[cfg(test)]
mod tests {
    use sabir_model::{Artifact, ArtifactId, Chunk, MessageId, Part, Role, State, apply};

    use super::*;

    /// `c` creates the task, `a` is a chunk; `w`, `q` and `d` are the states working, input required and completed. The
    /// number is the length of the text: of the message that creates the task, of a chunk, of the input of a `w`, of
    /// the status message of the others.
    fn event(short: &str) -> Event {
        let length: usize = short[1..].parse().unwrap_or(0);
        let text = "x".repeat(length);
        let message = || {
            let id = MessageId::parse(format!("m{length}")).unwrap();
            Arc::new(Message::new(id, Role::User, vec![Part::text(text.clone())]))
        };
        let time = Timestamp::from_millis(length as i64);
        let status = |state, told: bool, taken: bool| {
            let message_of = |wanted: bool| (wanted && length > 0).then(message);
            Event::Status(StatusChange {
                status: Status { state, message: message_of(told), time },
                is_final: state != State::Working,
                input: message_of(taken).into_iter().collect(),
                begins_turn: false,
                usage: None,
                metadata: None,
            })
        };
        match &short[..1] {
            "c" => Event::Created(Created { message: message(), metadata: None, note: None, time }),
            "a" => {
                let artifact = Artifact::new(ArtifactId::parse("a").unwrap(), vec![Part::text(text)]);
                Event::Artifact(Chunk {
                    index: 0,
                    artifact: artifact.into(),
                    append: true,
                    last: false,
                    metadata: None,
                })
            }
            "w" => status(State::Working, false, true),
            "q" => status(State::InputRequired, true, false),
            "d" => status(State::Completed, true, false),
            other => panic!("{other}"),
        }
    }

    /// Applies these appends. Returns the number of packs in the log, the head and the task.
    fn live(appends: &[&str]) -> (usize, RowLog, Task) {
        let (mut row, mut packs) = (RowLog::empty(), 0);
        let (id, birth) = placeholder();
        let mut task: Option<Task> = None;
        for append in appends {
            let events: Vec<Event> = append.split(' ').map(event).collect();
            let events: Vec<&Event> = events.iter().collect();
            let bodies: Vec<Vec<u8>> = events.iter().map(|event| serde_json::to_vec(event).unwrap()).collect();
            let bytes = bodies.concat();
            let bodies = bodies.iter().map(Vec::as_slice);
            let change = match task {
                None => HeadChange::of_new(&events, bodies),
                Some(_) => HeadChange::of_later(&events, bodies),
            };
            for event in &events {
                match (&mut task, event) {
                    (Some(task), event) => apply(task, event),
                    (None, Event::Created(created)) => {
                        task = Some(Task::create(id.clone(), birth.clone(), created.clone()))
                    }
                    (None, _) => panic!("no creation"),
                }
            }
            match row.clone().place(&bytes, events.len() as Seq, &change) {
                Placement::Row(new) => row = new,
                Placement::Log { moved, row: new } => {
                    packs += 1 + moved.iter().len();
                    row = new.unwrap_or(row);
                }
            }
        }
        (packs, row, task.unwrap())
    }

    /// Where the log is stored, and how much of the history a list can show: all messages, the newest ones, or nothing.
    fn shown(appends: &[&str]) -> String {
        let (packs, row, mut whole) = live(appends);
        let place = row.all.map_or_else(|| format!("{packs} packs"), |all| format!("{all} in the row"));
        let Some(head) = row.head.as_deref() else { return format!("{place}, no head") };
        assert!(head.len() <= MAX_BYTES, "{} bytes", head.len());
        let (id, birth) = placeholder();
        let head = Head::read(id, birth, head).expect("a head can be read");
        let history = if head.is_cut { format!("newest {}", head.task.history.len()) } else { "all".into() };
        let newest = whole.history.split_off(whole.history.len() - head.task.history.len());
        assert_eq!(
            head.task,
            Task { history: newest, artifacts: Vec::new(), open: Vec::new(), seq: head.task.seq, ..whole }
        );
        format!("{place}, {history}")
    }

    #[test]
    fn what_a_row_holds() {
        let many = |first: &'static str, event: &'static str, count| -> Vec<&'static str> {
            std::iter::once(first).chain(std::iter::repeat_n(event, count)).collect()
        };
        for (appends, expected) in [
            (vec!["c9 w a9 d"], "4 in the row, all"),
            (vec!["c9", "w a9 d9"], "4 in the row, all"),
            (vec!["c9", "w", "q9", "w9", "d"], "5 in the row, all"),
            // A long log moves out of the row, with the earlier events.
            (vec!["c9 w", "a3000", "d"], "3 packs, all"),
            (vec!["c9 w a3000 d"], "1 packs, all"),
            (many("c9", "a", 15), "16 in the row, all"),
            (many("c9", "a", 16), "2 packs, all"),
            (many("c9", "a", 30), "16 packs, all"),
            // A history that does not fit is left out, oldest messages first.
            (vec!["c1000 w", "q600", "w900", "d"], "3 packs, all"),
            (vec!["c3000 w", "d"], "2 packs, all"),
            (vec!["c5000 w", "d"], "2 packs, newest 0"),
            (vec!["c5000 w", "q9", "w9", "d"], "4 packs, newest 2"),
            (vec!["c9 w", "q9", "w5000", "d"], "3 packs, newest 0"),
            (vec!["c9 w", "q9", "w5000", "q9", "w9"], "4 packs, newest 2"),
            (many("c9", "w600", 9), "8 packs, newest 3"),
            // Progress has no limit.
            (many("c9", "q150", 99), "94 packs, all"),
            (many("c9", "w", 99), "85 packs, all"),
            // The status does not fit.
            (vec!["c9 w", "d5000"], "2 packs, no head"),
            (vec!["c9 w", "d5000", "d"], "3 packs, no head"),
            (vec!["c9 w d5000"], "1 packs, no head"),
        ] {
            assert_eq!(shown(&appends), expected, "{appends:?}");
        }
    }

    #[test]
    fn a_task_makes_a_new_head() {
        let (_, _, task) = live(&["c9 w", "q9", "w900", "q9", "w900", "q9", "w900", "d"]);
        let HeadChange::Replace(head) = HeadChange::of_task(&task) else { panic!("no head") };
        assert!(head.len() <= MAX_SUMMARY);
        let (id, birth) = placeholder();
        let head = Head::read(id, birth, &head).unwrap();
        assert!(head.is_cut);
        assert_eq!(head.task.history, task.history[task.history.len() - 2..]);
    }

    #[test]
    fn a_list_that_wants_more_than_the_head_has_reads_the_log() {
        for (wanted, has, is_cut, expected) in [
            (None, 2, false, Some(2)),
            (None, 2, true, None),
            (Some(0), 2, true, Some(0)),
            (Some(2), 2, true, Some(2)),
            (Some(3), 2, true, None),
            (Some(3), 2, false, Some(2)),
            (Some(1), 2, false, Some(1)),
        ] {
            let (_, _, mut task) = live(&["c9"]);
            task.history = vec![task.history[0].clone(); has];
            let shown = Head { task, is_cut }.with_history(wanted);
            assert_eq!(shown.map(|task| task.history.len()), expected, "{wanted:?} of {has}, {is_cut}");
        }
    }

    #[test]
    fn what_is_no_head_is_not_read() {
        for head in ["", "{", r#"{"status":{"status":{"state":"working","time":1}}}"#, "[]", r#"{"other":1}"#] {
            let (id, birth) = placeholder();
            assert!(Head::read(id, birth, head.as_bytes()).is_none(), "{head}");
        }
    }
}
