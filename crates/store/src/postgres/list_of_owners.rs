//! Whose tasks a list has: the owner's, everybody's for an admin, and those that wait for an approver.

use sabir_model::{AgentId, Cursor, Wanted};

use crate::damage::DamageLog;
use crate::{Others, Query, StoreError};

use super::connections::Connections;
use super::list::shown_by_head;
use super::parties::Parties;
use super::reader::{TASKS_AT_ONCE, fold_all};
use super::rows::{TaskRecord, readable, state_code, task_record, task_record_columns, task_tables};

/// A party whose tasks are listed.
pub(super) struct ListedParty {
    pub number: i32,
    pub agent: AgentId,
}

impl ListedParty {
    /// A task of this party with the time and the id of the cursor is listed if its number is below this.
    pub fn below_at_cursor(&self, query: &Query) -> i64 {
        below_at_cursor(&self.agent, query.from.as_ref())
    }
}

pub(super) fn below_at_cursor(agent: &AgentId, from: Option<&Cursor>) -> i64 {
    match from {
        None => i64::MAX,
        Some(from) if *agent < from.agent => i64::MAX,
        Some(from) if *agent > from.agent => i64::MIN,
        // Only the tasks of several owners need numbers to tell them apart.
        Some(from) => from.number.map_or(0, |number| i64::try_from(number).unwrap_or(i64::MAX)),
    }
}

/// The parties whose tasks are listed, without those that only wait for an approver.
pub(super) async fn listed_parties(
    db: &Connections,
    parties: &Parties,
    query: &Query,
) -> Result<Vec<ListedParty>, StoreError> {
    let is_wanted = |agent: &AgentId| query.agent.as_ref().is_none_or(|wanted| wanted == agent);
    if query.others == Others::All {
        let all = parties.all(db).await?.into_iter();
        let wanted = all.filter(|(_, _, agent)| is_wanted(agent));
        return Ok(wanted.map(|(number, _, agent)| ListedParty { number, agent }).collect());
    }
    if let Some(agent) = &query.agent {
        if !query.lists_own(agent) {
            return Ok(Vec::new());
        }
        let number = parties.find(db, &query.owner, agent).await?;
        return Ok(number.map(|number| ListedParty { number, agent: agent.clone() }).into_iter().collect());
    }
    let own = parties.of_owner(db, &query.owner).await?.into_iter().filter(|(_, agent)| query.lists_own(agent));
    Ok(own.map(|(number, agent)| ListedParty { number, agent }).collect())
}

/// Few tasks wait, among all.
const AWAITING: &str = concat!(
    "SELECT ",
    task_record_columns!(),
    " FROM ",
    task_tables!(),
    " WHERE tasks.state IN (2, 3) AND tasks.party = ANY($1::int[]) AND ($2::text IS NULL OR tasks.context = $2::text)
      AND ($3::smallint IS NULL OR tasks.state = $3::smallint) AND ($4::bigint IS NULL OR tasks.time >= $4::bigint)"
);

/// The tasks that match and wait for an approver, and are not listed as the owner's own.
pub(super) async fn awaiting_approval(
    db: &Connections,
    parties: &Parties,
    damages: &DamageLog,
    query: &Query,
    scopes: &[(AgentId, String)],
) -> Result<Vec<TaskRecord>, StoreError> {
    let mut others = parties.all(db).await?;
    others.retain(|(_, owner, agent)| {
        let is_own = *owner == query.owner && query.lists_own(agent);
        !is_own
            && owner.shares_tenant_with(&query.owner)
            && query.agent.as_ref().is_none_or(|wanted| wanted == agent)
            && scopes.iter().any(|(known, _)| known == agent)
    });
    let numbers: Vec<i32> = others.iter().map(|(number, _, _)| *number).collect();
    let context = query.context.as_ref().map(|context| context.as_str());
    let (state, since) = (query.state.map(state_code), query.since.map(|since| since.as_millis()));
    let rows = db.query(AWAITING, &[&numbers, &context, &state, &since]).await?;
    let (mut awaiting, mut unread) = (Vec::new(), Vec::new());
    for task in readable(&rows, damages, task_record) {
        match shown_by_head(&task, Some(0)) {
            Some(shown) if query.awaits_approval(&shown) => awaiting.push(task),
            Some(_) => {}
            None => unread.push(task),
        }
    }
    while !unread.is_empty() {
        let batch: Vec<TaskRecord> = unread.drain(..unread.len().min(TASKS_AT_ONCE)).collect();
        let tasks = fold_all(db, damages, &batch, Wanted::No).await?;
        let awaits = |task: &Option<_>| task.as_ref().is_some_and(|task| query.awaits_approval(task));
        awaiting.extend(batch.into_iter().zip(tasks).filter(|(_, task)| awaits(task)).map(|(record, _)| record));
    }
    Ok(awaiting)
}
