//! What operators see of all tasks: pages of summaries, counts, and sizes.
//!
//! The counters say which owners, agents and states have tasks at all, so a page asks the indexes only about those, and merges
//! what it finds (`list_of_owners`); where these are very many, it goes through all tasks by time instead. Contexts and ids are
//! found by an index too, at each owner; what has the same context or prefix is then put in order.

use std::sync::Arc;

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use sabir_model::{AgentId, Event, Message, Owner, State, Task, TaskBirth, Timestamp, Wanted};

use crate::damage::DamageLog;
use crate::fold::first_event;
use crate::head::{Head, RowLog};
use crate::page::cut;
use crate::summary::take;
use crate::{
    Others, Query, StoreError, StoreFacts, SummaryPage, SummaryQuery, TASK_ROW_BYTES, TaskCount, TaskNo, TaskRow,
    TaskSummary,
};

use super::failure::ReadError;
use super::key::keys;
use super::list_of_owners::{Merge, Place, Source};
use super::reader::{EVENTS, fold};
use super::rows::{self, TaskRecord, state_code, task_columns, task_row};
use super::schema;

pub(super) fn summaries(
    conn: &mut Connection,
    damages: &DamageLog,
    query: &SummaryQuery,
) -> Result<SummaryPage, StoreError> {
    let tx = conn.transaction()?;
    if let Some(prefix) = query.limited_prefix()
        && more_have_prefix(&tx, prefix, query.end_of_prefix(), query.most_with_prefix)?
    {
        return Ok(SummaryPage::of_too_many());
    }
    let mut numbers = match (&query.context, &query.id, &query.id_prefix) {
        (None, None, None) => match sources(&tx, query)? {
            Some(sources) => Merge::new(&tx, sources).first(query.from.as_ref(), query.limit)?,
            None => by_time(&tx, query)?,
        },
        _ => by_name(&tx, query)?,
    };
    let more = cut(&mut numbers, query.limit);
    let (mut page, mut left) = (SummaryPage { more, ..SummaryPage::default() }, query.max_bytes);
    for no in numbers {
        let Some(summary) = read(&tx, damages, no)? else { continue };
        if !take(&mut page, &mut left, summary) {
            break;
        }
    }
    Ok(page)
}

/// The columns of `task_row`, and the head.
const SUMMARY: &str = concat!("SELECT ", task_columns!(), ", head FROM tasks WHERE no = ?1");

pub(super) fn summary(
    conn: &mut Connection,
    damages: &DamageLog,
    no: TaskNo,
) -> Result<Option<TaskSummary>, StoreError> {
    read(&*conn.transaction()?, damages, no)
}

fn read(conn: &Connection, damages: &DamageLog, no: TaskNo) -> Result<Option<TaskSummary>, StoreError> {
    let mut select = conn.prepare_cached(SUMMARY)?;
    let mut found = select.query((no,))?;
    let Some(stored) = found.next()? else { return Ok(None) };
    let row = match task_row(stored) {
        Ok(row) => row,
        Err(ReadError::Store(error)) => return Err(error),
        // As in other lists, a row that cannot be read is left out.
        Err(ReadError::Damaged(_)) => return Ok(None),
    };
    let head = stored.get_ref(12)?.as_blob_or_null().unwrap_or(None);
    let birth =
        TaskBirth { context: row.context.clone(), agent: row.agent.clone(), owner: row.owner.clone(), born: row.born };
    if let Some(head) = head.and_then(|head| Head::read(row.task.clone(), birth.clone(), head)) {
        let first = match head.is_cut {
            false => head.task.history.first().cloned(),
            true => first_message(conn, no)?,
        };
        return Ok(Some(TaskSummary::new(row, head.task, first, None)));
    }
    let all: Option<i64> = stored.get(10)?;
    let log = RowLog { head: head.map(<[u8]>::to_vec), all: all.map(|all| all as u64) };
    let record = TaskRecord { no, id: row.task.clone(), time: row.time, birth, log };
    Ok(fold(conn, damages, record, Wanted::No)?.map(|task| of_whole(row, task)))
}

