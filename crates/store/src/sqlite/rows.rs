//! Rows of the `tasks` table as values.

use rusqlite::Row;
use sabir_model::{AgentId, Birth, ContextId, InvalidId, Owner, State, TaskBirth, TaskId, Timestamp};

use crate::{StoreError, TaskNo, TaskRow};

use super::key;

/// How a state is stored. The numbers are part of the file's format, and its indexes lean on their order.
pub(super) fn code(state: State) -> i64 {
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

pub(super) fn state(stored: i64) -> Result<State, StoreError> {
    State::ALL.into_iter().find(|state| code(*state) == stored).ok_or_else(|| damaged("state"))
}

/// What `task_row` reads. The last event is the highest key of the task's range.
macro_rules! task_columns {
    () => {
        "no, owner, agent, id, context, born, state, time, turn_over, created,
         (SELECT key FROM events WHERE key > (no << 28) AND key < ((no + 1) << 28) ORDER BY key DESC LIMIT 1)"
    };
}
pub(super) use task_columns;

pub(super) fn task_row(row: &Row<'_>) -> Result<TaskRow, StoreError> {
    let last: Option<i64> = row.get(10)?;
    Ok(TaskRow {
        no: task_no(row, 0)?,
        owner: owner(row, 1)?,
        agent: agent(row, 2)?,
        task: id(row, 3, |text| TaskId::parse(text))?,
        context: context(row, 4)?,
        born: Birth(row.get(5)?),
        state: state(row.get(6)?)?,
        time: time(row, 7)?,
        turn_over: row.get(8)?,
        created: time(row, 9)?,
        seq: key::seq(last.ok_or_else(|| damaged("event"))?),
    })
}

/// A task that is about to be folded.
pub(super) struct Found {
    pub no: TaskNo,
    pub id: TaskId,
    pub time: Timestamp,
    pub birth: TaskBirth,
}

/// What `found` reads.
macro_rules! found_columns {
    () => {
        "no, owner, agent, id, context, born, time"
    };
}
pub(super) use found_columns;

pub(super) fn found(row: &Row<'_>) -> Result<Found, StoreError> {
    Ok(Found {
        no: task_no(row, 0)?,
        id: id(row, 3, |text| TaskId::parse(text))?,
        time: time(row, 6)?,
        birth: TaskBirth {
            context: context(row, 4)?,
            agent: agent(row, 2)?,
            owner: owner(row, 1)?,
            born: Birth(row.get(5)?),
        },
    })
}

pub(super) fn task_no(row: &Row<'_>, column: usize) -> Result<TaskNo, StoreError> {
    let no: i64 = row.get(column)?;
    Ok(TaskNo(u64::try_from(no).map_err(|_| damaged("number"))?))
}

pub(super) fn owner(row: &Row<'_>, column: usize) -> Result<Owner, StoreError> {
    Ok(Owner::from_key(text(row, column)?))
}

pub(super) fn agent(row: &Row<'_>, column: usize) -> Result<AgentId, StoreError> {
    id(row, column, |text| AgentId::parse(text))
}

pub(super) fn context(row: &Row<'_>, column: usize) -> Result<ContextId, StoreError> {
    id(row, column, |text| ContextId::parse(text))
}

pub(super) fn time(row: &Row<'_>, column: usize) -> Result<Timestamp, StoreError> {
    Ok(Timestamp::from_millis(row.get(column)?))
}

pub(super) fn id<T>(
    row: &Row<'_>,
    column: usize,
    parse: impl FnOnce(&str) -> Result<T, InvalidId>,
) -> Result<T, StoreError> {
    parse(text(row, column)?).map_err(|error| StoreError::Failed(error.into()))
}

fn text<'r>(row: &'r Row<'_>, column: usize) -> Result<&'r str, StoreError> {
    row.get_ref(column)?.as_str().map_err(|error| StoreError::Failed(error.into()))
}

fn damaged(what: &str) -> StoreError {
    StoreError::Failed(format!("a task has no valid {what} in the store").into())
}
