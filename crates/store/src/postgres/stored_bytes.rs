//! Adds up what the tasks of each owner take. It reads every row once, but only the sizes of long values.

use sabir_model::Owner;

use crate::{StoreError, TASK_ROW_BYTES};

use super::connections::Connections;
use super::rows;

/// The head of a task in its row is its log only while `in_row` is set; after that it repeats parts of `events`.
const STORED_BYTES: &str = "SELECT parties.owner, sum(parts.bytes)::bigint FROM (
        SELECT tasks.party, sum($1::bigint + CASE WHEN tasks.in_row IS NULL THEN 0 ELSE coalesce(length(tasks.head), 0) END) AS bytes
            FROM tasks GROUP BY tasks.party
        UNION ALL
        SELECT tasks.party, sum(length(events.body)) FROM events JOIN tasks ON tasks.no = events.no GROUP BY tasks.party
        UNION ALL
        SELECT tasks.party, sum(length(inbox.body)) FROM inbox JOIN tasks ON tasks.no = inbox.no GROUP BY tasks.party
    ) AS parts JOIN parties ON parties.no = parts.party GROUP BY parties.owner";

pub(super) async fn stored_bytes(db: &Connections) -> Result<Vec<(Owner, u64)>, StoreError> {
    // In a transaction of its own, which has more time than a shared connection.
    let tx = db.begin().await?;
    let rows = tx.query(STORED_BYTES, &[&(TASK_ROW_BYTES as i64)]).await?;
    tx.commit().await?;
    // As in lists, an owner that cannot be read is left out.
    let owner_and_bytes = rows.iter().filter_map(|row| {
        let owner = rows::owner(row.get(0)).ok()?;
        Some((owner, u64::try_from(row.get::<_, i64>(1)).unwrap_or(0)))
    });
    Ok(owner_and_bytes.collect())
}
