//! Decodes rows of the table `tasks`.

use rusqlite::Row;
use sabir_model::{AgentId, Birth, ContextId, InvalidId, Owner, Seq, State, TaskBirth, TaskId, Timestamp};

use crate::damage::Damage;
use crate::head::RowLog;
use crate::{TaskNo, TaskRow};

use super::failure::ReadError;
use super::key;
use super::recent_heads::HeadRow;

/// The code of a state. The codes are part of the file's format, and its indexes depend on their order.
pub(crate) fn state_code(state: State) -> i64 {
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

pub(super) fn state(stored: i64) -> Result<State, ReadError> {
    State::ALL.into_iter().find(|state| state_code(*state) == stored).ok_or_else(|| damaged("state"))
}

/// The key of the last event if the log is not in the row: the highest of the task's range.
macro_rules! last_key {
    () => {
        "CASE WHEN in_row IS NULL THEN
           (SELECT key FROM events WHERE key > (no << 28) AND key < ((no + 1) << 28) ORDER BY key DESC LIMIT 1)
         END"
    };
}
pub(super) use last_key;

/// The columns that `task_row` reads.
macro_rules! task_columns {
    () => {
        concat!(
            "no, owner, agent, id, context, born, state, time, turn_over, created, in_row, ",
            super::rows::last_key!()
        )
    };
}
pub(super) use task_columns;

pub(super) fn task_row(row: &Row<'_>) -> Result<TaskRow, ReadError> {
    let (in_row, last): (Option<i64>, Option<i64>) = (row.get(10)?, row.get(11)?);
    Ok(TaskRow {
        no: task_no(row)?,
        owner: owner(row, 1)?,
        agent: agent(row, 2)?,
        task: task_id(row)?,
        context: context(row, 4)?,
        born: Birth(row.get(5)?),
        state: state(row.get(6)?)?,
        time: time(row, 7)?,
        turn_over: row.get(8)?,
        created: time(row, 9)?,
        // A task without events has a damaged log, but its row is valid.
        seq: in_row.map_or(last.map_or(0, key::seq), |all| all as Seq),
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

impl TaskRecord {
    pub fn head_row<'r>(&'r self, head: &'r [u8]) -> HeadRow<'r> {
        HeadRow { no: self.no, id: self.id.as_str(), born: self.birth.born, head }
    }
}

/// The columns that `task_record` reads.
macro_rules! task_record_columns {
    () => {
        "no, owner, agent, id, context, born, time, in_row, head"
    };
}
pub(super) use task_record_columns;

pub(super) fn task_record(row: &Row<'_>) -> Result<TaskRecord, ReadError> {
    Ok(TaskRecord { log: row_log(row)?, ..task_without_log(row, None, None)? })
}

/// The same without the log. If the owner and the agent are mostly known, their ids are shared instead of allocated
/// again.
pub(super) fn task_without_log(
    row: &Row<'_>,
    known_owner: Option<&Owner>,
    known_agent: Option<&AgentId>,
) -> Result<TaskRecord, ReadError> {
    Ok(TaskRecord {
        no: task_no(row)?,
        id: task_id(row)?,
        time: time(row, 6)?,
        birth: TaskBirth {
            context: context(row, 4)?,
            agent: match known_agent {
                Some(known_agent) if known_agent.as_str() == text(row, 2)? => known_agent.clone(),
                _ => agent(row, 2)?,
            },
            owner: match known_owner {
                Some(known_owner) if known_owner.as_key() == text(row, 1)? => known_owner.clone(),
                _ => owner(row, 1)?,
            },
            born: Birth(row.get(5)?),
        },
        log: RowLog::default(),
    })
}

pub(super) fn row_log(row: &Row<'_>) -> Result<RowLog, ReadError> {
    let all: Option<i64> = row.get(7)?;
    Ok(RowLog { head: head(row)?.map(<[u8]>::to_vec), all: all.map(|all| all as Seq) })
}

/// A head that is not a blob is ignored.
pub(super) fn head<'r>(row: &'r Row<'_>) -> Result<Option<&'r [u8]>, ReadError> {
    Ok(row.get_ref(8)?.as_blob_or_null().unwrap_or(None))
}

/// The values that tell whether a cached head belongs to this row.
pub(super) fn head_row<'r>(row: &'r Row<'_>, head: &'r [u8]) -> Result<HeadRow<'r>, ReadError> {
    Ok(HeadRow { no: task_no(row)?, id: text(row, 3)?, born: Birth(row.get(5)?), head })
}

/// The task number, which is the first column of every list.
pub(super) fn task_no(row: &Row<'_>) -> Result<TaskNo, ReadError> {
    let no: i64 = row.get(0)?;
    Ok(TaskNo(u64::try_from(no).map_err(|_| damaged("number"))?))
}

/// The task id, which is the fourth column of every list.
pub(super) fn task_id(row: &Row<'_>) -> Result<TaskId, ReadError> {
    id(row, 3, |text| TaskId::parse(text))
}

pub(super) fn owner(row: &Row<'_>, column: usize) -> Result<Owner, ReadError> {
    Ok(Owner::from_key(text(row, column)?))
}

pub(super) fn agent(row: &Row<'_>, column: usize) -> Result<AgentId, ReadError> {
    id(row, column, |text| AgentId::parse(text))
}

fn context(row: &Row<'_>, column: usize) -> Result<ContextId, ReadError> {
    id(row, column, |text| ContextId::parse(text))
}

fn time(row: &Row<'_>, column: usize) -> Result<Timestamp, ReadError> {
    Ok(Timestamp::from_millis(row.get(column)?))
}

pub(super) fn id<T>(
    row: &Row<'_>,
    column: usize,
    parse: impl FnOnce(&str) -> Result<T, InvalidId>,
) -> Result<T, ReadError> {
    parse(text(row, column)?).map_err(|error| Damage(error.to_string()).into())
}

fn text<'r>(row: &'r Row<'_>, column: usize) -> Result<&'r str, ReadError> {
    row.get_ref(column)?.as_str().map_err(|error| Damage(error.to_string()).into())
}

fn damaged(what: &str) -> ReadError {
    Damage(format!("its row has no valid {what}")).into()
}
