//! A group of appends as the arguments of the function `append_1`, and its results.

use sabir_model::{AgentId, Owner, Seq, TaskId};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};

use super::link::Link;
use super::rows::{state_code, without_nul};
use crate::encode::{Encoded, EncodedSideRow, EncodedTarget, LatestStatus};
use crate::head::HeadChange;
use crate::{
    AfterAppend, AppendResult, AuditEntry, Claim, ContextUse, Epoch, SentKey, StoreError, TaskNo, Webhook,
    WebhookEvents,
};

/// The highest sequence number in a task, as in the SQLite store.
const MAX_SEQ: Seq = (1 << 28) - 1;

/// Events up to these limits may fit into the row.
const MAX_LOG_BYTES: usize = 2 << 10;
const MAX_LOG_EVENTS: usize = 16;

/// Events with more bytes than this get a new snapshot, however few they are.
const LARGE_APPEND: usize = 64 << 10;

macro_rules! call {
    () => {
        "append_1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24,
            $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41, $42, $43, $44)"
    };
}

const APPEND: &str = concat!("SELECT * FROM ", call!());

/// For a database that does not wait for the disk unless it is asked to.
const APPEND_SAFELY: &str = concat!(
    "SELECT appended.* FROM (SELECT set_config('synchronous_commit', 'on', true) OFFSET 0) AS setting, LATERAL ",
    call!(),
    " AS appended"
);

/// An append that waits to be sent.
pub(super) struct Queued {
    /// Unique among all appends of all nodes.
    pub id: i64,
    pub encoded: Encoded,
    /// Which of its side rows are messages that answer a question.
    pub answers: Vec<bool>,
}

impl Queued {
    /// Refuses what cannot be stored, whatever the database says.
    pub fn check(&self) -> Result<(), StoreError> {
        let Encoded { target, after, .. } = &self.encoded;
        let is_known = match target {
            EncodedTarget::New(_) => true,
            EncodedTarget::Known(no, _) => i64::try_from(no.0).is_ok(),
        };
        if !is_known || *after > MAX_SEQ {
            return Err(StoreError::Conflict);
        }
        if self.encoded.last() > MAX_SEQ {
            return Err(StoreError::Failed(format!("a task has at most {MAX_SEQ} events").into()));
        }
        Ok(())
    }

    /// About how many bytes are sent for it.
    pub fn bytes(&self) -> usize {
        let snapshot = self.encoded.snapshot.as_ref();
        let snapshot = snapshot.map_or(0, |snapshot| snapshot.rest.len() + snapshot.artifacts.len());
        self.encoded.events.as_bytes().len() + snapshot
    }

    pub fn known_task(&self) -> Option<TaskNo> {
        match &self.encoded.target {
            EncodedTarget::New(_) => None,
            EncodedTarget::Known(no, _) => Some(*no),
        }
    }
}

/// The numbers of the parties that an append needs.
#[derive(Default)]
pub(super) struct PartyNumbers {
    /// Of a new task.
    pub task: Option<i32>,
    /// Of each side row that is the key of another sender than the owner of the task.
    pub senders: Vec<Option<i32>>,
}

/// Who appends.
pub(super) struct Appender<'a> {
    pub node: i64,
    pub name: &'a str,
    pub writer: i16,
    /// Now, by the clock of this node, in milliseconds since 1970.
    pub time: i64,
    /// The group was sent before, and nobody knows whether it was stored.
    pub is_retry: bool,
    /// An append of the group may have to wait for a lock, and is not worth more than a moment.
    pub waits_briefly: bool,
    pub must_ask_for_safe_commit: bool,
}

pub(super) enum Outcome {
    Answered(Result<AppendResult, StoreError>),
    /// This attempt has stored nothing: another transaction has locked the row of the task.
    Locked,
}

/// What became of a group of appends.
pub(super) struct Appended {
    /// One for each append, in their order.
    pub results: Vec<Outcome>,
    /// Something is due.
    pub is_due: bool,
    /// Tasks that were left may begin.
    pub wakes_left: bool,
}

