//! Lookups: one task, its events, and what belongs to it.

use rusqlite::{Connection, OptionalExtension, Params, Row};
use sabir_model::{AgentId, ContextId, IdempotencyKey, Message, Owner, Recorded, Seq, Task, TaskId, Timestamp};

use crate::fold::{Fold, decode, unpack};
use crate::page::EVENT_BYTES;
use crate::{Pending, StoreError, TaskNo, TaskRow};

use super::key::{key, keys, seq, task_no};
use super::rows::{self, Found, found, found_columns, task_columns, task_row};

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

pub(super) const WAITING_SINCE: &str = concat!(
    "SELECT ",
    task_columns!(),
    " FROM tasks INDEXED BY tasks_waiting WHERE state IN (2, 3) AND time < ?1 ORDER BY time, no LIMIT ?2"
);

pub(super) const CONVERSATION: &str = concat!(
    "SELECT ",
    found_columns!(),
    " FROM tasks INDEXED BY tasks_context
      WHERE owner = ?1 AND context = ?2 AND agent = ?3 ORDER BY time DESC, no DESC LIMIT ?4"
);

pub(super) const UNFINISHED: &str =
    concat!("SELECT ", task_columns!(), " FROM tasks INDEXED BY tasks_open WHERE state < 4 ORDER BY no");

const ALL_INBOXES: &str = "SELECT key, body FROM inbox ORDER BY key";

const ALL_CONTROLS: &str = "SELECT no, cancel_requested, attempts FROM controls";

const NAMED: &str = concat!("SELECT ", found_columns!(), " FROM tasks WHERE owner = ?1 AND id = ?2 AND agent = ?3");

const NAMED_ANYWHERE: &str =
    concat!("SELECT ", found_columns!(), " FROM tasks WHERE owner = ?1 AND id = ?2 ORDER BY no DESC LIMIT 1");

const LOAD: &str = concat!("SELECT ", found_columns!(), " FROM tasks WHERE no = ?1");

pub(super) const EVENTS: &str = "SELECT key, body FROM events WHERE key BETWEEN ?1 AND ?2 ORDER BY key LIMIT ?3";

pub(super) fn find(
    conn: &Connection,
    owner: &Owner,
    agent: Option<&AgentId>,
    task: &TaskId,
) -> Result<Option<TaskRow>, StoreError> {
    match agent {
        Some(agent) => one(conn, FIND, (owner.as_key(), task.as_str(), agent.as_str()), task_row),
        None => one(conn, FIND_ANYWHERE, (owner.as_key(), task.as_str()), task_row),
    }
}

pub(super) fn keyed(
    conn: &Connection,
    owner: &Owner,
    agent: &AgentId,
    key: &IdempotencyKey,
) -> Result<Option<TaskRow>, StoreError> {
    one(conn, KEYED, (owner.as_key(), agent.as_str(), key.as_str()), task_row)
}

pub(super) fn waiting(
    conn: &Connection,
    owner: &Owner,
    agent: &AgentId,
    context: &ContextId,
) -> Result<Vec<TaskRow>, StoreError> {
    many(conn, WAITING, (owner.as_key(), context.as_str(), agent.as_str()))
}

pub(super) fn waiting_since(conn: &Connection, before: Timestamp, limit: usize) -> Result<Vec<TaskRow>, StoreError> {
    many(conn, WAITING_SINCE, (before.as_millis(), i64::try_from(limit).unwrap_or(i64::MAX)))
}

/// A task by its number.
pub(super) fn numbered(conn: &Connection, no: TaskNo) -> Result<Option<Found>, StoreError> {
    one(conn, LOAD, (no,), found)
}

/// A task by its name, about to be folded.
pub(super) fn named(
    conn: &Connection,
    owner: &Owner,
    agent: Option<&AgentId>,
    task: &TaskId,
) -> Result<Option<Found>, StoreError> {
    match agent {
        Some(agent) => one(conn, NAMED, (owner.as_key(), task.as_str(), agent.as_str()), found),
        None => one(conn, NAMED_ANYWHERE, (owner.as_key(), task.as_str()), found),
    }
}

/// What was read of a task that may be too long to be read here and now.
#[expect(clippy::large_enum_variant, reason = "made and taken apart at once")]
pub(super) enum Glance {
    /// All of it, and how many bytes of events it was; `None` if it is gone meanwhile.
    Whole(Option<Task>, usize),
    TooLong(Found),
}

/// Folds a task that is read as fast as its row: a few packs of events, and not more bytes than `limit`.
pub(super) fn glance(conn: &Connection, task: Found, limit: usize) -> Result<Glance, StoreError> {
    let mut select = conn.prepare_cached(EVENTS)?;
    let (first, end) = keys(task.no).into_inner();
    let mut rows = select.query((first, end, SMALL_ROWS + 1))?;
    let mut fold = Fold::new(task.id.clone(), task.birth.clone());
    let (mut count, mut bytes) = (0, 0);
    while let Some(row) = rows.next()? {
        let (last, pack) = pack(row)?;
        (count, bytes) = (count + 1, bytes + pack.len());
        if count > SMALL_ROWS || bytes > limit {
            return Ok(Glance::TooLong(task));
        }
        fold.take_pack(last, pack)?;
    }
    Ok(Glance::Whole(fold.finish(), bytes))
}