fn of_whole(row: TaskRow, task: Task) -> TaskSummary {
    let first = task.history.first().cloned();
    TaskSummary::new(row, task, first, None)
}

/// Of a task whose log is in the table `events`.
fn first_message(conn: &Connection, no: TaskNo) -> Result<Option<Arc<Message>>, StoreError> {
    let mut select = conn.prepare_cached(EVENTS)?;
    let (first, last) = keys(no).into_inner();
    let mut rows = select.query((first, last, 1))?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let pack = row.get_ref(1)?.as_blob().unwrap_or_default();
    Ok(match first_event(pack) {
        Some(Event::Created(created)) => Some(created.message),
        _ => None,
    })
}

/// One for each owner, agent and state that has tasks; without a filter for states, one for each owner and agent. `None`: there
/// are too many to look at each.
fn sources(conn: &Connection, query: &SummaryQuery) -> Result<Option<Vec<Source>>, StoreError> {
    let mut select = conn.prepare_cached(COUNTED)?;
    let filter =
        (query.owner.as_ref().map(Owner::as_key), query.agent.as_ref().map(AgentId::as_str), state_bits(query));
    let mut rows = select.query(filter)?;
    let (mut sources, mut latest) = (Vec::new(), None);
    while let Some(row) = rows.next()? {
        let (Ok(owner), Ok(agent), Ok(state)) = (rows::owner(row, 0), rows::agent(row, 1), rows::state(row.get(2)?))
        else {
            continue;
        };
        // The states of an owner and an agent follow each other.
        if query.states.is_none() && latest.as_ref() == Some(&(owner.clone(), agent.clone())) {
            continue;
        }
        if sources.len() == MANY_SOURCES {
            return Ok(None);
        }
        latest = Some((owner.clone(), agent.clone()));
        sources.push(source(query, owner, agent, query.states.is_some().then_some(state)));
    }
    Ok(Some(sources))
}

/// Beyond so many sources, `by_time` is cheaper than a look-up for each.
const MANY_SOURCES: usize = 1000;

/// A bit for each state that the query takes.
fn state_bits(query: &SummaryQuery) -> i64 {
    query.states.as_ref().map_or(-1, |states| states.iter().fold(0, |bits, state| bits | 1 << state_code(*state)))
}

pub(super) const COUNTED: &str = "SELECT owner, agent, state FROM tallies
    WHERE n > 0 AND (?1 IS NULL OR owner = ?1) AND (?2 IS NULL OR agent = ?2) AND (?3 >> state) & 1
    ORDER BY owner, agent, state";

/// The first tasks after the cursor, and one more than wanted if more follow, by indexes that know nothing of owners: settled
/// tasks in their order, and all tasks that are not settled, which are few. Where there are many sources there are many tasks
/// that match, so the scan soon has its page.
fn by_time(conn: &Connection, query: &SummaryQuery) -> Result<Vec<TaskNo>, StoreError> {
    let mut places = Vec::new();
    for sql in [SETTLED, OPEN] {
        let mut select = conn.prepare_cached(sql)?;
        let latest = query.from.as_ref().map_or(i64::MAX, |from| from.time.as_millis());
        let (since, before) =
            (query.since.map_or(i64::MIN, Timestamp::as_millis), query.before.map_or(i64::MAX, Timestamp::as_millis));
        let (owner, agent) = (query.owner.as_ref().map(Owner::as_key), query.agent.as_ref().map(AgentId::as_str));
        let mut rows = select.query((latest, since, before, state_bits(query), owner, agent))?;
        let mut found: Vec<Place> = Vec::new();
        while let Some(row) = rows.next()? {
            let time = Timestamp::from_millis(row.get(1)?);
            // Tasks of the same moment are in no order yet.
            if sql == SETTLED && found.len() > query.limit && found.last().is_some_and(|last| last.time > time) {
                break;
            }
            let (Ok(no), Ok(agent), Ok(task)) = (rows::task_no(row), rows::agent(row, 2), rows::task_id(row)) else {
                continue;
            };
            let place = Place { time, task, agent, no };
            if query.from.as_ref().is_none_or(|from| place.is_after(from)) {
                found.push(place);
            }
        }
        places.append(&mut found);
    }
    places.sort_unstable_by(|a, b| b.cmp(a));
    places.truncate(query.limit.saturating_add(1));
    Ok(places.into_iter().map(|place| place.no).collect())
}

