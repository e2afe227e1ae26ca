//! Lists with tasks of several owners: everybody's, for an admin, or those that wait for an approver.
//!
//! The indexes begin with the owner, since callers list their own tasks and every append pays for an index. So such a list
//! looks at each owner once: the newest place of each is read from an index, and the places are merged. A page of n tasks
//! costs one look-up for each owner and agent, and n more.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use rusqlite::{Connection, OptionalExtension, params_from_iter};
use sabir_model::{AgentId, Cursor, Owner, State, TaskId, Timestamp, Wanted};

use crate::damage::DamageLog;
use crate::page::{PageBudget, cut, trim};
use crate::{Listing, Others, Query, StoreError, TaskNo};

use super::list::{IndexScan, own_agents, total};
use super::reader::{by_number, fold, readable};
use super::rows::{self, state_code, task_record, task_record_columns};

pub(super) fn list_of_owners(conn: &Connection, damages: &DamageLog, query: &Query) -> Result<Listing, StoreError> {
    let (sources, mut total) = sources(conn, query)?;
    let mut merged = Merge::new(conn, sources);
    if let Others::ForApproval(scopes) = &query.others {
        let pending = awaiting_approval(conn, damages, query, scopes)?;
        total += pending.len() as u64;
        let is_after = |place: &Place| query.from.as_ref().is_none_or(|from| place.is_after(from));
        merged.heap.extend(pending.into_iter().filter(is_after).map(|place| Next { place, source: None }));
    }
    let mut numbers = merged.first(query.from.as_ref(), query.limit)?;
    let more = cut(&mut numbers, query.limit);
    let mut listing = Listing { tasks: Vec::new(), more, total, last: None };
    let mut budget = PageBudget::new(query.max_bytes);
    for no in numbers {
        let found = match by_number(conn, no) {
            // As in other lists, a row that cannot be read is left out.
            Err(StoreError::Damaged { .. }) => continue,
            found => found?,
        };
        let Some(found) = found else { continue };
        let Some(mut task) = fold(conn, damages, found, query.artifacts)? else { continue };
        trim(&mut task, query);
        if !budget.takes(&task) {
            listing.more = true;
            break;
        }
        listing.tasks.push(task);
        listing.last = Some(no);
    }
    Ok(listing)
}

/// The tasks of one owner that are listed, of one agent or in one context.
pub(super) struct Source {
    pub query: Query,
    pub agent: Option<AgentId>,
    /// Only tasks with a status time before this.
    pub before: Option<Timestamp>,
}

impl Source {
    fn scan(&self) -> IndexScan {
        let mut scan = match &self.agent {
            None => IndexScan::through_context(&self.query),
            Some(agent) => IndexScan::through_agent(&self.query, agent, self.query.state),
        };
        if let Some(before) = self.before {
            scan.and("time < ?", before.as_millis());
        }
        scan
    }
}

/// All sources of a list, and how many of their tasks match.
fn sources(conn: &Connection, query: &Query) -> Result<(Vec<Source>, u64), StoreError> {
    let own = |owner: Owner| Query { owner, others: Others::None, ..query.clone() };
    let (mut owners, mut counted) = (vec![own(query.owner.clone())], None);
    let mut sources = Vec::new();
    if query.others == Others::All {
        (owners, counted) = (all_owners(conn, query)?.into_iter().map(own).collect(), count_all(conn, query)?);
    }
    let mut sum = 0;
    for query in owners {
        let agents = own_agents(conn, &query)?;
        if counted.is_none() {
            sum += total(conn, &query, &agents)?;
        }
        match query.context {
            Some(_) => sources.push(Source { query, agent: None, before: None }),
            None => sources.extend(agents.into_iter().map(|agent| Source {
                query: query.clone(),
                agent: Some(agent),
                before: None,
            })),
        }
    }
    Ok((sources, counted.unwrap_or(sum)))
}

fn all_owners(conn: &Connection, query: &Query) -> Result<Vec<Owner>, StoreError> {
    let mut select = conn.prepare_cached(OWNERS)?;
    let (agent, state) = (query.agent.as_ref().map(AgentId::as_str), query.state.map(state_code));
    let owners = select.query_map((agent, state), |row| Ok(Owner::from_key(row.get_ref(0)?.as_str()?)))?;
    Ok(owners.collect::<Result<_, _>>()?)
}

/// The owners that have a task which may match.
pub(super) const OWNERS: &str = "SELECT DISTINCT owner FROM tallies
    WHERE n > 0 AND (?1 IS NULL OR agent = ?1) AND (?2 IS NULL OR state = ?2)";

