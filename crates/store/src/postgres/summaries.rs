//! What operators see of all tasks: pages of summaries, counts, and sizes.
//!
//! The counters say which parties have tasks in which states. A page scans an index for each of those, as `list` does: first
//! the place of the newest task of each, then more of those that come first. Contexts and ids have an index of their own.

use std::collections::HashMap;
use std::sync::Arc;

use sabir_model::{AgentId, Event, Message, Owner, State, TaskBirth, Timestamp, Wanted};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::damage::{Damage, DamageLog};
use crate::fold::first_event;
use crate::head::{Head, RowLog};
use crate::page::cut;
use crate::summary::take;
use crate::{
    DeliveryCounts, StoreError, StoreFacts, SummaryPage, SummaryQuery, TASK_ROW_BYTES, TaskCount, TaskNo, TaskRow,
    TaskSummary,
};

use super::connections::Connections;
use super::list_of_owners::below_at_cursor;
use super::migrate;
use super::reader::{TASKS_AT_ONCE, fold_all};
use super::rows::{self, TaskRecord, readable, state_code, task_columns, task_row, value};

/// The columns of `task_row`, the head, whether it is the whole log, and the name of the node.
macro_rules! summary_columns {
    () => {
        concat!(task_columns!(), ", tasks.head, tasks.in_row, nodes.name")
    };
}

/// Whoever reads more at once would hold many messages in memory.
const PAGE: usize = 1000;

pub(super) async fn summaries(
    db: &Connections,
    damages: &DamageLog,
    query: &SummaryQuery,
) -> Result<SummaryPage, StoreError> {
    let wanted = query.limit.min(PAGE);
    if let Some(prefix) = query.limited_prefix()
        && more_have_prefix(db, prefix, query.end_of_prefix(), query.most_with_prefix).await?
    {
        return Ok(SummaryPage::of_too_many());
    }
    let rows = match (&query.context, &query.id, &query.id_prefix) {
        (None, None, None) => by_time(db, query, wanted).await?,
        _ => by_name(db, query, wanted).await?,
    };
    let mut stored = readable(&rows, damages, stored_summary);
    let more = cut(&mut stored, wanted);
    let (mut page, mut left) = (SummaryPage { more, ..SummaryPage::default() }, query.max_bytes);
    for summary in completed(db, damages, stored).await? {
        if !take(&mut page, &mut left, summary) {
            return Ok(page);
        }
    }
    Ok(page)
}

const SUMMARY: &str = concat!(
    "SELECT ",
    summary_columns!(),
    " FROM tasks JOIN parties ON parties.no = tasks.party LEFT JOIN nodes ON nodes.no = tasks.node WHERE tasks.no = $1"
);

pub(super) async fn summary(
    db: &Connections,
    damages: &DamageLog,
    no: TaskNo,
) -> Result<Option<TaskSummary>, StoreError> {
    let Some(no) = rows::number(no.0) else { return Ok(None) };
    let rows = db.query(SUMMARY, &[&no]).await?;
    Ok(completed(db, damages, readable(&rows, damages, stored_summary)).await?.pop())
}

/// A row of a page, as far as it shows a task.
struct StoredSummary {
    row: TaskRow,
    log: RowLog,
    node: Option<Arc<str>>,
}

impl StoredSummary {
    fn birth(&self) -> TaskBirth {
        let TaskRow { context, agent, owner, born, .. } = &self.row;
        TaskBirth { context: context.clone(), agent: agent.clone(), owner: owner.clone(), born: *born }
    }

    fn record(&self) -> TaskRecord {
        let TaskRow { no, task, time, .. } = &self.row;
        TaskRecord { no: *no, id: task.clone(), time: *time, birth: self.birth(), log: self.log.clone() }
    }
}

fn stored_summary(row: &Row) -> Result<StoredSummary, Damage> {
    let all: Option<i32> = value(row, 12)?;
    let node: Option<&str> = value(row, 13)?;
    let log = RowLog { head: value(row, 11)?, all: all.map(|all| all as u64) };
    Ok(StoredSummary { row: task_row(row)?, log, node: node.map(Arc::from) })
}

