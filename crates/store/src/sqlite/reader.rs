//! Lookups: one task, its events, and the rows that belong to it.

use rusqlite::{Connection, OptionalExtension, Params, Row, Rows};
use sabir_model::{AgentId, ContextId, IdempotencyKey, Message, Owner, Recorded, Seq, Task, TaskId, Timestamp, Wanted};

use crate::damage::{Damage, DamageLog, damaged_task, unreadable_message};
use crate::fold::{Fold, decode, incomplete, unpack, unpack_readable};
use crate::page::{EVENT_BYTES, PageBudget};
use crate::{StoreError, TaskNo, TaskRow, UnfinishedTask};

use super::failure::ReadError;
use super::key::{key, keys, seq, task_no};
use super::rows::{self, TaskRecord, task_columns, task_record, task_record_columns, task_row};

pub(super) const FIND: &str =
    concat!("SELECT ", task_columns!(), " FROM tasks WHERE owner = ?1 AND id = ?2 AND agent = ?3");

pub(super) const FIND_ANYWHERE: &str =
    concat!("SELECT ", task_columns!(), " FROM tasks WHERE owner = ?1 AND id = ?2 ORDER BY no DESC LIMIT 1");

/// Looks at every owner that has ever had a task: there is no index by id alone, since every append would pay for it.
pub(super) const FIND_OF_ALL: &str = concat!(
    "SELECT ",
    task_columns!(),
    " FROM tasks INDEXED BY tasks_id
      WHERE owner IN (SELECT DISTINCT owner FROM tallies) AND id = ?1 AND (?2 IS NULL OR agent = ?2)
      ORDER BY no DESC LIMIT ?3"
);

pub(super) const TASKS_OF: &str = concat!(
    "SELECT ",
    task_columns!(),
    " FROM tasks INDEXED BY tasks_id WHERE owner = ?1 AND (id, agent) > (?2, ?3) ORDER BY id, agent LIMIT ?4"
);

pub(super) const FIND_BY_KEY: &str = concat!(
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
    task_record_columns!(),
    " FROM tasks INDEXED BY tasks_context
      WHERE owner = ?1 AND context = ?2 AND agent = ?3 ORDER BY time DESC, no DESC LIMIT ?4"
);

pub(super) const UNFINISHED: &str =
    concat!("SELECT ", task_columns!(), " FROM tasks INDEXED BY tasks_open WHERE state < 4 ORDER BY no");

const ALL_INBOXES: &str = "SELECT key, body FROM inbox ORDER BY key";

const ALL_CONTROLS: &str = "SELECT no, cancel_requested, attempts FROM controls";

const BY_ID: &str =
    concat!("SELECT ", task_record_columns!(), " FROM tasks WHERE owner = ?1 AND id = ?2 AND agent = ?3");

const BY_ID_ANYWHERE: &str =
    concat!("SELECT ", task_record_columns!(), " FROM tasks WHERE owner = ?1 AND id = ?2 ORDER BY no DESC LIMIT 1");

pub(super) const BY_NUMBER: &str = concat!("SELECT ", task_record_columns!(), " FROM tasks WHERE no = ?1");

const ROW: &str = concat!("SELECT ", task_columns!(), " FROM tasks WHERE no = ?1");

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

pub(super) fn find_of_all(
    conn: &Connection,
    damages: &DamageLog,
    agent: Option<&AgentId>,
    task: &TaskId,
    limit: usize,
) -> Result<Vec<TaskRow>, StoreError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    many(conn, damages, FIND_OF_ALL, (task.as_str(), agent.map(AgentId::as_str), limit))
}

pub(super) fn tasks_of(
    conn: &Connection,
    damages: &DamageLog,
    owner: &Owner,
    after: Option<&(TaskId, AgentId)>,
    limit: usize,
) -> Result<Vec<TaskRow>, StoreError> {
    // No id is empty.
    let (task, agent) = after.map_or(("", ""), |(task, agent)| (task.as_str(), agent.as_str()));
    many(conn, damages, TASKS_OF, (owner.as_key(), task, agent, i64::try_from(limit).unwrap_or(i64::MAX)))
}

