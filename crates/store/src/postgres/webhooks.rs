//! The webhooks of a task: what is set, replaced and removed.
//!
//! Changes are functions of the database (`schema_1.sql`): they hold the lock of the task's row, like an append does, and a node that
//! freezes must not keep it.

use sabir_model::{PushConfigId, Timestamp};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::damage::Damage;
use crate::{MAX_WEBHOOKS, StoreError, TaskNo, Webhook, WebhookEvents, WebhookSet};

use super::connections::Connections;
use super::rows::{self, dialect, value};

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

const SET: &str = "SELECT set_webhook_1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";

/// Returns as well whether something became due at this node.
pub(super) async fn set(
    db: &Connections,
    node: i64,
    task: TaskNo,
    webhook: &Webhook,
    now: Timestamp,
) -> Result<(WebhookSet, bool), StoreError> {
    let Some(no) = rows::number(task.0) else { return Ok((WebhookSet::NoTask, false)) };
    let Webhook { id, url, receiver, secrets, dialect, events } = webhook;
    let (dialect, all_events) = (i16::from(dialect.0), *events == WebhookEvents::All);
    let (most, now) = (MAX_WEBHOOKS as i64, now.as_millis());
    let values: [&(dyn ToSql + Sync); 10] =
        [&node, &no, &id.as_str(), url, receiver, secrets, &dialect, &all_events, &most, &now];
    let result = db.query_alone(SET, &values).await?;
    match result.first().map(|row| row.get::<_, i32>(0)) {
        Some(0) => Ok((WebhookSet::NoTask, false)),
        Some(1) => Ok((WebhookSet::TooMany, false)),
        Some(2) => Ok((WebhookSet::Done, false)),
        Some(3) => Ok((WebhookSet::Done, true)),
        other => Err(StoreError::Failed(format!("the database returned {other:?} for a webhook").into())),
    }
}

/// Removes one webhook of a task, or all, with everything that is to be sent to it or was given up.
pub(super) async fn remove(db: &Connections, task: TaskNo, id: Option<&PushConfigId>) -> Result<(), StoreError> {
    let Some(no) = rows::number(task.0) else { return Ok(()) };
    db.query_alone("SELECT remove_webhooks_1($1, $2)", &[&no, &id.map(PushConfigId::as_str)]).await?;
    Ok(())
}
