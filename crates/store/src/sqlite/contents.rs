//! What is in the store, for operators.

use std::fs;

use rusqlite::Connection;
use sabir_model::{AgentId, Timestamp};

use super::rows;
use crate::{StoreContents, StoreError};

/// The counters of all owners, so this looks at each owner once.
const TASKS: &str =
    "SELECT agent, state, sum(n) FROM tallies GROUP BY agent, state HAVING sum(n) > 0 ORDER BY agent, state";

/// Looks at every webhook that may be sent to again.
const PENDING: &str =
    "SELECT count(*), min(coalesce(failing_since, due)) FROM webhooks WHERE at_rest = 0 AND due IS NOT NULL";

pub(super) fn contents(conn: &mut Connection) -> Result<StoreContents, StoreError> {
    let tx = conn.transaction()?;
    let mut contents = StoreContents { bytes: file_bytes(tx.path().unwrap_or_default()), ..StoreContents::default() };
    let mut select = tx.prepare_cached(TASKS)?;
    let mut tasks = select.query(())?;
    while let Some(row) = tasks.next()? {
        let (agent, state) = (row.get_ref(0)?.as_str().ok(), row.get::<_, i64>(1).ok());
        // As in lists, a row that cannot be read is left out.
        let Some(agent) = agent.and_then(|agent| AgentId::parse(agent).ok()) else { continue };
        let Some(state) = state.and_then(|state| rows::state(state).ok()) else { continue };
        contents.tasks.push((agent, state, row.get::<_, i64>(2)?.unsigned_abs()));
    }
    let (pending, since) =
        tx.prepare_cached(PENDING)?.query_row((), |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Option<i64>>(1)?)))?;
    contents.pending = pending.unsigned_abs();
    contents.pending_since = since.map(Timestamp::from_millis);
    let given_up: i64 = tx.prepare_cached("SELECT count(*) FROM given_up")?.query_row((), |row| row.get(0))?;
    contents.given_up = given_up.unsigned_abs();
    Ok(contents)
}

/// The file and its write-ahead log.
fn file_bytes(path: &str) -> u64 {
    let length = |path: &str| fs::metadata(path).map_or(0, |file| file.len());
    length(path) + length(&format!("{path}-wal"))
}
