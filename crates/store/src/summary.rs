//! What operators see of the tasks of all owners: summaries page by page, and counts.
//!
//! A summary has what the row of a list shows. Stores read it from the task's row (`head`), so it costs the same however
//! long the log and however large the artifacts are. Only a row that has no head any more makes a store read the log.

use std::sync::Arc;

use sabir_model::{AgentId, ContextId, Cursor, Message, Owner, State, Status, Task, TaskId, Timestamp};

use crate::TaskRow;
use crate::page::of_message;

/// Which tasks, in the order of `Query`. Every filter that is left out takes all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SummaryQuery {
    pub states: Option<Vec<State>>,
    pub owner: Option<Owner>,
    pub agent: Option<AgentId>,
    pub context: Option<ContextId>,
    /// Only tasks with a status time at or after this.
    pub since: Option<Timestamp>,
    /// Only tasks with a status time before this.
    pub before: Option<Timestamp>,
    /// Only tasks with this id.
    pub id: Option<TaskId>,
    /// Only tasks whose id begins with this.
    pub id_prefix: Option<String>,
    /// If more tasks than this have the prefix, whatever the other filters say, the store finds none (`too_many`): it would
    /// have to read them all to put them in order. Not for a query with a context or an id.
    pub most_with_prefix: usize,
    /// Only tasks after this place of the order.
    pub from: Option<Cursor>,
    pub limit: usize,
    /// The page ends before the task with which it would have more than about this many bytes. It has at least one
    /// task.
    pub max_bytes: usize,
}

impl SummaryQuery {
    /// Every task, in one page.
    pub fn all() -> Self {
        Self {
            states: None,
            owner: None,
            agent: None,
            context: None,
            since: None,
            before: None,
            id: None,
            id_prefix: None,
            most_with_prefix: usize::MAX,
            from: None,
            limit: usize::MAX,
            max_bytes: usize::MAX,
        }
    }

    /// Whether a task passes all filters, wherever its place in the order is.
    pub fn matches(&self, row: &TaskRow) -> bool {
        self.states.as_ref().is_none_or(|states| states.contains(&row.state))
            && self.owner.as_ref().is_none_or(|owner| row.owner == *owner)
            && self.agent.as_ref().is_none_or(|agent| row.agent == *agent)
            && self.context.as_ref().is_none_or(|context| row.context == *context)
            && self.since.is_none_or(|since| row.time >= since)
            && self.before.is_none_or(|before| row.time < before)
            && self.id.as_ref().is_none_or(|id| row.task == *id)
            && self.id_prefix.as_ref().is_none_or(|prefix| row.task.as_str().starts_with(prefix.as_str()))
    }

    /// The prefix, if a store must not look for it before it knows how many tasks have it.
    pub(crate) fn limited_prefix(&self) -> Option<&str> {
        let is_limited = self.most_with_prefix < usize::MAX && self.context.is_none() && self.id.is_none();
        self.id_prefix.as_deref().filter(|_| is_limited)
    }

    /// The ids with the prefix are those from it up to this one. `None`: all that follow have the prefix.
    pub(crate) fn end_of_prefix(&self) -> Option<String> {
        let mut letters: Vec<char> = self.id_prefix.as_deref().unwrap_or_default().chars().collect();
        while let Some(last) = letters.pop() {
            if let Some(next) = (u32::from(last) + 1..=u32::from(char::MAX)).find_map(char::from_u32) {
                letters.push(next);
                return Some(letters.into_iter().collect());
            }
        }
        None
    }
}

/// A page of summaries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SummaryPage {
    pub tasks: Vec<TaskSummary>,
    /// Whether more tasks follow.
    pub more: bool,
    /// More tasks have the prefix of the query than it allows, so the page is empty.
    pub too_many: bool,
}

impl SummaryPage {
    pub(crate) fn of_too_many() -> Self {
        Self { too_many: true, ..Self::default() }
    }
}

/// A task as the row of a list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskSummary {
    pub row: TaskRow,
    pub status: Status,
    /// The message that made the task; `None`: it cannot be read any more.
    pub first_message: Option<Arc<Message>>,
    /// The name of the node that owns the task, where several servers share the store.
    pub node: Option<Arc<str>>,
}

impl TaskSummary {
    /// The place in the order of the list.
    pub fn cursor(&self) -> Cursor {
        Cursor {
            time: self.row.time,
            task: self.row.task.clone(),
            agent: self.row.agent.clone(),
            number: Some(self.row.no.0),
        }
    }

    pub(crate) fn new(row: TaskRow, task: Task, first_message: Option<Arc<Message>>, node: Option<Arc<str>>) -> Self {
        Self { row, status: task.status, first_message, node }
    }

    fn weight(&self) -> usize {
        [&self.status.message, &self.first_message].into_iter().flatten().map(|message| of_message(message)).sum()
    }
}

/// Ends a page by its bytes. Returns whether the task fits into it; the first always does.
pub(crate) fn take(page: &mut SummaryPage, left: &mut usize, summary: TaskSummary) -> bool {
    let rest = left.checked_sub(summary.weight());
    if rest.is_none() && !page.tasks.is_empty() {
        page.more = true;
        return false;
    }
    *left = rest.unwrap_or(0);
    page.tasks.push(summary);
    true
}

/// How many tasks of an agent are in a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskCount {
    pub agent: AgentId,
    pub state: State,
    pub count: u64,
}

/// What is known of the store as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreFacts {
    /// What it takes on the disk, or in memory.
    pub bytes: u64,
    /// The number of its format; `None`: it has none.
    pub format: Option<u32>,
}

/// How many deliveries there are of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeliveryCounts {
    pub pending: u64,
    pub given_up: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ids_with_a_prefix_end_before_the_next_one() {
        for (prefix, expected) in [
            ("abc", Some("abd")),
            ("a\u{d7ff}", Some("a\u{e000}")),
            ("a\u{10ffff}", Some("b")),
            ("\u{10ffff}", None),
            ("", None),
        ] {
            let query = SummaryQuery { id_prefix: Some(prefix.to_owned()), ..SummaryQuery::all() };
            assert_eq!(query.end_of_prefix().as_deref(), expected, "{prefix}");
        }
    }
}
