//! Deliveries: what is due at this node, what became of it, and what operators see of it.
//!
//! A webhook with something to send belongs to a node, which alone sends to it and notes the outcomes; an outcome that a node
//! notes after it has lost the webhook changes nothing. Operators see and change the deliveries of all nodes.

use sabir_model::{AgentId, PushConfigId, Seq, TaskId, Timestamp};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::damage::Damage;
use crate::{Delivery, DeliveryKind, Due, Failure, GivenUpNo, StoreError, TaskNo, WebhookNo};

use super::connections::Connections;
use super::rows::{self, value, without_nul};
use super::webhooks::{webhook, webhook_columns};

/// What a change did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Changed {
    /// There was such a delivery.
    pub is_found: bool,
    /// This node should look for what is due.
    pub is_due: bool,
}

/// Looks at one row for each receiver, and at all events that are tried once more, which are few.
const RECEIVERS: &str = "SELECT receiver, min(due) FROM (
        WITH RECURSIVE first AS (
            (SELECT receiver, due FROM webhooks WHERE node = $1 AND due IS NOT NULL ORDER BY receiver, due LIMIT 1)
            UNION ALL
            SELECT next.receiver, next.due FROM first CROSS JOIN LATERAL (
                SELECT webhooks.receiver, webhooks.due FROM webhooks
                WHERE webhooks.node = $1 AND webhooks.due IS NOT NULL AND webhooks.receiver > first.receiver
                ORDER BY webhooks.receiver, webhooks.due LIMIT 1) AS next)
        SELECT receiver, due FROM first
        UNION ALL
        SELECT webhooks.receiver, given_up.due FROM given_up JOIN webhooks USING (no, id)
        WHERE given_up.node = $1 AND given_up.due IS NOT NULL) AS earliest
    GROUP BY receiver ORDER BY receiver";

pub(super) async fn receivers(db: &Connections, node: i64) -> Result<Vec<(String, Timestamp)>, StoreError> {
    let rows = db.query(RECEIVERS, &[&node]).await?;
    Ok(rows.iter().map(|row| (row.get(0), Timestamp::from_millis(row.get(1)))).collect())
}

/// The order: time, then webhooks before events that are tried once more, then number.
const DUE: &str = concat!(
    "SELECT * FROM (
        (SELECT ",
    webhook_columns!(),
    ", webhooks.number, webhooks.no, webhooks.sent, webhooks.attempts, webhooks.failing_since, webhooks.due,
         NULL::bigint AS given_up, NULL::bigint AS event
         FROM webhooks
         WHERE webhooks.node = $1 AND webhooks.receiver = $2 AND webhooks.due IS NOT NULL AND webhooks.due <= $3
         ORDER BY webhooks.due, webhooks.number LIMIT $4)
        UNION ALL
        (SELECT ",
    webhook_columns!(),
    ", webhooks.number, webhooks.no, webhooks.sent, given_up.attempts, given_up.time, given_up.due,
         given_up.number, given_up.event
         FROM given_up JOIN webhooks USING (no, id)
         WHERE given_up.node = $1 AND given_up.due IS NOT NULL AND given_up.due <= $3 AND webhooks.receiver = $2
         ORDER BY given_up.due, given_up.number LIMIT $4)) AS either
     ORDER BY due, given_up NULLS FIRST, number LIMIT $4"
);

