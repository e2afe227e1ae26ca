//! The readers' half of webhooks: what is set, what is due, and what operators see of deliveries.

use rusqlite::{Connection, Row};
use sabir_model::{AgentId, Birth, PushConfigId, Seq, TaskId, Timestamp};

use crate::{
    Delivery, DeliveryCounts, DeliveryKind, Due, GivenUpNo, StoreError, TaskNo, Webhook, WebhookEvents, WebhookNo,
};

use super::due_index::{DueIndex, Position};
use super::failure::ReadError;
use super::rows::id;

macro_rules! webhook_columns {
    () => {
        "webhooks.id, url, receiver, secrets, dialect, all_events"
    };
}

pub(super) const WEBHOOKS: &str =
    concat!("SELECT ", webhook_columns!(), " FROM webhooks WHERE at_rest IN (0, 1) AND no = ?1 ORDER BY number");

pub(super) const DUE: &str = concat!(
    "SELECT ",
    webhook_columns!(),
    ", number, sent, attempts, failing_since FROM webhooks
     WHERE at_rest = 0 AND no = ?1 AND number = ?2 AND due IS NOT NULL"
);

/// CROSS: the event first, then its webhook.
pub(super) const DUE_RETRY: &str = concat!(
    "SELECT ",
    webhook_columns!(),
    ", webhooks.number, sent, given_up.attempts, given_up.time, event FROM given_up CROSS JOIN webhooks USING (no, id)
     WHERE no = ?1 AND given_up.number = ?2 AND given_up.due IS NOT NULL AND at_rest IN (0, 1)"
);

pub(super) const PENDING: &str =
    "SELECT number, tasks.id, agent, webhooks.id, url, sent, attempts, reason, failing_since, due, no
    FROM webhooks JOIN tasks USING (no) WHERE at_rest = 0 AND no = ?1 AND number = ?2 AND due IS NOT NULL";

pub(super) const GIVEN_UP: &str = "SELECT given_up.number, tasks.id, agent, given_up.id, url, event, given_up.attempts,
    given_up.reason, given_up.time, given_up.due, no
    FROM given_up CROSS JOIN webhooks USING (no, id) CROSS JOIN tasks USING (no)
    WHERE given_up.number > ?1 AND at_rest IN (0, 1) ORDER BY given_up.number LIMIT ?2";

pub(super) fn webhooks(conn: &Connection, task: TaskNo) -> Result<Vec<Webhook>, StoreError> {
    let mut select = conn.prepare_cached(WEBHOOKS)?;
    let rows = select.query_and_then((task,), webhook)?;
    rows.collect::<Result<_, ReadError>>().map_err(into_error)
}

pub(super) fn due(
    conn: &Connection,
    index: &DueIndex,
    receiver: &str,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<Due>, StoreError> {
    let mut due = Vec::new();
    let mut after = None;
    while due.len() < limit {
        let positions = index.due(receiver, now, after, limit - due.len());
        let Some((last, _)) = positions.last() else { break };
        after = Some(*last);
        for (position, task) in positions {
            due.extend(readable(read_due(conn, position, task))?);
        }
    }
    Ok(due)
}

/// Looks at every webhook that may be sent to again, so it is not for every delivery.
pub(super) fn failing_since(conn: &Connection, receiver: &str) -> Result<Option<Timestamp>, StoreError> {
    let mut select = conn.prepare_cached(
        "SELECT min(failing_since) FROM webhooks WHERE at_rest = 0 AND receiver = ?1 AND due IS NOT NULL",
    )?;
    let since = select.query_row((receiver,), |row| Ok(row.get::<_, Option<i64>>(0).unwrap_or(None)))?;
    Ok(since.map(Timestamp::from_millis))
}

/// `None` for a row that is damaged, or not there any more.
fn readable<T>(row: Result<Option<T>, ReadError>) -> Result<Option<T>, StoreError> {
    match row {
        Ok(row) => Ok(row),
        Err(ReadError::Damaged(_)) => Ok(None),
        Err(ReadError::Store(error)) => Err(error),
    }
}

fn read_due(conn: &Connection, (due, kind, number): Position, task: TaskNo) -> Result<Option<Due>, ReadError> {
    let mut select = conn.prepare_cached(match kind {
        DeliveryKind::Pending => DUE,
        DeliveryKind::GivenUp => DUE_RETRY,
    })?;
    let mut rows = select.query((task, number as i64))?;
    let Some(row) = rows.next()? else { return Ok(None) };
    Ok(Some(Due {
        settings: webhook(row)?,
        webhook: WebhookNo(row.get::<_, i64>(6)? as u64),
        task,
        sent: row.get::<_, i64>(7)? as Seq,
        attempts: row.get(8)?,
        failing_since: row.get::<_, Option<i64>>(9)?.map(Timestamp::from_millis),
        due,
        retry: match kind {
            DeliveryKind::Pending => None,
            DeliveryKind::GivenUp => Some((GivenUpNo(number), row.get::<_, i64>(10)? as Seq)),
        },
    }))
}

pub(super) fn pending(
    conn: &Connection,
    index: &DueIndex,
    mut after: u64,
    limit: usize,
) -> Result<Vec<Delivery>, StoreError> {
    let mut select = conn.prepare_cached(PENDING)?;
    let mut pending = Vec::new();
    while pending.len() < limit {
        let numbers = index.numbers(DeliveryKind::Pending, after, limit - pending.len());
        let Some((last, _)) = numbers.last() else { break };
        after = *last;
        for (number, task) in numbers {
            let mut rows = select.query((task, number as i64))?;
            let row = rows.next()?.map(|row| delivery(row, DeliveryKind::Pending)).transpose();
            pending.extend(readable(row)?);
        }
    }
    Ok(pending)
}

pub(super) fn given_up(conn: &Connection, after: u64, limit: usize) -> Result<Vec<Delivery>, StoreError> {
    let mut select = conn.prepare_cached(GIVEN_UP)?;
    let bounds = (i64::try_from(after).unwrap_or(i64::MAX), i64::try_from(limit).unwrap_or(i64::MAX));
    let rows = select.query_and_then(bounds, |row| delivery(row, DeliveryKind::GivenUp).map(Some))?;
    rows.filter_map(|row| readable(row).transpose()).collect()
}

pub(super) fn counts(conn: &Connection, index: &DueIndex) -> Result<DeliveryCounts, StoreError> {
    let mut select = conn.prepare_cached("SELECT count(*) FROM given_up")?;
    let given_up: i64 = select.query_row((), |row| row.get(0))?;
    Ok(DeliveryCounts { pending: index.pending() as u64, given_up: u64::try_from(given_up).unwrap_or(0) })
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

fn delivery(row: &Row<'_>, kind: DeliveryKind) -> Result<Delivery, ReadError> {
    let time = |column| Ok::<_, ReadError>(row.get::<_, Option<i64>>(column)?.map(Timestamp::from_millis));
    Ok(Delivery {
        kind,
        number: row.get::<_, i64>(0)? as u64,
        task_no: TaskNo(row.get::<_, i64>(10)? as u64),
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
