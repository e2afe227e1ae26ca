//! Lists: one page of tasks, and the total.
//!
//! Every list scans an index that has the order of the list, so a page costs the same among ten tasks and among a
//! million. There is one scan for each agent of the owner, and the results are merged. Totals come from the counters,
//! unless a filter needs more than these have. Lists with tasks of several owners are in `list_of_owners`.

use rusqlite::types::Value;
use rusqlite::{Connection, Row, params_from_iter};
use sabir_model::{AgentId, Cursor, State, Task, TaskId, Timestamp, Wanted};

use crate::damage::DamageLog;
use crate::head::Head;
use crate::page::{PageBudget, cut, trim};
use crate::{Listing, Others, Query, StoreError};

use super::failure::ReadError;
use super::list_of_owners::list_of_owners;
use super::reader::{self, QuickRead, fold, readable};
use super::recent_heads::RecentHeads;
use super::rows::{self, TaskRecord, state_code, task_record_columns};

pub(super) fn list(
    conn: &mut Connection,
    damages: &DamageLog,
    heads: &RecentHeads,
    query: &Query,
) -> Result<Listing, StoreError> {
    // One transaction, so that the total and the page are of the same moment.
    let tx = conn.transaction()?;
    if query.others != Others::None {
        return list_of_owners(&tx, damages, query);
    }
    let mut page = PageBuilder::new(page_rows(&tx, damages, heads, query)?, heads, query);
    while let Some(found) = page.next_unread() {
        let Some(mut task) = fold(&tx, damages, found, query.artifacts)? else { continue };
        trim(&mut task, query);
        page.take(task);
    }
    Ok(page.listing)
}

/// The same for a page of a few short tasks without counting; `None`: it is more than that.
pub(super) fn quick_list(
    conn: &mut Connection,
    damages: &DamageLog,
    heads: &RecentHeads,
    query: &Query,
) -> Result<Option<Listing>, StoreError> {
    if query.limit > SHORT_PAGE || query.context.is_some() || query.since.is_some() || query.others != Others::None {
        return Ok(None);
    }
    let tx = conn.transaction()?;
    let mut page = PageBuilder::new(page_rows(&tx, damages, heads, query)?, heads, query);
    let mut bytes = 0;
    while let Some(found) = page.next_unread() {
        match reader::quick_read(&tx, found, PAGE_BYTES.saturating_sub(bytes), query.artifacts)? {
            QuickRead::Whole(mut task, size) => {
                bytes += size;
                trim(&mut task, query);
                page.take(task);
            }
            QuickRead::TooLong(_) => return Ok(None),
        }
    }
    Ok(Some(page.listing))
}

const SHORT_PAGE: usize = 100;
const PAGE_BYTES: usize = 128 << 10;

/// A page that is filled task by task.
struct PageBuilder<'q> {
    rest: std::vec::IntoIter<Listed>,
    heads: &'q RecentHeads,
    query: &'q Query,
    budget: PageBudget,
    listing: Listing,
}

impl<'q> PageBuilder<'q> {
    fn new(PageRows { tasks, more, total }: PageRows, heads: &'q RecentHeads, query: &'q Query) -> Self {
        let listing = Listing { tasks: Vec::with_capacity(tasks.len()), more, total, last: None };
        Self { rest: tasks.into_iter(), heads, query, budget: PageBudget::new(query.max_bytes), listing }
    }

    /// Adds all tasks that their heads show completely. Returns the next one that must be read from its log.
    fn next_unread(&mut self) -> Option<TaskRecord> {
        loop {
            match self.rest.next()? {
                Listed::Shown(task) => self.take(task),
                Listed::Unread(found) => {
                    let head = found.log.head.as_deref().filter(|_| self.query.artifacts == Wanted::No);
                    let kept = head.and_then(|head| self.heads.task(&found.head_row(head), self.query.history));
                    let kept = kept.map(|task| owned(task, self.query));
                    match kept.or_else(|| shown(&found, head, self.heads, self.query)) {
                        Some(task) => self.take(task),
                        None => return Some(found),
                    }
                }
            }
        }
    }

