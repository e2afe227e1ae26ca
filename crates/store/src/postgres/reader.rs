//! Lookups: one task, its events, and the rows that belong to it.
//!
//! Lookups need no transaction. Each statement sees one moment of the database, events are only added, and the log of a task
//! moves from its row to the table `events` once. So a second statement sees the task as it was or newer, or not at all:
//! whatever cannot be read is damaged only if the task is still there.

use std::collections::HashMap;

use sabir_model::{AgentId, ContextId, IdempotencyKey, Message, Owner, Recorded, Seq, Task, TaskId, Timestamp, Wanted};
use tokio_postgres::Row;

use crate::damage::{Damage, DamageLog, damaged_task, unreadable_message};
use crate::fold::{Fold, decode, incomplete, unpack, unpack_readable};
use crate::page::{EVENT_BYTES, PageBudget};
use crate::{StoreError, TaskNo, TaskRow, UnfinishedTask};

use super::connections::Connections;
use super::parties::Parties;
use super::rows::{
    self, TaskRecord, readable, task_columns, task_record, task_record_columns, task_row, task_tables, value, whole,
};

const FIND: &str =
    concat!("SELECT ", task_columns!(), " FROM ", task_tables!(), " WHERE tasks.id = $1 AND tasks.party = $2");

const FIND_ANYWHERE: &str = concat!(
    "SELECT ",
    task_columns!(),
    " FROM ",
    task_tables!(),
    " WHERE tasks.id = $1 AND parties.owner = $2 ORDER BY tasks.no DESC LIMIT 1"
);

const FIND_OF_ALL: &str = concat!(
    "SELECT ",
    task_columns!(),
    " FROM ",
    task_tables!(),
    " WHERE tasks.id = $1 AND ($2::text IS NULL OR parties.agent = $2) ORDER BY tasks.no DESC LIMIT $3"
);

const TASKS_OF: &str = concat!(
    "SELECT ",
    task_columns!(),
    " FROM ",
    task_tables!(),
    " WHERE sha256(parties.owner) = sha256($1) AND parties.owner = $1 AND (tasks.id, parties.agent) > ($2, $3) ORDER BY tasks.id, parties.agent LIMIT $4"
);

const FIND_BY_KEY: &str = concat!(
    "SELECT ",
    task_columns!(),
    " FROM keys JOIN tasks ON tasks.no = keys.no JOIN parties ON parties.no = tasks.party
      WHERE keys.party = $1 AND keys.key = $2"
);

const WAITING: &str = concat!(
    "SELECT ",
    task_columns!(),
    " FROM ",
    task_tables!(),
    " WHERE tasks.context = $1 AND tasks.party = $2 AND tasks.state IN (2, 3) ORDER BY tasks.no"
);

const WAITING_SINCE: &str = concat!(
    "SELECT ",
    task_columns!(),
    " FROM ",
    task_tables!(),
    " WHERE tasks.state IN (2, 3) AND tasks.time < $1 ORDER BY tasks.time, tasks.no LIMIT $2"
);

const UNFINISHED: &str =
    concat!("SELECT ", task_columns!(), " FROM ", task_tables!(), " WHERE tasks.state < 4 ORDER BY tasks.no");

const ROW: &str = concat!("SELECT ", task_columns!(), " FROM ", task_tables!(), " WHERE tasks.no = $1");

const BY_ID: &str =
    concat!("SELECT ", task_record_columns!(), " FROM ", task_tables!(), " WHERE tasks.id = $1 AND tasks.party = $2");

const BY_ID_ANYWHERE: &str = concat!(
    "SELECT ",
    task_record_columns!(),
    " FROM ",
    task_tables!(),
    " WHERE tasks.id = $1 AND parties.owner = $2 ORDER BY tasks.no DESC LIMIT 1"
);

const BY_NUMBER: &str = concat!("SELECT ", task_record_columns!(), " FROM ", task_tables!(), " WHERE tasks.no = $1");

