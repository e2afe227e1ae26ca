//! The writer's half of webhooks: what is set, what becomes due with an append, and what became of deliveries.

use std::collections::HashSet;

use rusqlite::{Connection, OptionalExtension, Result};
use sabir_model::{PushConfigId, Seq, Timestamp};

use crate::encode::Encoded;
use crate::{
    DeliveryKind, Failure, MAX_WEBHOOKS, TaskNo, UndeliveredNo, Webhook, WebhookEvents, WebhookNo, WebhookSet,
};

use super::key::seq;
use super::rows::last_key;

/// Changes of webhooks and deliveries, each in a transaction with whatever else is queued.
pub(super) enum WebhookChange {
    Set { task: TaskNo, webhook: Webhook, now: Timestamp },
    Remove { task: TaskNo, id: Option<PushConfigId> },
    Delivered { webhook: WebhookNo, sent: Seq, now: Timestamp },
    Postpone { webhook: WebhookNo, failure: Failure, next: Timestamp },
    GiveUp { webhook: WebhookNo, event: Seq, failure: Failure },
    Retried { undelivered: UndeliveredNo, failure: Option<Failure> },
    ClockWasSet { now: Timestamp, latest: Timestamp },
    Retry { kind: DeliveryKind, number: u64, now: Timestamp },
    Discard { kind: DeliveryKind, number: u64, now: Timestamp },
}

/// What a change found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Changed {
    Set(WebhookSet),
    /// So many rows were changed.
    Rows(usize),
}

/// The tasks whose appends concern a webhook. Nearly all appends concern none, and should not pay for a look.
pub(super) struct Watched {
    tasks: HashSet<TaskNo>,
    /// Settled in the transaction that is open: they get no more events.
    settled: Vec<TaskNo>,
    /// The transaction that is open has made something due.
    is_due: bool,
}

impl Watched {
    pub fn load(conn: &Connection) -> Result<Self> {
        let mut select = conn.prepare("SELECT DISTINCT no FROM webhooks JOIN tasks USING (no) WHERE state < 4")?;
        let numbers = select.query_map((), |row| Ok(TaskNo(row.get::<_, i64>(0)? as u64)))?;
        Ok(Self { tasks: numbers.collect::<Result<_>>()?, settled: Vec::new(), is_due: false })
    }

    /// Marks the webhooks that want events of this append, whose rows are written already.
    pub fn note_append(&mut self, conn: &Connection, no: TaskNo, append: &Encoded) -> Result<()> {
        if self.tasks.is_empty() || !self.tasks.contains(&no) {
            return Ok(());
        }
        if append.settles() {
            self.settled.push(no);
        }
        if !append.has_later_events {
            return Ok(());
        }
        let mut mark = conn.prepare_cached(
            "UPDATE webhooks SET due = (SELECT time FROM tasks WHERE no = ?1)
             WHERE no = ?1 AND due IS NULL AND (?2 OR all_events)",
        )?;
        self.is_due |= mark.execute((no, append.has_status))? > 0;
        Ok(())
    }

    /// A webhook that comes with an append.
    pub fn add(&mut self, conn: &Connection, no: TaskNo, webhook: &Webhook, sent: Seq) -> Result<()> {
        self.tasks.insert(no);
        insert(conn, no, webhook, sent, None)
    }

