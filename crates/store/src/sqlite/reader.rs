//! Lookups: one task, its events, and what belongs to it.

use rusqlite::{Connection, OptionalExtension, Params};
use sabir_model::{AgentId, ContextId, IdempotencyKey, Message, Owner, Recorded, Seq, Task, TaskId};

use crate::fold::{Fold, decode};
use crate::page::EVENT_BYTES;
use crate::{Pending, StoreError, TaskNo, TaskRow};

use super::key::{key, keys, seq};
use super::rows::{Found, found, found_columns, task_columns, task_row};

pub(super) const FIND: &str =
    concat!("SELECT ", task_columns!(), " FROM tasks WHERE owner = ?1 AND id = ?2 AND agent = ?3");

pub(super) const FIND_ANYWHERE: &str =
    concat!("SELECT ", task_columns!(), " FROM tasks WHERE owner = ?1 AND id = ?2 ORDER BY no DESC LIMIT 1");

pub(super) const KEYED: &str = concat!(
    "SELECT ",
    task_columns!(),
    " FROM tasks WHERE no = (SELECT no FROM keys WHERE owner = ?1 AND agent = ?2 AND key = ?3)"
);

pub(super) const WAITING: &str = concat!(
    "SELECT ",
    task_columns!(),
    " FROM tasks INDEXED BY tasks_open
      WHERE state < 4 AND owner = ?1 AND context = ?2 AND agent = ?3 AND state IN (2, 3) ORDER BY no"
);

pub(super) const CONVERSATION: &str = concat!(
    "SELECT ",
    found_columns!(),
    " FROM tasks INDEXED BY tasks_context
      WHERE owner = ?1 AND context = ?2 AND agent = ?3 ORDER BY time DESC, no DESC LIMIT ?4"
);

pub(super) const UNFINISHED: &str =
    concat!("SELECT ", task_columns!(), " FROM tasks INDEXED BY tasks_open WHERE state < 4 ORDER BY no");

const LOAD: &str = concat!("SELECT ", found_columns!(), " FROM tasks WHERE no = ?1");

pub(super) const EVENTS: &str = "SELECT key, body FROM events WHERE key BETWEEN ?1 AND ?2 ORDER BY key LIMIT ?3";

pub(super) fn find(
    conn: &Connection,
    owner: &Owner,
    agent: Option<&AgentId>,
    task: &TaskId,
) -> Result<Option<TaskRow>, StoreError> {
    match agent {
        Some(agent) => one(conn, FIND, (owner.as_key(), task.as_str(), agent.as_str())),
        None => one(conn, FIND_ANYWHERE, (owner.as_key(), task.as_str())),
    }
}

pub(super) fn keyed(
    conn: &Connection,
    owner: &Owner,
    agent: &AgentId,
    key: &IdempotencyKey,
) -> Result<Option<TaskRow>, StoreError> {
    one(conn, KEYED, (owner.as_key(), agent.as_str(), key.as_str()))
}

pub(super) fn waiting(
    conn: &Connection,
    owner: &Owner,
    agent: &AgentId,
    context: &ContextId,
) -> Result<Vec<TaskRow>, StoreError> {
    many(conn, WAITING, (owner.as_key(), context.as_str(), agent.as_str()))
}

pub(super) fn load(conn: &Connection, no: TaskNo) -> Result<Option<Task>, StoreError> {
    let mut select = conn.prepare_cached(LOAD)?;
    let mut rows = select.query((no,))?;
    match rows.next()? {
        Some(row) => fold(conn, found(row)?),
        None => Ok(None),
    }
}

/// Whether a task is read as fast as its row: a few events, and no snapshot that stands for many.
pub(super) fn is_small(conn: &Connection, no: TaskNo) -> Result<bool, StoreError> {
    let mut last =
        conn.prepare_cached("SELECT key, length(body) FROM events WHERE key BETWEEN ?1 AND ?2 ORDER BY key LIMIT ?3")?;
    let (first, end) = keys(no).into_inner();
    let mut rows = last.query((first, end, SMALL_EVENTS + 1))?;
    let (mut events, mut bytes) = (0, 0);
    while let Some(row) = rows.next()? {
        events += 1;
        bytes += row.get::<_, i64>(1)?;
    }
    Ok(events <= SMALL_EVENTS && bytes <= SMALL_BYTES)
}

