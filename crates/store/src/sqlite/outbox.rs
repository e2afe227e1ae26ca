//! The readers' half of webhooks: what is set, what is due, and what operators see of deliveries.

use rusqlite::{Connection, OptionalExtension, Row};
use sabir_model::{AgentId, Birth, PushConfigId, Seq, TaskId, Timestamp};

use crate::{Delivery, DeliveryKind, Due, StoreError, TaskNo, UndeliveredNo, Webhook, WebhookEvents, WebhookNo};

use super::failure::ReadError;
use super::rows::id;

macro_rules! webhook_columns {
    () => {
        "webhooks.id, url, webhooks.receiver, secrets, dialect, all_events"
    };
}

pub(super) const WEBHOOKS: &str =
    concat!("SELECT ", webhook_columns!(), " FROM webhooks WHERE no = ?1 ORDER BY number");

/// The next receiver in order of names, and the time of its earliest delivery: one seek for each receiver, however many
/// deliveries it has.
pub(super) const NEXT_RECEIVER: &str = "SELECT receiver, due FROM webhooks INDEXED BY webhooks_due
    WHERE due IS NOT NULL AND receiver > ?1 ORDER BY receiver, due LIMIT 1";

pub(super) const NEXT_RETRY: &str = "SELECT receiver, due FROM undelivered INDEXED BY undelivered_due
    WHERE due IS NOT NULL AND receiver > ?1 ORDER BY receiver, due LIMIT 1";

pub(super) const DUE: &str = concat!(
    "SELECT ",
    webhook_columns!(),
    ", number, no, sent, attempts, failing_since, due FROM webhooks INDEXED BY webhooks_due
     WHERE due IS NOT NULL AND receiver = ?1 AND due <= ?2 ORDER BY due, number"
);

pub(super) const DUE_RETRIES: &str = concat!(
    "SELECT ",
    webhook_columns!(),
    ", webhooks.number, no, sent, undelivered.attempts, undelivered.time, undelivered.due,
     undelivered.number, event
     FROM undelivered INDEXED BY undelivered_due JOIN webhooks USING (no, id)
     WHERE undelivered.due IS NOT NULL AND undelivered.receiver = ?1 AND undelivered.due <= ?2
     ORDER BY undelivered.due, undelivered.number"
);

pub(super) const PENDING: &str =
    "SELECT number, tasks.id, agent, webhooks.id, url, sent, attempts, reason, failing_since, due
    FROM webhooks JOIN tasks USING (no) WHERE number > ?1 AND due IS NOT NULL ORDER BY number LIMIT ?2";

pub(super) const DEAD: &str =
    "SELECT undelivered.number, tasks.id, agent, undelivered.id, url, event, undelivered.attempts,
    undelivered.reason, undelivered.time, undelivered.due
    FROM undelivered JOIN webhooks USING (no, id) JOIN tasks USING (no)
    WHERE undelivered.number > ?1 ORDER BY undelivered.number LIMIT ?2";

pub(super) fn webhooks(conn: &Connection, task: TaskNo) -> Result<Vec<Webhook>, StoreError> {
    let mut select = conn.prepare_cached(WEBHOOKS)?;
    let rows = select.query_and_then((task,), webhook)?;
    rows.collect::<Result<_, ReadError>>().map_err(into_error)
}

pub(super) fn receivers(conn: &Connection) -> Result<Vec<(String, Timestamp)>, StoreError> {
    let mut receivers = Vec::new();
    for sql in [NEXT_RECEIVER, NEXT_RETRY] {
        let mut next = conn.prepare_cached(sql)?;
        let mut after = String::new();
        while let Some((receiver, due)) =
            next.query_row((&after,), |row| Ok((row.get::<_, String>(0)?, row.get(1)?))).optional()?
        {
            receivers.push((receiver.clone(), Timestamp::from_millis(due)));
            after = receiver;
        }
    }
    receivers.sort();
    receivers.dedup_by(|later, first| later.0 == first.0);
    Ok(receivers)
}

