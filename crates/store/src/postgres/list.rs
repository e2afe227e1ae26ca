//! Lists: one page of tasks, and the total.
//!
//! One statement reads both, so they are of the same moment. It scans an index that has the order of the list, once for each
//! party (an owner and an agent), so a page costs the same among ten tasks and among a million. First it reads the place of
//! the newest task of each party: a page of n tasks comes from the n parties with the newest places, so only those are read
//! further. Totals come from the counters, unless a filter needs more than these have. Which parties are listed, and tasks that
//! wait for an approver, is in `list_of_owners`.

use sabir_model::{AgentId, State, Task, TaskId, Timestamp, Wanted};
use tokio_postgres::types::ToSql;

use crate::damage::DamageLog;
use crate::head::Head;
use crate::page::{PageBudget, cut, trim};
use crate::{Listing, Others, Query, StoreError, TaskNo};

use super::connections::Connections;
use super::list_of_owners::{self, ListedParty};
use super::parties::Parties;
use super::reader::{TASKS_AT_ONCE, fold_all, fold_from_row};
use super::rows::{self, TaskRecord, readable, state_code, task_record, task_record_columns};

pub(super) async fn list(
    db: &Connections,
    parties: &Parties,
    damages: &DamageLog,
    query: &Query,
) -> Result<Listing, StoreError> {
    let listed = list_of_owners::listed_parties(db, parties, query).await?;
    let PageRows { mut tasks, mut total } = page_rows(db, damages, query, &listed).await?;
    if let Others::ForApproval(scopes) = &query.others {
        let waiting = list_of_owners::awaiting_approval(db, parties, damages, query, scopes).await?;
        total += waiting.len() as u64;
        tasks.extend(waiting.into_iter().filter(|task| is_after_cursor(task, query)));
        tasks.sort_by(|a, b| order_of(b).cmp(&order_of(a)));
    }
    let more = cut(&mut tasks, query.limit);
    let mut listing = Listing { tasks: Vec::with_capacity(tasks.len()), more, total, last: None };
    let mut budget = PageBudget::new(query.max_bytes);
    let mut rest = tasks.into_iter().map(|task| listed_task(task, query)).peekable();
    let mut batch = Vec::new();
    // Tasks that their rows do not show are read together, as far as no other task comes between them.
    while let Some(next) = rest.next() {
        let (numbers, shown) = match next {
            Listed::Shown(no, task) => (vec![no], vec![Some(*task)]),
            Listed::Unread(task) => {
                batch.push(task);
                while batch.len() < TASKS_AT_ONCE
                    && let Some(Listed::Unread(task)) = rest.next_if(|next| matches!(next, Listed::Unread(_)))
                {
                    batch.push(task);
                }
                let tasks = fold_all(db, damages, &batch, query.artifacts).await?;
                (batch.drain(..).map(|task| task.no).collect(), tasks)
            }
        };
        for (no, task) in numbers.into_iter().zip(shown) {
            let Some(mut task) = task else { continue };
            trim(&mut task, query);
            if !budget.takes(&task) {
                listing.more = true;
                return Ok(listing);
            }
            listing.tasks.push(task);
            listing.last = (query.others != Others::None).then_some(no);
        }
    }
    Ok(listing)
}

/// A task on a page.
enum Listed {
    /// Its row shows all that is wanted.
    Shown(TaskNo, Box<Task>),
    Unread(TaskRecord),
}

fn listed_task(task: TaskRecord, query: &Query) -> Listed {
    let shown = match query.artifacts {
        Wanted::No => shown_by_head(&task, query.history),
        // A damaged log is left to `fold_all`, which reports it.
        Wanted::Yes => fold_from_row(&task, Wanted::Yes).and_then(Result::ok),
    };
    match shown {
        Some(shown) => Listed::Shown(task.no, shown.into()),
        None => Listed::Unread(task),
    }
}

/// The task as its head shows it, if the head has as much of the history as is wanted.
pub(super) fn shown_by_head(task: &TaskRecord, history: Option<u32>) -> Option<Task> {
    let head = Head::read(task.id.clone(), task.birth.clone(), task.log.head.as_deref()?)?;
    head.with_history(history)
}