/// Reads what the rows do not show: the first messages of long tasks together, and tasks without a head.
async fn completed(
    db: &Connections,
    damages: &DamageLog,
    stored: Vec<StoredSummary>,
) -> Result<Vec<TaskSummary>, StoreError> {
    let heads: Vec<Option<Head>> = stored
        .iter()
        .map(|stored| Head::read(stored.row.task.clone(), stored.birth(), stored.log.head.as_deref()?))
        .collect();
    let cut_off = stored.iter().zip(&heads).filter(|(_, head)| head.as_ref().is_some_and(|head| head.is_cut));
    let mut first_messages = first_messages(db, cut_off.map(|(stored, _)| stored.row.no).collect()).await?;
    let unread: Vec<TaskRecord> =
        stored.iter().zip(&heads).filter(|(_, head)| head.is_none()).map(|(stored, _)| stored.record()).collect();
    let mut folded = HashMap::new();
    for batch in unread.chunks(TASKS_AT_ONCE) {
        let tasks = fold_all(db, damages, batch, Wanted::No).await?;
        folded.extend(batch.iter().map(|record| record.no).zip(tasks));
    }
    let mut summaries = Vec::new();
    for (StoredSummary { row, node, .. }, head) in stored.into_iter().zip(heads) {
        let (task, first) = match head {
            Some(head) if head.is_cut => (head.task, first_messages.remove(&row.no)),
            Some(head) => {
                let first = head.task.history.first().cloned();
                (head.task, first)
            }
            None => {
                let Some(task) = folded.remove(&row.no).flatten() else { continue };
                let first = task.history.first().cloned();
                (task, first)
            }
        };
        summaries.push(TaskSummary::new(row, task, first, node));
    }
    Ok(summaries)
}

const FIRST_PACKS: &str = "SELECT wanted.no, packs.body FROM unnest($1::bigint[]) AS wanted(no)
    CROSS JOIN LATERAL (SELECT events.body FROM events WHERE events.no = wanted.no ORDER BY events.seq LIMIT 1) AS packs";

async fn first_messages(db: &Connections, of: Vec<TaskNo>) -> Result<HashMap<TaskNo, Arc<Message>>, StoreError> {
    if of.is_empty() {
        return Ok(HashMap::new());
    }
    let numbers: Vec<i64> = of.iter().filter_map(|no| rows::number(no.0)).collect();
    let rows = db.query(FIRST_PACKS, &[&numbers]).await?;
    let message = |row: &Row| {
        let (no, body): (i64, &[u8]) = (row.get(0), row.get(1));
        match first_event(body)? {
            Event::Created(created) => Some((TaskNo(u64::try_from(no).ok()?), created.message)),
            Event::Status(_) | Event::Artifact(_) => None,
        }
    };
    Ok(rows.iter().filter_map(message).collect())
}

const COUNTED: &str = "SELECT tallies.party, parties.agent, tallies.state FROM tallies
    JOIN parties ON parties.no = tallies.party
    WHERE ($1::bytea IS NULL OR parties.owner = $1) AND ($2::text IS NULL OR parties.agent = $2)
    GROUP BY tallies.party, parties.agent, tallies.state HAVING sum(tallies.n) > 0 ORDER BY 1, 3";

/// What an index is scanned for: the parties, for each the number below which a task exactly at the cursor is listed, and the
/// state, or null for all.
#[derive(Default)]
struct Sources {
    parties: Vec<i32>,
    below: Vec<i64>,
    states: Vec<Option<i16>>,
}

impl Sources {
    fn add(&mut self, party: i32, below: i64, state: Option<i16>) {
        self.parties.push(party);
        self.below.push(below);
        self.states.push(state);
    }
}

/// The newest tasks of sources.
macro_rules! newest {
    ($sources:literal, $filter:literal) => {
        concat!(
            "(SELECT found.no FROM (
                SELECT listed.party, listed.below, listed.state, parties.agent FROM ",
            $sources,
            " AS listed(party, below, state) JOIN parties ON parties.no = listed.party CROSS JOIN LATERAL (",
            newest_of_source!($filter),
            " LIMIT 1) AS first ORDER BY first.time DESC, first.id DESC, parties.agent DESC, first.no DESC LIMIT $11::bigint) AS listed
             CROSS JOIN LATERAL (",
            newest_of_source!($filter),
            " LIMIT $11::bigint) AS found
             ORDER BY found.time DESC, found.id DESC, listed.agent DESC, found.no DESC LIMIT $11::bigint)"
        )
    };
}

macro_rules! newest_of_source {
    ($filter:literal) => {
        concat!(
            "SELECT tasks.no, tasks.time, tasks.id FROM tasks WHERE tasks.party = listed.party AND ",
            $filter,
            " AND tasks.time >= $7::bigint AND tasks.time < $8::bigint
              AND (tasks.time, tasks.id) <= ($9::bigint, $10::text)
              AND ((tasks.time, tasks.id) < ($9::bigint, $10::text) OR tasks.no < listed.below)
              ORDER BY tasks.time DESC, tasks.id DESC"
        )
    };
}

