//! Deletes settled tasks, the longest settled first, in slices.
//!
//! Appends wait for the writer, so the cost of a slice is bounded. A task with more rows than fit into a slice
//! disappears at once for all readers: its own row, its keys and its count are deleted first. Its number stays in
//! `leftovers` until the last of its other rows is deleted, even across restarts.

use rusqlite::{Connection, Result};
use sabir_model::Timestamp;

use crate::{Retention, SweepResult, TaskNo};

use super::key::keys;
use super::webhooks::Watched;

/// The cost of a slice: two or three milliseconds.
const SLICE_COST: usize = 512 << 10;

/// The cost of a row besides its bytes: of a plain row, and of a task with its index entries.
const ROW_COST: usize = 512;
const TASK_COST: usize = 4 << 10;

/// Looks at so many tasks in a slice at most, of which some have something to send and stay.
const MAX_LOOKS: usize = 1024;

/// The next settled tasks. One that was settled after a moment stays while it has something to send.
pub(super) const OLDEST: &str = "SELECT no, owner, agent, context, state, time,
        time > ?1 AND EXISTS (SELECT 1 FROM webhooks WHERE at_rest = 0 AND webhooks.no = tasks.no AND due IS NOT NULL)
    FROM tasks INDEXED BY tasks_settled WHERE state >= 4 AND (time, no) > (?2, ?3) ORDER BY time, no LIMIT ?4";

/// Where the next slice begins: behind the last task that was looked at. Otherwise every slice would look again at all
/// tasks that stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SweepPosition {
    time: i64,
    no: i64,
    /// How many tasks were looked at since the beginning.
    looks: usize,
}

impl Default for SweepPosition {
    fn default() -> Self {
        Self { time: i64::MIN, no: i64::MIN, looks: 0 }
    }
}

/// A row of a settled task. Nothing is decoded, so that damaged rows are deleted like others.
struct SettledTask {
    no: i64,
    owner: String,
    agent: String,
    context: String,
    state: i64,
    time: Timestamp,
    /// It has something to send.
    stays: bool,
}

/// The cost that is left in a slice.
struct SliceBudget(usize);

impl SliceBudget {
    fn spend(&mut self, cost: usize) {
        self.0 = self.0.saturating_sub(cost);
    }

    fn is_spent(&self) -> bool {
        self.0 == 0
    }
}

/// Deletes one slice: first what earlier slices have left, then tasks that retention does not keep.
pub(super) fn sweep(
    conn: &Connection,
    retention: Retention,
    position: &mut SweepPosition,
    watched: &mut Watched,
) -> Result<SweepResult> {
    let mut budget = SliceBudget(SLICE_COST);
    let mut swept = SweepResult { tasks: 0, more: !remove_leftovers_within(conn, &mut budget)? };
    if swept.more {
        return Ok(swept);
    }
    let surplus = match retention.keep {
        Some(keep) => count(conn)?.saturating_sub(keep),
        None => 0,
    };
    let is_old = |task: &SettledTask| retention.settled_before.is_some_and(|before| task.time < before);
    let mut highest = 0;
    let tasks = settled_tasks(conn, retention.pending_after, *position)?;
    swept.more = tasks.len() == MAX_LOOKS;
    for task in tasks {
        if swept.tasks >= surplus && !is_old(&task) {
            swept.more = false;
            break;
        }
        if budget.is_spent() {
            swept.more = true;
            break;
        }
        *position = SweepPosition { time: task.time.as_millis(), no: task.no, looks: position.looks + 1 };
        if task.stays {
            continue;
        }
        remove_task(conn, &task, watched)?;
        budget.spend(TASK_COST);
        if !remove_rows(conn, task.no, &mut budget)? {
            conn.prepare_cached("INSERT INTO leftovers (no) VALUES (?1)")?.execute((task.no,))?;
            swept.more = true;
        }
        highest = highest.max(task.no);
        swept.tasks += 1;
    }
    if swept.tasks > 0 {
        conn.prepare_cached("UPDATE swept SET no = max(no, ?1)")?.execute((highest,))?;
    }
    if !swept.more {
        *position = SweepPosition::default();
    }
    Ok(swept)
}

/// Deletes one slice of what earlier slices have left. Returns whether nothing is left.
pub(super) fn remove_leftovers(conn: &Connection) -> Result<bool> {
    remove_leftovers_within(conn, &mut SliceBudget(SLICE_COST))
}

pub(super) fn has_leftovers(conn: &Connection) -> Result<bool> {
    conn.prepare("SELECT 1 FROM leftovers LIMIT 1")?.exists(())
}

fn remove_leftovers_within(conn: &Connection, budget: &mut SliceBudget) -> Result<bool> {
    let mut select = conn.prepare_cached("SELECT no FROM leftovers ORDER BY no")?;
    let numbers = select.query_map((), |row| row.get(0))?.collect::<Result<Vec<i64>>>()?;
    for no in numbers {
        if budget.is_spent() || !remove_rows(conn, no, budget)? {
            return Ok(false);
        }
        conn.prepare_cached("DELETE FROM leftovers WHERE no = ?1")?.execute((no,))?;
    }
    Ok(true)
}

fn count(conn: &Connection) -> Result<u64> {
    let mut sum = conn.prepare_cached("SELECT coalesce(sum(n), 0) FROM tallies WHERE state >= 4")?;
    let sum: i64 = sum.query_row((), |row| row.get(0))?;
    Ok(u64::try_from(sum).unwrap_or(0))
}

