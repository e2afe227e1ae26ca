//! The webhooks of a task: what is set, replaced and removed.
//!
//! Whoever changes webhooks of a task holds the lock of its row, like an append does. So no append comes between a look at the
//! end of the log and a change that depends on it, and nobody waits for webhooks of the same task in another order.

use sabir_model::{PushConfigId, Timestamp};
use tokio_postgres::Row;

use crate::damage::Damage;
use crate::{MAX_WEBHOOKS, StoreError, TaskNo, Webhook, WebhookEvents, WebhookSet};

use super::connections::{Connections, OwnTransaction};
use super::rows::{self, dialect, last_seq, value};

/// The columns that `webhook` reads. Others may follow them.
macro_rules! webhook_columns {
    () => {
        "webhooks.id, webhooks.url, webhooks.receiver, webhooks.secrets, webhooks.dialect, webhooks.all_events"
    };
}
pub(super) use webhook_columns;

const OF_TASK: &str = concat!("SELECT ", webhook_columns!(), " FROM webhooks WHERE webhooks.no = $1 ORDER BY number");

pub(super) async fn of_task(db: &Connections, task: TaskNo) -> Result<Vec<Webhook>, StoreError> {
    let Some(no) = rows::number(task.0) else { return Ok(Vec::new()) };
    let rows = db.query(OF_TASK, &[&no]).await?;
    let webhooks = rows.iter().map(webhook).collect::<Result<_, Damage>>();
    webhooks.map_err(|damage| StoreError::Failed(damage.0.into()))
}

pub(super) fn webhook(row: &Row) -> Result<Webhook, Damage> {
    Ok(Webhook {
        id: rows::id(row, 0, |text| PushConfigId::parse(text))?,
        url: value(row, 1)?,
        receiver: value(row, 2)?,
        secrets: value(row, 3)?,
        dialect: dialect(row, 4)?,
        events: if value(row, 5)? { WebhookEvents::All } else { WebhookEvents::Statuses },
    })
}

/// The end of the log of a task, how many webhooks it has, and what is left to send of the one with the id.
const BEFORE: &str = concat!(
    "SELECT tasks.state, ",
    last_seq!(),
    ", (SELECT count(*) FROM webhooks WHERE webhooks.no = tasks.no), webhooks.sent, webhooks.due
      FROM tasks LEFT JOIN webhooks ON webhooks.no = tasks.no AND webhooks.id = $2 WHERE tasks.no = $1"
);

/// Returns as well whether something became due at this node.
pub(super) async fn set(
    db: &Connections,
    node: i64,
    task: TaskNo,
    webhook: &Webhook,
    now: Timestamp,
) -> Result<(WebhookSet, bool), StoreError> {
    let Some(no) = rows::number(task.0) else { return Ok((WebhookSet::NoTask, false)) };
    let tx = db.begin().await?;
    let is_there = lock_task(&tx, no).await?;
    let before = if is_there { tx.query_opt(BEFORE, &[&no, &webhook.id.as_str()]).await? } else { None };
    let Some(before) = before else {
        tx.commit().await?;
        return Ok((WebhookSet::NoTask, false));
    };
    let (state, last, count): (i16, i64, i64) = (before.get(0), before.get(1), before.get(2));
    let (old_sent, old_due): (Option<i64>, Option<i64>) = (before.get(3), before.get(4));
    if old_sent.is_none() && count >= MAX_WEBHOOKS as i64 {
        tx.commit().await?;
        return Ok((WebhookSet::TooMany, false));
    }
    let (sent, due) = match (old_sent, old_due) {
        // What the old URL has not got goes to the new one.
        (Some(sent), Some(_)) => (sent, Some(now)),
        _ if state >= 4 => ((last - 1).max(0), Some(now)),
        _ => (last, None),
    };
    let Webhook { id, url, receiver, secrets, dialect, events } = webhook;
    if old_sent.is_some() {
        tx.execute("DELETE FROM webhooks WHERE no = $1 AND id = $2", &[&no, &id.as_str()]).await?;
    }
    // The number is a new one, so that the outcome of a delivery to the old URL is not taken for one to this.
    let insert = "INSERT INTO webhooks (no, id, url, receiver, secrets, dialect, all_events, sent, due, node)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
    let (dialect, all_events) = (i16::from(dialect.0), *events == WebhookEvents::All);
    let (due, node) = (due.map(Timestamp::as_millis), due.map(|_| node));
    tx.execute(insert, &[&no, &id.as_str(), url, receiver, secrets, &dialect, &all_events, &sent, &due, &node]).await?;
    tx.commit().await?;
    Ok((WebhookSet::Done, due.is_some()))
}

/// Removes one webhook of a task, or all, with everything that is to be sent to it or was given up.
pub(super) async fn remove(db: &Connections, task: TaskNo, id: Option<&PushConfigId>) -> Result<(), StoreError> {
    let Some(no) = rows::number(task.0) else { return Ok(()) };
    let id = id.map(PushConfigId::as_str);
    let tx = db.begin().await?;
    lock_task(&tx, no).await?;
    for sql in [
        "DELETE FROM given_up WHERE no = $1 AND ($2::text IS NULL OR id = $2::text)",
        "DELETE FROM webhooks WHERE no = $1 AND ($2::text IS NULL OR id = $2::text)",
    ] {
        tx.execute(sql, &[&no, &id]).await?;
    }
    tx.commit().await
}

/// Waits for appends to the task, and keeps later ones waiting until the end of the transaction. Statements behind it see
/// what those appends have stored. Returns whether there is such a task.
async fn lock_task(tx: &OwnTransaction<'_>, no: i64) -> Result<bool, StoreError> {
    Ok(tx.query_opt("SELECT no FROM tasks WHERE no = $1 FOR NO KEY UPDATE", &[&no]).await?.is_some())
}
