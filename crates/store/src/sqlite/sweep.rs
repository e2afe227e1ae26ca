//! Deletes whole settled tasks, the longest settled first.

use rusqlite::{Connection, Result};
use sabir_model::Timestamp;

use crate::{Retention, TaskNo};

use super::key::keys;

/// A sweep stops after so many tasks or events, since appends wait for it.
const TASKS: usize = 256;
const EVENTS: usize = 20_000;

pub(super) const OLDEST: &str = "SELECT no, owner, agent, context, state, time FROM tasks INDEXED BY tasks_settled
    WHERE state >= 4 ORDER BY time, no LIMIT ?1";

/// A row as it is stored, so that a damaged one goes like any other.
struct Settled {
    no: i64,
    owner: String,
    agent: String,
    context: String,
    state: i64,
    time: Timestamp,
}

/// Says how many have gone.
pub(super) fn sweep(conn: &Connection, retention: Retention) -> Result<u64> {
    let surplus = match retention.keep {
        Some(keep) => count(conn)?.saturating_sub(keep),
        None => 0,
    };
    let is_old = |task: &Settled| retention.settled_before.is_some_and(|before| task.time < before);
    let (mut tasks, mut events, mut highest) = (0, 0, 0);
    for task in oldest(conn)? {
        if (tasks >= surplus && !is_old(&task)) || events >= EVENTS {
            break;
        }
        events += remove(conn, &task)?;
        highest = highest.max(task.no);
        tasks += 1;
    }
    if tasks > 0 {
        conn.prepare_cached("UPDATE swept SET no = max(no, ?1)")?.execute((highest,))?;
    }
    Ok(tasks)
}

fn count(conn: &Connection) -> Result<u64> {
    let mut sum = conn.prepare_cached("SELECT coalesce(sum(n), 0) FROM tallies WHERE state >= 4")?;
    let sum: i64 = sum.query_row((), |row| row.get(0))?;
    Ok(u64::try_from(sum).unwrap_or(0))
}

fn oldest(conn: &Connection) -> Result<Vec<Settled>> {
    let mut select = conn.prepare_cached(OLDEST)?;
    let tasks = select.query_map((TASKS as i64,), |row| {
        let text =
            |column| Ok::<_, rusqlite::Error>(String::from_utf8_lossy(row.get_ref(column)?.as_bytes()?).into_owned());
        Ok(Settled {
            no: row.get(0)?,
            owner: text(1)?,
            agent: text(2)?,
            context: text(3)?,
            state: row.get(4)?,
            // What has no age is not old.
            time: Timestamp::from_millis(row.get(5).unwrap_or(i64::MAX)),
        })
    })?;
    tasks.collect()
}

/// Says how many events it had.
fn remove(conn: &Connection, task: &Settled) -> Result<usize> {
    let (first, last) = keys(TaskNo(task.no as u64)).into_inner();
    let events = conn.prepare_cached("DELETE FROM events WHERE key BETWEEN ?1 AND ?2")?.execute((first, last))?;
    conn.prepare_cached("DELETE FROM inbox WHERE key BETWEEN ?1 AND ?2")?.execute((first, last))?;
    for sql in [
        "DELETE FROM snapshots WHERE no = ?1",
        "DELETE FROM controls WHERE no = ?1",
        "DELETE FROM keys WHERE no = ?1",
        "DELETE FROM tasks WHERE no = ?1",
    ] {
        conn.prepare_cached(sql)?.execute((task.no,))?;
    }
    let mut tally =
        conn.prepare_cached("UPDATE tallies SET n = n - 1 WHERE owner = ?1 AND agent = ?2 AND state = ?3")?;
    tally.execute((&task.owner, &task.agent, task.state))?;
    // What an agent remembers of a context goes with the context's last task.
    let mut forget = conn.prepare_cached(
        "DELETE FROM agent_state WHERE owner = ?1 AND agent = ?2 AND context = ?3
         AND NOT EXISTS (SELECT 1 FROM tasks WHERE owner = ?1 AND agent = ?2 AND context = ?3)",
    )?;
    forget.execute((&task.owner, &task.agent, &task.context))?;
    Ok(events)
}