pub(super) async fn due(
    db: &Connections,
    node: i64,
    receiver: &str,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<Due>, StoreError> {
    readable_page(db, DUE, &[&node, &receiver, &now.as_millis()], limit, due_row).await
}

fn due_row(row: &Row) -> Result<Due, Damage> {
    let number = |column| Ok::<_, Damage>(value::<i64>(row, column)? as u64);
    let given_up: Option<i64> = value(row, 12)?;
    Ok(Due {
        settings: webhook(row)?,
        webhook: WebhookNo(number(6)?),
        task: TaskNo(number(7)?),
        sent: number(8)?,
        attempts: value::<i32>(row, 9)?.unsigned_abs(),
        failing_since: value::<Option<i64>>(row, 10)?.map(Timestamp::from_millis),
        due: rows::time(row, 11)?,
        retry: match given_up {
            None => None,
            Some(given_up) => Some((GivenUpNo(given_up as u64), number(13)?)),
        },
    })
}

/// Reads a page whose last parameter is its limit. Rows that cannot be read are left out, and others come in their place.
async fn readable_page<T>(
    db: &Connections,
    sql: &'static str,
    params: &[&(dyn ToSql + Sync)],
    limit: usize,
    read: impl Fn(&Row) -> Result<T, Damage>,
) -> Result<Vec<T>, StoreError> {
    let mut wanted = limit;
    loop {
        let rows_at_most = rows::limit(wanted);
        let params: Vec<&(dyn ToSql + Sync)> = params.iter().copied().chain([&rows_at_most as _]).collect();
        let rows = db.query(sql, &params).await?;
        let mut page: Vec<T> = rows.iter().filter_map(|row| read(row).ok()).collect();
        if page.len() >= limit || rows.len() < wanted {
            page.truncate(limit);
            return Ok(page);
        }
        wanted = wanted.saturating_add(rows.len() - page.len());
    }
}

/// Looks at every webhook of this node that has something to send there, so it is not for every delivery.
pub(super) async fn failing_since(
    db: &Connections,
    node: i64,
    receiver: &str,
) -> Result<Option<Timestamp>, StoreError> {
    let sql = "SELECT min(failing_since) FROM webhooks WHERE node = $1 AND receiver = $2 AND due IS NOT NULL";
    let row = db.query_opt(sql, &[&node, &receiver]).await?;
    Ok(row.and_then(|row| row.get::<_, Option<i64>>(0)).map(Timestamp::from_millis))
}

/// Whoever delivers goes on by itself, so nobody has to be woken. `false`: this node must not send more to the webhook. That is so
/// too when everything is sent: the node that stores the next event sends it.
pub(super) async fn delivered(
    db: &Connections,
    node: i64,
    webhook: WebhookNo,
    sent: Seq,
    now: Timestamp,
) -> Result<bool, StoreError> {
    Ok(advance(db, Some(node), webhook.0, Progress::Sent(sent), now).await? == Advanced::StillDue)
}

/// What became of a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Advanced {
    /// It had nothing to send, or another node sends to it.
    Nothing,
    Idle,
    StillDue,
}

/// What is handled of what a webhook had to send.
enum Progress {
    Sent(Seq),
    /// Everything that is in the log.
    All,
    /// This event was given up, for this reason.
    GivenUp(Seq, String),
}

/// Returns what became of the webhook. Without a node, it may be that of any.
async fn advance(
    db: &Connections,
    node: Option<i64>,
    webhook: u64,
    progress: Progress,
    now: Timestamp,
) -> Result<Advanced, StoreError> {
    let Some(number) = rows::number(webhook) else { return Ok(Advanced::Nothing) };
    let (handled, reason) = match &progress {
        Progress::Sent(sent) => (Some(event_number(*sent)), None),
        Progress::All => (None, None),
        Progress::GivenUp(event, reason) => (Some(event_number(*event)), Some(without_nul(reason))),
    };
    let advance = "SELECT advance_webhook_1($1, $2, $3, $4, $5)";
    let rows = db.query_alone(advance, &[&node, &number, &handled, &reason, &now.as_millis()]).await?;
    Ok(match rows.first().and_then(|row| row.get::<_, Option<bool>>(0)) {
        None => Advanced::Nothing,
        Some(false) => Advanced::Idle,
        Some(true) => Advanced::StillDue,
    })
}

fn event_number(event: Seq) -> i64 {
    rows::number(event).unwrap_or(i64::MAX)
}