pub(super) fn find_by_key(
    conn: &Connection,
    owner: &Owner,
    agent: &AgentId,
    key: &IdempotencyKey,
) -> Result<Option<TaskRow>, StoreError> {
    one(conn, FIND_BY_KEY, (owner.as_key(), agent.as_str(), key.as_str()), task_row)
}

pub(super) fn waiting(
    conn: &Connection,
    damages: &DamageLog,
    owner: &Owner,
    agent: &AgentId,
    context: &ContextId,
) -> Result<Vec<TaskRow>, StoreError> {
    many(conn, damages, WAITING, (owner.as_key(), context.as_str(), agent.as_str()))
}

pub(super) fn waiting_since(
    conn: &Connection,
    damages: &DamageLog,
    before: Timestamp,
    limit: usize,
) -> Result<Vec<TaskRow>, StoreError> {
    many(conn, damages, WAITING_SINCE, (before.as_millis(), i64::try_from(limit).unwrap_or(i64::MAX)))
}

/// Finds a task by its number.
pub(super) fn by_number(conn: &Connection, no: TaskNo) -> Result<Option<TaskRecord>, StoreError> {
    one(conn, BY_NUMBER, (no,), task_record)
}

/// Finds a task by its id.
pub(super) fn by_id(
    conn: &Connection,
    owner: &Owner,
    agent: Option<&AgentId>,
    task: &TaskId,
) -> Result<Option<TaskRecord>, StoreError> {
    match agent {
        Some(agent) => one(conn, BY_ID, (owner.as_key(), task.as_str(), agent.as_str()), task_record),
        None => one(conn, BY_ID_ANYWHERE, (owner.as_key(), task.as_str()), task_record),
    }
}

/// The result of a read that stops at a limit.
pub(super) enum QuickRead {
    /// The whole task, and the bytes of its events.
    Whole(Task, usize),
    /// Its log is too long, or damaged.
    TooLong(TaskRecord),
}

/// Reads a task if that costs little more than reading its row: a few packs of events, and at most `limit` bytes.
pub(super) fn quick_read(
    conn: &Connection,
    task: TaskRecord,
    limit: usize,
    artifacts: Wanted,
) -> Result<QuickRead, StoreError> {
    match fold_if_short(conn, &task, limit, artifacts) {
        Ok(Some((whole, bytes))) => Ok(QuickRead::Whole(whole, bytes)),
        Ok(None) | Err(ReadError::Damaged(_)) => Ok(QuickRead::TooLong(task)),
        Err(ReadError::Store(error)) => Err(error),
    }
}

/// `None`: the log is not short.
fn fold_if_short(
    conn: &Connection,
    task: &TaskRecord,
    limit: usize,
    artifacts: Wanted,
) -> Result<Option<(Task, usize)>, ReadError> {
    if let Some(whole) = fold_from_row(task, artifacts)? {
        return Ok(Some(whole));
    }
    let mut fold = Fold::new(task.id.clone(), task.birth.clone());
    let mut select = conn.prepare_cached(EVENTS)?;
    let (first, end) = keys(task.no).into_inner();
    let mut rows = select.query((first, end, SMALL_ROWS + 1))?;
    let (mut count, mut bytes) = (0, 0);
    while let Some(row) = rows.next()? {
        let (last, pack) = pack(row)?;
        (count, bytes) = (count + 1, bytes + pack.len());
        if count > SMALL_ROWS || bytes > limit {
            return Ok(None);
        }
        take_pack(&mut fold, last, pack, artifacts)?;
    }
    Ok(Some((fold.finish()?, bytes)))
}