const SMALL_ROWS: i64 = 8;
pub(super) const SMALL_BYTES: usize = 32 << 10;

/// Folds what is stored of a task; `None` if it is gone meanwhile.
pub(super) fn fold(conn: &Connection, task: Found) -> Result<Option<Task>, StoreError> {
    let task = match glance(conn, task, SMALL_BYTES)? {
        Glance::Whole(task, _) => return Ok(task),
        Glance::TooLong(task) => task,
    };
    let mut snapshot = conn.prepare_cached("SELECT body FROM snapshots WHERE no = ?1")?;
    let mut rows = snapshot.query((task.no,))?;
    let mut fold = match rows.next()? {
        Some(row) => Fold::resume(blob(row, 0)?)?,
        None => Fold::new(task.id, task.birth),
    };
    let mut select = conn.prepare_cached(EVENTS)?;
    let mut rows = select.query((key(task.no, fold.seq() + 1), keys(task.no).end(), i64::MAX))?;
    while let Some(row) = rows.next()? {
        let (last, pack) = pack(row)?;
        fold.take_pack(last, pack)?;
    }
    Ok(fold.finish())
}

pub(super) fn events(conn: &Connection, no: TaskNo, after: Seq, limit: usize) -> Result<Vec<Recorded>, StoreError> {
    let mut select = conn.prepare_cached(EVENTS)?;
    let rows_at_most = i64::try_from(limit).unwrap_or(i64::MAX);
    let first = key(no, after).saturating_add(1);
    let mut rows = select.query((first, keys(no).end(), rows_at_most))?;
    let mut page = Vec::new();
    let mut bytes = 0;
    while page.len() < limit
        && bytes < EVENT_BYTES
        && let Some(row) = rows.next()?
    {
        let (last, pack) = pack(row)?;
        bytes += pack.len();
        // A reader may have stopped in the middle of a pack.
        page.extend(unpack(last, pack)?.into_iter().filter(|event| event.seq > after));
    }
    page.truncate(limit);
    Ok(page)
}

/// A row of `EVENTS`: the number of its last event, and the events.
fn pack<'r>(row: &'r Row<'_>) -> Result<(Seq, &'r [u8]), StoreError> {
    Ok((seq(row.get(0)?), blob(row, 1)?))
}

fn blob<'r>(row: &'r Row<'_>, column: usize) -> Result<&'r [u8], StoreError> {
    Ok(row.get_ref(column)?.as_blob().map_err(rusqlite::Error::from)?)
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
    let messages = select.query_and_then((first, last), |row| decode(blob(row, 0)?))?;
    messages.collect()
}

pub(super) fn unfinished(conn: &mut Connection) -> Result<Vec<Pending>, StoreError> {
    let moment = conn.transaction()?;
    let rows = many(&moment, UNFINISHED, ())?;
    let pending = |row| Pending { row, inbox: Vec::new(), cancel_requested: false, attempts: 0 };
    let mut pending: Vec<Pending> = rows.into_iter().map(pending).collect();
    // Few tasks have any of these, so each table is read once, not once for each task.
    let mut select = moment.prepare_cached(ALL_INBOXES)?;
    let mut rows = select.query(())?;
    while let Some(row) = rows.next()? {
        if let Some(task) = of_number(&mut pending, task_no(row.get(0)?)) {
            task.inbox.push(decode(blob(row, 1)?)?);
        }
    }
    let mut select = moment.prepare_cached(ALL_CONTROLS)?;
    let mut rows = select.query(())?;
    while let Some(row) = rows.next()? {
        if let Some(task) = of_number(&mut pending, rows::task_no(row, 0)?) {
            (task.cancel_requested, task.attempts) = (row.get(1)?, row.get(2)?);
        }
    }
    Ok(pending)
}

/// Finds a task in a list that is ordered by number.
fn of_number(pending: &mut [Pending], no: TaskNo) -> Option<&mut Pending> {
    let place = pending.binary_search_by_key(&no, |pending| pending.row.no).ok()?;
    pending.get_mut(place)
}

fn one<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnOnce(&Row<'_>) -> Result<T, StoreError>,
) -> Result<Option<T>, StoreError> {
    let mut select = conn.prepare_cached(sql)?;
    let mut rows = select.query(params)?;
    rows.next()?.map(read).transpose()
}

fn many(conn: &Connection, sql: &str, params: impl Params) -> Result<Vec<TaskRow>, StoreError> {
    let mut select = conn.prepare_cached(sql)?;
    select.query_and_then(params, task_row)?.collect()
}
