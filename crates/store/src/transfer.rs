//! Copies tasks from one store to another, and checks a whole store.
//!
//! The rows of SQLite and Postgres hold the same bytes, so a task is carried as it is stored: nothing is decoded and encoded again,
//! and both sides can be compared byte for byte. Task numbers stay, since names of folders and audit entries have them.
//!
//! An export is read-only and sees one state of the store. An import writes each batch together with a mark that says how far it
//! has come, so a second run continues where the first one ended, after a crash too.

use std::net::IpAddr;

use sabir_model::{AgentId, Birth, ContextId, Message, Owner, Seq, TaskBirth, TaskId};
use serde::{Deserialize, Serialize};

use crate::canonical::{CanonicalReader, CanonicalWriter};
use crate::damage::Damage;
use crate::fold::{Fold, decode};
use crate::{AuditAction, StoreFuture};

/// Reads everything that a store keeps.
pub trait ExportTasks: Send {
    /// What tells this store from others: the same on every run while its first task is there.
    fn identity(&mut self) -> StoreFuture<'_, String>;

    /// What is wrong with the database itself, below its tables. Reads all of it.
    fn check_database(&mut self) -> StoreFuture<'_, Vec<String>>;

    fn size(&mut self) -> StoreFuture<'_, TransferSize>;

    /// The names of the servers that may have stored something since the export began, or may do so now, which is not exported.
    /// For a file there are none: only one process can have it open.
    fn live_nodes(&mut self) -> StoreFuture<'_, Vec<String>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Tasks after this number, in the order of their numbers; empty at the end. About `max_bytes` of them, at least one. The
    /// log of the last one may be cut off; `packs` has the rest.
    fn task_parts(&mut self, after: u64, max_bytes: usize) -> StoreFuture<'_, Vec<TransferredTask>>;

    /// The log of a task after this event; empty at the end. About `max_bytes` of it, at least one pack.
    fn packs(&mut self, task: u64, after: Seq, max_bytes: usize) -> StoreFuture<'_, Vec<(Seq, Vec<u8>)>>;

    /// The same as `task_parts`, with the whole log of each.
    fn tasks(&mut self, after: u64, max_bytes: usize) -> StoreFuture<'_, Vec<TransferredTask>> {
        Box::pin(async move {
            let mut tasks = self.task_parts(after, max_bytes).await?;
            if let Some(last) = tasks.last_mut().filter(|task| task.in_row.is_none()) {
                loop {
                    let more = self.packs(last.no, last.last_event(), max_bytes).await?;
                    if more.is_empty() {
                        break;
                    }
                    last.packs.extend(more);
                }
            }
            Ok(tasks)
        })
    }

    /// What agents remember of contexts, after this place; at most `limit`.
    fn agent_states(&mut self, after: Option<ContextKey>, limit: usize) -> StoreFuture<'_, Vec<TransferredAgentState>>;

    /// The audit log after this number; at most `limit` entries.
    fn audit(&mut self, after: u64, limit: usize) -> StoreFuture<'_, Vec<TransferredAudit>>;

    /// How many tasks of each owner, agent and state the store says that it has.
    fn tallies(&mut self) -> StoreFuture<'_, Vec<TransferredTally>>;
}

/// Writes what another store has exported. Each call is one transaction, with the mark.
pub trait ImportTasks: Send {
    /// Begins, or resumes what was begun with the same identity. Refused if the store has other tasks, or is in use.
    fn begin(&mut self, identity: &str) -> StoreFuture<'_, TransferMark>;

    fn put_tasks(&mut self, tasks: Vec<TransferredTask>) -> StoreFuture<'_, ()>;

    /// `home` is the name of the node where the sessions are that these tell of.
    fn put_agent_states(&mut self, states: Vec<TransferredAgentState>, home: String) -> StoreFuture<'_, ()>;

    fn put_audit(&mut self, entries: Vec<TransferredAudit>) -> StoreFuture<'_, ()>;

    /// Everything was put. Numbers up to these are not used again.
    fn finish(&mut self, size: TransferSize) -> StoreFuture<'_, ()>;
}

/// How far an import has come.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TransferMark {
    /// The number of the last task.
    pub task: u64,
    pub context: Option<ContextKey>,
    /// The number of the last entry of the audit log.
    pub audit: u64,
    pub is_finished: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TransferSize {
    pub tasks: u64,
    pub contexts: u64,
    pub audit_entries: u64,
    /// The highest numbers that were ever used.
    pub highest_task: u64,
    pub highest_audit: u64,
}