/// $1 to $3 are sources for the index by state, which has no completed tasks, $4 to $6 for the one by time; $7 and $8 the times,
/// $9 and $10 time and id of the cursor, $11 how many.
const BY_TIME: &str = concat!(
    "SELECT ",
    summary_columns!(),
    " FROM (",
    newest!("unnest($1::int[], $2::bigint[], $3::smallint[])", "tasks.state = listed.state AND tasks.state <> 4"),
    " UNION ALL ",
    newest!("unnest($4::int[], $5::bigint[], $6::smallint[])", "(listed.state IS NULL OR tasks.state = listed.state)"),
    ") AS page JOIN tasks ON tasks.no = page.no JOIN parties ON parties.no = tasks.party
       LEFT JOIN nodes ON nodes.no = tasks.node
     ORDER BY tasks.time DESC, tasks.id DESC, parties.agent DESC, tasks.no DESC LIMIT $11::bigint"
);

async fn by_time(db: &Connections, query: &SummaryQuery, wanted: usize) -> Result<Vec<Row>, StoreError> {
    let owner = query.owner.as_ref().map(|owner| owner.as_key().as_bytes());
    let agent = query.agent.as_ref().map(AgentId::as_str);
    let codes: Option<Vec<i16>> = query.states.as_ref().map(|states| states.iter().copied().map(state_code).collect());
    let (mut of_states, mut of_times, mut latest) = (Sources::default(), Sources::default(), None);
    for row in db.query(COUNTED, &[&owner, &agent]).await? {
        let (party, state): (i32, i16) = (row.get(0), row.get(2));
        let Ok(agent) = AgentId::parse(row.get::<_, &str>(1)) else { continue };
        let below = below_at_cursor(&agent, query.from.as_ref());
        match &codes {
            Some(codes) if !codes.contains(&state) => {}
            Some(_) if state == state_code(State::Completed) => of_times.add(party, below, Some(state)),
            Some(_) => of_states.add(party, below, Some(state)),
            // The states of a party follow each other.
            None if latest == Some(party) => {}
            None => of_times.add(party, below, None),
        }
        latest = Some(party);
    }
    let since = query.since.map_or(i64::MIN, Timestamp::as_millis);
    let before = query.before.map_or(i64::MAX, Timestamp::as_millis);
    // Without a cursor, every task comes after it.
    let (time, task) = query.from.as_ref().map_or((i64::MAX, ""), |from| (from.time.as_millis(), from.task.as_str()));
    let limit = rows::limit(wanted).saturating_add(1);
    let params: [&(dyn ToSql + Sync); 11] = [
        &of_states.parties,
        &of_states.below,
        &of_states.states,
        &of_times.parties,
        &of_times.below,
        &of_times.states,
        &since,
        &before,
        &time,
        &task,
        &limit,
    ];
    db.query(BY_TIME, &params).await
}

/// The order makes Postgres read the index, which ends at the limit, and not the table.
const IDS_WITH_PREFIX: &str = "SELECT count(*) FROM (SELECT tasks.id FROM tasks
    WHERE tasks.id >= $1::text AND ($2::text IS NULL OR tasks.id < $2) ORDER BY tasks.id LIMIT $3::bigint) AS found";

/// Whether more tasks than this have an id with the prefix.
async fn more_have_prefix(
    db: &Connections,
    prefix: &str,
    end: Option<String>,
    most: usize,
) -> Result<bool, StoreError> {
    let most = rows::limit(most);
    let row = db.query_opt(IDS_WITH_PREFIX, &[&prefix, &end, &most.saturating_add(1)]).await?;
    Ok(row.is_some_and(|row| row.get::<_, i64>(0) > most))
}

macro_rules! by_name {
    ($name:literal) => {
        concat!(
            "SELECT ",
            summary_columns!(),
            " FROM tasks JOIN parties ON parties.no = tasks.party LEFT JOIN nodes ON nodes.no = tasks.node WHERE ",
            $name,
            " AND ($3::text IS NULL OR tasks.id < $3) AND ($4::bytea IS NULL OR parties.owner = $4)
              AND ($5::text IS NULL OR parties.agent = $5) AND ($6::smallint[] IS NULL OR tasks.state = ANY($6))
              AND tasks.time >= $7::bigint AND tasks.time < $8::bigint
              AND ($9::bigint IS NULL OR (tasks.time, tasks.id, parties.agent, tasks.no) < ($9, $10::text, $11::text, $12::bigint))
              ORDER BY tasks.time DESC, tasks.id DESC, parties.agent DESC, tasks.no DESC LIMIT $13::bigint"
        )
    };
}

const IN_CONTEXT: &str = by_name!("tasks.context = $1::text AND tasks.id >= $2::text");
const WITH_PREFIX: &str = by_name!("$1::text IS NULL AND tasks.id >= $2::text");
const WITH_ID: &str = by_name!("($1::text IS NULL OR tasks.context = $1) AND tasks.id = $2::text");

