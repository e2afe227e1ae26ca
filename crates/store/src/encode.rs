//! Encodes an append into the bytes that are stored.
//!
//! This happens on the caller's thread, so that the only writer thread just binds and inserts. The format of the log is
//! the JSON of `model`'s own serde.

use sabir_model::{AgentId, Birth, ContextId, Event, IdempotencyKey, Owner, Seq, State, Task, TaskId, Timestamp};

use crate::head::HeadChange;
use crate::{
    Append, AppendTarget, AuditEntry, ForwardNo, MAX_EVENTS_WITHOUT_SNAPSHOT, Ownership, SentKey, SideRow, StoreError,
    TASK_ROW_BYTES, TaskNo, Webhook,
};

/// The size of a pack, unless a single event is larger.
const PACK_EVENTS: usize = 64;
const PACK_BYTES: usize = 64 << 10;

pub(crate) struct Encoded {
    pub target: EncodedTarget,
    pub after: Seq,
    pub events: EncodedEvents,
    pub head: HeadChange,
    pub snapshot: Option<EncodedSnapshot>,
    pub side_rows: Vec<EncodedSideRow>,
    pub ownership: Ownership,
    /// There is a status other than `submitted` in it.
    pub has_status: bool,
    /// There is an event behind the creation in it.
    pub has_later_events: bool,
}

/// A snapshot in two parts, so that a reader that does not want artifacts does not load them.
pub(crate) struct EncodedSnapshot {
    pub rest: Vec<u8>,
    pub artifacts: Vec<u8>,
}

pub(crate) enum EncodedTarget {
    New(EncodedNewTask),
    /// With its new status, if one of the events changes it.
    Known(TaskNo, Option<LatestStatus>),
}

pub(crate) struct EncodedNewTask {
    pub owner: Owner,
    pub agent: AgentId,
    pub task: TaskId,
    pub context: ContextId,
    pub born: Birth,
    pub key: Option<IdempotencyKey>,
    pub send_digest: Option<[u8; 16]>,
    pub created: Timestamp,
    pub latest: LatestStatus,
}

/// The status after the last status event of an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LatestStatus {
    pub state: State,
    pub time: Timestamp,
    pub turn_over: bool,
}

pub(crate) enum EncodedSideRow {
    InboxAdd(Vec<u8>),
    InboxTake(usize),
    InboxTakeAt(usize),
    AgentState(Option<String>),
    TaskState(Option<String>),
    Key(SentKey),
    CancelRequested,
    Attempts(u32),
    Webhook(Box<Webhook>),
    Audit(Box<AuditEntry>),
    ForwardDone(ForwardNo),
    SendInFlight([u8; 16]),
}

impl Encoded {
    pub fn new(append: &Append<'_>) -> Result<Self, StoreError> {
        let last = append.after.saturating_add(append.events.len() as Seq);
        // A snapshot that does not end with the last event would skip events or repeat them.
        let snapshot = append.snapshot.filter(|task| task.seq == last);
        let mut events = EncodedEvents::default();
        for event in append.events {
            events.push(event)?;
        }
        let head = match (&append.target, snapshot) {
            (_, Some(task)) => HeadChange::of_task(task),
            (AppendTarget::New(_), None) => HeadChange::of_new(append.events, events.iter()),
            (AppendTarget::Known(_), None) => HeadChange::of_later(append.events, events.iter()),
        };
        Ok(Self {
            target: encode_target(append)?,
            after: append.after,
            events,
            head,
            snapshot: snapshot.filter(|_| last > MAX_EVENTS_WITHOUT_SNAPSHOT).map(EncodedSnapshot::new).transpose()?,
            side_rows: append.side_rows.iter().map(encode_side_row).collect::<Result<_, _>>()?,
            ownership: append.ownership.clone(),
            has_status: append.events.iter().any(|event| is_progress(event)),
            has_later_events: append.events.iter().any(|event| !matches!(event, Event::Created(_))),
        })
    }

    /// Whether the task settles with this append.
    pub fn settles(&self) -> bool {
        let latest = match &self.target {
            EncodedTarget::New(new) => Some(new.latest),
            EncodedTarget::Known(_, latest) => *latest,
        };
        latest.is_some_and(|latest| latest.state.is_terminal())
    }

    /// The time of the last status, of an append that makes a task.
    pub fn created_until(&self) -> Option<Timestamp> {
        match &self.target {
            EncodedTarget::New(new) => Some(new.latest.time),
            EncodedTarget::Known(..) => None,
        }
    }

    /// Whether it has rows of `controls`.
    pub fn has_controls(&self) -> bool {
        let is_control =
            |row: &EncodedSideRow| matches!(row, EncodedSideRow::CancelRequested | EncodedSideRow::Attempts(_));
        self.side_rows.iter().any(is_control)
    }

    /// How many bytes it adds to what the task takes, without the messages that it removes from the inbox.
    pub fn added_bytes(&self) -> i64 {
        let row = match self.target {
            EncodedTarget::New(_) => TASK_ROW_BYTES as usize,
            EncodedTarget::Known(..) => 0,
        };
        let inbox = self.side_rows.iter().map(|row| match row {
            EncodedSideRow::InboxAdd(message) => message.len(),
            _ => 0,
        });
        (row + self.events.as_bytes().len() + inbox.sum::<usize>()) as i64
    }

    /// The keys of later messages.
    pub fn sent_keys(&self) -> impl Iterator<Item = &SentKey> {
        self.side_rows.iter().filter_map(|row| match row {
            EncodedSideRow::Key(key) => Some(key),
            _ => None,
        })
    }

    pub fn last(&self) -> Seq {
        self.after.saturating_add(self.events.len() as Seq)
    }
}