const CONVERSATION: &str = concat!(
    "SELECT ",
    task_record_columns!(),
    " FROM ",
    task_tables!(),
    " WHERE tasks.context = $1 AND tasks.party = $2 ORDER BY tasks.time DESC, tasks.no DESC LIMIT $3"
);

/// The snapshots of tasks, and the first packs of each behind its snapshot. What is not wanted is not read from the disk.
const LOGS: &str = "SELECT snapshots.no, 0::smallint, snapshots.seq, snapshots.body,
        CASE WHEN $3::boolean THEN snapshots.artifacts END
    FROM snapshots WHERE $2::boolean AND snapshots.no = ANY($1::bigint[])
    UNION ALL
    SELECT packs.no, 1::smallint, packs.seq, packs.body, NULL
    FROM unnest($1::bigint[]) AS wanted(no)
    CROSS JOIN LATERAL (
        SELECT events.no, events.seq, events.body FROM events
        WHERE events.no = wanted.no AND events.seq > coalesce(
            (SELECT snapshots.seq FROM snapshots WHERE $2::boolean AND snapshots.no = wanted.no), 0)
        ORDER BY events.seq LIMIT $4::bigint) AS packs
    ORDER BY 1, 2, 3";

/// The same up to the pack with an event, from the last snapshot before it; $2 is the event.
const LOG_UNTIL: &str = "SELECT 0::smallint, snapshots.seq, snapshots.body, snapshots.artifacts
    FROM snapshots WHERE snapshots.no = $1 AND snapshots.seq <= $2
    UNION ALL
    SELECT 1::smallint, events.seq, events.body, NULL FROM events
    WHERE events.no = $1
        AND events.seq > coalesce((SELECT snapshots.seq FROM snapshots WHERE snapshots.no = $1 AND snapshots.seq <= $2), 0)
        AND events.seq <= (SELECT min(last.seq) FROM events AS last WHERE last.no = $1 AND last.seq >= $2)
    ORDER BY 1, 2";

/// A page of packs: at most $3 of them, and after $4 bytes no more. A log that is in the row is one pack. Without a row, there
/// is no such task.
const EVENTS: &str =
    "SELECT tasks.in_row::bigint, CASE WHEN tasks.in_row > $2::bigint THEN tasks.head END, packs.seq, packs.body
    FROM tasks LEFT JOIN LATERAL (
        SELECT page.seq, page.body FROM (
            SELECT later.seq, later.body,
                sum(length(later.body)) OVER (ORDER BY later.seq) - length(later.body) AS bytes_before
            FROM (
                SELECT events.seq, events.body FROM events
                WHERE events.no = tasks.no AND tasks.in_row IS NULL AND events.seq > $2::bigint
                ORDER BY events.seq LIMIT $3::bigint) AS later) AS page
        WHERE page.bytes_before < $4::bigint) AS packs ON true
    WHERE tasks.no = $1 ORDER BY packs.seq";

pub(super) async fn find(
    db: &Connections,
    parties: &Parties,
    owner: &Owner,
    agent: Option<&AgentId>,
    task: &TaskId,
) -> Result<Option<TaskRow>, StoreError> {
    let row = match agent {
        Some(agent) => {
            let Some(party) = parties.find(db, owner, agent).await? else { return Ok(None) };
            db.query_opt(FIND, &[&task.as_str(), &party]).await?
        }
        None => db.query_opt(FIND_ANYWHERE, &[&task.as_str(), &owner.as_key().as_bytes()]).await?,
    };
    row.map(|row| whole(&row, task_row)).transpose()
}

pub(super) async fn find_of_all(
    db: &Connections,
    damages: &DamageLog,
    agent: Option<&AgentId>,
    task: &TaskId,
    limit: usize,
) -> Result<Vec<TaskRow>, StoreError> {
    let agent = agent.map(AgentId::as_str);
    let rows = db.query(FIND_OF_ALL, &[&task.as_str(), &agent, &rows::limit(limit)]).await?;
    Ok(readable(&rows, damages, task_row))
}