    fn take(&mut self, task: Task) {
        if self.budget.takes(&task) {
            self.listing.tasks.push(task);
        } else {
            self.listing.more = true;
            self.rest = Vec::new().into_iter();
        }
    }
}

/// A task on a page.
enum Listed {
    /// Its head shows all that is wanted.
    Shown(Task),
    Unread(TaskRecord),
}

/// Reads a row of a page in place: mostly the head shows all that is wanted.
fn listed(row: &Row<'_>, heads: &RecentHeads, query: &Query, agent: Option<&AgentId>) -> Result<Listed, ReadError> {
    let head = rows::head(row)?.filter(|_| query.artifacts == Wanted::No);
    if let Some(head) = head
        && heads.was_read(rows::task_no(row)?)
        && let Some(task) = heads.task(&rows::head_row(row, head)?, query.history)
    {
        return Ok(Listed::Shown(owned(task, query)));
    }
    let mut found = rows::task_without_log(row, Some(&query.owner), agent)?;
    if let Some(task) = shown(&found, head, heads, query) {
        return Ok(Listed::Shown(task));
    }
    found.log = rows::row_log(row)?;
    Ok(Listed::Unread(found))
}

/// A task may have got its owner after its head was read.
fn owned(task: Task, query: &Query) -> Task {
    Task { owner: query.owner.clone(), ..task }
}

/// Reads a row that may be on the page. With several agents most rows are not, so the head is parsed later.
fn found_on_page(row: &Row<'_>, query: &Query, agent: Option<&AgentId>) -> Result<TaskRecord, ReadError> {
    Ok(TaskRecord { log: rows::row_log(row)?, ..rows::task_without_log(row, Some(&query.owner), agent)? })
}

/// The task as its head shows it, if the head has all that is wanted.
fn shown(found: &TaskRecord, bytes: Option<&[u8]>, heads: &RecentHeads, query: &Query) -> Option<Task> {
    let bytes = bytes?;
    let mut head = Head::read(found.id.clone(), found.birth.clone(), bytes)?;
    head.task.seq = 0;
    heads.offer(found.no, bytes, &head);
    head.with_history(query.history)
}

/// The rows of a page.
struct PageRows {
    tasks: Vec<Listed>,
    more: bool,
    total: u64,
}

fn page_rows(
    conn: &Connection,
    damages: &DamageLog,
    heads: &RecentHeads,
    query: &Query,
) -> Result<PageRows, StoreError> {
    let agents = own_agents(conn, query)?;
    let scans: Vec<IndexScan> = match query.context {
        Some(_) => vec![IndexScan::through_context(query)],
        None => agents.iter().map(|agent| IndexScan::through_agent(query, agent, query.state)).collect(),
    };
    let mut tasks = Vec::new();
    if scans.len() == 1 {
        for scan in scans {
            tasks = scan.page(conn, damages, query, |row, agent| listed(row, heads, query, agent))?;
        }
    } else {
        let mut found = Vec::new();
        for scan in scans {
            found.extend(scan.page(conn, damages, query, |row, agent| found_on_page(row, query, agent))?);
        }
        found.sort_by(|a, b| order_of(b).cmp(&order_of(a)));
        tasks.extend(found.into_iter().map(Listed::Unread));
    }
    let more = cut(&mut tasks, query.limit);
    Ok(PageRows { tasks, more, total: total(conn, query, &agents)? })
}

fn order_of(task: &TaskRecord) -> (Timestamp, &TaskId, &AgentId) {
    (task.time, &task.id, &task.birth.agent)
}