macro_rules! places {
    ($index:literal) => {
        concat!(
            "SELECT no, time, agent, id FROM tasks INDEXED BY ",
            $index,
            " AND time <= ?1 AND time >= ?2 AND time < ?3 AND (?4 >> state) & 1 AND (?5 IS NULL OR owner = ?5)
              AND (?6 IS NULL OR agent = ?6)"
        )
    };
}

pub(super) const SETTLED: &str = concat!(places!("tasks_settled WHERE state >= 4"), " ORDER BY time DESC");
pub(super) const OPEN: &str = places!("tasks_open WHERE state < 4");

fn source(query: &SummaryQuery, owner: Owner, agent: AgentId, state: Option<State>) -> Source {
    let before = query.before;
    let query = Query {
        owner,
        own_agents: None,
        others: Others::None,
        agent: None,
        context: None,
        state,
        since: query.since,
        from: None,
        limit: query.limit,
        max_bytes: query.max_bytes,
        artifacts: Wanted::No,
        history: None,
    };
    Source { query, agent: Some(agent), before }
}

/// Whether more tasks than this have an id with the prefix. Reads the index, and no more of it than that takes.
fn more_have_prefix(conn: &Connection, prefix: &str, end: Option<String>, most: usize) -> Result<bool, StoreError> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let mut params: Vec<Value> = vec![prefix.to_owned().into(), most.saturating_add(1).into()];
    params.extend(end.map(Value::from));
    let mut select = conn.prepare_cached(&prefix_scan(params.len() == 3))?;
    let found: i64 = select.query_row(params_from_iter(params), |row| row.get(0))?;
    Ok(found > most)
}

pub(super) fn prefix_scan(has_end: bool) -> String {
    let end = if has_end { " AND id < ?3" } else { "" };
    format!(
        "SELECT count(*) FROM (SELECT 1 FROM tasks INDEXED BY tasks_id
            WHERE owner IN (SELECT DISTINCT owner FROM tallies WHERE n > 0) AND id >= ?1{end} LIMIT ?2)"
    )
}

/// The first tasks of a context, with an id or with a prefix, and one more than wanted if more follow.
fn by_name(conn: &Connection, query: &SummaryQuery) -> Result<Vec<TaskNo>, StoreError> {
    let (sql, params) = name_scan(query);
    let mut select = conn.prepare_cached(&sql)?;
    let mut rows = select.query(params_from_iter(params))?;
    let mut numbers = Vec::new();
    while let Some(row) = rows.next()? {
        numbers.extend(rows::task_no(row).ok());
    }
    Ok(numbers)
}