    pub fn change(&mut self, conn: &Connection, change: &WebhookChange) -> Result<Changed> {
        Ok(Changed::Rows(match change {
            WebhookChange::Set { task, webhook, now } => {
                return Ok(Changed::Set(self.set(conn, *task, webhook, *now)?));
            }
            WebhookChange::Remove { task, id } => remove(conn, *task, id.as_ref())?,
            // Whoever delivers it goes on by itself, so nobody has to be woken.
            WebhookChange::Delivered { webhook, sent, now } => advance(conn, *webhook, Some(*sent), *now)?,
            WebhookChange::Postpone { webhook, failure, next } => {
                let mut postpone = conn.prepare_cached(
                    "UPDATE webhooks SET attempts = attempts + 1, failing_since = coalesce(failing_since, ?2),
                     reason = ?3, due = ?4 WHERE number = ?1 AND due IS NOT NULL",
                )?;
                let Failure { reason, time } = failure;
                postpone.execute((webhook.0 as i64, time.as_millis(), reason, next.as_millis()))?
            }
            WebhookChange::GiveUp { webhook, event, failure } => {
                self.is_due = true;
                give_up(conn, *webhook, *event, failure)?
            }
            WebhookChange::Retried { undelivered: UndeliveredNo(number), failure: None } => {
                conn.prepare_cached("DELETE FROM undelivered WHERE number = ?1")?.execute((*number as i64,))?
            }
            WebhookChange::Retried { undelivered: UndeliveredNo(number), failure: Some(Failure { reason, time }) } => {
                let mut keep = conn.prepare_cached(
                    "UPDATE undelivered SET attempts = attempts + 1, reason = ?2, time = ?3, due = NULL WHERE number = ?1",
                )?;
                keep.execute((*number as i64, reason, time.as_millis()))?
            }
            WebhookChange::ClockWasSet { now, latest } => {
                self.is_due = true;
                let (now, latest) = (now.as_millis(), latest.as_millis());
                let mut webhooks =
                    conn.prepare_cached("UPDATE webhooks SET due = ?1 WHERE due > ?2 OR (due > ?1 AND attempts = 0)")?;
                let mut undelivered = conn.prepare_cached("UPDATE undelivered SET due = ?1 WHERE due > ?1")?;
                webhooks.execute((now, latest))? + undelivered.execute((now,))?
            }
            WebhookChange::Retry { kind, number, now } => {
                self.is_due = true;
                let mut retry = conn.prepare_cached(match kind {
                    DeliveryKind::Pending => "UPDATE webhooks SET due = ?2 WHERE number = ?1 AND due IS NOT NULL",
                    DeliveryKind::Dead => "UPDATE undelivered SET due = ?2 WHERE number = ?1",
                })?;
                retry.execute((*number as i64, now.as_millis()))?
            }
            WebhookChange::Discard { kind: DeliveryKind::Dead, number, .. } => {
                conn.prepare_cached("DELETE FROM undelivered WHERE number = ?1")?.execute((*number as i64,))?
            }
            WebhookChange::Discard { kind: DeliveryKind::Pending, number, now } => {
                self.is_due = true;
                advance(conn, WebhookNo(*number), None, *now)?
            }
        }))
    }

    fn set(&mut self, conn: &Connection, task: TaskNo, webhook: &Webhook, now: Timestamp) -> Result<WebhookSet> {
        let mut select =
            conn.prepare_cached(concat!("SELECT state, in_row, ", last_key!(), " FROM tasks WHERE no = ?1"))?;
        let read = |row: &rusqlite::Row<'_>| {
            let (state, all, last): (i64, Option<i64>, Option<i64>) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok((state, all.map_or(last.map_or(0, seq), |all| all as Seq)))
        };
        let Some((state, last)) = select.query_row((task,), read).optional()? else { return Ok(WebhookSet::NoTask) };
        let is_settled = state >= 4;
        let mut before = conn.prepare_cached("SELECT sent, due FROM webhooks WHERE no = ?1 AND id = ?2")?;
        let before: Option<(i64, Option<i64>)> =
            before.query_row((task, webhook.id.as_str()), |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        if before.is_none() {
            let mut count = conn.prepare_cached("SELECT count(*) FROM webhooks WHERE no = ?1")?;
            let count: i64 = count.query_row((task,), |row| row.get(0))?;
            if count as usize >= MAX_WEBHOOKS {
                return Ok(WebhookSet::TooMany);
            }
        }
        let (sent, due) = match before {
            // What the old URL has not got goes to the new one.
            Some((sent, Some(_))) => (sent as Seq, Some(now)),
            _ if is_settled => (last.saturating_sub(1), Some(now)),
            _ => (last, None),
        };
        insert(conn, task, webhook, sent, due)?;
        self.is_due |= due.is_some();
        if !is_settled {
            self.tasks.insert(task);
        }
        Ok(WebhookSet::Done)
    }