/// The agents of which the owner's tasks are listed.
pub(super) fn own_agents(conn: &Connection, query: &Query) -> Result<Vec<AgentId>, StoreError> {
    if let Some(agent) = &query.agent {
        return Ok(Some(agent).filter(|agent| query.lists_own(agent)).into_iter().cloned().collect());
    }
    let mut select = conn.prepare_cached(AGENTS)?;
    let mut rows = select.query((query.owner.as_key(),))?;
    let mut agents = Vec::new();
    while let Some(row) = rows.next()? {
        match rows::agent(row, 0) {
            Ok(agent) if query.lists_own(&agent) => agents.push(agent),
            Ok(_) => {}
            Err(ReadError::Store(error)) => return Err(error),
            // The tasks of this agent are damaged too, and none of them can be shown.
            Err(ReadError::Damaged(_)) => {}
        }
    }
    Ok(agents)
}

pub(super) const AGENTS: &str = "SELECT DISTINCT agent FROM tallies WHERE owner = ?1 AND n > 0";

/// How many of the owner's tasks match.
pub(super) fn total(conn: &Connection, query: &Query, agents: &[AgentId]) -> Result<u64, StoreError> {
    if query.context.is_some() {
        return IndexScan::through_context(query).count(conn);
    }
    if query.since.is_none() {
        if query.own_agents.is_none() {
            return sum_counts(conn, query, query.agent.as_ref());
        }
        return agents.iter().map(|agent| sum_counts(conn, query, Some(agent))).sum();
    }
    let count = |agent, state| IndexScan::through_agent(query, agent, state).count(conn);
    let mut total = 0;
    for agent in agents {
        match query.state {
            // No index has only completed tasks, but one has all others.
            Some(State::Completed) => {
                total += count(agent, None)?;
                for state in State::ALL.into_iter().filter(|state| *state != State::Completed) {
                    total -= count(agent, Some(state))?;
                }
            }
            state => total += count(agent, state)?,
        }
    }
    Ok(total)
}

fn sum_counts(conn: &Connection, query: &Query, agent: Option<&AgentId>) -> Result<u64, StoreError> {
    let mut sum = conn.prepare_cached(SUM_COUNTS)?;
    let state = query.state.map(state_code);
    let agent = agent.map(AgentId::as_str);
    let sum: i64 = sum.query_row((query.owner.as_key(), agent, state), |row| row.get(0))?;
    Ok(u64::try_from(sum).unwrap_or(0))
}

/// Reads a few rows for each agent of the owner.
pub(super) const SUM_COUNTS: &str = "SELECT coalesce(sum(n), 0) FROM tallies
    WHERE owner = ?1 AND (?2 IS NULL OR agent = ?2) AND (?3 IS NULL OR state = ?3)";

/// A scan of one index, with filters.
pub(super) struct IndexScan {
    /// The agent of all rows; `None`: of several agents.
    agent: Option<AgentId>,
    pub(super) sql: String,
    pub(super) params: Vec<Value>,
}

impl IndexScan {
    /// Contexts are small, so the other filters may look at each row.
    pub(super) fn through_context(query: &Query) -> Self {
        let mut scan = IndexScan::new("INDEXED BY tasks_context WHERE owner = ?", query.owner.as_key());
        if let Some(context) = &query.context {
            scan.and("context = ?", context.as_str().to_owned());
        }
        if let Some(agent) = &query.agent {
            scan.and("agent = ?", agent.as_str().to_owned());
        }
        if let Some(agents) = &query.own_agents {
            scan.and_agent_in(agents);
        }
        if let Some(state) = query.state {
            scan.and("state = ?", state_code(state));
        }
        scan.since(query)
    }

    pub(super) fn through_agent(query: &Query, agent: &AgentId, state: Option<State>) -> Self {
        let index = match state {
            None | Some(State::Completed) => "INDEXED BY tasks_time WHERE owner = ?",
            // The index has this condition too, and SQLite uses it only if the query repeats the condition.
            Some(_) => "INDEXED BY tasks_state WHERE state <> 4 AND owner = ?",
        };
        let mut scan = IndexScan::new(index, query.owner.as_key());
        scan.agent = Some(agent.clone());
        scan.and("agent = ?", agent.as_str().to_owned());
        if let Some(state) = state {
            scan.and("state = ?", state_code(state));
        }
        scan.since(query)
    }

