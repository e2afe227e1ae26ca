//! Makes tasks of one owner those of another.
//!
//! The log of a task does not name its owner, but a snapshot does, so snapshots of moved tasks go: the log is read instead.

use std::collections::{HashMap, HashSet};

use sabir_model::{AgentId, Owner};

use crate::{StoreError, TaskNo};

use super::connections::Connections;
use super::parties::Parties;
use super::rows;
use super::sweep::TALLY_WRITER;

/// Only a task at rest is moved. One that somebody uses at this moment is not.
const AT_REST: &str = "SELECT tasks.no, tasks.party, parties.agent FROM tasks JOIN parties ON parties.no = tasks.party
    WHERE tasks.no = ANY($1) AND parties.owner = $2 AND (tasks.state >= 4 OR (tasks.state IN (2, 3) AND tasks.turn_over))
        AND tasks.node IS NULL AND NOT tasks.is_left
    FOR UPDATE OF tasks SKIP LOCKED";

/// Only if its id is free.
const MOVE: &str = "UPDATE tasks SET party = moved.target FROM unnest($1::bigint[], $2::int[]) AS moved(no, target)
    WHERE tasks.no = moved.no AND NOT EXISTS (
        SELECT 1 FROM tasks AS other WHERE other.id = tasks.id AND other.party = moved.target)
    RETURNING tasks.no";

// The parameters of the others: $1 the tasks that were moved, $2 from which party, $3 to which.

const COUNT: &str = "INSERT INTO tallies (party, state, node, writer, n)
    SELECT changed.party, changed.state, $4::bigint, $5::smallint, sum(changed.n) FROM (
        SELECT unnest(ARRAY[moved.source, moved.target]) AS party, tasks.state, unnest(ARRAY[-1, 1]) AS n
        FROM unnest($1::bigint[], $2::int[], $3::int[]) AS moved(no, source, target) JOIN tasks ON tasks.no = moved.no) AS changed
    GROUP BY 1, 2 ORDER BY 1, 2
    ON CONFLICT (party, state, node, writer) DO UPDATE SET n = tallies.n + excluded.n";

/// A key that the other owner uses keeps its task.
const MOVE_KEYS: &str = "UPDATE keys SET party = moved.target
    FROM unnest($1::bigint[], $2::int[], $3::int[]) AS moved(no, source, target)
    WHERE keys.no = moved.no AND keys.party = moved.source AND NOT EXISTS (
        SELECT 1 FROM keys AS other WHERE other.party = moved.target AND other.key = keys.key)";

const REMOVE_KEYS: &str =
    "DELETE FROM keys USING unnest($1::bigint[], $2::int[], $3::int[]) AS moved(no, source, target)
    WHERE keys.no = moved.no AND keys.party = moved.source";

const REMEMBER: &str = "INSERT INTO agent_state (party, context, state, home)
    SELECT DISTINCT moved.target, remembered.context, remembered.state, remembered.home
    FROM unnest($1::bigint[], $2::int[], $3::int[]) AS moved(no, source, target) JOIN tasks ON tasks.no = moved.no
    JOIN agent_state AS remembered ON remembered.party = moved.source AND remembered.context = tasks.context
    ON CONFLICT DO NOTHING";

const FORGET: &str = "DELETE FROM agent_state WHERE (party, context) IN (
        SELECT moved.source, tasks.context
        FROM unnest($1::bigint[], $2::int[], $3::int[]) AS moved(no, source, target) JOIN tasks ON tasks.no = moved.no)
    AND NOT EXISTS (SELECT 1 FROM tasks WHERE tasks.context = agent_state.context AND tasks.party = agent_state.party)";

/// Returns the tasks that were moved.
pub(super) async fn assign(
    db: &Connections,
    parties: &Parties,
    node: i64,
    tasks: &[TaskNo],
    from: &Owner,
    to: &Owner,
) -> Result<Vec<TaskNo>, StoreError> {
    let numbers: Vec<i64> = tasks.iter().filter_map(|task| rows::number(task.0)).collect();
    // The parties of the new owner are made first: that is done for good, also if nothing is moved.
    let mut targets = HashMap::new();
    for (source, agent) in agents_of(db, &numbers, from).await? {
        targets.insert(source, parties.number(db, to, &agent).await?);
    }
    let tx = db.begin().await?;
    let (mut at_rest, mut wanted) = (HashMap::new(), Vec::new());
    for row in tx.query(AT_REST, &[&numbers, &from.as_key().as_bytes()]).await? {
        let (no, source): (i64, i32) = (row.get(0), row.get(1));
        if let Some(target) = targets.get(&source) {
            at_rest.insert(no, (source, *target));
            wanted.push((no, *target));
        }
    }
    let (no, target): (Vec<i64>, Vec<i32>) = wanted.into_iter().unzip();
    let moved: Vec<i64> = tx.query(MOVE, &[&no, &target]).await?.iter().map(|row| row.get(0)).collect();
    let (source, target): (Vec<i32>, Vec<i32>) = moved.iter().filter_map(|no| at_rest.get(no).copied()).unzip();
    if !moved.is_empty() {
        tx.execute(COUNT, &[&moved, &source, &target, &node, &TALLY_WRITER]).await?;
        for sql in [MOVE_KEYS, REMOVE_KEYS, REMEMBER, FORGET] {
            tx.execute(sql, &[&moved, &source, &target]).await?;
        }
        tx.execute("DELETE FROM snapshots WHERE no = ANY($1)", &[&moved]).await?;
    }
    tx.commit().await?;
    let moved: HashSet<i64> = moved.into_iter().collect();
    Ok(tasks.iter().filter(|task| rows::number(task.0).is_some_and(|no| moved.contains(&no))).copied().collect())
}

/// The parties of these tasks that are the owner's, with their agents.
async fn agents_of(db: &Connections, numbers: &[i64], owner: &Owner) -> Result<Vec<(i32, AgentId)>, StoreError> {
    let sql = "SELECT DISTINCT parties.no, parties.agent FROM tasks JOIN parties ON parties.no = tasks.party
        WHERE tasks.no = ANY($1) AND parties.owner = $2";
    let rows = db.query(sql, &[&numbers, &owner.as_key().as_bytes()]).await?;
    // A task of an agent that cannot be read is not moved.
    let agents = rows.iter().filter_map(|row| Some((row.get(0), rows::id(row, 1, |text| AgentId::parse(text)).ok()?)));
    Ok(agents.collect())
}