pub(super) async fn postpone(
    db: &Connections,
    node: i64,
    webhook: WebhookNo,
    failure: &Failure,
    next: Timestamp,
) -> Result<(), StoreError> {
    let Some(number) = rows::number(webhook.0) else { return Ok(()) };
    let sql = "UPDATE webhooks SET attempts = attempts + 1, failing_since = coalesce(failing_since, $3), reason = $4, due = $5
        WHERE number = $1 AND node = $2 AND due IS NOT NULL";
    let reason = without_nul(&failure.reason);
    db.execute(sql, &[&number, &node, &failure.time.as_millis(), &reason, &next.as_millis()]).await?;
    Ok(())
}

/// Returns whether this node should look for what is due: deliveries go on with the event behind the one that is given up.
pub(super) async fn give_up(
    db: &Connections,
    node: i64,
    webhook: WebhookNo,
    event: Seq,
    failure: Failure,
) -> Result<bool, StoreError> {
    let progress = Progress::GivenUp(event, failure.reason);
    Ok(advance(db, Some(node), webhook.0, progress, failure.time).await? != Advanced::Nothing)
}

pub(super) async fn retried(
    db: &Connections,
    node: i64,
    given_up: GivenUpNo,
    failure: Option<&Failure>,
) -> Result<(), StoreError> {
    let Some(number) = rows::number(given_up.0) else { return Ok(()) };
    match failure {
        None => {
            db.execute("DELETE FROM given_up WHERE number = $1 AND node = $2", &[&number, &node]).await?;
        }
        Some(Failure { reason, time }) => {
            let sql = "UPDATE given_up SET attempts = attempts + 1, reason = $3, time = $4, due = NULL
                WHERE number = $1 AND node = $2";
            db.execute(sql, &[&number, &node, &without_nul(reason), &time.as_millis()]).await?;
        }
    }
    Ok(())
}

/// The webhooks of this node that are due in the future without a reason.
macro_rules! too_late {
    () => {
        "node = $1 AND due IS NOT NULL AND due > CASE WHEN attempts = 0 THEN $2::bigint ELSE $3::bigint END"
    };
}

/// Rows that an append has locked are left for later: to wait for one while others are locked could be a deadlock.
const CLOCK_WAS_SET: &str = concat!(
    "UPDATE webhooks SET due = $2::bigint WHERE number IN (SELECT number FROM webhooks WHERE ",
    too_late!(),
    " FOR UPDATE SKIP LOCKED)"
);

const STILL_TOO_LATE: &str = concat!("SELECT number FROM webhooks WHERE ", too_late!());

/// Returns whether something became due at this node.
pub(super) async fn clock_was_set(
    db: &Connections,
    node: i64,
    now: Timestamp,
    latest: Timestamp,
) -> Result<bool, StoreError> {
    let (now, latest) = (now.as_millis(), latest.as_millis());
    let retries = "UPDATE given_up SET due = $2 WHERE node = $1 AND due > $2";
    let mut changed = db.execute(retries, &[&node, &now]).await?;
    // Without a failed attempt, the bound is `now`, and else `latest`, but never an earlier time than `now`.
    let latest = latest.max(now);
    changed += db.execute(CLOCK_WAS_SET, &[&node, &now, &latest]).await?;
    for row in db.query(STILL_TOO_LATE, &[&node, &now, &latest]).await? {
        let one = "UPDATE webhooks SET due = $3 WHERE number = $1 AND node = $2 AND due > $3";
        changed += db.execute(one, &[&row.get::<_, i64>(0), &node, &now]).await?;
    }
    Ok(changed > 0)
}

const PENDING: &str = "SELECT webhooks.number, tasks.id, parties.agent, webhooks.id, webhooks.url, webhooks.sent,
        webhooks.attempts, webhooks.reason, webhooks.failing_since, webhooks.due, webhooks.no
    FROM webhooks JOIN tasks ON tasks.no = webhooks.no JOIN parties ON parties.no = tasks.party
    WHERE webhooks.number > $1 AND webhooks.due IS NOT NULL ORDER BY webhooks.number LIMIT $2";