impl EncodedSnapshot {
    fn new(task: &Task) -> Result<Self, StoreError> {
        let rest = Task { artifacts: Vec::new(), ..task.clone() };
        Ok(Self {
            rest: serde_json::to_vec(&rest).map_err(failed)?,
            artifacts: serde_json::to_vec(&task.artifacts).map_err(failed)?,
        })
    }
}

fn encode_target(append: &Append<'_>) -> Result<EncodedTarget, StoreError> {
    match (&append.target, append.events) {
        (AppendTarget::New(new), [Event::Created(created), later @ ..]) if append.after == 0 => {
            let submitted = LatestStatus { state: State::Submitted, time: created.time, turn_over: false };
            Ok(EncodedTarget::New(EncodedNewTask {
                owner: new.owner.clone(),
                agent: new.agent.clone(),
                task: new.task.clone(),
                context: new.context.clone(),
                born: new.born,
                key: new.key.cloned(),
                send_digest: new.send_digest,
                created: created.time,
                latest: latest_status(later)?.unwrap_or(submitted),
            }))
        }
        (AppendTarget::New(_), _) => Err(misused("a new task begins with its creation")),
        (AppendTarget::Known(no), events) => Ok(EncodedTarget::Known(*no, latest_status(events)?)),
    }
}

fn latest_status(events: &[&Event]) -> Result<Option<LatestStatus>, StoreError> {
    let mut latest = None;
    for event in events {
        match event {
            Event::Created(_) => return Err(misused("a task is created once, by its first event")),
            Event::Status(change) => {
                let (state, time) = (change.status.state, change.status.time);
                latest = Some(LatestStatus { state, time, turn_over: change.is_final });
            }
            Event::Artifact(_) => {}
        }
    }
    Ok(latest)
}

fn is_progress(event: &Event) -> bool {
    matches!(event, Event::Status(change) if change.status.state != State::Submitted)
}

fn encode_side_row(row: &SideRow) -> Result<EncodedSideRow, StoreError> {
    Ok(match row {
        SideRow::InboxAdd(message) => EncodedSideRow::InboxAdd(serde_json::to_vec(message).map_err(failed)?),
        SideRow::InboxTake(count) => EncodedSideRow::InboxTake(*count),
        SideRow::InboxTakeAt(place) => EncodedSideRow::InboxTakeAt(*place),
        SideRow::TaskState(state) => EncodedSideRow::TaskState(state.clone()),
        SideRow::AgentState(state) => EncodedSideRow::AgentState(state.clone()),
        SideRow::Key(key) => EncodedSideRow::Key(key.clone()),
        SideRow::CancelRequested => EncodedSideRow::CancelRequested,
        SideRow::Attempts(count) => EncodedSideRow::Attempts(*count),
        SideRow::Webhook(webhook) => EncodedSideRow::Webhook(webhook.clone()),
        SideRow::Audit(entry) => EncodedSideRow::Audit(entry.clone()),
        SideRow::ForwardDone(number) => EncodedSideRow::ForwardDone(*number),
        SideRow::SendInFlight(digest) => EncodedSideRow::SendInFlight(*digest),
    })
}

/// Encoded events, concatenated in one buffer.
#[derive(Default)]
pub(crate) struct EncodedEvents {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl EncodedEvents {
    fn push(&mut self, event: &Event) -> Result<(), StoreError> {
        serde_json::to_writer(&mut self.bytes, event).map_err(failed)?;
        self.ends.push(self.bytes.len());
        Ok(())
    }

    /// All events, concatenated.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// The events in packs, each of which is one row; with the number of events up to the end of the pack. A pack is
    /// bounded, since a reader of its last event has to read all of it.
    pub fn packs(&self) -> impl Iterator<Item = (usize, &[u8])> {
        let mut packed = 0_usize;
        std::iter::from_fn(move || {
            let start = packed.checked_sub(1).map_or(0, |last| self.ends[last]);
            let first = *self.ends.get(packed)?;
            let more = self.ends[packed + 1..].iter().take(PACK_EVENTS - 1);
            let more = more.take_while(|end| **end - start <= PACK_BYTES);
            let end = more.last().copied().unwrap_or(first);
            packed = self.ends.partition_point(|other| *other <= end);
            Some((packed, &self.bytes[start..end]))
        })
    }

    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.ends.iter().scan(0, |start, end| {
            let body = &self.bytes[*start..*end];
            *start = *end;
            Some(body)
        })
    }
}

fn failed(error: serde_json::Error) -> StoreError {
    StoreError::Failed(error.into())
}

fn misused(rule: &'static str) -> StoreError {
    StoreError::Failed(rule.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packs(sizes: &[usize]) -> Vec<(usize, usize)> {
        let mut bodies = EncodedEvents::default();
        for size in sizes {
            bodies.bytes.extend(vec![b'x'; *size]);
            bodies.ends.push(bodies.bytes.len());
        }
        bodies.packs().map(|(last, bytes)| (last, bytes.len())).collect()
    }

    #[test]
    fn packs_are_full_but_not_fuller() {
        assert_eq!(packs(&[]), []);
        assert_eq!(packs(&[5]), [(1, 5)]);
        assert_eq!(packs(&[5, 6, 7]), [(3, 18)]);
        assert_eq!(packs(&[1; 130]), [(64, 64), (128, 64), (130, 2)]);
        assert_eq!(packs(&[PACK_BYTES, 1, 2]), [(1, PACK_BYTES), (3, 3)]);
        assert_eq!(packs(&[1, 2 * PACK_BYTES, 2]), [(1, 1), (2, 2 * PACK_BYTES), (3, 2)]);
    }
}