    fn new(sql: &str, owner: &str) -> Self {
        Self { agent: None, sql: sql.into(), params: vec![owner.to_owned().into()] }
    }

    pub(super) fn and(&mut self, condition: &str, value: impl Into<Value>) {
        self.sql.push_str(" AND ");
        self.sql.push_str(condition);
        self.params.push(value.into());
    }

    fn and_agent_in(&mut self, agents: &[AgentId]) {
        let places = vec!["?"; agents.len()].join(", ");
        self.sql.push_str(&format!(" AND agent IN ({places})"));
        self.params.extend(agents.iter().map(|agent| Value::from(agent.as_str().to_owned())));
    }

    pub(super) fn since(mut self, query: &Query) -> Self {
        if let Some(since) = query.since {
            self.and("time >= ?", since.as_millis());
        }
        self
    }

    /// Reads the rows of a page. `read` gets the agent if all rows have the same.
    fn page<T>(
        self,
        conn: &Connection,
        damages: &DamageLog,
        query: &Query,
        read: impl Fn(&Row<'_>, Option<&AgentId>) -> Result<T, ReadError>,
    ) -> Result<Vec<T>, StoreError> {
        let IndexScan { agent, sql, params } = self.select_page(query);
        let mut select = conn.prepare_cached(&sql)?;
        let mut rows = select.query(params_from_iter(params))?;
        readable(&mut rows, damages, |row| read(row, agent.as_ref()))
    }

    fn count(self, conn: &Connection) -> Result<u64, StoreError> {
        let IndexScan { sql, params, .. } = self.select_count();
        let mut select = conn.prepare_cached(&sql)?;
        let count: i64 = select.query_row(params_from_iter(params), |row| row.get(0))?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    fn select_page(self, query: &Query) -> Self {
        self.select(task_record_columns!(), query.from.as_ref(), query.limit)
    }

    /// Selects the first rows after a place of the order, and one more than wanted, which shows whether more follow.
    pub(super) fn select(mut self, columns: &str, from: Option<&Cursor>, limit: usize) -> Self {
        if let Some(from) = from {
            // If all rows have the same agent, the agent only decides about the row at the cursor itself, and so does
            // the number, which matters only among several owners.
            let number = from.number.map(|number| i64::try_from(number).unwrap_or(i64::MAX));
            self.sql.push_str(match (&self.agent, number) {
                (None, None) => " AND (time, id, agent) < (?, ?, ?)",
                (None, Some(_)) => " AND (time, id, agent, no) < (?, ?, ?, ?)",
                (Some(agent), _) if *agent < from.agent => " AND (time, id) <= (?, ?)",
                (Some(agent), Some(_)) if *agent == from.agent => " AND (time, id, no) < (?, ?, ?)",
                (Some(_), _) => " AND (time, id) < (?, ?)",
            });
            self.params.push(from.time.as_millis().into());
            self.params.push(from.task.as_str().to_owned().into());
            if self.agent.is_none() {
                self.params.push(from.agent.as_str().to_owned().into());
            }
            let counts = self.agent.as_ref().is_none_or(|agent| *agent == from.agent);
            self.params.extend(number.filter(|_| counts).map(Value::from));
        }
        self.params.push(i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1).into());
        let scan = &self.sql;
        let sql = format!("SELECT {columns} FROM tasks {scan} ORDER BY time DESC, id DESC, agent DESC LIMIT ?");
        Self { sql, ..self }
    }

    fn select_count(self) -> Self {
        Self { sql: format!("SELECT count(*) FROM tasks {}", self.sql), ..self }
    }
}

/// All statements of a list, for the test of their query plans.
#[cfg(test)]
pub(super) fn sql(query: &Query, agent: &AgentId) -> [String; 2] {
    let scan = || match query.context {
        Some(_) => IndexScan::through_context(query),
        None => IndexScan::through_agent(query, agent, query.state),
    };
    [scan().select_page(query).sql, scan().select_count().sql]
}
