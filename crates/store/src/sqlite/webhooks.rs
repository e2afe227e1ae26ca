//! The writer's half of webhooks: what is set, what becomes due with an append, and what became of deliveries.

use std::collections::HashSet;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use sabir_model::{PushConfigId, Seq, Timestamp};

use crate::encode::Encoded;
use crate::{DeliveryKind, Failure, GivenUpNo, MAX_WEBHOOKS, TaskNo, Webhook, WebhookEvents, WebhookNo, WebhookSet};

use super::due_index::{DueChange, DueEntry, DueIndex};
use super::key::seq;
use super::rows::last_key;
use super::webhook_numbers::WebhookNumbers;

/// Changes of webhooks and deliveries, each in a transaction with whatever else is queued.
pub(super) enum WebhookChange {
    Set { task: TaskNo, webhook: Webhook, now: Timestamp },
    Remove { task: TaskNo, id: Option<PushConfigId> },
    Delivered { webhook: WebhookNo, sent: Seq, now: Timestamp },
    Postpone { webhook: WebhookNo, failure: Failure, next: Timestamp },
    GiveUp { webhook: WebhookNo, event: Seq, failure: Failure },
    Retried { given_up: GivenUpNo, failure: Option<Failure> },
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
    numbers: WebhookNumbers,
    index: Arc<DueIndex>,
    /// What the transaction that is open does to the index.
    changes: Vec<DueChange>,
    /// The transaction that is open has made something due that nobody is at work on.
    is_due: bool,
    /// The dispatcher has to look after this transaction, whichever receiver it concerns.
    is_urgent: bool,
}

/// Rows that may be sent to again, and nothing else.
pub(super) const LIVE: &str =
    "SELECT number, no, receiver, due, state FROM webhooks LEFT JOIN tasks USING (no) WHERE at_rest = 0";

pub(super) const RETRIES: &str = "SELECT given_up.number, no, receiver, given_up.due
    FROM given_up INDEXED BY given_up_due CROSS JOIN webhooks USING (no, id)
    WHERE given_up.due IS NOT NULL AND at_rest IN (0, 1)";

impl Watched {
    pub fn load(conn: &Connection, index: Arc<DueIndex>) -> Result<Self> {
        let mut tasks = HashSet::new();
        let mut due = Vec::new();
        for (kind, sql) in [(DeliveryKind::Pending, LIVE), (DeliveryKind::GivenUp, RETRIES)] {
            let mut select = conn.prepare(sql)?;
            let mut rows = select.query(())?;
            while let Some(row) = rows.next()? {
                if kind == DeliveryKind::Pending && row.get::<_, Option<i64>>(4).is_ok_and(|state| state < Some(4)) {
                    tasks.insert(TaskNo(row.get::<_, i64>(1)? as u64));
                }
                due.extend(due_change(row, kind)?);
            }
        }
        index.apply(due);
        let numbers = WebhookNumbers::load(conn)?;
        Ok(Self { tasks, settled: Vec::new(), numbers, index, changes: Vec::new(), is_due: false, is_urgent: false })
    }

    /// Marks the webhooks that want events of this append, whose rows are written already.
    pub fn note_append(&mut self, conn: &Connection, no: TaskNo, append: &Encoded) -> Result<()> {
        if self.tasks.is_empty() || !self.tasks.contains(&no) {
            return Ok(());
        }
        if append.settles() {
            self.settled.push(no);
        }
        // All webhooks of a new task came with it.
        if !append.has_later_events || append.after == 0 {
            return Ok(());
        }
        let mut mark = conn.prepare_cached(
            "UPDATE webhooks SET due = (SELECT time FROM tasks WHERE no = ?1)
             WHERE at_rest = 0 AND no = ?1 AND due IS NULL AND (?2 OR all_events)
             RETURNING number, no, receiver, due",
        )?;
        let mut rows = mark.query((no, append.has_status))?;
        while let Some(row) = rows.next()? {
            self.changes.extend(due_change(row, DeliveryKind::Pending)?);
            self.is_due = true;
        }
        Ok(())
    }

