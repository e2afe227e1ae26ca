//! Deletes settled tasks, the longest settled first, in slices.
//!
//! One node sweeps at a time, and the others leave it to that one. A slice is one transaction, and its cost is bounded, so that
//! a large sweep does not fill the write-ahead log at once; a task is deleted with all of its rows, however many these are.
//! Tasks that somebody uses at this moment are left for the next sweep.

use std::sync::{Mutex, PoisonError};

use sabir_model::Timestamp;
use tokio_postgres::Row;

use crate::{Retention, StoreError, SweepResult};

use super::connections::{Connections, OwnTransaction};

/// The cost of a slice.
const SLICE_COST: i64 = 1 << 20;

/// The cost of a task besides the bytes of its log.
const TASK_COST: i64 = 4 << 10;

/// Looks at so many tasks in a slice at most, of which some have something to send and stay.
const MAX_LOOKS: i64 = 512;

/// The counters of sweeps and assignments are rows of their own, beside those of the writers.
pub(super) const TALLY_WRITER: i16 = 99;

/// The sweeper holds the lock of this number.
const LOCK: i64 = 0x5ab1_5eed;

/// Where the next slice begins: behind the last task that was looked at. Otherwise every slice would look again at all
/// tasks that stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SweepPosition {
    time: i64,
    no: i64,
}

impl Default for SweepPosition {
    fn default() -> Self {
        Self { time: i64::MIN, no: i64::MIN }
    }
}

/// The next settled tasks. One that was settled after a moment stays while it has something to send; one that has an owner
/// stays until that gives it up. Nothing is decoded, so that damaged rows are deleted like others.
const OLDEST: &str = "SELECT tasks.no, tasks.time,
        tasks.node IS NOT NULL OR (tasks.time > $1 AND EXISTS (
            SELECT 1 FROM webhooks WHERE webhooks.no = tasks.no AND webhooks.due IS NOT NULL)),
        coalesce((SELECT sum(length(events.body)) FROM events WHERE events.no = tasks.no), 0)::bigint
    FROM tasks WHERE tasks.state >= 4 AND (tasks.time, tasks.no) > ($2, $3) ORDER BY tasks.time, tasks.no LIMIT $4";

/// Deletes one slice of the tasks that retention does not keep.
pub(super) async fn sweep(
    db: &Connections,
    node: i64,
    position: &Mutex<SweepPosition>,
    retention: Retention,
) -> Result<SweepResult, StoreError> {
    if retention.settled_before.is_none() && retention.keep.is_none() {
        return Ok(SweepResult::default());
    }
    let tx = db.begin().await?;
    let locked = tx.query_opt("SELECT pg_try_advisory_xact_lock($1)", &[&LOCK]).await?;
    if !locked.is_some_and(|row| row.get(0)) {
        tx.commit().await?;
        return Ok(SweepResult::default());
    }
    let surplus = match retention.keep {
        Some(keep) => settled_count(&tx).await?.saturating_sub(keep),
        None => 0,
    };
    let mut reached = *position.lock().unwrap_or_else(PoisonError::into_inner);
    let pending_after = retention.pending_after.map_or(i64::MAX, Timestamp::as_millis);
    let oldest = tx.query(OLDEST, &[&pending_after, &reached.time, &reached.no, &MAX_LOOKS]).await?;
    let mut slice = Slice { more: oldest.len() as i64 == MAX_LOOKS, ..Slice::default() };
    for task in oldest.iter().map(SettledTask::read) {
        let is_old = retention.settled_before.is_some_and(|before| task.time < before.as_millis());
        if slice.numbers.len() as u64 >= surplus && !is_old {
            slice.more = false;
            break;
        }
        if slice.cost >= SLICE_COST {
            slice.more = true;
            break;
        }
        reached = SweepPosition { time: task.time, no: task.no };
        if !task.stays {
            slice.cost = slice.cost.saturating_add(TASK_COST).saturating_add(task.bytes);
            slice.numbers.push(task.no);
        }
    }
    let tasks = remove(&tx, node, &slice.numbers).await?;
    tx.commit().await?;
    *position.lock().unwrap_or_else(PoisonError::into_inner) =
        if slice.more { reached } else { SweepPosition::default() };
    Ok(SweepResult { tasks, more: slice.more })
}

#[derive(Default)]
struct Slice {
    numbers: Vec<i64>,
    cost: i64,
    more: bool,
}