/// Folds a log that is completely in the row. Returns the bytes of the log too.
fn fold_from_row(task: &TaskRecord, artifacts: Wanted) -> Result<Option<(Task, usize)>, Damage> {
    let Some(last) = task.log.all else { return Ok(None) };
    let log = task.log.head.as_deref().unwrap_or_default();
    let mut fold = Fold::new(task.id.clone(), task.birth.clone());
    take_pack(&mut fold, last, log, artifacts)?;
    Ok(Some((fold.finish()?, log.len())))
}

const SMALL_ROWS: i64 = 8;
pub(super) const SMALL_BYTES: usize = 32 << 10;

/// Reads a task. A damaged task is shown as failed; `None`: not even its row is left.
pub(super) fn fold(
    conn: &Connection,
    damages: &DamageLog,
    task: TaskRecord,
    artifacts: Wanted,
) -> Result<Option<Task>, StoreError> {
    let task = match quick_read(conn, task, SMALL_BYTES, artifacts)? {
        QuickRead::Whole(task, _) => return Ok(Some(task)),
        QuickRead::TooLong(task) => task,
    };
    let whole = match fold_from_log(conn, &task, SnapshotUse::Use, artifacts) {
        // The damage may be in the snapshot.
        Err(ReadError::Damaged(_)) => fold_from_log(conn, &task, SnapshotUse::Ignore, artifacts),
        read => read,
    };
    match whole {
        Ok(whole) => Ok(Some(whole)),
        Err(ReadError::Store(error)) => Err(error),
        Err(ReadError::Damaged(damage)) => {
            damages.report(task.no, task.id.as_str(), &damage);
            Ok(one(conn, ROW, (task.no,), task_row)?.map(|row| damaged_task(row, &damage)))
        }
    }
}

/// Folds a task up to one of its events. `None` if its log ends before it, or is gone.
pub(super) fn fold_until(conn: &mut Connection, no: TaskNo, event: Seq) -> Result<Option<Task>, StoreError> {
    let moment = conn.transaction()?;
    let Some(task) = by_number(&moment, no)?.filter(|_| event > 0) else { return Ok(None) };
    let id = task.id.clone();
    match read_until(&moment, &task, event) {
        Ok(task) => Ok(Some(task).filter(|task| task.seq == event)),
        Err(ReadError::Store(error)) => Err(error),
        Err(ReadError::Damaged(damage)) => Err(StoreError::Damaged { task: id, reason: damage.0 }),
    }
}