/// A task with all its rows, as they are stored.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TransferredTask {
    pub no: u64,
    /// The key of the owner (`Owner::as_key`).
    pub owner: String,
    pub agent: String,
    pub id: String,
    pub context: String,
    pub born: i64,
    /// Its code, which both stores share.
    pub state: i64,
    pub time: i64,
    pub turn_over: bool,
    pub created: i64,
    /// The number of events, if the head is the whole log.
    pub in_row: Option<Seq>,
    pub head: Option<Vec<u8>>,
    /// Events of one append each, under the number of the last.
    pub packs: Vec<(Seq, Vec<u8>)>,
    pub snapshot: Option<TransferredSnapshot>,
    /// Messages with their places.
    pub inbox: Vec<(u64, Vec<u8>)>,
    /// Idempotency keys, each with its sender.
    pub keys: Vec<(String, String)>,
    pub task_state: Option<String>,
    pub cancel_requested: bool,
    pub attempts: u32,
    /// In the order in which they were set.
    pub webhooks: Vec<TransferredWebhook>,
    pub given_up: Vec<TransferredGivenUp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransferredSnapshot {
    pub seq: Seq,
    pub body: Vec<u8>,
    pub artifacts: Option<Vec<u8>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransferredWebhook {
    pub id: String,
    pub url: String,
    pub receiver: String,
    pub secrets: Vec<u8>,
    pub dialect: i64,
    pub all_events: bool,
    pub sent: Seq,
    pub due: Option<i64>,
    pub attempts: u32,
    pub failing_since: Option<i64>,
    pub reason: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransferredGivenUp {
    pub id: String,
    pub event: Seq,
    pub attempts: u32,
    pub reason: String,
    pub time: i64,
    pub due: Option<i64>,
}

/// What identifies a context.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ContextKey {
    pub owner: String,
    pub agent: String,
    pub context: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransferredAgentState {
    pub key: ContextKey,
    pub state: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransferredAudit {
    pub number: u64,
    pub time: i64,
    pub caller: String,
    pub peer: Option<String>,
    pub action: String,
    pub agent: Option<String>,
    pub task: Option<String>,
    pub no: Option<u64>,
    pub owner: Option<String>,
    pub refusal: Option<String>,
    pub detail: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TransferredTally {
    pub owner: String,
    pub agent: String,
    pub state: i64,
    pub tasks: i64,
}

/// The code of the first state that is settled.
pub(crate) const FIRST_SETTLED: i64 = 4;

impl TransferredTask {
    /// Reads the whole log and all other rows as a server would. Returns the number of events, or what is wrong.
    pub fn check(&self) -> Result<Seq, String> {
        self.check_rows().map_err(|Damage(reason)| reason)
    }

    fn check_rows(&self) -> Result<Seq, Damage> {
        let invalid = |error: sabir_model::InvalidId| Damage(error.to_string());
        let birth = TaskBirth {
            context: ContextId::parse(self.context.as_str()).map_err(invalid)?,
            agent: AgentId::parse(self.agent.as_str()).map_err(invalid)?,
            owner: Owner::from_key(&self.owner),
            born: Birth(u8::try_from(self.born).map_err(|_| Damage("its row has no valid dialect".into()))?),
        };
        let id = TaskId::parse(self.id.as_str()).map_err(invalid)?;
        let mut fold = Fold::new(id, birth);
        match (self.in_row, &self.head) {
            (Some(last), Some(log)) if self.packs.is_empty() => fold.take_pack(last, log)?,
            (Some(_), None) => return Err(Damage("its log should be in its row, and is not".into())),
            (Some(_), Some(_)) => return Err(Damage("its log is in its row and in the table of events".into())),
            (None, _) => {
                for (last, pack) in &self.packs {
                    fold.take_pack(*last, pack)?;
                }
            }
        }
        let task = fold.finish()?;
        let (state, time) = (crate::sqlite::state_code(task.status.state), task.status.time.as_millis());
        if (state, time) != (self.state, self.time) {
            return Err(Damage("its row has another status than the end of its log".into()));
        }
        if let Some(snapshot) = &self.snapshot {
            let resumed = Fold::resume(&snapshot.body, snapshot.artifacts.as_deref())?;
            if resumed.seq() != snapshot.seq || snapshot.seq > task.seq {
                return Err(Damage("its snapshot does not fit its log".into()));
            }
        }
        for (_, message) in &self.inbox {
            decode::<Message>(message).map_err(crate::damage::unreadable_message)?;
        }
        Ok(task.seq)
    }

    /// Whether a server has to take it up: something runs, is to run, or waits in the inbox.
    pub fn needs_recovery(&self) -> bool {
        self.state < FIRST_SETTLED && (self.state < 2 || !self.turn_over || !self.inbox.is_empty())
    }

    /// Whether it has begun a run that is not over, so that its context is busy.
    pub fn has_run(&self) -> bool {
        self.state == 1 || (self.needs_recovery() && self.state > 1 && !self.turn_over)
    }

    /// The number of its last event, without reading the log.
    pub fn last_event(&self) -> Seq {
        self.in_row.or(self.packs.last().map(|(last, _)| *last)).unwrap_or(0)
    }

    /// About how many bytes it takes.
    pub fn bytes(&self) -> usize {
        let packs: usize = self.packs.iter().map(|(_, body)| body.len()).sum();
        let inbox: usize = self.inbox.iter().map(|(_, body)| body.len()).sum();
        let snapshot = self
            .snapshot
            .as_ref()
            .map_or(0, |snapshot| snapshot.body.len() + snapshot.artifacts.as_ref().map_or(0, Vec::len));
        512 + self.head.as_ref().map_or(0, Vec::len) + packs + inbox + snapshot
    }

    /// Everything of it as one sequence of bytes, for a digest and for backups. Equal tasks have equal bytes, whichever store
    /// they are in.
    pub fn canonical(&self) -> Vec<u8> {
        let mut out = CanonicalWriter(Vec::with_capacity(self.bytes()));
        let Self { no, owner, agent, id, context, born, state, time, turn_over, created, in_row, head, packs, .. } =
            self;
        let Self { snapshot, inbox, keys, task_state, cancel_requested, attempts, webhooks, given_up, .. } = self;
        out.number(*no as i64);
        for text in [owner, agent, id, context] {
            out.text(text);
        }
        for number in [*born, *state, *time, i64::from(*turn_over), *created] {
            out.number(number);
        }
        out.option(in_row.map(|all| all as i64));
        out.optional_bytes(head.as_deref());
        out.packs(packs);
        out.option(snapshot.as_ref().map(|snapshot| snapshot.seq as i64));
        out.optional_bytes(snapshot.as_ref().map(|snapshot| snapshot.body.as_slice()));
        out.optional_bytes(snapshot.as_ref().and_then(|snapshot| snapshot.artifacts.as_deref()));
        out.packs(inbox);
        // Neither store keeps an order of them.
        let mut keys: Vec<_> = keys.iter().collect();
        keys.sort();
        out.number(keys.len() as i64);
        for (sender, key) in keys {
            out.text(sender);
            out.text(key);
        }
        out.optional_bytes(task_state.as_deref().map(str::as_bytes));
        out.number(i64::from(*cancel_requested));
        out.number(i64::from(*attempts));
        out.number(webhooks.len() as i64);
        for webhook in webhooks {
            write_webhook(&mut out, webhook);
        }
        out.number(given_up.len() as i64);
        for TransferredGivenUp { id, event, attempts, reason, time, due } in given_up {
            out.text(id);
            out.number(*event as i64);
            out.number(i64::from(*attempts));
            out.text(reason);
            out.number(*time);
            out.option(*due);
        }
        out.0
    }

    /// Reads what `canonical` has written.
    pub(crate) fn from_canonical(bytes: &[u8]) -> Result<Self, Damage> {
        let mut input = CanonicalReader(bytes);
        let (no, [owner, agent, id, context]) = (input.unsigned()?, input.texts()?);
        let (born, state, time, turn_over, created) =
            (input.number()?, input.number()?, input.number()?, input.flag()?, input.number()?);
        let in_row = input.option()?.map(|all| all as Seq);
        let head = input.optional_bytes()?;
        let packs = input.packs()?;
        let (seq, body, artifacts) = (input.option()?, input.optional_bytes()?, input.optional_bytes()?);
        let snapshot = match (seq, body) {
            (Some(seq), Some(body)) => Some(TransferredSnapshot { seq: seq as Seq, body, artifacts }),
            _ => None,
        };
        let inbox = input.packs()?;
        let keys = input.list(|input| Ok((input.text()?, input.text()?)))?;
        let task_state = input.optional_text()?;
        let (cancel_requested, attempts) = (input.flag()?, input.small()?);
        let webhooks = input.list(read_webhook)?;
        let given_up = input.list(|input| {
            Ok(TransferredGivenUp {
                id: input.text()?,
                event: input.unsigned()?,
                attempts: input.small()?,
                reason: input.text()?,
                time: input.number()?,
                due: input.option()?,
            })
        })?;
        input.end()?;
        Ok(Self {
            no,
            owner,
            agent,
            id,
            context,
            born,
            state,
            time,
            turn_over,
            created,
            in_row,
            head,
            packs,
            snapshot,
            inbox,
            keys,
            task_state,
            cancel_requested,
            attempts,
            webhooks,
            given_up,
        })
    }
}

fn write_webhook(out: &mut CanonicalWriter, webhook: &TransferredWebhook) {
    let TransferredWebhook { id, url, receiver, secrets, dialect, all_events, sent, due, attempts, .. } = webhook;
    for text in [id, url, receiver] {
        out.text(text);
    }
    out.bytes(secrets);
    for number in [*dialect, i64::from(*all_events), *sent as i64, i64::from(*attempts)] {
        out.number(number);
    }
    out.option(*due);
    out.option(webhook.failing_since);
    out.optional_bytes(webhook.reason.as_deref().map(str::as_bytes));
}

fn read_webhook(input: &mut CanonicalReader<'_>) -> Result<TransferredWebhook, Damage> {
    let ([id, url, receiver], secrets) = (input.texts()?, input.bytes()?.to_vec());
    let (dialect, all_events, sent, attempts) = (input.number()?, input.flag()?, input.unsigned()?, input.small()?);
    let (due, failing_since, reason) = (input.option()?, input.option()?, input.optional_text()?);
    Ok(TransferredWebhook {
        id,
        url,
        receiver,
        secrets,
        dialect,
        all_events,
        sent,
        due,
        attempts,
        failing_since,
        reason,
    })
}

impl TransferredAgentState {
    /// The same as of a task.
    pub(crate) fn canonical(&self) -> Vec<u8> {
        let mut out = CanonicalWriter(Vec::new());
        for text in [&self.key.owner, &self.key.agent, &self.key.context, &self.state] {
            out.text(text);
        }
        out.0
    }

    pub(crate) fn from_canonical(bytes: &[u8]) -> Result<Self, Damage> {
        let mut input = CanonicalReader(bytes);
        let [owner, agent, context, state] = input.texts()?;
        input.end()?;
        Ok(Self { key: ContextKey { owner, agent, context }, state })
    }
}

impl TransferredAudit {
    /// The same as of a task.
    pub(crate) fn canonical(&self) -> Vec<u8> {
        let Self { number, time, caller, peer, action, agent, task, no, owner, refusal, detail } = self;
        let mut out = CanonicalWriter(Vec::new());
        out.number(*number as i64);
        out.number(*time);
        out.text(caller);
        for text in [peer, agent, task, owner, refusal] {
            out.optional_bytes(text.as_deref().map(str::as_bytes));
        }
        out.option(no.map(|no| no as i64));
        out.text(action);
        out.text(detail);
        out.0
    }

    pub(crate) fn from_canonical(bytes: &[u8]) -> Result<Self, Damage> {
        let mut input = CanonicalReader(bytes);
        let (number, time, caller) = (input.unsigned()?, input.number()?, input.text()?);
        let (peer, agent, task) = (input.optional_text()?, input.optional_text()?, input.optional_text()?);
        let (owner, refusal) = (input.optional_text()?, input.optional_text()?);
        let no = input.option()?.map(|no| no as u64);
        let (action, detail) = (input.text()?, input.text()?);
        input.end()?;
        Ok(Self { number, time, caller, peer, action, agent, task, no, owner, refusal, detail })
    }

    /// Whether a server could read it; else what is wrong.
    pub fn check(&self) -> Result<(), String> {
        if self.peer.as_deref().is_some_and(|peer| peer.parse::<IpAddr>().is_err()) {
            return Err("its address cannot be read".to_owned());
        }
        match AuditAction::ALL.iter().any(|action| action.name() == self.action) {
            true => Ok(()),
            false => Err(format!("its action {:?} is not known", self.action)),
        }
    }
}

/// Postgres keeps no NUL in a text.
pub(crate) fn without_nul(text: String) -> String {
    if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text }
}