pub(super) async fn tasks_of(
    db: &Connections,
    damages: &DamageLog,
    owner: &Owner,
    after: Option<&(TaskId, AgentId)>,
    limit: usize,
) -> Result<Vec<TaskRow>, StoreError> {
    // No id is empty.
    let (task, agent) = after.map_or(("", ""), |(task, agent)| (task.as_str(), agent.as_str()));
    let rows = db.query(TASKS_OF, &[&owner.as_key().as_bytes(), &task, &agent, &rows::limit(limit)]).await?;
    Ok(readable(&rows, damages, task_row))
}

pub(super) async fn find_by_key(
    db: &Connections,
    parties: &Parties,
    owner: &Owner,
    agent: &AgentId,
    key: &IdempotencyKey,
) -> Result<Option<TaskRow>, StoreError> {
    let Some(party) = parties.find(db, owner, agent).await? else { return Ok(None) };
    let row = db.query_opt(FIND_BY_KEY, &[&party, &key.as_str()]).await?;
    row.map(|row| whole(&row, task_row)).transpose()
}

pub(super) async fn waiting(
    db: &Connections,
    parties: &Parties,
    damages: &DamageLog,
    owner: &Owner,
    agent: &AgentId,
    context: &ContextId,
) -> Result<Vec<TaskRow>, StoreError> {
    let Some(party) = parties.find(db, owner, agent).await? else { return Ok(Vec::new()) };
    let rows = db.query(WAITING, &[&context.as_str(), &party]).await?;
    Ok(readable(&rows, damages, task_row))
}

pub(super) async fn waiting_since(
    db: &Connections,
    damages: &DamageLog,
    before: Timestamp,
    limit: usize,
) -> Result<Vec<TaskRow>, StoreError> {
    let rows = db.query(WAITING_SINCE, &[&before.as_millis(), &rows::limit(limit)]).await?;
    Ok(readable(&rows, damages, task_row))
}

pub(super) async fn load(db: &Connections, damages: &DamageLog, no: TaskNo) -> Result<Option<Task>, StoreError> {
    match by_number(db, no).await? {
        Some(task) => fold(db, damages, task, Wanted::Yes).await,
        None => Ok(None),
    }
}

pub(super) async fn get(
    db: &Connections,
    parties: &Parties,
    damages: &DamageLog,
    owner: &Owner,
    agent: Option<&AgentId>,
    task: &TaskId,
) -> Result<Option<Task>, StoreError> {
    let row = match agent {
        Some(agent) => {
            let Some(party) = parties.find(db, owner, agent).await? else { return Ok(None) };
            db.query_opt(BY_ID, &[&task.as_str(), &party]).await?
        }
        None => db.query_opt(BY_ID_ANYWHERE, &[&task.as_str(), &owner.as_key().as_bytes()]).await?,
    };
    let Some(row) = row else { return Ok(None) };
    fold(db, damages, whole(&row, task_record)?, Wanted::Yes).await
}

async fn by_number(db: &Connections, no: TaskNo) -> Result<Option<TaskRecord>, StoreError> {
    let Some(no) = rows::number(no.0) else { return Ok(None) };
    let row = db.query_opt(BY_NUMBER, &[&no]).await?;
    row.map(|row| whole(&row, task_record)).transpose()
}

/// So many packs are read at once, of all tasks together.
const PACKS_AT_ONCE: usize = 64;

/// So many tasks are read at once.
pub(super) const TASKS_AT_ONCE: usize = 8;

/// Reads a task. A damaged task is shown as failed; `None`: not even its row is left.
async fn fold(
    db: &Connections,
    damages: &DamageLog,
    task: TaskRecord,
    artifacts: Wanted,
) -> Result<Option<Task>, StoreError> {
    Ok(fold_all(db, damages, &[task], artifacts).await?.pop().flatten())
}