fn read_until(conn: &Connection, task: &TaskRecord, event: Seq) -> Result<Task, ReadError> {
    let unborn = || Fold::new(task.id.clone(), task.birth.clone());
    if let Some(last) = task.log.all {
        let mut fold = unborn();
        fold.take_until(event, unpack(last, task.log.head.as_deref().unwrap_or_default())?)?;
        return Ok(fold.finish()?);
    }
    let mut snapshot = conn.prepare_cached("SELECT body, artifacts FROM snapshots WHERE no = ?1 AND seq <= ?2")?;
    let mut rows = snapshot.query((task.no, i64::try_from(event).unwrap_or(i64::MAX)))?;
    let mut fold = match rows.next()? {
        Some(row) => Fold::resume(blob(row, 0)?, blob_or_null(row, 1)?)?,
        None => unborn(),
    };
    let mut select = conn.prepare_cached(EVENTS)?;
    let mut rows = select.query((key(task.no, fold.seq() + 1), keys(task.no).end(), i64::MAX))?;
    while fold.seq() < event
        && let Some(row) = rows.next()?
    {
        let (last, pack) = pack(row)?;
        fold.take_until(event, unpack(last, pack)?)?;
    }
    Ok(fold.finish()?)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SnapshotUse {
    Use,
    Ignore,
}

fn fold_from_log(
    conn: &Connection,
    task: &TaskRecord,
    snapshot_use: SnapshotUse,
    artifacts: Wanted,
) -> Result<Task, ReadError> {
    if let Some((whole, _)) = fold_from_row(task, artifacts)? {
        return Ok(whole);
    }
    let mut snapshot = conn.prepare_cached("SELECT body, artifacts FROM snapshots WHERE no = ?1")?;
    let mut rows = snapshot.query((task.no,))?;
    let mut fold = match (rows.next()?, artifacts) {
        (None, _) => Fold::new(task.id.clone(), task.birth.clone()),
        (Some(_), _) if snapshot_use == SnapshotUse::Ignore => Fold::new(task.id.clone(), task.birth.clone()),
        (Some(row), Wanted::Yes) => Fold::resume(blob(row, 0)?, blob_or_null(row, 1)?)?,
        // A column that is not fetched is not read from the disk.
        (Some(row), Wanted::No) => Fold::resume(blob(row, 0)?, None)?,
    };
    let mut select = conn.prepare_cached(EVENTS)?;
    let mut rows = select.query((key(task.no, fold.seq() + 1), keys(task.no).end(), i64::MAX))?;
    while let Some(row) = rows.next()? {
        let (last, pack) = pack(row)?;
        take_pack(&mut fold, last, pack, artifacts)?;
    }
    Ok(fold.finish()?)
}

fn take_pack(fold: &mut Fold, last: Seq, pack: &[u8], artifacts: Wanted) -> Result<(), Damage> {
    match artifacts {
        Wanted::Yes => fold.take_pack(last, pack),
        Wanted::No => fold.take_pack_without_artifacts(last, pack),
    }
}

pub(super) fn events(
    conn: &mut Connection,
    damages: &DamageLog,
    no: TaskNo,
    after: Seq,
    limit: usize,
) -> Result<Vec<Recorded>, StoreError> {
    // One transaction, since the log may move out of the row between two queries.
    let tx = conn.transaction()?;
    let mut page = EventPage { events: Vec::new(), after, limit };
    match page.read(&tx, no) {
        Ok(()) => {}
        Err(ReadError::Store(error)) => return Err(error),
        Err(ReadError::Damaged(damage)) => {
            let row = one(&tx, ROW, (no,), task_row)?;
            let Some(TaskRow { task, .. }) = row else { return Ok(Vec::new()) };
            damages.report(no, task.as_str(), &damage);
            // The events before the damage are returned first; the next call gets the error.
            if page.events.is_empty() {
                return Err(StoreError::Damaged { task, reason: damage.0 });
            }
        }
    }
    page.events.truncate(limit);
    Ok(page.events)
}

struct EventPage {
    events: Vec<Recorded>,
    after: Seq,
    limit: usize,
}

impl EventPage {
    /// Fills the page as far as the log can be read.
    fn read(&mut self, conn: &Connection, no: TaskNo) -> Result<(), ReadError> {
        let mut select = conn.prepare_cached("SELECT in_row, head FROM tasks WHERE no = ?1")?;
        let mut rows = select.query((no,))?;
        // Without the row, the task is deleted, even if some of its events are left.
        let Some(row) = rows.next()? else { return Ok(()) };
        if let Some(last) = row.get::<_, Option<i64>>(0)? {
            let last = last as Seq;
            return if last > self.after { self.take_pack(conn, no, last, blob(row, 1)?) } else { Ok(()) };
        }
        let mut select = conn.prepare_cached(EVENTS)?;
        let rows_at_most = i64::try_from(self.limit).unwrap_or(i64::MAX);
        let first = key(no, self.after).saturating_add(1);
        let mut rows = select.query((first, keys(no).end(), rows_at_most))?;
        let mut bytes = 0;
        while self.events.len() < self.limit
            && bytes < EVENT_BYTES
            && let Some(row) = rows.next()?
        {
            let (last, pack) = pack(row)?;
            bytes += pack.len();
            self.take_pack(conn, no, last, pack)?;
        }
        Ok(())
    }

    /// Adds the events of a pack, or those before its damage.
    fn take_pack(&mut self, conn: &Connection, no: TaskNo, last: Seq, pack: &[u8]) -> Result<(), ReadError> {
        let (events, damage) = match unpack(last, pack) {
            Ok(events) => (events, None),
            Err(damage) => (unpack_readable(first_of_pack(conn, no, last)?..=last, pack), Some(damage)),
        };
        let expected = self.events.last().map_or(self.after, |event| event.seq) + 1;
        // The cursor may be in the middle of a pack.
        let mut events = events.into_iter().filter(|event| event.seq > self.after).peekable();
        if events.peek().is_some_and(|event| event.seq != expected) {
            return Err(incomplete(last).into());
        }
        self.events.extend(events);
        damage.map_or(Ok(()), |damage| Err(damage.into()))
    }
}

/// The number of the first event in the pack that ends with `last`, computed from the previous pack.
fn first_of_pack(conn: &Connection, no: TaskNo, last: Seq) -> Result<Seq, ReadError> {
    let mut select =
        conn.prepare_cached("SELECT key FROM events WHERE key >= ?1 AND key < ?2 ORDER BY key DESC LIMIT 1")?;
    let before = select.query_row((keys(no).start(), key(no, last)), |row| row.get(0)).optional()?;
    Ok(before.map_or(0, seq) + 1)
}

/// A row of `EVENTS`: the number of its last event, and the pack.
fn pack<'r>(row: &'r Row<'_>) -> Result<(Seq, &'r [u8]), ReadError> {
    Ok((seq(row.get(0)?), blob(row, 1)?))
}

