//! Decodes rows of the table `tasks`, joined with `parties`.
//!
//! The types of the columns are certain, but not their values: a text may be no id, and a code no state. Such a row is
//! damaged, and the damage concerns this task alone.

use std::borrow::Cow;
use std::time::SystemTime;

use sabir_model::{AgentId, Birth, ContextId, InvalidId, Owner, Seq, State, TaskBirth, TaskId, Timestamp};
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use crate::damage::{Damage, DamageLog};
use crate::head::RowLog;
use crate::{StoreError, TaskNo, TaskRow};

/// The code of a state. The codes are part of the format, and the indexes depend on their order.
pub(super) fn state_code(state: State) -> i16 {
    match state {
        State::Submitted => 0,
        State::Working => 1,
        State::InputRequired => 2,
        State::AuthRequired => 3,
        State::Completed => 4,
        State::Failed => 5,
        State::Canceled => 6,
        State::Rejected => 7,
    }
}

/// The number of the last event of a row of `tasks`. A task without events has a damaged log, but its row is valid.
macro_rules! last_seq {
    () => {
        "coalesce(tasks.in_row::bigint,
            (SELECT events.seq FROM events WHERE events.no = tasks.no ORDER BY events.seq DESC LIMIT 1), 0)"
    };
}
pub(super) use last_seq;

/// The columns that `task_row` reads, of the tables of `task_tables`. Others may follow them.
macro_rules! task_columns {
    () => {
        concat!(
            "tasks.no, parties.owner, parties.agent, tasks.id, tasks.context, tasks.born, tasks.state, tasks.time,
             tasks.turn_over, tasks.created, ",
            $crate::postgres::rows::last_seq!()
        )
    };
}
pub(super) use task_columns;

macro_rules! task_tables {
    () => {
        "tasks JOIN parties ON parties.no = tasks.party"
    };
}
pub(super) use task_tables;

pub(super) fn task_row(row: &Row) -> Result<TaskRow, Damage> {
    let code: i16 = value(row, 6)?;
    let state = State::ALL.into_iter().find(|state| state_code(*state) == code);
    let TaskBirth { context, agent, owner, born } = birth(row)?;
    Ok(TaskRow {
        no: task_no(row)?,
        owner,
        agent,
        task: task_id(row)?,
        context,
        born,
        state: state.ok_or_else(|| damaged("state"))?,
        time: time(row, 7)?,
        turn_over: value(row, 8)?,
        created: time(row, 9)?,
        seq: value::<i64>(row, 10)? as Seq,
    })
}

/// A task that is about to be read.
pub(super) struct TaskRecord {
    pub no: TaskNo,
    pub id: TaskId,
    pub time: Timestamp,
    pub birth: TaskBirth,
    pub log: RowLog,
}

/// The columns that `task_record` reads. Others may follow them.
macro_rules! task_record_columns {
    () => {
        "tasks.no, parties.owner, parties.agent, tasks.id, tasks.context, tasks.born, tasks.time, tasks.in_row, tasks.head"
    };
}
pub(super) use task_record_columns;

pub(super) fn task_record(row: &Row) -> Result<TaskRecord, Damage> {
    let all: Option<i32> = value(row, 7)?;
    Ok(TaskRecord {
        no: task_no(row)?,
        id: task_id(row)?,
        time: time(row, 6)?,
        birth: birth(row)?,
        log: RowLog { head: value(row, 8)?, all: all.map(|all| all as Seq) },
    })
}

/// Decodes the rows; those that are damaged are logged and left out.
pub(super) fn readable<T>(rows: &[Row], damages: &DamageLog, read: impl Fn(&Row) -> Result<T, Damage>) -> Vec<T> {
    let mut list = Vec::with_capacity(rows.len());
    for row in rows {
        match read(row) {
            Ok(item) => list.push(item),
            Err(damage) => {
                let no = task_no(row).unwrap_or(TaskNo(0));
                let task = task_id(row).map_or_else(|_| "unknown".into(), |task| task.to_string());
                damages.report(no, &task, &damage);
            }
        }
    }
    list
}

/// Decodes the row of a lookup, where damage is an error.
pub(super) fn whole<T>(row: &Row, read: impl Fn(&Row) -> Result<T, Damage>) -> Result<T, StoreError> {
    read(row).map_err(|Damage(reason)| match task_id(row) {
        Ok(task) => StoreError::Damaged { task, reason },
        Err(_) => StoreError::Failed(reason.into()),
    })
}

/// The task number, which is the first column of every list.
pub(super) fn task_no(row: &Row) -> Result<TaskNo, Damage> {
    Ok(TaskNo(u64::try_from(value::<i64>(row, 0)?).map_err(|_| damaged("number"))?))
}

/// The task id, which is the fourth column of every list.
pub(super) fn task_id(row: &Row) -> Result<TaskId, Damage> {
    id(row, 3, |text| TaskId::parse(text))
}

/// Owner, agent, context and dialect, in the columns that rows and records share.
fn birth(row: &Row) -> Result<TaskBirth, Damage> {
    Ok(TaskBirth {
        context: id(row, 4, |text| ContextId::parse(text))?,
        agent: id(row, 2, |text| AgentId::parse(text))?,
        owner: owner(value(row, 1)?)?,
        born: dialect(row, 5)?,
    })
}

pub(super) fn owner(key: &[u8]) -> Result<Owner, Damage> {
    str::from_utf8(key).map(Owner::from_key).map_err(|_| damaged("owner"))
}

pub(super) fn dialect(row: &Row, column: usize) -> Result<Birth, Damage> {
    u8::try_from(value::<i16>(row, column)?).map(Birth).map_err(|_| damaged("dialect"))
}

pub(super) fn time(row: &Row, column: usize) -> Result<Timestamp, Damage> {
    Ok(Timestamp::from_millis(value(row, column)?))
}

pub(super) fn id<T>(row: &Row, column: usize, parse: impl FnOnce(&str) -> Result<T, InvalidId>) -> Result<T, Damage> {
    parse(value(row, column)?).map_err(|error| Damage(error.to_string()))
}

pub(super) fn value<'r, T: FromSql<'r>>(row: &'r Row, column: usize) -> Result<T, Damage> {
    row.try_get(column).map_err(|error| Damage(error.to_string()))
}

/// The number as the database has it. `None`: no task has this number.
pub(super) fn number(number: u64) -> Option<i64> {
    i64::try_from(number).ok()
}

/// The time by the clock of this node, in milliseconds since 1970.
pub(super) fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// How many rows at most.
pub(super) fn limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// A text as the database can store it: without NUL.
pub(super) fn without_nul(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { text.replace('\0', "\u{fffd}").into() } else { text.into() }
}

fn damaged(what: &str) -> Damage {
    Damage(format!("its row has no valid {what}"))
}