    /// A webhook that comes with an append. It gets the events of this append too.
    pub fn add(&mut self, conn: &Connection, no: TaskNo, webhook: &Webhook, append: &Encoded) -> Result<()> {
        let is_first = append.after == 0 && !self.tasks.contains(&no);
        if !is_first {
            self.remove_rows(conn, no, Some(&webhook.id))?;
        }
        self.tasks.insert(no);
        let is_wanted = append.has_status || (append.has_later_events && webhook.events == WebhookEvents::All);
        // Of a task that is known, `note_append` marks all webhooks together.
        let due = append.created_until().filter(|_| is_wanted);
        self.is_due |= due.is_some();
        self.insert(conn, no, webhook, append.after, due)
    }

    pub fn change(&mut self, conn: &Connection, change: &WebhookChange) -> Result<Changed> {
        Ok(Changed::Rows(match change {
            WebhookChange::Set { task, webhook, now } => {
                return Ok(Changed::Set(self.set(conn, *task, webhook, *now)?));
            }
            WebhookChange::Remove { task, id } => self.remove(conn, *task, id.as_ref())?,
            // Whoever delivers it goes on by itself, so nobody has to be woken.
            WebhookChange::Delivered { webhook, sent, now } => self.advance(conn, *webhook, Some(*sent), *now)?,
            WebhookChange::Postpone { webhook, failure: Failure { reason, time }, next } => {
                let Some(entry) = self.index.find(DeliveryKind::Pending, webhook.0) else {
                    return Ok(Changed::Rows(0));
                };
                let mut postpone = conn.prepare_cached(
                    "UPDATE webhooks SET attempts = attempts + 1, failing_since = coalesce(failing_since, ?3),
                     reason = ?4, due = ?5 WHERE at_rest = 0 AND no = ?1 AND number = ?2 AND due IS NOT NULL",
                )?;
                let (number, time, due) = (webhook.0 as i64, time.as_millis(), next.as_millis());
                let changed = postpone.execute((entry.task, number, time, reason, due))?;
                self.note_due(changed, DeliveryKind::Pending, webhook.0, DueEntry { due: *next, ..entry })
            }
            WebhookChange::GiveUp { webhook, event, failure } => {
                self.is_urgent = true;
                self.give_up(conn, *webhook, *event, failure)?
            }
            WebhookChange::Retried { given_up: GivenUpNo(number), failure: None } => self.forget(conn, *number)?,
            WebhookChange::Retried { given_up: GivenUpNo(number), failure: Some(Failure { reason, time }) } => {
                let mut keep = conn.prepare_cached(
                    "UPDATE given_up SET attempts = attempts + 1, reason = ?2, time = ?3, due = NULL WHERE number = ?1",
                )?;
                self.note_not_due(DeliveryKind::GivenUp, *number);
                keep.execute((*number as i64, reason, time.as_millis()))?
            }
            WebhookChange::ClockWasSet { now, latest } => self.clock_was_set(conn, *now, *latest)?,
            WebhookChange::Retry { kind, number, now } => {
                self.is_urgent = true;
                self.set_due(conn, *kind, *number, *now)?
            }
            WebhookChange::Discard { kind: DeliveryKind::GivenUp, number, .. } => self.forget(conn, *number)?,
            WebhookChange::Discard { kind: DeliveryKind::Pending, number, now } => {
                self.is_urgent = true;
                self.advance(conn, WebhookNo(*number), None, *now)?
            }
        }))
    }