/// Reads several tasks, in their order, with one statement for all whose logs are not in their rows.
pub(super) async fn fold_all(
    db: &Connections,
    damages: &DamageLog,
    tasks: &[TaskRecord],
    artifacts: Wanted,
) -> Result<Vec<Option<Task>>, StoreError> {
    let unread: Vec<&TaskRecord> = tasks.iter().filter(|task| task.log.all.is_none()).collect();
    let mut from_logs = fold_logs(db, &unread, SnapshotUse::Use, artifacts).await?.into_iter();
    let mut folded = Vec::with_capacity(tasks.len());
    for task in tasks {
        let read = match fold_from_row(task, artifacts) {
            Some(read) => read,
            None => match from_logs.next().unwrap_or_else(|| Err(no_body())) {
                // The damage may be in the snapshot.
                Err(_) => fold_logs(db, &[task], SnapshotUse::Ignore, artifacts).await?.remove(0),
                read => read,
            },
        };
        folded.push(match read {
            Ok(whole) => Some(whole),
            Err(damage) => show_damaged(db, damages, task, &damage).await?,
        });
    }
    Ok(folded)
}

async fn show_damaged(
    db: &Connections,
    damages: &DamageLog,
    task: &TaskRecord,
    damage: &Damage,
) -> Result<Option<Task>, StoreError> {
    let Some(row) = row_of(db, task.no).await? else { return Ok(None) };
    damages.report(task.no, task.id.as_str(), damage);
    Ok(Some(damaged_task(row, damage)))
}

async fn row_of(db: &Connections, no: TaskNo) -> Result<Option<TaskRow>, StoreError> {
    let Some(no) = rows::number(no.0) else { return Ok(None) };
    let row = db.query_opt(ROW, &[&no]).await?;
    row.map(|row| whole(&row, task_row)).transpose()
}