/// Sends a group as one statement, which is a transaction of its own.
pub(super) async fn send(
    link: &Link,
    appender: &Appender<'_>,
    group: &[&Queued],
    parties: &[PartyNumbers],
) -> Result<Appended, Error> {
    let mut columns = Columns::default();
    for (queued, parties) in group.iter().zip(parties) {
        columns.push(queued, parties);
    }
    let sql = if appender.must_ask_for_safe_commit { APPEND_SAFELY } else { APPEND };
    let rows = link.query(sql, &columns.params(appender)).await?;
    Ok(Appended {
        is_due: rows.iter().any(|row| row.get(4)),
        wakes_left: rows.iter().any(|row| row.get(5)),
        // The last row, which is about all of them, has no partner.
        results: group.iter().zip(&rows).map(|(queued, row)| result(&queued.encoded, row)).collect(),
    })
}

/// One value for each append, but for packs and side rows.
#[derive(Default)]
struct Columns<'a> {
    ids: Vec<i64>,
    numbers: Vec<Option<i64>>,
    afters: Vec<i64>,
    lasts: Vec<i64>,
    epochs: Vec<Option<i64>>,
    begins: Vec<bool>,
    most_runs: Vec<Option<i32>>,
    thens: Vec<i16>,
    homes: Vec<Option<&'a str>>,
    parties: Vec<Option<i32>>,
    tasks: Vec<Option<&'a str>>,
    contexts: Vec<Option<&'a str>>,
    borns: Vec<Option<i16>>,
    createds: Vec<Option<i64>>,
    keys: Vec<Option<&'a str>>,
    digests: Vec<Option<&'a [u8]>>,
    states: Vec<Option<i16>>,
    times: Vec<Option<i64>>,
    turn_overs: Vec<Option<bool>>,
    has_status: Vec<bool>,
    has_later: Vec<bool>,
    counts: Vec<i32>,
    logs: Vec<Option<&'a [u8]>>,
    head_changes: Vec<i16>,
    heads: Vec<Option<&'a [u8]>>,
    snapshots: Vec<Option<&'a [u8]>>,
    artifacts: Vec<Option<&'a [u8]>>,
    is_large: Vec<bool>,
    has_side_rows: Vec<bool>,
    packs: Packs<'a>,
    sides: Sides<'a>,
}

#[derive(Default)]
struct Packs<'a> {
    of: Vec<i32>,
    last: Vec<i64>,
    body: Vec<&'a [u8]>,
}

#[derive(Default)]
struct Sides<'a> {
    of: Vec<i32>,
    kind: Vec<i16>,
    number: Vec<Option<i64>>,
    party: Vec<Option<i32>>,
    text: Vec<Option<String>>,
    body: Vec<Option<&'a [u8]>>,
}

/// A side row as `append_1` takes it.
#[derive(Default)]
struct Side<'a> {
    kind: i16,
    number: Option<i64>,
    party: Option<i32>,
    text: Option<String>,
    body: Option<&'a [u8]>,
}

impl<'a> Columns<'a> {
    fn push(&mut self, queued: &'a Queued, parties: &PartyNumbers) {
        let append = &queued.encoded;
        self.ids.push(queued.id);
        let place = self.ids.len() as i32;
        self.afters.push(append.after as i64);
        self.lasts.push(append.last() as i64);
        self.push_ownership(append);
        self.push_target(append, parties);
        self.has_status.push(append.has_status);
        self.has_later.push(append.has_later_events);
        self.push_events(append, place);
        let (change, head) = match &append.head {
            HeadChange::Keep => (0, None),
            HeadChange::Extend(more) => (1, Some(more.as_slice())),
            HeadChange::Replace(head) => (2, Some(head.as_slice())),
            HeadChange::Drop => (3, None),
        };
        self.head_changes.push(change);
        self.heads.push(head);
        self.snapshots.push(append.snapshot.as_ref().map(|snapshot| snapshot.rest.as_slice()));
        self.artifacts.push(append.snapshot.as_ref().map(|snapshot| snapshot.artifacts.as_slice()));
        self.is_large.push(append.events.as_bytes().len() > LARGE_APPEND);
        self.has_side_rows.push(!append.side_rows.is_empty());
        for (index, row) in append.side_rows.iter().enumerate() {
            let answers = queued.answers.get(index).copied().unwrap_or_default();
            let sender = parties.senders.get(index).copied().flatten();
            self.sides.push(place, side(row, answers, sender));
        }
    }