fn blob_or_null<'r>(row: &'r Row<'_>, column: usize) -> Result<Option<&'r [u8]>, ReadError> {
    row.get_ref(column)?.as_blob_or_null().map_err(|_| no_bytes())
}

fn blob<'r>(row: &'r Row<'_>, column: usize) -> Result<&'r [u8], ReadError> {
    row.get_ref(column)?.as_blob().map_err(|_| no_bytes())
}

fn no_bytes() -> ReadError {
    Damage("one of its rows has no valid body".into()).into()
}

/// The tasks of a context with the latest activity, in order of creation.
pub(super) fn conversation(
    conn: &mut Connection,
    damages: &DamageLog,
    owner: &Owner,
    agent: &AgentId,
    context: &ContextId,
    limit: usize,
    max_bytes: usize,
) -> Result<Vec<Task>, StoreError> {
    let tx = conn.transaction()?;
    let mut select = tx.prepare_cached(CONVERSATION)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let places = (owner.as_key(), context.as_str(), agent.as_str(), limit);
    let (mut tasks, mut budget) = (Vec::new(), PageBudget::new(max_bytes));
    for task in readable(&mut select.query(places)?, damages, task_record)? {
        let no = task.no;
        let Some(task) = fold(&tx, damages, task, Wanted::Yes)? else { continue };
        if !budget.takes(&task) {
            break;
        }
        tasks.push((no, task));
    }
    tasks.sort_by_key(|(no, _)| *no);
    Ok(tasks.into_iter().map(|(_, task)| task).collect())
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

pub(super) fn task_state(conn: &Connection, no: TaskNo) -> Result<Option<String>, StoreError> {
    let mut select = conn.prepare_cached("SELECT state FROM task_state WHERE no = ?1")?;
    Ok(select.query_row((no,), |row| row.get(0)).optional()?)
}

pub(super) fn inbox(conn: &Connection, no: TaskNo) -> Result<Vec<Message>, StoreError> {
    let (first, last) = keys(no).into_inner();
    let mut select = conn.prepare_cached(
        "SELECT body FROM inbox WHERE key BETWEEN ?1 AND ?2 AND EXISTS (SELECT 1 FROM tasks WHERE no = ?3) ORDER BY key",
    )?;
    let messages = select.query_and_then((first, last, no), |row| inbox_message(row, 0))?;
    messages.collect::<Result<_, ReadError>>().map_err(|error| match error {
        ReadError::Store(error) => error,
        ReadError::Damaged(damage) => StoreError::Failed(damage.0.into()),
    })
}

fn inbox_message(row: &Row<'_>, column: usize) -> Result<Message, ReadError> {
    Ok(decode(blob(row, column)?).map_err(unreadable_message)?)
}

pub(super) fn unfinished(conn: &mut Connection, damages: &DamageLog) -> Result<Vec<UnfinishedTask>, StoreError> {
    let tx = conn.transaction()?;
    let rows = many(&tx, damages, UNFINISHED, ())?;
    let pending = |row| UnfinishedTask { row, inbox: Vec::new(), cancel_requested: false, attempts: 0, damage: None };
    let mut pending: Vec<UnfinishedTask> = rows.into_iter().map(pending).collect();
    // Few tasks have any of these, so each table is read once, and not once for each task.
    let mut select = tx.prepare_cached(ALL_INBOXES)?;
    let mut rows = select.query(())?;
    while let Some(row) = rows.next()? {
        let Some(task) = find_by_number(&mut pending, task_no(row.get(0)?)) else { continue };
        let message = note_damage(task, damages, inbox_message(row, 1))?;
        task.inbox.extend(message);
    }
    let mut select = tx.prepare_cached(ALL_CONTROLS)?;
    let mut rows = select.query(())?;
    while let Some(row) = rows.next()? {
        let Some(task) = find_by_number(&mut pending, TaskNo(row.get::<_, i64>(0)? as u64)) else { continue };
        let controls = row.get(1).and_then(|cancel| Ok((cancel, row.get(2)?))).map_err(ReadError::from);
        let controls = note_damage(task, damages, controls)?;
        (task.cancel_requested, task.attempts) = controls.unwrap_or_default();
    }
    Ok(pending)
}

/// Notes damage with its task, so that other tasks are not affected.
fn note_damage<T>(
    task: &mut UnfinishedTask,
    damages: &DamageLog,
    read: Result<T, ReadError>,
) -> Result<Option<T>, StoreError> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(ReadError::Store(error)) => Err(error),
        Err(ReadError::Damaged(damage)) => {
            damages.report(task.row.no, task.row.task.as_str(), &damage);
            task.damage = Some(damage.0);
            Ok(None)
        }
    }
}