const GIVEN_UP: &str = "SELECT given_up.number, tasks.id, parties.agent, given_up.id, webhooks.url, given_up.event,
        given_up.attempts, given_up.reason, given_up.time, given_up.due, given_up.no
    FROM given_up JOIN webhooks ON webhooks.no = given_up.no AND webhooks.id = given_up.id
    JOIN tasks ON tasks.no = given_up.no JOIN parties ON parties.no = tasks.party
    WHERE given_up.number > $1 ORDER BY given_up.number LIMIT $2";

pub(super) async fn deliveries(
    db: &Connections,
    kind: DeliveryKind,
    after: u64,
    limit: usize,
) -> Result<Vec<Delivery>, StoreError> {
    let Some(after) = rows::number(after) else { return Ok(Vec::new()) };
    let sql = match kind {
        DeliveryKind::Pending => PENDING,
        DeliveryKind::GivenUp => GIVEN_UP,
    };
    readable_page(db, sql, &[&after], limit, |row| delivery(row, kind)).await
}

fn delivery(row: &Row, kind: DeliveryKind) -> Result<Delivery, Damage> {
    let time = |column| Ok::<_, Damage>(value::<Option<i64>>(row, column)?.map(Timestamp::from_millis));
    Ok(Delivery {
        kind,
        number: value::<i64>(row, 0)? as u64,
        task_no: TaskNo(value::<i64>(row, 10)? as u64),
        task: rows::id(row, 1, |text| TaskId::parse(text))?,
        agent: rows::id(row, 2, |text| AgentId::parse(text))?,
        webhook: rows::id(row, 3, |text| PushConfigId::parse(text))?,
        url: value(row, 4)?,
        event: value::<i64>(row, 5)? as Seq,
        attempts: value::<i32>(row, 6)?.unsigned_abs(),
        reason: value(row, 7)?,
        since: time(8)?,
        next: time(9)?,
    })
}

/// A pending delivery stays with its node while that lives, and that node finds it when it looks again; all others come to this
/// one.
const RETRY_PENDING: &str = "UPDATE webhooks SET due = $2, node = coalesce(
        (SELECT nodes.no FROM nodes WHERE nodes.no = webhooks.node AND nodes.ended IS NULL), $3)
    WHERE number = $1 AND due IS NOT NULL RETURNING node = $3";

const RETRY_GIVEN_UP: &str = "UPDATE given_up SET due = $2, node = $3 WHERE number = $1 RETURNING true";

pub(super) async fn retry(
    db: &Connections,
    node: i64,
    kind: DeliveryKind,
    number: u64,
    now: Timestamp,
) -> Result<Changed, StoreError> {
    let Some(number) = rows::number(number) else { return Ok(Changed::default()) };
    let sql = match kind {
        DeliveryKind::Pending => RETRY_PENDING,
        DeliveryKind::GivenUp => RETRY_GIVEN_UP,
    };
    let row = db.query_opt(sql, &[&number, &now.as_millis(), &node]).await?;
    Ok(row.map_or(Changed::default(), |row| Changed { is_found: true, is_due: row.get(0) }))
}

pub(super) async fn discard(
    db: &Connections,
    kind: DeliveryKind,
    number: u64,
    now: Timestamp,
) -> Result<Changed, StoreError> {
    let is_found = match kind {
        DeliveryKind::Pending => advance(db, None, number, Progress::All, now).await? != Advanced::Nothing,
        DeliveryKind::GivenUp => match rows::number(number) {
            Some(number) => db.execute("DELETE FROM given_up WHERE number = $1", &[&number]).await? > 0,
            None => false,
        },
    };
    // The dispatcher forgets what it knew of the webhook.
    Ok(Changed { is_found, is_due: is_found && kind == DeliveryKind::Pending })
}
