//! Lists: one page, and how many match in all.
//!
//! Every list walks an index that is in the list's order, so a page costs the same among ten tasks and
//! a million. There is one walk for each agent that the owner has tasks with, and the pages are merged.
//! Totals come from the tallies unless a filter asks for more than these know.

use rusqlite::types::Value;
use rusqlite::{Connection, Row, params_from_iter};
use sabir_model::{AgentId, State, Task, TaskId, Timestamp, Wanted};

use crate::damage::DamageLog;
use crate::head::Head;
use crate::page::{Room, cut, trim};
use crate::{Listing, Query, StoreError};

use super::failure::Unread;
use super::reader::{self, Glance, fold, readable};
use super::recent_heads::RecentHeads;
use super::rows::{self, Found, code, found_columns};

pub(super) fn list(
    conn: &mut Connection,
    damages: &DamageLog,
    heads: &RecentHeads,
    query: &Query,
) -> Result<Listing, StoreError> {
    // Total, page and folds are of one moment.
    let moment = conn.transaction()?;
    let mut page = Page::new(places(&moment, damages, heads, query)?, heads, query);
    while let Some(found) = page.next_unread() {
        let Some(mut task) = fold(&moment, damages, found, query.artifacts)? else { continue };
        trim(&mut task, query);
        page.take(task);
    }
    Ok(page.listing)
}

/// The same, if it is a matter of a few short tasks and no counting.
pub(super) fn glance(
    conn: &mut Connection,
    damages: &DamageLog,
    heads: &RecentHeads,
    query: &Query,
) -> Result<Option<Listing>, StoreError> {
    if query.limit > SHORT_PAGE || query.context.is_some() || query.since.is_some() {
        return Ok(None);
    }
    let moment = conn.transaction()?;
    let mut page = Page::new(places(&moment, damages, heads, query)?, heads, query);
    let mut bytes = 0;
    while let Some(found) = page.next_unread() {
        match reader::glance(&moment, found, PAGE_BYTES.saturating_sub(bytes), query.artifacts)? {
            Glance::Whole(mut task, size) => {
                bytes += size;
                trim(&mut task, query);
                page.take(task);
            }
            Glance::Unfinished(_) => return Ok(None),
        }
    }
    Ok(Some(page.listing))
}

const SHORT_PAGE: usize = 100;
const PAGE_BYTES: usize = 128 << 10;

/// A page that is filled task by task.
struct Page<'q> {
    rest: std::vec::IntoIter<Listed>,
    heads: &'q RecentHeads,
    query: &'q Query,
    room: Room,
    listing: Listing,
}

impl<'q> Page<'q> {
    fn new(Places { tasks, more, total }: Places, heads: &'q RecentHeads, query: &'q Query) -> Self {
        let listing = Listing { tasks: Vec::with_capacity(tasks.len()), more, total };
        Self { rest: tasks.into_iter(), heads, query, room: Room::new(query.max_bytes), listing }
    }

    /// Takes all that their rows show; the next one must be read from its log.
    fn next_unread(&mut self) -> Option<Found> {
        loop {
            match self.rest.next()? {
                Listed::Shown(task) => self.take(task),
                Listed::Found(found) => {
                    let head = found.log.head.as_deref().filter(|_| self.query.artifacts == Wanted::No);
                    let kept = head.and_then(|head| self.heads.task(&found.head_row(head), self.query.history));
                    match kept.or_else(|| shown(&found, head, self.heads, self.query)) {
                        Some(task) => self.take(task),
                        None => return Some(found),
                    }
                }
            }
        }
    }

    fn take(&mut self, task: Task) {
        if self.room.takes(&task) {
            self.listing.tasks.push(task);
        } else {
            self.listing.more = true;
            self.rest = Vec::new().into_iter();
        }
    }
}

/// A task of a page.
enum Listed {
    /// Its row shows all that is wanted.
    Shown(Task),
    Found(Found),
}

/// Reads a row that is on the page, where it lies: most rows show all that is wanted.
fn listed(row: &Row<'_>, heads: &RecentHeads, query: &Query, agent: Option<&AgentId>) -> Result<Listed, Unread> {
    let head = rows::head(row)?.filter(|_| query.artifacts == Wanted::No);
    if let Some(head) = head
        && heads.was_read(rows::task_no(row)?)
        && let Some(task) = heads.task(&rows::head_row(row, head)?, query.history)
    {
        return Ok(Listed::Shown(task));
    }
    let mut found = rows::named(row, Some(&query.owner), agent)?;
    if let Some(task) = shown(&found, head, heads, query) {
        return Ok(Listed::Shown(task));
    }
    found.log = rows::row_log(row)?;
    Ok(Listed::Found(found))
}