/// Finds a task in a list that is sorted by number.
fn find_by_number(pending: &mut [UnfinishedTask], no: TaskNo) -> Option<&mut UnfinishedTask> {
    let place = pending.binary_search_by_key(&no, |pending| pending.row.no).ok()?;
    pending.get_mut(place)
}

/// Reads at most one row.
fn one<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnOnce(&Row<'_>) -> Result<T, ReadError>,
) -> Result<Option<T>, StoreError> {
    let mut select = conn.prepare_cached(sql)?;
    let mut rows = select.query(params)?;
    let Some(row) = rows.next()? else { return Ok(None) };
    read(row).map(Some).map_err(|error| match error {
        ReadError::Store(error) => error,
        ReadError::Damaged(Damage(reason)) => match rows::task_id(row) {
            Ok(task) => StoreError::Damaged { task, reason },
            Err(_) => StoreError::Failed(reason.into()),
        },
    })
}

fn many(conn: &Connection, damages: &DamageLog, sql: &str, params: impl Params) -> Result<Vec<TaskRow>, StoreError> {
    let mut select = conn.prepare_cached(sql)?;
    readable(&mut select.query(params)?, damages, task_row)
}

/// Reads the rows; those that are damaged are logged and left out.
pub(super) fn readable<T>(
    rows: &mut Rows<'_>,
    damages: &DamageLog,
    read: impl Fn(&Row<'_>) -> Result<T, ReadError>,
) -> Result<Vec<T>, StoreError> {
    let mut list = Vec::new();
    while let Some(row) = rows.next()? {
        match read(row) {
            Ok(item) => list.push(item),
            Err(ReadError::Store(error)) => return Err(error),
            Err(ReadError::Damaged(damage)) => {
                let no = rows::task_no(row).unwrap_or(TaskNo(0));
                let task = rows::task_id(row).map_or_else(|_| "unknown".into(), |task| task.to_string());
                damages.report(no, &task, &damage);
            }
        }
    }
    Ok(list)
}