async fn by_name(db: &Connections, query: &SummaryQuery, wanted: usize) -> Result<Vec<Row>, StoreError> {
    let context = query.context.as_ref().map(|context| context.as_str());
    let (id, end) = match &query.id {
        Some(id) => (id.as_str(), None),
        None => (query.id_prefix.as_deref().unwrap_or_default(), query.end_of_prefix()),
    };
    let owner = query.owner.as_ref().map(|owner| owner.as_key().as_bytes());
    let agent = query.agent.as_ref().map(AgentId::as_str);
    let states: Option<Vec<i16>> = query.states.as_ref().map(|states| states.iter().copied().map(state_code).collect());
    let since = query.since.map_or(i64::MIN, Timestamp::as_millis);
    let before = query.before.map_or(i64::MAX, Timestamp::as_millis);
    let from = query.from.as_ref();
    let (time, task) = (from.map(|from| from.time.as_millis()), from.map(|from| from.task.as_str()));
    let number = from.map(|from| i64::try_from(from.number.unwrap_or(0)).unwrap_or(i64::MAX));
    let at_agent = from.map(|from| from.agent.as_str());
    let limit = rows::limit(wanted).saturating_add(1);
    let sql = match (&query.id, context) {
        (Some(_), _) => WITH_ID,
        (None, Some(_)) => IN_CONTEXT,
        (None, None) => WITH_PREFIX,
    };
    let params: [&(dyn ToSql + Sync); 13] =
        [&context, &id, &end, &owner, &agent, &states, &since, &before, &time, &task, &at_agent, &number, &limit];
    db.query(sql, &params).await
}

const BYTES_OF: &str = "SELECT (CASE WHEN tasks.in_row IS NULL THEN 0 ELSE coalesce(length(tasks.head), 0) END
        + coalesce((SELECT sum(length(events.body)) FROM events WHERE events.no = tasks.no), 0)
        + coalesce((SELECT sum(length(inbox.body)) FROM inbox WHERE inbox.no = tasks.no), 0))::bigint
    FROM tasks WHERE tasks.no = $1";

/// As `stored_bytes` counts.
pub(super) async fn bytes_of(db: &Connections, no: TaskNo) -> Result<u64, StoreError> {
    let Some(no) = rows::number(no.0) else { return Ok(0) };
    let row = db.query_opt(BYTES_OF, &[&no]).await?;
    Ok(row.map_or(0, |row| TASK_ROW_BYTES + u64::try_from(row.get::<_, i64>(0)).unwrap_or(0)))
}

const COUNTS: &str = "SELECT parties.agent, tallies.state, sum(tallies.n)::bigint FROM tallies
    JOIN parties ON parties.no = tallies.party WHERE $1::bytea IS NULL OR parties.owner = $1
    GROUP BY parties.agent, tallies.state HAVING sum(tallies.n) > 0 ORDER BY 1, 2";

pub(super) async fn task_counts(db: &Connections, owner: Option<&Owner>) -> Result<Vec<TaskCount>, StoreError> {
    let owner = owner.map(|owner| owner.as_key().as_bytes());
    let count = |row: &Row| {
        let (agent, code, count): (&str, i16, i64) = (row.get(0), row.get(1), row.get(2));
        let state = State::ALL.into_iter().find(|state| state_code(*state) == code)?;
        Some(TaskCount { agent: AgentId::parse(agent).ok()?, state, count: u64::try_from(count).ok()? })
    };
    Ok(db.query(COUNTS, &[&owner]).await?.iter().filter_map(count).collect())
}

pub(super) async fn facts(db: &Connections) -> Result<StoreFacts, StoreError> {
    let row = db.query_opt("SELECT pg_database_size(current_database())", &[]).await?;
    let bytes = row.map_or(0, |row| u64::try_from(row.get::<_, i64>(0)).unwrap_or(0));
    Ok(StoreFacts { bytes, format: u32::try_from(migrate::KNOWN).ok() })
}

const DELIVERY_COUNTS: &str = "SELECT (SELECT count(*) FROM webhooks WHERE webhooks.due IS NOT NULL),
    (SELECT count(*) FROM given_up)";

pub(super) async fn delivery_counts(db: &Connections) -> Result<DeliveryCounts, StoreError> {
    let row = db.query_opt(DELIVERY_COUNTS, &[]).await?;
    let count = |row: &Row, column| u64::try_from(row.get::<_, i64>(column)).unwrap_or(0);
    Ok(row.map_or_else(DeliveryCounts::default, |row| DeliveryCounts {
        pending: count(&row, 0),
        given_up: count(&row, 1),
    }))
}