pub(super) fn due(conn: &Connection, receiver: &str, now: Timestamp, limit: usize) -> Result<Vec<Due>, StoreError> {
    let bounds = (receiver, now.as_millis());
    let mut select = conn.prepare_cached(DUE)?;
    let mut due = readable(select.query_and_then(bounds, |row| read_due(row, None))?, limit)?;
    let mut select = conn.prepare_cached(DUE_RETRIES)?;
    let retries = select.query_and_then(bounds, |row| {
        let retry = (UndeliveredNo(row.get::<_, i64>(12)? as u64), row.get::<_, i64>(13)? as Seq);
        read_due(row, Some(retry))
    })?;
    due.extend(readable(retries, limit)?);
    // Both were in order; a stable sort keeps the order within each.
    due.sort_by_key(|due| due.due);
    due.truncate(limit);
    Ok(due)
}

/// The first rows that can be read.
fn readable<T>(rows: impl Iterator<Item = Result<T, ReadError>>, limit: usize) -> Result<Vec<T>, StoreError> {
    let is_readable = |row: &Result<T, ReadError>| !matches!(row, Err(ReadError::Damaged(_)));
    rows.filter(is_readable).take(limit).collect::<Result<_, ReadError>>().map_err(into_error)
}

pub(super) fn deliveries(
    conn: &Connection,
    kind: DeliveryKind,
    after: u64,
    limit: usize,
) -> Result<Vec<Delivery>, StoreError> {
    let mut select = conn.prepare_cached(match kind {
        DeliveryKind::Pending => PENDING,
        DeliveryKind::Dead => DEAD,
    })?;
    let bounds = (i64::try_from(after).unwrap_or(i64::MAX), i64::try_from(limit).unwrap_or(i64::MAX));
    let rows = select.query_and_then(bounds, |row| delivery(row, kind))?;
    readable(rows, limit)
}

fn webhook(row: &Row<'_>) -> Result<Webhook, ReadError> {
    Ok(Webhook {
        id: id(row, 0, |text| PushConfigId::parse(text))?,
        url: row.get(1)?,
        receiver: row.get(2)?,
        secrets: row.get(3)?,
        dialect: Birth(row.get(4)?),
        events: if row.get(5)? { WebhookEvents::All } else { WebhookEvents::Statuses },
    })
}

fn read_due(row: &Row<'_>, retry: Option<(UndeliveredNo, Seq)>) -> Result<Due, ReadError> {
    Ok(Due {
        settings: webhook(row)?,
        webhook: WebhookNo(row.get::<_, i64>(6)? as u64),
        task: TaskNo(row.get::<_, i64>(7)? as u64),
        sent: row.get::<_, i64>(8)? as Seq,
        attempts: row.get(9)?,
        failing_since: row.get::<_, Option<i64>>(10)?.map(Timestamp::from_millis),
        due: Timestamp::from_millis(row.get(11)?),
        retry,
    })
}

fn delivery(row: &Row<'_>, kind: DeliveryKind) -> Result<Delivery, ReadError> {
    let time = |column| Ok::<_, ReadError>(row.get::<_, Option<i64>>(column)?.map(Timestamp::from_millis));
    Ok(Delivery {
        kind,
        number: row.get::<_, i64>(0)? as u64,
        task: id(row, 1, |text| TaskId::parse(text))?,
        agent: id(row, 2, |text| AgentId::parse(text))?,
        webhook: id(row, 3, |text| PushConfigId::parse(text))?,
        url: row.get(4)?,
        event: row.get::<_, i64>(5)? as Seq,
        attempts: row.get(6)?,
        reason: row.get(7)?,
        since: time(8)?,
        next: time(9)?,
    })
}

fn into_error(unread: ReadError) -> StoreError {
    match unread {
        ReadError::Store(error) => error,
        ReadError::Damaged(damage) => StoreError::Failed(damage.0.into()),
    }
}