/// Reads a row that may be on the page. Of several agents most are not, so its head is for later.
fn found_on_page(row: &Row<'_>, query: &Query, agent: Option<&AgentId>) -> Result<Found, Unread> {
    Ok(Found { log: rows::row_log(row)?, ..rows::named(row, Some(&query.owner), agent)? })
}

/// The task as its head shows it, if that has all that is wanted.
fn shown(found: &Found, bytes: Option<&[u8]>, heads: &RecentHeads, query: &Query) -> Option<Task> {
    let bytes = bytes?;
    let mut head = Head::read(found.id.clone(), found.birth.clone(), bytes)?;
    head.task.seq = 0;
    heads.offer(found.no, bytes, &head);
    head.with_history(query.history)
}

/// Which tasks are on a page.
struct Places {
    tasks: Vec<Listed>,
    more: bool,
    total: u64,
}

fn places(conn: &Connection, damages: &DamageLog, heads: &RecentHeads, query: &Query) -> Result<Places, StoreError> {
    let agents = agents(conn, query)?;
    let walks: Vec<Walk> = match query.context {
        Some(_) => vec![Walk::through_context(query)],
        None => agents.iter().map(|agent| Walk::through_agent(query, agent, query.state)).collect(),
    };
    let mut tasks = Vec::new();
    if walks.len() == 1 {
        for walk in walks {
            tasks = walk.page(conn, damages, query, |row, agent| listed(row, heads, query, agent))?;
        }
    } else {
        let mut found = Vec::new();
        for walk in walks {
            found.extend(walk.page(conn, damages, query, |row, agent| found_on_page(row, query, agent))?);
        }
        found.sort_by(|a, b| place(b).cmp(&place(a)));
        tasks.extend(found.into_iter().map(Listed::Found));
    }
    let more = cut(&mut tasks, query.limit);
    Ok(Places { tasks, more, total: total(conn, query, &agents)? })
}

fn place(task: &Found) -> (Timestamp, &TaskId, &AgentId) {
    (task.time, &task.id, &task.birth.agent)
}

fn agents(conn: &Connection, query: &Query) -> Result<Vec<AgentId>, StoreError> {
    if let Some(agent) = &query.agent {
        return Ok(vec![agent.clone()]);
    }
    let mut select = conn.prepare_cached(AGENTS)?;
    let mut rows = select.query((query.owner.as_key(),))?;
    let mut agents = Vec::new();
    while let Some(row) = rows.next()? {
        match rows::agent(row, 0) {
            Ok(agent) => agents.push(agent),
            Err(Unread::Store(error)) => return Err(error),
            // Its tasks are damaged too, and none of them can be shown.
            Err(Unread::Damaged(_)) => {}
        }
    }
    Ok(agents)
}

pub(super) const AGENTS: &str = "SELECT DISTINCT agent FROM tallies WHERE owner = ?1 AND n > 0";