/// The total by the counters; `None`: a filter needs more than these have.
fn count_all(conn: &Connection, query: &Query) -> Result<Option<u64>, StoreError> {
    if query.context.is_some() || query.since.is_some() {
        return Ok(None);
    }
    let mut sum = conn.prepare_cached(
        "SELECT coalesce(sum(n), 0) FROM tallies WHERE (?1 IS NULL OR agent = ?1) AND (?2 IS NULL OR state = ?2)",
    )?;
    let (agent, state) = (query.agent.as_ref().map(AgentId::as_str), query.state.map(state_code));
    let sum: i64 = sum.query_row((agent, state), |row| row.get(0))?;
    Ok(Some(u64::try_from(sum).unwrap_or(0)))
}

/// The tasks that wait for an approver and are not listed as the owner's own. Reads every task that waits, which are few
/// among all.
fn awaiting_approval(
    conn: &Connection,
    damages: &DamageLog,
    query: &Query,
    scopes: &[(AgentId, String)],
) -> Result<Vec<Place>, StoreError> {
    let mut select = conn.prepare_cached(AWAITING)?;
    let mut rows = select.query(())?;
    let is_wanted = |agent: &AgentId| {
        query.agent.as_ref().is_none_or(|named| named == agent) && scopes.iter().any(|(known, _)| known == agent)
    };
    let found = readable(&mut rows, damages, |row| {
        let agent = rows::agent(row, 2)?;
        let is_own = rows::owner(row, 1)? == query.owner && query.lists_own(&agent);
        Ok(if is_wanted(&agent) && !is_own { Some(task_record(row)?) } else { None })
    })?;
    let mut places = Vec::new();
    for found in found.into_iter().flatten() {
        let no = found.no;
        let Some(task) = fold(conn, damages, found, Wanted::No)? else { continue };
        let matches = query.context.as_ref().is_none_or(|context| task.context == *context)
            && query.state.is_none_or(|state: State| task.status.state == state)
            && query.since.is_none_or(|since| task.status.time >= since)
            && query.awaits_approval(&task);
        if matches {
            places.push(Place { time: task.status.time, task: task.id, agent: task.agent, no });
        }
    }
    Ok(places)
}

pub(super) const AWAITING: &str = concat!(
    "SELECT ",
    task_record_columns!(),
    " FROM tasks INDEXED BY tasks_waiting WHERE state IN (2, 3) ORDER BY time DESC"
);

/// The place of a task in the order of the list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub time: Timestamp,
    pub task: TaskId,
    pub agent: AgentId,
    pub no: TaskNo,
}

impl Place {
    pub fn is_after(&self, from: &Cursor) -> bool {
        let number = from.number.map_or(TaskNo(0), TaskNo);
        (self.time, &self.task, &self.agent, self.no) < (from.time, &from.task, &from.agent, number)
    }
}

/// The next task of a source; `None`: it comes from none.
#[derive(PartialEq, Eq)]
struct Next {
    place: Place,
    source: Option<usize>,
}

impl Ord for Next {
    fn cmp(&self, other: &Self) -> Ordering {
        self.place.cmp(&other.place)
    }
}

impl PartialOrd for Next {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Merges the sources in the order of the list.
pub(super) struct Merge<'c> {
    conn: &'c Connection,
    sources: Vec<Source>,
    heap: BinaryHeap<Next>,
}

impl<'c> Merge<'c> {
    pub fn new(conn: &'c Connection, sources: Vec<Source>) -> Self {
        Self { conn, sources, heap: BinaryHeap::new() }
    }

    /// The numbers of the first tasks after the cursor, and of one more than wanted if more follow.
    pub fn first(&mut self, from: Option<&Cursor>, limit: usize) -> Result<Vec<TaskNo>, StoreError> {
        for source in 0..self.sources.len() {
            self.read(source, from)?;
        }
        let mut numbers = Vec::new();
        while numbers.len() <= limit
            && let Some(place) = self.next()?
        {
            numbers.push(place.no);
        }
        Ok(numbers)
    }

    fn next(&mut self) -> Result<Option<Place>, StoreError> {
        let Some(Next { place, source }) = self.heap.pop() else { return Ok(None) };
        if let Some(source) = source {
            let Place { time, task, agent, no } = place.clone();
            self.read(source, Some(&Cursor { time, task, agent, number: Some(no.0) }))?;
        }
        Ok(Some(place))
    }

    /// Reads the first place of a source after the cursor.
    fn read(&mut self, source: usize, from: Option<&Cursor>) -> Result<(), StoreError> {
        let scan = self.sources[source].scan().select("no, time, agent, id", from, 0);
        let mut select = self.conn.prepare_cached(&scan.sql)?;
        let place = select.query_row(params_from_iter(scan.params), |row| {
            let time = Timestamp::from_millis(row.get(1)?);
            Ok((rows::task_no(row), time, rows::agent(row, 2), rows::task_id(row)))
        });
        // A row whose ids cannot be read ends its source: there is no place behind it to go on from.
        if let Some((Ok(no), time, Ok(agent), Ok(task))) = place.optional()? {
            self.heap.push(Next { place: Place { time, task, agent, no }, source: Some(source) });
        }
        Ok(())
    }
}