    /// The transaction is committed. Says whether something became due.
    pub fn committed(&mut self) -> bool {
        for task in self.settled.drain(..) {
            self.tasks.remove(&task);
        }
        std::mem::take(&mut self.is_due)
    }

    pub fn rolled_back(&mut self) {
        self.settled.clear();
        self.is_due = false;
    }
}

fn insert(conn: &Connection, no: TaskNo, webhook: &Webhook, sent: Seq, due: Option<Timestamp>) -> Result<()> {
    // The number must be new, so that the outcome of a delivery to the old URL is not taken for one to this.
    let mut insert = conn.prepare_cached(
        "INSERT OR REPLACE INTO webhooks (no, id, url, receiver, secrets, dialect, all_events, sent, due)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?;
    let all_events = webhook.events == WebhookEvents::All;
    let Webhook { id, url, receiver, secrets, dialect, .. } = webhook;
    let due = due.map(Timestamp::as_millis);
    insert.execute((no, id.as_str(), url, receiver, secrets, dialect.0, all_events, sent as i64, due))?;
    Ok(())
}

fn remove(conn: &Connection, no: TaskNo, id: Option<&PushConfigId>) -> Result<usize> {
    let id = id.map(PushConfigId::as_str);
    conn.prepare_cached("DELETE FROM undelivered WHERE no = ?1 AND id = coalesce(?2, id)")?.execute((no, id))?;
    conn.prepare_cached("DELETE FROM webhooks WHERE no = ?1 AND id = coalesce(?2, id)")?.execute((no, id))
}

/// Everything up to `sent` is handled, without a number everything that is in the log. What was appended meanwhile is due at
/// once.
fn advance(conn: &Connection, webhook: WebhookNo, sent: Option<Seq>, now: Timestamp) -> Result<usize> {
    let number = webhook.0 as i64;
    let mut select = conn.prepare_cached(concat!(
        "SELECT in_row, ",
        last_key!(),
        " FROM tasks WHERE no = (SELECT no FROM webhooks WHERE number = ?1)"
    ))?;
    let read = |row: &rusqlite::Row<'_>| {
        let (all, last): (Option<i64>, Option<i64>) = (row.get(0)?, row.get(1)?);
        Ok(all.map_or(last.map_or(0, seq), |all| all as Seq))
    };
    let last = select.query_row((number,), read).optional()?.unwrap_or(0);
    let sent = sent.unwrap_or(last);
    let due = (last > sent).then_some(now.as_millis());
    let mut advance = conn.prepare_cached(
        "UPDATE webhooks SET sent = max(sent, ?2), due = ?3, attempts = 0, failing_since = NULL, reason = NULL
         WHERE number = ?1 AND due IS NOT NULL",
    )?;
    advance.execute((number, sent as i64, due))
}

fn give_up(conn: &Connection, webhook: WebhookNo, event: Seq, failure: &Failure) -> Result<usize> {
    let number = webhook.0 as i64;
    let mut keep = conn.prepare_cached(
        "INSERT INTO undelivered (no, id, receiver, event, attempts, reason, time)
         SELECT no, id, receiver, ?2, attempts + 1, ?3, ?4 FROM webhooks WHERE number = ?1 AND due IS NOT NULL",
    )?;
    keep.execute((number, event as i64, &failure.reason, failure.time.as_millis()))?;
    let mut since = conn.prepare_cached("SELECT coalesce(failing_since, ?2) FROM webhooks WHERE number = ?1")?;
    let since: Option<i64> = since.query_row((number, failure.time.as_millis()), |row| row.get(0)).optional()?;
    let changed = advance(conn, webhook, Some(event), failure.time)?;
    // It fails until something is delivered.
    let mut still = conn.prepare_cached("UPDATE webhooks SET failing_since = ?2, reason = ?3 WHERE number = ?1")?;
    still.execute((number, since, &failure.reason))?;
    Ok(changed)
}
