//! What is in the store, for operators. It is the same on all nodes.

use sabir_model::{AgentId, State, Timestamp};

use super::connections::Connections;
use super::rows::state_code;
use crate::{StoreContents, StoreError};

/// The counters of all owners, so this looks at each owner once.
const TASKS: &str = "SELECT parties.agent, tallies.state, sum(tallies.n)::bigint
    FROM tallies JOIN parties ON parties.no = tallies.party
    GROUP BY 1, 2 HAVING sum(tallies.n) > 0 ORDER BY 1, 2";

const TOTALS: &str = "SELECT pg_database_size(current_database()), pending.n, pending.since, (SELECT count(*) FROM given_up)
    FROM (SELECT count(*) AS n, min(coalesce(failing_since, due)) AS since FROM webhooks WHERE due IS NOT NULL) AS pending";

pub(super) async fn contents(db: &Connections) -> Result<StoreContents, StoreError> {
    let (tasks, totals) = tokio::try_join!(db.query(TASKS, &[]), db.query_opt(TOTALS, &[]))?;
    // As in lists, a row that cannot be read is left out.
    let count = |row: &tokio_postgres::Row| {
        let (agent, code, tasks): (&str, i16, i64) = (row.try_get(0).ok()?, row.try_get(1).ok()?, row.try_get(2).ok()?);
        let state = State::ALL.into_iter().find(|state| state_code(*state) == code)?;
        Some((AgentId::parse(agent).ok()?, state, tasks.unsigned_abs()))
    };
    let mut contents = StoreContents { tasks: tasks.iter().filter_map(count).collect(), ..StoreContents::default() };
    if let Some(row) = totals {
        contents.bytes = row.try_get::<_, i64>(0)?.unsigned_abs();
        contents.pending = row.try_get::<_, i64>(1)?.unsigned_abs();
        contents.pending_since = row.try_get::<_, Option<i64>>(2)?.map(Timestamp::from_millis);
        contents.given_up = row.try_get::<_, i64>(3)?.unsigned_abs();
    }
    Ok(contents)
}