/// The place of a task in the order of the list.
fn order_of(task: &TaskRecord) -> (Timestamp, &TaskId, &AgentId, TaskNo) {
    (task.time, &task.id, &task.birth.agent, task.no)
}

fn is_after_cursor(task: &TaskRecord, query: &Query) -> bool {
    query.from.as_ref().is_none_or(|from| {
        let number = from.number.map_or(TaskNo(0), TaskNo);
        order_of(task) < (from.time, &from.task, &from.agent, number)
    })
}

/// The rows of a page in order, with one more than wanted if more follow, and the total.
struct PageRows {
    tasks: Vec<TaskRecord>,
    total: u64,
}

async fn page_rows(
    db: &Connections,
    damages: &DamageLog,
    query: &Query,
    listed: &[ListedParty],
) -> Result<PageRows, StoreError> {
    if listed.is_empty() {
        return Ok(PageRows { tasks: Vec::new(), total: 0 });
    }
    let numbers: Vec<i32> = listed.iter().map(|party| party.number).collect();
    let below: Vec<i64> = listed.iter().map(|party| party.below_at_cursor(query)).collect();
    let since = query.since.map_or(i64::MIN, Timestamp::as_millis);
    // Without a cursor, every task comes after it.
    let (time, task) = query.from.as_ref().map_or((i64::MAX, ""), |from| (from.time.as_millis(), from.task.as_str()));
    let state = query.state.map(state_code);
    let limit = rows::limit(query.limit).saturating_add(1);
    let context = query.context.as_ref().map(|context| context.as_str());
    let mut params: Vec<&(dyn ToSql + Sync)> = vec![&numbers, &below, &since, &time, &task, &limit, &state];
    if context.is_some() {
        params.push(&context);
    }
    let rows = db.query(statement(query), &params).await?;
    let total = rows.first().map_or(0, |row| row.get::<_, i64>(TOTAL));
    // The total is there even if no task is: then the other columns are empty.
    let is_task = |row: &&tokio_postgres::Row| !matches!(row.try_get::<_, Option<i64>>(0), Ok(None));
    let rows: Vec<tokio_postgres::Row> = match rows.first().filter(is_task) {
        Some(_) => rows,
        None => Vec::new(),
    };
    Ok(PageRows { tasks: readable(&rows, damages, task_record), total: u64::try_from(total).unwrap_or(0) })
}

/// The column of the total, behind those of `task_record_columns`.
const TOTAL: usize = 9;

fn statement(query: &Query) -> &'static str {
    match (&query.context, query.state, query.since) {
        (Some(_), _, _) => IN_CONTEXT,
        (None, None | Some(State::Completed), None) => BY_TIME,
        (None, None, Some(_)) => BY_TIME_SINCE,
        (None, Some(State::Completed), Some(_)) => COMPLETED_SINCE,
        (None, Some(_), None) => BY_STATE,
        (None, Some(_), Some(_)) => BY_STATE_SINCE,
    }
}

// The parameters: $1 the parties, $2 for each of them the number below which a task exactly at the cursor is listed, $3 the
// earliest time, $4 and $5 time and id of the cursor, $6 how many, $7 the state, $8 the context.

/// One page beside the total, which is there even if the page is empty. It begins with SELECT: a read is repeated when its
/// connection is lost.
macro_rules! page_and_total {
    ([$($total:tt)*] [$($page:tt)*]) => {
        concat!(
            "SELECT ",
            task_record_columns!(),
            ", total.n FROM (SELECT ",
            $($total)*,
            " AS n) AS total LEFT JOIN ((",
            $($page)*,
            ") AS page JOIN tasks ON tasks.no = page.no JOIN parties ON parties.no = tasks.party) ON true
              ORDER BY tasks.time DESC, tasks.id DESC, parties.agent DESC, tasks.no DESC"
        )
    };
}