struct SettledTask {
    no: i64,
    time: i64,
    stays: bool,
    bytes: i64,
}

impl SettledTask {
    fn read(row: &Row) -> Self {
        Self { no: row.get(0), time: row.get(1), stays: row.get(2), bytes: row.get(3) }
    }
}

async fn settled_count(tx: &OwnTransaction<'_>) -> Result<u64, StoreError> {
    let sum = tx.query_opt("SELECT coalesce(sum(n), 0)::bigint FROM tallies WHERE state >= 4", &[]).await?;
    Ok(sum.map_or(0, |row| u64::try_from(row.get::<_, i64>(0)).unwrap_or(0)))
}

/// Statements behind it see everything that is stored of the tasks.
const LOCK_TASKS: &str =
    "SELECT no FROM tasks WHERE no = ANY($1) AND state >= 4 AND node IS NULL FOR UPDATE SKIP LOCKED";

/// The contexts whose last tasks are deleted become busy with one of these until the commit, so that no run begins in them
/// meanwhile. This waits for the commit of a run that has just begun, and leaves the context to it.
const HOLD_CONTEXTS: &str = "INSERT INTO busy_contexts (party, context, no, has_begun)
    SELECT tasks.party, tasks.context, min(tasks.no), false FROM tasks JOIN agent_state USING (party, context)
    WHERE tasks.no = ANY($1) AND NOT EXISTS (
        SELECT FROM tasks AS other WHERE other.context = tasks.context AND other.party = tasks.party AND other.no <> ALL($1))
    GROUP BY 1, 2 ORDER BY 1, 2 ON CONFLICT DO NOTHING";

/// What an agent remembers of a context is deleted with the last task of the context. It sees the tasks that `HOLD_CONTEXTS` has
/// waited for. If somebody writes it at this moment, the context has another task.
const FORGET: &str = "DELETE FROM agent_state WHERE (party, context) IN (
        SELECT remembered.party, remembered.context FROM agent_state AS remembered JOIN busy_contexts AS held USING (party, context)
        WHERE held.no = ANY($1) AND NOT EXISTS (
            SELECT 1 FROM tasks WHERE tasks.context = remembered.context AND tasks.party = remembered.party
                AND tasks.no <> ALL($1))
        FOR UPDATE OF remembered SKIP LOCKED)";

const COUNT: &str = "INSERT INTO tallies (party, state, node, writer, n)
    SELECT tasks.party, tasks.state, $2::bigint, $3::smallint, -count(*) FROM tasks WHERE tasks.no = ANY($1) GROUP BY 1, 2 ORDER BY 1, 2
    ON CONFLICT (party, state, node, writer) DO UPDATE SET n = tallies.n + excluded.n";

/// Each table that has rows of tasks; the tasks themselves are the last. Forwarded calls stay, since their senders withdraw them.
const REMOVE: [&str; 11] = [
    "DELETE FROM events WHERE no = ANY($1)",
    "DELETE FROM snapshots WHERE no = ANY($1)",
    "DELETE FROM inbox WHERE no = ANY($1)",
    "DELETE FROM keys WHERE no = ANY($1)",
    "DELETE FROM controls WHERE no = ANY($1)",
    "DELETE FROM task_state WHERE no = ANY($1)",
    "DELETE FROM webhooks WHERE no = ANY($1)",
    "DELETE FROM given_up WHERE no = ANY($1)",
    "DELETE FROM busy_contexts WHERE no = ANY($1)",
    "DELETE FROM sends_in_flight WHERE no = ANY($1)",
    "DELETE FROM tasks WHERE no = ANY($1)",
];

/// Deletes tasks with all of their rows. Returns how many there were.
async fn remove(tx: &OwnTransaction<'_>, node: i64, numbers: &[i64]) -> Result<u64, StoreError> {
    if numbers.is_empty() {
        return Ok(0);
    }
    let locked = tx.query(LOCK_TASKS, &[&numbers]).await?;
    let numbers: Vec<i64> = locked.iter().map(|row| row.get(0)).collect();
    tx.execute(HOLD_CONTEXTS, &[&numbers]).await?;
    tx.execute(FORGET, &[&numbers]).await?;
    tx.execute(COUNT, &[&numbers, &node, &TALLY_WRITER]).await?;
    for sql in REMOVE {
        tx.execute(sql, &[&numbers]).await?;
    }
    Ok(numbers.len() as u64)
}