fn settled_tasks(
    conn: &Connection,
    pending_after: Option<Timestamp>,
    position: SweepPosition,
) -> Result<Vec<SettledTask>> {
    let mut select = conn.prepare_cached(OLDEST)?;
    let pending_after = pending_after.map_or(i64::MAX, Timestamp::as_millis);
    let tasks = select.query_map((pending_after, position.time, position.no, MAX_LOOKS as i64), |row| {
        let text =
            |column| Ok::<_, rusqlite::Error>(String::from_utf8_lossy(row.get_ref(column)?.as_bytes()?).into_owned());
        Ok(SettledTask {
            no: row.get(0)?,
            owner: text(1)?,
            agent: text(2)?,
            context: text(3)?,
            state: row.get(4)?,
            // A task without a readable time is not old.
            time: Timestamp::from_millis(row.get(5).unwrap_or(i64::MAX)),
            stays: row.get(6)?,
        })
    })?;
    tasks.collect()
}

/// Deletes everything by which a task can be found.
fn remove_task(conn: &Connection, task: &SettledTask, watched: &mut Watched) -> Result<()> {
    watched.remove(conn, TaskNo(task.no as u64), None)?;
    for sql in [
        "DELETE FROM controls WHERE no = ?1",
        "DELETE FROM task_state WHERE no = ?1",
        "DELETE FROM keys WHERE no = ?1",
        "DELETE FROM tasks WHERE no = ?1",
    ] {
        conn.prepare_cached(sql)?.execute((task.no,))?;
    }
    let mut tally =
        conn.prepare_cached("UPDATE tallies SET n = n - 1 WHERE owner = ?1 AND agent = ?2 AND state = ?3")?;
    tally.execute((&task.owner, &task.agent, task.state))?;
    // What an agent remembers of a context is deleted with the last task of the context.
    let mut forget = conn.prepare_cached(
        "DELETE FROM agent_state WHERE owner = ?1 AND agent = ?2 AND context = ?3
         AND NOT EXISTS (SELECT 1 FROM tasks WHERE owner = ?1 AND agent = ?2 AND context = ?3)",
    )?;
    forget.execute((&task.owner, &task.agent, &task.context))?;
    Ok(())
}

/// Deletes the other rows of a task within the budget, at least one. Returns whether all are deleted.
fn remove_rows(conn: &Connection, no: i64, budget: &mut SliceBudget) -> Result<bool> {
    let (first, last) = keys(TaskNo(no as u64)).into_inner();
    for (select, delete) in [
        (
            "SELECT key, length(body) FROM events WHERE key BETWEEN ?1 AND ?2 ORDER BY key",
            "DELETE FROM events WHERE key BETWEEN ?1 AND ?2",
        ),
        (
            "SELECT key, length(body) FROM inbox WHERE key BETWEEN ?1 AND ?2 ORDER BY key",
            "DELETE FROM inbox WHERE key BETWEEN ?1 AND ?2",
        ),
    ] {
        let mut select = conn.prepare_cached(select)?;
        let mut rows = select.query((first, last))?;
        let (mut reached, mut is_whole) = (None, true);
        while let Some(row) = rows.next()? {
            if reached.is_some() && budget.is_spent() {
                is_whole = false;
                break;
            }
            reached = Some(row.get::<_, i64>(0)?);
            budget.spend(ROW_COST + row.get::<_, i64>(1)?.unsigned_abs() as usize);
        }
        drop(rows);
        let Some(reached) = reached else { continue };
        conn.prepare_cached(delete)?.execute((first, reached))?;
        // The next table is left for the next slice.
        if !is_whole || budget.is_spent() {
            return Ok(false);
        }
    }
    let mut snapshot = conn.prepare_cached("DELETE FROM snapshots WHERE no = ?1 RETURNING length(body)")?;
    let mut rows = snapshot.query((no,))?;
    while let Some(row) = rows.next()? {
        budget.spend(ROW_COST + row.get::<_, i64>(0)?.unsigned_abs() as usize);
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::sqlite::schema;

    /// Tasks that stay because they have something to send come first, and are as many as in ten slices.
    #[test]
    fn a_slice_does_not_look_again_at_tasks_that_stay() {
        let mut conn = Connection::open_in_memory().unwrap();
        schema::migrate(&mut conn, 0).unwrap();
        let (stay, all) = (10 * MAX_LOOKS, 12 * MAX_LOOKS);
        let tasks = format!(
            "WITH RECURSIVE numbers (no) AS (SELECT 1 UNION ALL SELECT no + 1 FROM numbers WHERE no < {all})
             INSERT INTO tasks (no, owner, agent, id, context, born, state, time, turn_over, created)
             SELECT no, 'o', 'a', 't' || no, 'c' || no, 1, 4, 1000 + no, 1, 1 FROM numbers;
             INSERT INTO webhooks (at_rest, no, number, id, url, receiver, secrets, dialect, all_events, sent, due)
             SELECT 0, no, no, 'w', 'u', 'r', x'', 1, 0, 0, 1 FROM tasks WHERE no <= {stay};"
        );
        conn.execute_batch(&tasks).unwrap();
        let mut watched = Watched::load(&conn, Arc::default()).unwrap();
        let before = Timestamp::from_millis(i64::MAX);
        let retention =
            Retention { settled_before: Some(before), keep: None, pending_after: Some(Timestamp::from_millis(0)) };
        let (mut position, mut removed, mut looks) = (SweepPosition::default(), 0, 0);
        loop {
            let swept = sweep(&conn, retention, &mut position, &mut watched).unwrap();
            removed += swept.tasks;
            if !swept.more {
                break;
            }
            looks = position.looks;
        }
        assert_eq!(removed as usize, all - stay);
        assert!((stay..=all).contains(&looks), "{looks} looks");
        assert_eq!(position, SweepPosition::default(), "the next sweep begins with the oldest");
    }
}
