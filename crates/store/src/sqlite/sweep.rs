//! Deletes whole settled tasks, the longest settled first.

use rusqlite::Connection;
use sabir_model::{AgentId, ContextId, Owner, State, Timestamp};

use crate::{Retention, StoreError, TaskNo};

use super::key::keys;
use super::rows;
use super::tallies::Tallies;

/// A sweep stops after so many tasks or events, since appends wait for it.
const TASKS: usize = 256;
const EVENTS: usize = 20_000;

pub(super) const OLDEST: &str = "SELECT no, owner, agent, context, state, time FROM tasks INDEXED BY tasks_settled
    WHERE state >= 4 ORDER BY time, no LIMIT ?1";

struct Settled {
    no: TaskNo,
    owner: Owner,
    agent: AgentId,
    context: ContextId,
    state: State,
    time: Timestamp,
}

/// Says how many have gone.
pub(super) fn sweep(conn: &Connection, tallies: &mut Tallies<'_>, retention: Retention) -> Result<u64, StoreError> {
    let surplus = match retention.keep {
        Some(keep) => count(conn)?.saturating_sub(keep),
        None => 0,
    };
    let is_old = |task: &Settled| retention.settled_before.is_some_and(|before| task.time < before);
    let (mut tasks, mut events, mut highest) = (0, 0, TaskNo(0));
    for task in oldest(conn)? {
        if (tasks >= surplus && !is_old(&task)) || events >= EVENTS {
            break;
        }
        events += remove(conn, &task)?;
        highest = highest.max(task.no);
        tallies.change(task.owner, task.agent, task.state, -1);
        tasks += 1;
    }
    if tasks > 0 {
        conn.prepare_cached("UPDATE swept SET no = max(no, ?1)")?.execute((highest,))?;
    }
    Ok(tasks)
}

fn count(conn: &Connection) -> Result<u64, StoreError> {
    let mut sum = conn.prepare_cached("SELECT coalesce(sum(n), 0) FROM tallies WHERE state >= 4")?;
    let sum: i64 = sum.query_row((), |row| row.get(0))?;
    Ok(u64::try_from(sum).unwrap_or(0))
}

fn oldest(conn: &Connection) -> Result<Vec<Settled>, StoreError> {
    let mut select = conn.prepare_cached(OLDEST)?;
    let tasks = select.query_and_then((TASKS as i64,), |row| {
        Ok(Settled {
            no: rows::task_no(row, 0)?,
            owner: rows::owner(row, 1)?,
            agent: rows::agent(row, 2)?,
            context: rows::context(row, 3)?,
            state: rows::state(row.get(4)?)?,
            time: rows::time(row, 5)?,
        })
    })?;
    tasks.collect()
}

/// Says how many events it had.
fn remove(conn: &Connection, task: &Settled) -> rusqlite::Result<usize> {
    let (first, last) = keys(task.no).into_inner();
    let events = conn.prepare_cached("DELETE FROM events WHERE key BETWEEN ?1 AND ?2")?.execute((first, last))?;
    conn.prepare_cached("DELETE FROM inbox WHERE key BETWEEN ?1 AND ?2")?.execute((first, last))?;
    conn.prepare_cached("DELETE FROM snapshots WHERE no = ?1")?.execute((task.no,))?;
    conn.prepare_cached("DELETE FROM controls WHERE no = ?1")?.execute((task.no,))?;
    conn.prepare_cached("DELETE FROM keys WHERE no = ?1")?.execute((task.no,))?;
    conn.prepare_cached("DELETE FROM tasks WHERE no = ?1")?.execute((task.no,))?;
    // What an agent remembers of a context goes with the context's last task.
    let mut forget = conn.prepare_cached(
        "DELETE FROM agent_state WHERE owner = ?1 AND agent = ?2 AND context = ?3
         AND NOT EXISTS (SELECT 1 FROM tasks WHERE owner = ?1 AND agent = ?2 AND context = ?3)",
    )?;
    forget.execute((task.owner.as_key(), task.agent.as_str(), task.context.as_str()))?;
    Ok(events)
}