/// Folds a log that is completely in the row; `None`: it is not.
pub(super) fn fold_from_row(task: &TaskRecord, artifacts: Wanted) -> Option<Result<Task, Damage>> {
    let last = task.log.all?;
    let mut fold = unborn(task);
    let taken = take_pack(&mut fold, last, task.log.head.as_deref().unwrap_or_default(), artifacts);
    Some(taken.and_then(|()| fold.finish()))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SnapshotUse {
    Use,
    Ignore,
}

/// Folds the logs of tasks, in their order.
async fn fold_logs(
    db: &Connections,
    tasks: &[&TaskRecord],
    snapshot_use: SnapshotUse,
    artifacts: Wanted,
) -> Result<Vec<Result<Task, Damage>>, StoreError> {
    if tasks.is_empty() {
        return Ok(Vec::new());
    }
    let numbers: Vec<i64> = tasks.iter().map(|task| task.no.0 as i64).collect();
    let packs = PACKS_AT_ONCE.div_ceil(tasks.len());
    let use_snapshots = snapshot_use == SnapshotUse::Use;
    let with_artifacts = artifacts == Wanted::Yes;
    let rows = db.query(LOGS, &[&numbers, &use_snapshots, &with_artifacts, &rows::limit(packs)]).await?;
    let mut of_tasks: HashMap<i64, Vec<&Row>> = HashMap::new();
    for row in &rows {
        of_tasks.entry(row.get(0)).or_default().push(row);
    }
    let mut folded = Vec::with_capacity(tasks.len());
    for (task, no) in tasks.iter().zip(numbers) {
        let mut log = LogFold { fold: unborn(task), artifacts, last: 0, packs: 0 };
        let mut read = Ok(());
        for row in of_tasks.remove(&no).unwrap_or_default() {
            read = read.and_then(|()| log.take(row, 1));
        }
        while read.is_ok() && log.packs == packs {
            log.packs = 0;
            let more = db.query(EVENTS, &[&no, &(log.last as i64), &rows::limit(packs), &i64::MAX]).await?;
            if more.is_empty() {
                read = Err(Damage("it was deleted meanwhile".into()));
            }
            for row in more.iter().filter(|row| !matches!(row.try_get::<_, Option<i64>>(2), Ok(None))) {
                read = read.and_then(|()| log.take_pack(row, 2));
            }
        }
        folded.push(read.and_then(|()| log.fold.finish()));
    }
    Ok(folded)
}

/// A log that is folded while it is read.
struct LogFold {
    fold: Fold,
    artifacts: Wanted,
    /// The last event of the packs so far.
    last: Seq,
    packs: usize,
}

impl LogFold {
    /// Takes a snapshot or a pack: kind, number, body and artifacts, beginning with this column.
    fn take(&mut self, row: &Row, first: usize) -> Result<(), Damage> {
        if value::<i16>(row, first)? == 1 {
            return self.take_pack(row, first + 1);
        }
        self.fold = Fold::resume(value(row, first + 2)?, value(row, first + 3)?)?;
        Ok(())
    }

    fn take_pack(&mut self, row: &Row, first: usize) -> Result<(), Damage> {
        self.last = value::<i64>(row, first)? as Seq;
        self.packs += 1;
        take_pack(&mut self.fold, self.last, value(row, first + 1)?, self.artifacts)
    }
}

fn unborn(task: &TaskRecord) -> Fold {
    Fold::new(task.id.clone(), task.birth.clone())
}

fn take_pack(fold: &mut Fold, last: Seq, pack: &[u8], artifacts: Wanted) -> Result<(), Damage> {
    match artifacts {
        Wanted::Yes => fold.take_pack(last, pack),
        Wanted::No => fold.take_pack_without_artifacts(last, pack),
    }
}

fn no_body() -> Damage {
    Damage("one of its rows has no valid body".into())
}

/// Folds a task up to one of its events. `None` if its log ends before it, or is gone.
pub(super) async fn load_at(db: &Connections, no: TaskNo, event: Seq) -> Result<Option<Task>, StoreError> {
    let Some(until) = rows::number(event).filter(|event| *event > 0) else { return Ok(None) };
    let Some(task) = by_number(db, no).await? else { return Ok(None) };
    let read = match task.log.all {
        Some(last) => {
            let mut fold = unborn(&task);
            let events = unpack(last, task.log.head.as_deref().unwrap_or_default());
            events.and_then(|events| fold.take_until(event, events)).and_then(|()| fold.finish())
        }
        None => {
            let rows = db.query(LOG_UNTIL, &[&(no.0 as i64), &until]).await?;
            let (mut fold, mut read, mut reaches) = (unborn(&task), Ok(()), false);
            for row in &rows {
                let last = row.get::<_, i64>(1) as Seq;
                reaches |= last >= event;
                read = read.and_then(|()| {
                    if value::<i16>(row, 0)? == 0 {
                        fold = Fold::resume(value(row, 2)?, value(row, 3)?)?;
                        return Ok(());
                    }
                    fold.take_until(event, unpack(last, value(row, 2)?)?)
                });
            }
            if !reaches {
                return Ok(None);
            }
            read.and_then(|()| fold.finish())
        }
    };
    match read {
        Ok(task) => Ok(Some(task).filter(|task| task.seq == event)),
        Err(damage) => Err(StoreError::Damaged { task: task.id, reason: damage.0 }),
    }
}

pub(super) async fn events(
    db: &Connections,
    damages: &DamageLog,
    no: TaskNo,
    after: Seq,
    limit: usize,
) -> Result<Vec<Recorded>, StoreError> {
    let (Some(number), Some(after_event)) = (rows::number(no.0), rows::number(after)) else { return Ok(Vec::new()) };
    let rows = db.query(EVENTS, &[&number, &after_event, &rows::limit(limit), &(EVENT_BYTES as i64)]).await?;
    let mut page = EventPage { events: Vec::new(), after };
    let damage = page.read(db, number, &rows, limit).await?;
    if let Some(damage) = damage {
        let Some(TaskRow { task, .. }) = row_of(db, no).await? else { return Ok(Vec::new()) };
        damages.report(no, task.as_str(), &damage);
        // The events before the damage are returned first; the next call gets the error.
        if page.events.is_empty() {
            return Err(StoreError::Damaged { task, reason: damage.0 });
        }
    }
    page.events.truncate(limit);
    Ok(page.events)
}

struct EventPage {
    events: Vec<Recorded>,
    after: Seq,
}

impl EventPage {
    /// Fills the page as far as the log can be read. Returns the damage that ended it.
    async fn read(
        &mut self,
        db: &Connections,
        no: i64,
        rows: &[Row],
        limit: usize,
    ) -> Result<Option<Damage>, StoreError> {
        for row in rows {
            let (last, pack) = match pack_of(row, self.after) {
                Ok(Some(pack)) => pack,
                Ok(None) => break,
                Err(damage) => return Ok(Some(damage)),
            };
            if self.events.len() >= limit {
                break;
            }
            let (events, damage) = match unpack(last, pack) {
                Ok(events) => (events, None),
                Err(damage) => (unpack_readable(first_of_pack(db, no, last).await?..=last, pack), Some(damage)),
            };
            let damage = self.extend(last, events).err().or(damage);
            if damage.is_some() {
                return Ok(damage);
            }
        }
        Ok(None)
    }

    /// Adds the events of a pack. The cursor may be in the middle of it.
    fn extend(&mut self, last: Seq, events: Vec<Recorded>) -> Result<(), Damage> {
        let expected = self.events.last().map_or(self.after, |event| event.seq) + 1;
        let mut events = events.into_iter().filter(|event| event.seq > self.after).peekable();
        if events.peek().is_some_and(|event| event.seq != expected) {
            return Err(incomplete(last));
        }
        self.events.extend(events);
        Ok(())
    }
}

/// A row of `EVENTS`: the number of its last event, and the pack. `None`: there are no events behind `after`.
fn pack_of(row: &Row, after: Seq) -> Result<Option<(Seq, &[u8])>, Damage> {
    if let Some(last) = value::<Option<i64>>(row, 0)? {
        let last = last as Seq;
        if last <= after {
            return Ok(None);
        }
        let log: Option<&[u8]> = value(row, 1)?;
        return Ok(Some((last, log.ok_or_else(no_body)?)));
    }
    match value::<Option<i64>>(row, 2)? {
        Some(last) => Ok(Some((last as Seq, value(row, 3)?))),
        None => Ok(None),
    }
}

/// The number of the first event in the pack that ends with `last`, computed from the previous pack.
async fn first_of_pack(db: &Connections, no: i64, last: Seq) -> Result<Seq, StoreError> {
    let sql = "SELECT coalesce(max(seq), 0) FROM events WHERE no = $1 AND seq < $2";
    let row = db.query_opt(sql, &[&no, &(last as i64)]).await?;
    Ok(row.map_or(0, |row| row.get::<_, i64>(0)) as Seq + 1)
}

/// The tasks of a context with the latest activity, in order of creation.
#[expect(clippy::too_many_arguments, reason = "those of the interface, and where to read")]
pub(super) async fn conversation(
    db: &Connections,
    parties: &Parties,
    damages: &DamageLog,
    owner: &Owner,
    agent: &AgentId,
    context: &ContextId,
    limit: usize,
    max_bytes: usize,
) -> Result<Vec<Task>, StoreError> {
    let Some(party) = parties.find(db, owner, agent).await? else { return Ok(Vec::new()) };
    let rows = db.query(CONVERSATION, &[&context.as_str(), &party, &rows::limit(limit)]).await?;
    let found = readable(&rows, damages, task_record);
    let (mut tasks, mut budget) = (Vec::new(), PageBudget::new(max_bytes));
    'page: for found in found.chunks(TASKS_AT_ONCE) {
        for (record, task) in found.iter().zip(fold_all(db, damages, found, Wanted::Yes).await?) {
            let Some(task) = task else { continue };
            if !budget.takes(&task) {
                break 'page;
            }
            tasks.push((record.no, task));
        }
    }
    tasks.sort_by_key(|(no, _)| *no);
    Ok(tasks.into_iter().map(|(_, task)| task).collect())
}