    fn push_ownership(&mut self, append: &'a Encoded) {
        self.epochs.push(match append.ownership.claim {
            Claim::Take => None,
            // No epoch is that high, so this is a conflict.
            Claim::Hold(epoch) => Some(i64::try_from(epoch.0).unwrap_or(i64::MAX)),
        });
        let (begins, most_runs) = match append.ownership.context {
            ContextUse::Unchanged => (false, None),
            ContextUse::Begin { most_runs } => (true, most_runs),
        };
        self.begins.push(begins);
        self.most_runs.push(most_runs.map(|most| i32::try_from(most).unwrap_or(i32::MAX)));
        let (then, home) = match &append.ownership.then {
            AfterAppend::Keep => (0, None),
            AfterAppend::Rest => (1, None),
            AfterAppend::Leave { home } => (2, home.as_deref()),
        };
        self.thens.push(then);
        self.homes.push(home);
    }

    fn push_target(&mut self, append: &'a Encoded, parties: &PartyNumbers) {
        let (number, new, latest) = match &append.target {
            EncodedTarget::New(new) => (None, Some(new), Some(new.latest)),
            EncodedTarget::Known(no, latest) => (Some(no.0 as i64), None, *latest),
        };
        self.numbers.push(number);
        self.parties.push(parties.task);
        self.tasks.push(new.map(|new| new.task.as_str()));
        self.contexts.push(new.map(|new| new.context.as_str()));
        self.borns.push(new.map(|new| i16::from(new.born.0)));
        self.createds.push(new.map(|new| new.created.as_millis()));
        self.keys.push(new.and_then(|new| new.key.as_ref()).map(|key| key.as_str()));
        self.digests.push(new.and_then(|new| new.send_digest.as_ref()).map(|digest| digest.as_slice()));
        self.states.push(latest.map(|LatestStatus { state, .. }| state_code(state)));
        self.times.push(latest.map(|LatestStatus { time, .. }| time.as_millis()));
        self.turn_overs.push(latest.map(|LatestStatus { turn_over, .. }| turn_over));
    }

    fn push_events(&mut self, append: &'a Encoded, place: i32) {
        let events = &append.events;
        self.counts.push(events.len() as i32);
        if events.as_bytes().len() <= MAX_LOG_BYTES && events.len() <= MAX_LOG_EVENTS {
            self.logs.push(Some(events.as_bytes()));
            return;
        }
        self.logs.push(None);
        for (count, pack) in events.packs() {
            self.packs.of.push(place);
            self.packs.last.push((append.after + count as Seq) as i64);
            self.packs.body.push(pack);
        }
    }

    fn params<'p>(&'p self, appender: &'p Appender<'_>) -> [&'p (dyn ToSql + Sync); 44] {
        let Appender { node, name, writer, time, is_retry, waits_briefly, .. } = appender;
        let (packs, sides) = (&self.packs, &self.sides);
        [
            node,
            name,
            writer,
            is_retry,
            &self.ids,
            &self.numbers,
            &self.afters,
            &self.lasts,
            &self.epochs,
            &self.begins,
            &self.most_runs,
            &self.thens,
            &self.homes,
            &self.parties,
            &self.tasks,
            &self.contexts,
            &self.borns,
            &self.createds,
            &self.keys,
            &self.digests,
            &self.states,
            &self.times,
            &self.turn_overs,
            &self.has_status,
            &self.has_later,
            &self.counts,
            &self.logs,
            &self.head_changes,
            &self.heads,
            &self.snapshots,
            &self.artifacts,
            &self.is_large,
            &self.has_side_rows,
            &packs.of,
            &packs.last,
            &packs.body,
            &sides.of,
            &sides.kind,
            &sides.number,
            &sides.party,
            &sides.text,
            &sides.body,
            time,
            waits_briefly,
        ]
    }
}

impl<'a> Sides<'a> {
    fn push(&mut self, place: i32, side: Side<'a>) {
        self.of.push(place);
        self.kind.push(side.kind);
        self.number.push(side.number);
        self.party.push(side.party);
        self.text.push(side.text);
        self.body.push(side.body);
    }
}