fn total(conn: &Connection, query: &Query, agents: &[AgentId]) -> Result<u64, StoreError> {
    if query.context.is_some() {
        return Walk::through_context(query).count(conn);
    }
    if query.since.is_none() {
        return tally(conn, query);
    }
    let count = |agent, state| Walk::through_agent(query, agent, state).count(conn);
    let mut total = 0;
    for agent in agents {
        match query.state {
            // No index has the completed ones alone, but all of the others.
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

fn tally(conn: &Connection, query: &Query) -> Result<u64, StoreError> {
    let mut sum = conn.prepare_cached(TALLY)?;
    let state = query.state.map(code);
    let agent = query.agent.as_ref().map(AgentId::as_str);
    let sum: i64 = sum.query_row((query.owner.as_key(), agent, state), |row| row.get(0))?;
    Ok(u64::try_from(sum).unwrap_or(0))
}

/// A few rows for each agent of the owner.
pub(super) const TALLY: &str = "SELECT coalesce(sum(n), 0) FROM tallies
    WHERE owner = ?1 AND (?2 IS NULL OR agent = ?2) AND (?3 IS NULL OR state = ?3)";

/// One way through one index, with what filters it.
struct Walk {
    /// Whose tasks are met on it; `None`: anybody's.
    agent: Option<AgentId>,
    sql: String,
    params: Vec<Value>,
}

impl Walk {
    /// Contexts are small; other filters look at their rows.
    fn through_context(query: &Query) -> Self {
        let mut walk = Walk::new("INDEXED BY tasks_context WHERE owner = ?", query.owner.as_key());
        if let Some(context) = &query.context {
            walk.and("context = ?", context.as_str().to_owned());
        }
        if let Some(agent) = &query.agent {
            walk.and("agent = ?", agent.as_str().to_owned());
        }
        if let Some(state) = query.state {
            walk.and("state = ?", code(state));
        }
        walk.since(query)
    }

    fn through_agent(query: &Query, agent: &AgentId, state: Option<State>) -> Self {
        let index = match state {
            None | Some(State::Completed) => "INDEXED BY tasks_time WHERE owner = ?",
            // The index has this condition too, and is used only where a query repeats it.
            Some(_) => "INDEXED BY tasks_state WHERE state <> 4 AND owner = ?",
        };
        let mut walk = Walk::new(index, query.owner.as_key());
        walk.agent = Some(agent.clone());
        walk.and("agent = ?", agent.as_str().to_owned());
        if let Some(state) = state {
            walk.and("state = ?", code(state));
        }
        walk.since(query)
    }

    fn new(sql: &str, owner: &str) -> Self {
        Self { agent: None, sql: sql.into(), params: vec![owner.to_owned().into()] }
    }

    fn and(&mut self, condition: &str, value: impl Into<Value>) {
        self.sql.push_str(" AND ");
        self.sql.push_str(condition);
        self.params.push(value.into());
    }

    fn since(mut self, query: &Query) -> Self {
        if let Some(since) = query.since {
            self.and("time >= ?", since.as_millis());
        }
        self
    }

    /// Reads the rows of a page, with the agent whose they all are, if it is one.
    fn page<T>(
        self,
        conn: &Connection,
        damages: &DamageLog,
        query: &Query,
        read: impl Fn(&Row<'_>, Option<&AgentId>) -> Result<T, Unread>,
    ) -> Result<Vec<T>, StoreError> {
        let Walk { agent, sql, params } = self.selecting_page(query);
        let mut select = conn.prepare_cached(&sql)?;
        let mut rows = select.query(params_from_iter(params))?;
        readable(&mut rows, damages, |row| read(row, agent.as_ref()))
    }

    fn count(self, conn: &Connection) -> Result<u64, StoreError> {
        let Walk { sql, params, .. } = self.selecting_count();
        let mut select = conn.prepare_cached(&sql)?;
        let count: i64 = select.query_row(params_from_iter(params), |row| row.get(0))?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    fn selecting_page(mut self, query: &Query) -> Self {
        if let Some(from) = &query.from {
            // Where the agent is the same for all, it decides only about the very place of the cursor.
            self.sql.push_str(match &self.agent {
                None => " AND (time, id, agent) < (?, ?, ?)",
                Some(agent) if *agent < from.agent => " AND (time, id) <= (?, ?)",
                Some(_) => " AND (time, id) < (?, ?)",
            });
            self.params.push(from.time.as_millis().into());
            self.params.push(from.task.as_str().to_owned().into());
            if self.agent.is_none() {
                self.params.push(from.agent.as_str().to_owned().into());
            }
        }
        // One more than asked for tells whether more follow.
        self.params.push(i64::try_from(query.limit).unwrap_or(i64::MAX).saturating_add(1).into());
        let (columns, walk) = (found_columns!(), &self.sql);
        let sql = format!("SELECT {columns} FROM tasks {walk} ORDER BY time DESC, id DESC, agent DESC LIMIT ?");
        Self { sql, ..self }
    }

    fn selecting_count(self) -> Self {
        Self { sql: format!("SELECT count(*) FROM tasks {}", self.sql), ..self }
    }
}

/// Every statement that a list may run on the tasks, for a look at how it is done.
#[cfg(test)]
pub(super) fn sql(query: &Query, agent: &AgentId) -> [String; 2] {
    let walk = || match query.context {
        Some(_) => Walk::through_context(query),
        None => Walk::through_agent(query, agent, query.state),
    };
    [walk().selecting_page(query).sql, walk().selecting_count().sql]
}