    fn set(&mut self, conn: &Connection, task: TaskNo, webhook: &Webhook, now: Timestamp) -> Result<WebhookSet> {
        let Some(TaskEnd { is_settled, last }) = task_end(conn, task)? else { return Ok(WebhookSet::NoTask) };
        let mut before =
            conn.prepare_cached("SELECT sent, due FROM webhooks WHERE at_rest IN (0, 1) AND no = ?1 AND id = ?2")?;
        let before: Option<(i64, Option<i64>)> =
            before.query_row((task, webhook.id.as_str()), |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        if before.is_some() {
            self.remove_rows(conn, task, Some(&webhook.id))?;
        } else {
            let mut count = conn.prepare_cached("SELECT count(*) FROM webhooks WHERE at_rest IN (0, 1) AND no = ?1")?;
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
        self.insert(conn, task, webhook, sent, due)?;
        self.is_due |= due.is_some();
        if before.is_some() {
            self.move_retries(conn, task, webhook)?;
        }
        if !is_settled {
            self.tasks.insert(task);
        }
        Ok(WebhookSet::Done)
    }

    /// Events that are tried once more go to the receiver of the webhook as it is now.
    fn move_retries(&mut self, conn: &Connection, task: TaskNo, webhook: &Webhook) -> Result<()> {
        let mut retries =
            conn.prepare_cached("SELECT number, due FROM given_up WHERE no = ?1 AND id = ?2 AND due IS NOT NULL")?;
        let mut rows = retries.query((task, webhook.id.as_str()))?;
        while let Some(row) = rows.next()? {
            let (number, due): (i64, i64) = (row.get(0)?, row.get(1)?);
            let entry = DueEntry { task, receiver: webhook.receiver.as_str().into(), due: Timestamp::from_millis(due) };
            self.note_due(1, DeliveryKind::GivenUp, number as u64, entry);
        }
        Ok(())
    }

    fn insert(
        &mut self,
        conn: &Connection,
        task: TaskNo,
        webhook: &Webhook,
        sent: Seq,
        due: Option<Timestamp>,
    ) -> Result<()> {
        // The number must be new, so that the outcome of a delivery to the old URL is not taken for one to this.
        let WebhookNo(number) = self.numbers.next(conn)?;
        let mut insert = conn.prepare_cached(
            "INSERT INTO webhooks (at_rest, no, number, id, url, receiver, secrets, dialect, all_events, sent, due)
             VALUES (0, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        )?;
        let all_events = webhook.events == WebhookEvents::All;
        let Webhook { id, url, receiver, secrets, dialect, .. } = webhook;
        let (sent, due_millis) = (sent as i64, due.map(Timestamp::as_millis));
        let row =
            params![task, number as i64, id.as_str(), url, receiver, secrets, dialect.0, all_events, sent, due_millis];
        insert.execute(row)?;
        if let Some(due) = due {
            let entry = DueEntry { task, receiver: receiver.as_str().into(), due };
            self.note_due(1, DeliveryKind::Pending, number, entry);
        }
        Ok(())
    }

    /// Removes one webhook of a task, or all, with everything that is to be sent to it or was given up.
    pub fn remove(&mut self, conn: &Connection, task: TaskNo, id: Option<&PushConfigId>) -> Result<usize> {
        let mut remove =
            conn.prepare_cached("DELETE FROM given_up WHERE no = ?1 AND id = coalesce(?2, id) RETURNING number")?;
        let mut rows = remove.query((task, id.map(PushConfigId::as_str)))?;
        while let Some(row) = rows.next()? {
            self.note_not_due(DeliveryKind::GivenUp, row.get::<_, i64>(0)? as u64);
        }
        self.remove_rows(conn, task, id)
    }

    fn remove_rows(&mut self, conn: &Connection, task: TaskNo, id: Option<&PushConfigId>) -> Result<usize> {
        let mut remove = conn.prepare_cached(
            "DELETE FROM webhooks WHERE at_rest IN (0, 1) AND no = ?1 AND id = coalesce(?2, id) RETURNING number",
        )?;
        let mut rows = remove.query((task, id.map(PushConfigId::as_str)))?;
        let mut count = 0;
        while let Some(row) = rows.next()? {
            self.note_not_due(DeliveryKind::Pending, row.get::<_, i64>(0)? as u64);
            count += 1;
        }
        Ok(count)
    }

    /// Everything up to `sent` is handled, without a number everything that is in the log. What was appended meanwhile is
    /// due at once.
    fn advance(&mut self, conn: &Connection, webhook: WebhookNo, sent: Option<Seq>, now: Timestamp) -> Result<usize> {
        let Some(entry) = self.index.find(DeliveryKind::Pending, webhook.0) else { return Ok(0) };
        let end = task_end(conn, entry.task)?;
        let last = end.as_ref().map_or(0, |end| end.last);
        let sent = sent.unwrap_or(last);
        let due = (last > sent).then_some(now);
        let at_rest = due.is_none() && end.is_none_or(|end| end.is_settled);
        let mut advance = conn.prepare_cached(
            "UPDATE webhooks SET at_rest = ?3, sent = max(sent, ?4), due = ?5, attempts = 0, failing_since = NULL,
             reason = NULL WHERE at_rest = 0 AND no = ?1 AND number = ?2 AND due IS NOT NULL",
        )?;
        let due_millis = due.map(Timestamp::as_millis);
        let changed = advance.execute((entry.task, webhook.0 as i64, at_rest, sent as i64, due_millis))?;
        match due {
            Some(due) => self.note_due(changed, DeliveryKind::Pending, webhook.0, DueEntry { due, ..entry }),
            None => {
                self.note_not_due(DeliveryKind::Pending, webhook.0);
                changed
            }
        };
        Ok(changed)
    }

    fn give_up(&mut self, conn: &Connection, webhook: WebhookNo, event: Seq, failure: &Failure) -> Result<usize> {
        let Some(DueEntry { task, .. }) = self.index.find(DeliveryKind::Pending, webhook.0) else { return Ok(0) };
        let (number, Failure { reason, time }) = (webhook.0 as i64, failure);
        let mut since = conn.prepare_cached(
            "SELECT coalesce(failing_since, ?3) FROM webhooks
             WHERE at_rest = 0 AND no = ?1 AND number = ?2 AND due IS NOT NULL",
        )?;
        let since: Option<i64> = since.query_row((task, number, time.as_millis()), |row| row.get(0)).optional()?;
        let Some(since) = since else { return Ok(0) };
        let mut keep = conn.prepare_cached(
            "INSERT INTO given_up (no, id, event, attempts, reason, time)
             SELECT no, id, ?3, attempts + 1, ?4, ?5 FROM webhooks WHERE at_rest = 0 AND no = ?1 AND number = ?2",
        )?;
        keep.execute((task, number, event as i64, reason, time.as_millis()))?;
        let changed = self.advance(conn, webhook, Some(event), *time)?;
        // It fails until something is delivered.
        let mut still = conn.prepare_cached(
            "UPDATE webhooks SET failing_since = ?3, reason = ?4 WHERE at_rest IN (0, 1) AND no = ?1 AND number = ?2",
        )?;
        still.execute((task, number, since, reason))?;
        Ok(changed)
    }

    /// Removes an event that was given up.
    fn forget(&mut self, conn: &Connection, number: u64) -> Result<usize> {
        self.note_not_due(DeliveryKind::GivenUp, number);
        conn.prepare_cached("DELETE FROM given_up WHERE number = ?1")?.execute((number as i64,))
    }

    fn clock_was_set(&mut self, conn: &Connection, now: Timestamp, latest: Timestamp) -> Result<usize> {
        let mut changed = 0;
        for ((due, kind, number), entry) in self.index.later_than(now) {
            let is_postponed = kind == DeliveryKind::Pending && due <= latest && {
                let mut attempts =
                    conn.prepare_cached("SELECT attempts FROM webhooks WHERE at_rest = 0 AND no = ?1 AND number = ?2")?;
                let attempts =
                    attempts.query_row((entry.task, number as i64), |row| row.get::<_, i64>(0)).optional()?;
                attempts.is_none_or(|attempts| attempts > 0)
            };
            if !is_postponed {
                self.is_urgent = true;
                changed += self.set_due(conn, kind, number, now)?;
            }
        }
        Ok(changed)
    }

    /// Makes a delivery due. Of one that is pending only the time changes.
    fn set_due(&mut self, conn: &Connection, kind: DeliveryKind, number: u64, due: Timestamp) -> Result<usize> {
        match kind {
            DeliveryKind::Pending => {
                let Some(entry) = self.index.find(kind, number) else { return Ok(0) };
                let mut set = conn.prepare_cached(
                    "UPDATE webhooks SET due = ?3 WHERE at_rest = 0 AND no = ?1 AND number = ?2 AND due IS NOT NULL",
                )?;
                let changed = set.execute((entry.task, number as i64, due.as_millis()))?;
                Ok(self.note_due(changed, kind, number, DueEntry { due, ..entry }))
            }
            DeliveryKind::GivenUp => {
                let mut set = conn.prepare_cached("UPDATE given_up SET due = ?2 WHERE number = ?1")?;
                let changed = set.execute((number as i64, due.as_millis()))?;
                let mut of = conn.prepare_cached(
                    "SELECT given_up.number, no, receiver, given_up.due FROM given_up JOIN webhooks USING (no, id)
                     WHERE given_up.number = ?1 AND at_rest IN (0, 1)",
                )?;
                let mut rows = of.query((number as i64,))?;
                if let Some(row) = rows.next()? {
                    self.changes.extend(due_change(row, kind)?);
                }
                Ok(changed)
            }
        }
    }

    /// Notes when a delivery is due, if its row was changed.
    fn note_due(&mut self, changed: usize, kind: DeliveryKind, number: u64, entry: DueEntry) -> usize {
        if changed > 0 {
            self.changes.push(DueChange { kind, number, entry: Some(entry) });
        }
        changed
    }

    fn note_not_due(&mut self, kind: DeliveryKind, number: u64) {
        self.changes.push(DueChange { kind, number, entry: None });
    }

    /// The transaction is committed. Says whether somebody should know what became due.
    pub fn committed(&mut self) -> bool {
        for task in self.settled.drain(..) {
            self.tasks.remove(&task);
        }
        self.numbers.committed();
        let is_heard = !self.changes.is_empty() && self.index.apply(self.changes.drain(..));
        let (is_due, is_urgent) = (std::mem::take(&mut self.is_due), std::mem::take(&mut self.is_urgent));
        is_urgent || (is_due && is_heard)
    }

    /// Wakes whoever waits for something due.
    pub fn wake(&self) {
        self.index.signal.notify_one();
    }

    pub fn rolled_back(&mut self) {
        self.settled.clear();
        self.changes.clear();
        self.numbers.rolled_back();
        (self.is_due, self.is_urgent) = (false, false);
    }
}

/// Reads number, task, receiver and time of a delivery. One whose receiver cannot be read is left out: it must not stop the
/// others.
fn due_change(row: &Row<'_>, kind: DeliveryKind) -> Result<Option<DueChange>> {
    let (number, task) = (row.get::<_, i64>(0)? as u64, TaskNo(row.get::<_, i64>(1)? as u64));
    let Ok(Some(due)) = row.get::<_, Option<i64>>(3) else { return Ok(None) };
    let Ok(receiver) = row.get_ref(2)?.as_str() else {
        tracing::error!(task_no = task.0, number, "a webhook cannot be read; nothing is sent to it");
        return Ok(None);
    };
    let entry = DueEntry { task, receiver: receiver.into(), due: Timestamp::from_millis(due) };
    Ok(Some(DueChange { kind, number, entry: Some(entry) }))
}

/// How far the log of a task has come.
struct TaskEnd {
    is_settled: bool,
    last: Seq,
}

fn task_end(conn: &Connection, task: TaskNo) -> Result<Option<TaskEnd>> {
    let mut select =
        conn.prepare_cached(concat!("SELECT state, in_row, ", last_key!(), " FROM tasks WHERE no = ?1"))?;
    let read = |row: &Row<'_>| {
        let (state, all, last): (i64, Option<i64>, Option<i64>) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(TaskEnd { is_settled: state >= 4, last: all.map_or(last.map_or(0, seq), |all| all as Seq) })
    };
    select.query_row((task,), read).optional()
}
