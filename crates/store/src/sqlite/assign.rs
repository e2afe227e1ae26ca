//! Makes tasks of one owner those of another.
//!
//! The log of a task does not name its owner, but a snapshot does, so snapshots of moved tasks go: the log is read instead.

use rusqlite::{Connection, OptionalExtension, Result};
use sabir_model::Owner;

use crate::TaskNo;

/// Only a task without a run is moved, and only if its id is free.
const MOVE: &str = "UPDATE OR IGNORE tasks SET owner = ?3
    WHERE no = ?1 AND owner = ?2 AND (state >= 4 OR (state IN (2, 3) AND turn_over))
    RETURNING agent, context, state";

/// Returns the tasks that were moved.
pub(super) fn assign(conn: &Connection, tasks: &[TaskNo], from: &Owner, to: &Owner) -> Result<Vec<TaskNo>> {
    let (from, to) = (from.as_key(), to.as_key());
    let mut moved = Vec::new();
    for no in tasks {
        let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        let task = conn.prepare_cached(MOVE)?.query_row((no, from, to), row).optional()?;
        let Some((agent, context, state)): Option<(String, String, i64)> = task else { continue };
        let mut count = conn.prepare_cached(
            "INSERT INTO tallies (owner, agent, state, n) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET n = n + excluded.n",
        )?;
        count.execute((from, &agent, state, -1))?;
        count.execute((to, &agent, state, 1))?;
        // A key that the other owner uses keeps its task.
        conn.prepare_cached("UPDATE OR IGNORE keys SET owner = ?3 WHERE no = ?1 AND owner = ?2")?
            .execute((no, from, to))?;
        conn.prepare_cached("DELETE FROM keys WHERE no = ?1 AND owner = ?2")?.execute((no, from))?;
        conn.prepare_cached("DELETE FROM snapshots WHERE no = ?1")?.execute((no,))?;
        let mut remember = conn.prepare_cached(
            "INSERT INTO agent_state (owner, agent, context, state)
             SELECT ?2, agent, context, state FROM agent_state WHERE owner = ?1 AND agent = ?3 AND context = ?4
             ON CONFLICT DO NOTHING",
        )?;
        remember.execute((from, to, &agent, &context))?;
        let mut forget = conn.prepare_cached(
            "DELETE FROM agent_state WHERE owner = ?1 AND agent = ?2 AND context = ?3
             AND NOT EXISTS (SELECT 1 FROM tasks WHERE owner = ?1 AND agent = ?2 AND context = ?3)",
        )?;
        forget.execute((from, &agent, &context))?;
        moved.push(*no);
    }
    Ok(moved)
}