fn side(row: &EncodedSideRow, answers: bool, sender: Option<i32>) -> Side<'_> {
    let count = |number: usize| Some(i64::try_from(number).unwrap_or(i64::MAX));
    match row {
        EncodedSideRow::InboxAdd(message) => {
            Side { kind: 1, number: Some(i64::from(answers)), body: Some(message), ..Side::default() }
        }
        EncodedSideRow::InboxTake(number) => Side { kind: 2, number: count(*number), ..Side::default() },
        EncodedSideRow::InboxTakeAt(place) => Side { kind: 3, number: count(*place), ..Side::default() },
        EncodedSideRow::AgentState(state) => {
            Side { kind: 4, body: state.as_ref().map(String::as_bytes), ..Side::default() }
        }
        EncodedSideRow::TaskState(state) => {
            Side { kind: 5, body: state.as_ref().map(String::as_bytes), ..Side::default() }
        }
        EncodedSideRow::Key(SentKey { key, .. }) => {
            Side { kind: 6, party: sender, text: Some(key.as_str().to_owned()), ..Side::default() }
        }
        EncodedSideRow::CancelRequested => Side { kind: 7, ..Side::default() },
        EncodedSideRow::Attempts(attempts) => {
            let attempts = i32::try_from(*attempts).unwrap_or(i32::MAX);
            Side { kind: 8, number: Some(attempts.into()), ..Side::default() }
        }
        EncodedSideRow::Webhook(webhook) => {
            Side { kind: 9, text: Some(webhook_json(webhook)), body: Some(&webhook.secrets), ..Side::default() }
        }
        EncodedSideRow::Audit(entry) => {
            Side { kind: 10, number: Some(entry.time.as_millis()), text: Some(audit_json(entry)), ..Side::default() }
        }
        EncodedSideRow::SendInFlight(digest) => Side { kind: 12, body: Some(digest), ..Side::default() },
        EncodedSideRow::ForwardDone(number) => {
            Side { kind: 11, number: Some(i64::try_from(number.0).unwrap_or(-1)), ..Side::default() }
        }
    }
}

fn webhook_json(webhook: &Webhook) -> String {
    let Webhook { id, url, receiver, dialect, events, .. } = webhook;
    serde_json::json!({
        "id": id.as_str(),
        "url": without_nul(url),
        "receiver": without_nul(receiver),
        "dialect": dialect.0,
        "all_events": *events == WebhookEvents::All,
    })
    .to_string()
}

/// Owners are in hexadecimal, since they may have a NUL in them.
fn audit_json(entry: &AuditEntry) -> String {
    let AuditEntry { caller, peer, action, agent, task, owner, refusal, detail, .. } = entry;
    let hex = |owner: &Owner| -> String { owner.as_key().bytes().map(|byte| format!("{byte:02x}")).collect() };
    serde_json::json!({
        "caller": hex(caller),
        "peer": peer.map(|peer| peer.to_string()),
        "action": action.name(),
        "agent": agent.as_ref().map(AgentId::as_str),
        "task": task.as_ref().map(TaskId::as_str),
        "owner": owner.as_ref().map(hex),
        "refusal": refusal.as_ref().map(|refusal| without_nul(refusal)),
        "detail": without_nul(detail),
    })
    .to_string()
}

/// The result of one append, as the table at `append_1` says.
fn result(append: &Encoded, row: &Row) -> Outcome {
    let detail: Option<&str> = row.get(6);
    let task = || detail.and_then(|id| TaskId::parse(id).ok());
    Outcome::Answered(match row.get::<_, i16>(0) {
        0 => Ok(AppendResult {
            task: TaskNo(row.get::<_, i64>(1) as u64),
            last: append.last(),
            bytes: append.added_bytes() - row.get::<_, i64>(3),
            epoch: Epoch(row.get::<_, i64>(2) as u64),
        }),
        1 => Err(StoreError::Conflict),
        // The task may have been deleted since; then a new attempt creates it.
        2 => Err(task().map_or(StoreError::Conflict, StoreError::Exists)),
        3 => Err(StoreError::OwnedElsewhere(detail.unwrap_or("unknown").into())),
        4 => Err(StoreError::ContextBusy(task())),
        5 => return Outcome::Locked,
        other => Err(StoreError::Failed(format!("the database returned {other} for an append").into())),
    })
}