/// The newest tasks of several parties, by an index of each party that has the order of the list.
macro_rules! newest {
    ($($filter:tt)*) => {
        concat!(
            "SELECT found.no FROM (
                SELECT listed.party, listed.below, parties.agent FROM unnest($1::int[], $2::bigint[]) AS listed(party, below)
                JOIN parties ON parties.no = listed.party
                CROSS JOIN LATERAL (",
            newest_of_party!($($filter)*),
            " LIMIT 1) AS first
                ORDER BY first.time DESC, first.id DESC, parties.agent DESC, first.no DESC LIMIT $6::bigint) AS listed
             CROSS JOIN LATERAL (",
            newest_of_party!($($filter)*),
            " LIMIT $6::bigint) AS found
             ORDER BY found.time DESC, found.id DESC, listed.agent DESC, found.no DESC LIMIT $6::bigint"
        )
    };
}

macro_rules! newest_of_party {
    ($($filter:tt)*) => {
        concat!(
            "SELECT tasks.no, tasks.time, tasks.id FROM tasks WHERE tasks.party = listed.party AND ",
            $($filter)*,
            " AND tasks.time >= $3::bigint AND ",
            after_cursor!(),
            " ORDER BY tasks.time DESC, tasks.id DESC"
        )
    };
}

/// The first condition is for the index. Of one party, at most one task is exactly at the cursor.
macro_rules! after_cursor {
    () => {
        "(tasks.time, tasks.id) <= ($4::bigint, $5::text)
         AND ((tasks.time, tasks.id) < ($4::bigint, $5::text) OR tasks.no < listed.below)"
    };
}

macro_rules! in_state {
    () => {
        "($7::smallint IS NULL OR tasks.state = $7::smallint)"
    };
}

/// The index has the last condition too, and is used only if the query repeats it.
macro_rules! not_completed {
    () => {
        "tasks.state = $7::smallint AND tasks.state <> 4"
    };
}

/// Contexts are small, so the other filters may look at each of their tasks.
macro_rules! newest_in_context {
    () => {
        concat!(
            "SELECT tasks.no FROM ",
            tasks_in_context!(),
            " AND ",
            after_cursor!(),
            " JOIN parties ON parties.no = tasks.party
              ORDER BY tasks.time DESC, tasks.id DESC, parties.agent DESC, tasks.no DESC LIMIT $6::bigint"
        )
    };
}

macro_rules! count_in_context {
    () => {
        concat!("(SELECT count(*) FROM ", tasks_in_context!(), ")")
    };
}

macro_rules! tasks_in_context {
    () => {
        concat!(
            "unnest($1::int[], $2::bigint[]) AS listed(party, below) JOIN tasks ON tasks.party = listed.party
             AND tasks.context = $8::text AND tasks.time >= $3::bigint AND ",
            in_state!()
        )
    };
}

/// Counts tasks one by one.
macro_rules! count_since {
    ($($filter:tt)*) => {
        concat!(
            "(SELECT count(*) FROM unnest($1::int[]) AS listed(party) JOIN tasks ON tasks.party = listed.party
              AND tasks.time >= $3::bigint AND ",
            $($filter)*,
            ")"
        )
    };
}

/// Reads a few rows for each party.
macro_rules! sum_of_counters {
    () => {
        "(SELECT coalesce(sum(tallies.n), 0)::bigint FROM tallies
          WHERE tallies.party = ANY($1::int[]) AND ($7::smallint IS NULL OR tallies.state = $7::smallint))"
    };
}

const BY_TIME: &str = page_and_total!([sum_of_counters!()][newest!(in_state!())]);
const BY_TIME_SINCE: &str = page_and_total!([count_since!("true")][newest!(in_state!())]);
/// No index has only completed tasks, but one has all others.
const COMPLETED_SINCE: &str = page_and_total!(
    [concat!(count_since!("true"), " - ", count_since!("tasks.state <> 4 AND tasks.state IN (0, 1, 2, 3, 5, 6, 7)"))]
        [newest!(in_state!())]
);
const BY_STATE: &str = page_and_total!([sum_of_counters!()][newest!(not_completed!())]);
const BY_STATE_SINCE: &str = page_and_total!([count_since!(not_completed!())][newest!(not_completed!())]);
const IN_CONTEXT: &str = page_and_total!([count_in_context!()][newest_in_context!()]);
