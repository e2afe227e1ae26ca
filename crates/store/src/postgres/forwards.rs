//! Calls that were forwarded to the owner of a task (`crate::cluster`).

use std::time::{Duration, SystemTime};

use super::connections::Connections;
use super::notices::Notices;
use super::rows::number;
use crate::{ForwardNo, ForwardState, ForwardedCall, StoreError, TaskNo};

/// Under the lock of the task, so that no append does meanwhile what was asked. A row that is gone was removed by an append.
const WITHDRAW: &str = "WITH task AS MATERIALIZED (SELECT node FROM tasks WHERE no = $2 FOR NO KEY UPDATE)
    DELETE FROM forwarded WHERE number = $1 AND answer IS NULL AND NOT EXISTS (SELECT FROM task WHERE node IS NOT NULL)";

/// A call is extended only if it lives longer by this then: it is asked for often.
const LEAST_EXTENSION: Duration = Duration::from_secs(3);

pub(super) async fn forward(
    db: &Connections,
    notices: &Notices,
    own: i64,
    ForwardedCall { number: call_number, task, call }: ForwardedCall,
    expires: SystemTime,
) -> Result<(), StoreError> {
    let (Some(call_number), Some(task)) = (number(call_number.0), number(task.0)) else {
        return Err(StoreError::Conflict);
    };
    let sql = "INSERT INTO forwarded (number, no, call, expires) VALUES ($1, $2, $3, $4)
        RETURNING (SELECT tasks.node FROM tasks WHERE tasks.no = $2)";
    let row = db.query_opt(sql, &[&call_number, &task, &call, &expires]).await?;
    if let Some(owner) = row.and_then(|row| row.get::<_, Option<i64>>(0)) {
        notices.tell_forwarded(owner, own);
    }
    Ok(())
}

pub(super) async fn forwarded(db: &Connections, own: i64) -> Result<Vec<ForwardedCall>, StoreError> {
    let sql =
        "SELECT forwarded.number, forwarded.no, forwarded.call FROM forwarded JOIN tasks ON tasks.no = forwarded.no
        WHERE tasks.node = $1 AND forwarded.answer IS NULL AND forwarded.expires > now()
        ORDER BY forwarded.sent, forwarded.number";
    let rows = db.query(sql, &[&own]).await?;
    let calls = rows.iter().map(|row| ForwardedCall {
        number: ForwardNo(row.get::<_, i64>(0) as u64),
        task: TaskNo(row.get::<_, i64>(1) as u64),
        call: row.get(2),
    });
    Ok(calls.collect())
}

pub(super) async fn answer(
    db: &Connections,
    notices: &Notices,
    call: ForwardNo,
    answer: Vec<u8>,
) -> Result<(), StoreError> {
    let Some(call) = number(call.0) else { return Ok(()) };
    let sql = "UPDATE forwarded SET answer = $2 WHERE number = $1 AND answer IS NULL";
    if db.execute(sql, &[&call, &answer]).await? > 0 {
        notices.tell_answered();
    }
    Ok(())
}

/// Extends a call that nobody has answered, so that it does not expire before then.
pub(super) async fn state(db: &Connections, call: ForwardNo, expires: SystemTime) -> Result<ForwardState, StoreError> {
    let Some(call) = number(call.0) else { return Ok(ForwardState::Done) };
    let sql = "SELECT forwarded.no, forwarded.answer, tasks.node IS NOT NULL, forwarded.expires
        FROM forwarded LEFT JOIN tasks ON tasks.no = forwarded.no WHERE forwarded.number = $1";
    let Some(row) = db.query_opt(sql, &[&call]).await? else { return Ok(ForwardState::Done) };
    let (task, answer, has_owner): (i64, Option<Vec<u8>>, bool) = (row.get(0), row.get(1), row.get(2));
    if let Some(answer) = answer {
        // If this fails, the row is removed when it has expired.
        let _ = db.execute("DELETE FROM forwarded WHERE number = $1", &[&call]).await;
        return Ok(ForwardState::Answered(answer));
    }
    if has_owner {
        if row.get::<_, SystemTime>(3) + LEAST_EXTENSION < expires {
            let renew = "UPDATE forwarded SET expires = $2 WHERE number = $1 AND answer IS NULL";
            db.execute(renew, &[&call, &expires]).await?;
        }
        return Ok(ForwardState::Pending);
    }
    if db.execute(WITHDRAW, &[&call, &task]).await? > 0 {
        return Ok(ForwardState::Withdrawn);
    }
    // It was done or answered meanwhile, or the task has an owner again.
    let still_there = db.query_opt("SELECT FROM forwarded WHERE number = $1", &[&call]).await?;
    Ok(if still_there.is_some() { ForwardState::Pending } else { ForwardState::Done })
}