pub(super) async fn agent_state(
    db: &Connections,
    parties: &Parties,
    owner: &Owner,
    agent: &AgentId,
    context: &ContextId,
) -> Result<Option<String>, StoreError> {
    let Some(party) = parties.find(db, owner, agent).await? else { return Ok(None) };
    let sql = "SELECT state FROM agent_state WHERE party = $1 AND context = $2";
    db.query_opt(sql, &[&party, &context.as_str()]).await?.map(state_text).transpose()
}

pub(super) async fn task_state(db: &Connections, no: TaskNo) -> Result<Option<String>, StoreError> {
    let Some(no) = rows::number(no.0) else { return Ok(None) };
    db.query_opt("SELECT state FROM task_state WHERE no = $1", &[&no]).await?.map(state_text).transpose()
}

fn state_text(row: Row) -> Result<String, StoreError> {
    String::from_utf8(row.get(0)).map_err(|error| StoreError::Failed(error.into()))
}

pub(super) async fn inbox(db: &Connections, no: TaskNo) -> Result<Vec<Message>, StoreError> {
    let Some(no) = rows::number(no.0) else { return Ok(Vec::new()) };
    let rows = db.query("SELECT body FROM inbox WHERE no = $1 ORDER BY place", &[&no]).await?;
    let messages = rows.iter().map(|row| inbox_message(row, 0));
    messages.collect::<Result<_, Damage>>().map_err(|damage| StoreError::Failed(damage.0.into()))
}