const SMALL_EVENTS: i64 = 32;
const SMALL_BYTES: i64 = 64 * 1024;

/// Folds what is stored of a task; `None` if it is gone meanwhile.
pub(super) fn fold(conn: &Connection, task: Found) -> Result<Option<Task>, StoreError> {
    let mut snapshot = conn.prepare_cached("SELECT body FROM snapshots WHERE no = ?1")?;
    let mut rows = snapshot.query((task.no,))?;
    let mut fold = match rows.next()? {
        Some(row) => Fold::resume(row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?)?,
        None => Fold::new(task.id, task.birth),
    };
    let mut select = conn.prepare_cached(EVENTS)?;
    let mut rows = select.query((key(task.no, fold.seq() + 1), keys(task.no).end(), i64::MAX))?;
    while let Some(row) = rows.next()? {
        fold.take(row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?)?;
    }
    Ok(fold.finish())
}

pub(super) fn events(conn: &Connection, no: TaskNo, after: Seq, limit: usize) -> Result<Vec<Recorded>, StoreError> {
    let mut select = conn.prepare_cached(EVENTS)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let first = key(no, after).saturating_add(1);
    let mut rows = select.query((first, keys(no).end(), limit))?;
    let mut page = Vec::new();
    let mut bytes = 0;
    while let Some(row) = rows.next()? {
        let body = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
        page.push(Recorded { seq: seq(row.get(0)?), event: decode(body)? });
        bytes += body.len();
        if bytes >= EVENT_BYTES {
            break;
        }
    }
    Ok(page)
}

/// The tasks that were active last, told in order of creation.
pub(super) fn conversation(
    conn: &mut Connection,
    owner: &Owner,
    agent: &AgentId,
    context: &ContextId,
    limit: usize,
) -> Result<Vec<Task>, StoreError> {
    let moment = conn.transaction()?;
    let mut select = moment.prepare_cached(CONVERSATION)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let places = (owner.as_key(), context.as_str(), agent.as_str(), limit);
    let mut tasks: Vec<Found> = select.query_and_then(places, found)?.collect::<Result<_, _>>()?;
    tasks.sort_by_key(|task| task.no);
    tasks.into_iter().filter_map(|task| fold(&moment, task).transpose()).collect()
}

pub(super) fn agent_state(
    conn: &Connection,
    owner: &Owner,
    agent: &AgentId,
    context: &ContextId,
) -> Result<Option<String>, StoreError> {
    let mut select =
        conn.prepare_cached("SELECT state FROM agent_state WHERE owner = ?1 AND agent = ?2 AND context = ?3")?;
    let place = (owner.as_key(), agent.as_str(), context.as_str());
    Ok(select.query_row(place, |row| row.get(0)).optional()?)
}

pub(super) fn inbox(conn: &Connection, no: TaskNo) -> Result<Vec<Message>, StoreError> {
    let (first, last) = keys(no).into_inner();
    let mut select = conn.prepare_cached("SELECT body FROM inbox WHERE key BETWEEN ?1 AND ?2 ORDER BY key")?;
    let messages = select
        .query_and_then((first, last), |row| decode(row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?))?;
    messages.collect()
}

pub(super) fn unfinished(conn: &mut Connection) -> Result<Vec<Pending>, StoreError> {
    let moment = conn.transaction()?;
    let rows = many(&moment, UNFINISHED, ())?;
    rows.into_iter().map(|row| Ok(Pending { inbox: inbox(&moment, row.no)?, row })).collect()
}

fn one(conn: &Connection, sql: &str, params: impl Params) -> Result<Option<TaskRow>, StoreError> {
    let mut select = conn.prepare_cached(sql)?;
    let mut rows = select.query(params)?;
    rows.next()?.map(task_row).transpose()
}

fn many(conn: &Connection, sql: &str, params: impl Params) -> Result<Vec<TaskRow>, StoreError> {
    let mut select = conn.prepare_cached(sql)?;
    select.query_and_then(params, task_row)?.collect()
}