pub(super) fn name_scan(query: &SummaryQuery) -> (String, Vec<Value>) {
    let index = if query.context.is_some() { "tasks_context" } else { "tasks_id" };
    let mut conditions =
        vec!["owner IN (SELECT DISTINCT owner FROM tallies WHERE n > 0 AND (?1 IS NULL OR owner = ?1))".to_owned()];
    let mut params: Vec<Value> =
        vec![query.owner.as_ref().map_or(Value::Null, |owner| owner.as_key().to_owned().into())];
    let mut and = |condition: &str, value: Value| {
        params.push(value);
        conditions.push(condition.replace('?', &format!("?{}", params.len())));
    };
    if let Some(context) = &query.context {
        and("context = ?", context.as_str().to_owned().into());
    }
    if let Some(id) = &query.id {
        and("id = ?", id.as_str().to_owned().into());
    }
    if let Some(prefix) = &query.id_prefix {
        and("id >= ?", prefix.clone().into());
    }
    if let Some(end) = query.end_of_prefix() {
        and("id < ?", end.into());
    }
    if let Some(agent) = &query.agent {
        and("agent = ?", agent.as_str().to_owned().into());
    }
    if let Some(since) = query.since {
        and("time >= ?", since.as_millis().into());
    }
    if let Some(before) = query.before {
        and("time < ?", before.as_millis().into());
    }
    if let Some(states) = &query.states {
        let codes: Vec<String> = states.iter().map(|state| state_code(*state).to_string()).collect();
        conditions.push(format!("state IN ({})", codes.join(", ")));
    }
    if let Some(from) = &query.from {
        let number = i64::try_from(from.number.unwrap_or(0)).unwrap_or(i64::MAX);
        let place = params.len();
        params.extend([
            from.time.as_millis().into(),
            from.task.as_str().to_owned().into(),
            from.agent.as_str().to_owned().into(),
            number.into(),
        ]);
        let places: Vec<String> = (1..=4).map(|at| format!("?{}", place + at)).collect();
        conditions.push(format!("(time, id, agent, no) < ({})", places.join(", ")));
    }
    params.push(i64::try_from(query.limit).unwrap_or(i64::MAX).saturating_add(1).into());
    let sql = format!(
        "SELECT no FROM tasks INDEXED BY {index} WHERE {} ORDER BY time DESC, id DESC, agent DESC, no DESC LIMIT ?{}",
        conditions.join(" AND "),
        params.len()
    );
    (sql, params)
}

pub(super) const BYTES_OF_LOG: &str = "SELECT coalesce(sum(length(body)), 0) FROM events WHERE key BETWEEN ?1 AND ?2";
const BYTES_OF_INBOX: &str = "SELECT coalesce(sum(length(body)), 0) FROM inbox WHERE key BETWEEN ?1 AND ?2";
const BYTES_OF_ROW: &str =
    "SELECT CASE WHEN in_row IS NULL THEN 0 ELSE coalesce(length(head), 0) END FROM tasks WHERE no = ?1";

/// As `stored_bytes` counts.
pub(super) fn bytes_of(conn: &mut Connection, no: TaskNo) -> Result<u64, StoreError> {
    let conn = conn.transaction()?;
    let mut row = conn.prepare_cached(BYTES_OF_ROW)?;
    let mut rows = row.query((no,))?;
    let Some(row) = rows.next()? else { return Ok(0) };
    let mut bytes = row.get::<_, i64>(0)?;
    for sql in [BYTES_OF_LOG, BYTES_OF_INBOX] {
        let (first, last) = keys(no).into_inner();
        bytes += conn.prepare_cached(sql)?.query_row((first, last), |row| row.get::<_, i64>(0))?;
    }
    Ok(TASK_ROW_BYTES + u64::try_from(bytes).unwrap_or(0))
}

pub(super) fn task_counts(conn: &Connection, owner: Option<&Owner>) -> Result<Vec<TaskCount>, StoreError> {
    let mut select = conn.prepare_cached(
        "SELECT agent, state, sum(n) FROM tallies WHERE ?1 IS NULL OR owner = ?1 GROUP BY agent, state HAVING sum(n) > 0",
    )?;
    let mut rows = select.query((owner.map(Owner::as_key),))?;
    let mut counts = Vec::new();
    while let Some(row) = rows.next()? {
        if let (Ok(agent), Ok(state)) = (rows::agent(row, 0), rows::state(row.get(1)?)) {
            counts.push(TaskCount { agent, state, count: u64::try_from(row.get::<_, i64>(2)?).unwrap_or(0) });
        }
    }
    Ok(counts)
}

pub(super) fn facts(conn: &Connection) -> Result<StoreFacts, StoreError> {
    let pragma = |name| conn.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let bytes = pragma("page_count")?.saturating_mul(pragma("page_size")?);
    Ok(StoreFacts { bytes: u64::try_from(bytes).unwrap_or(0), format: u32::try_from(schema::FORMAT).ok() })
}
