//! Adds up what the tasks of each owner take. It reads every row once, but only the sizes of long values.

use std::collections::HashMap;

use rusqlite::Connection;
use sabir_model::Owner;

use crate::{StoreError, TASK_ROW_BYTES};

/// The head of a task in its row is its log only while `in_row` is set; after that it repeats parts of `events`.
const ROWS: &str = "SELECT owner, ?1 + CASE WHEN in_row IS NULL THEN 0 ELSE coalesce(length(head), 0) END FROM tasks";

/// Not grouped here: SQLite would sort all rows first. Rows of deleted tasks, which a sweep still has to remove, find no task.
pub(super) const EVENTS: &str =
    "SELECT owner, length(body) FROM events CROSS JOIN tasks ON tasks.no = events.key >> 28";
pub(super) const INBOX: &str = "SELECT owner, length(body) FROM inbox CROSS JOIN tasks ON tasks.no = inbox.key >> 28";

pub(super) fn stored_bytes(conn: &mut Connection) -> Result<Vec<(Owner, u64)>, StoreError> {
    let mut of_owners = HashMap::new();
    let tx = conn.transaction()?;
    add(&tx, ROWS, [TASK_ROW_BYTES as i64].as_slice(), &mut of_owners)?;
    add(&tx, EVENTS, &[], &mut of_owners)?;
    add(&tx, INBOX, &[], &mut of_owners)?;
    Ok(of_owners.into_iter().map(|(owner, bytes)| (Owner::from_key(&owner), bytes)).collect())
}

fn add(conn: &Connection, sql: &str, params: &[i64], of_owners: &mut HashMap<String, u64>) -> rusqlite::Result<()> {
    let mut select = conn.prepare(sql)?;
    let mut rows = select.query(rusqlite::params_from_iter(params))?;
    while let Some(row) = rows.next()? {
        // As in lists, a row that cannot be read is left out.
        let Ok(owner) = row.get_ref(0)?.as_str() else { continue };
        let bytes = row.get::<_, i64>(1)?.max(0) as u64;
        match of_owners.get_mut(owner) {
            Some(sum) => *sum += bytes,
            None => drop(of_owners.insert(owner.to_owned(), bytes)),
        }
    }
    Ok(())
}