fn inbox_message(row: &Row, column: usize) -> Result<Message, Damage> {
    decode(value(row, column)?).map_err(unreadable_message)
}

pub(super) async fn unfinished(db: &Connections, damages: &DamageLog) -> Result<Vec<UnfinishedTask>, StoreError> {
    let rows = db.query(UNFINISHED, &[]).await?;
    unfinished_of(db, damages, readable(&rows, damages, task_row)).await
}

/// Adds inboxes and controls to the rows of tasks, and sorts these by number.
pub(super) async fn unfinished_of(
    db: &Connections,
    damages: &DamageLog,
    mut rows: Vec<TaskRow>,
) -> Result<Vec<UnfinishedTask>, StoreError> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    rows.sort_by_key(|row| row.no);
    let numbers: Vec<i64> = rows.iter().map(|row| row.no.0 as i64).collect();
    let pending = |row| UnfinishedTask { row, inbox: Vec::new(), cancel_requested: false, attempts: 0, damage: None };
    let mut pending: Vec<UnfinishedTask> = rows.into_iter().map(pending).collect();
    let inboxes = db.query("SELECT no, body FROM inbox WHERE no = ANY($1) ORDER BY no, place", &[&numbers]).await?;
    for row in &inboxes {
        let Some(task) = find_by_number(&mut pending, row) else { continue };
        match inbox_message(row, 1) {
            Ok(message) => task.inbox.push(message),
            Err(damage) => {
                damages.report(task.row.no, task.row.task.as_str(), &damage);
                task.damage = Some(damage.0);
            }
        }
    }
    let controls = "SELECT no, cancel_requested, attempts FROM controls WHERE no = ANY($1)";
    for row in &db.query(controls, &[&numbers]).await? {
        let Some(task) = find_by_number(&mut pending, row) else { continue };
        task.cancel_requested = row.get(1);
        task.attempts = row.get::<_, i32>(2).unsigned_abs();
    }
    Ok(pending)
}

/// Finds a task in a list that is sorted by number, by the first column of a row.
fn find_by_number<'t>(pending: &'t mut [UnfinishedTask], row: &Row) -> Option<&'t mut UnfinishedTask> {
    let no = rows::task_no(row).ok()?;
    let place = pending.binary_search_by_key(&no, |pending| pending.row.no).ok()?;
    pending.get_mut(place)
}
