//! The audit log in the file: the writer's half and the readers' half.

use std::borrow::Cow;

use rusqlite::{Connection, Result, Row, params};
use sabir_model::{AgentId, Owner, TaskId, Timestamp};

use crate::audit::{MAX_LOOKS, TRIM_SLICE};
use crate::{
    AuditAction, AuditEntry, AuditPage, AuditQuery, AuditRecord, AuditRetention, AuditTrimmed, StoreError, TaskNo,
};

/// Gives out the numbers, from memory.
pub(super) struct AuditWriter {
    /// The highest number so far, also of the open transaction.
    last: u64,
    committed: u64,
}

impl AuditWriter {
    pub fn load(conn: &Connection) -> Result<Self> {
        let sql = "SELECT max((SELECT coalesce(max(number), 0) FROM audit),
                              (SELECT coalesce(max(deleted), 0) FROM audit_numbers))";
        let last = conn.query_row(sql, (), |row| row.get::<_, i64>(0))?.unsigned_abs();
        Ok(Self { last, committed: last })
    }

    pub fn insert(&mut self, conn: &Connection, entry: &AuditEntry, no: Option<TaskNo>) -> Result<()> {
        let mut insert = conn.prepare_cached(
            "INSERT INTO audit (number, time, caller, peer, action, agent, task, no, owner, refusal, detail)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        )?;
        insert.execute(params![
            (self.last + 1) as i64,
            entry.time.as_millis(),
            entry.caller.as_key(),
            entry.peer.map(|peer| peer.to_string()),
            entry.action.name(),
            entry.agent.as_ref().map(AgentId::as_str),
            entry.task.as_ref().map(TaskId::as_str),
            no,
            entry.owner.as_ref().map(Owner::as_key),
            entry.refusal,
            entry.detail,
        ])?;
        self.last += 1;
        Ok(())
    }

    /// Deletes one slice of the oldest entries.
    pub fn trim(&mut self, conn: &Connection, retention: AuditRetention) -> Result<AuditTrimmed> {
        let mut select = conn.prepare_cached("SELECT number, time FROM audit ORDER BY number LIMIT ?1")?;
        let oldest = select.query_map((TRIM_SLICE as i64 + 1,), |row| {
            // An entry without a readable time is not old.
            let time = row.get(1).unwrap_or(i64::MAX);
            Ok((row.get::<_, i64>(0)?.unsigned_abs(), Timestamp::from_millis(time)))
        })?;
        let oldest = oldest.collect::<Result<Vec<_>>>()?;
        let (until, trimmed) = retention.slice(self.last, oldest.into_iter());
        if let Some(until) = until {
            conn.prepare_cached("DELETE FROM audit WHERE number <= ?1")?.execute((until as i64,))?;
            conn.prepare_cached("UPDATE audit_numbers SET deleted = max(deleted, ?1)")?.execute((until as i64,))?;
        }
        Ok(trimmed)
    }

    pub fn committed(&mut self) {
        self.committed = self.last;
    }

    /// Nobody was told of these numbers, so they are used for the next entries.
    pub fn rolled_back(&mut self) {
        self.last = self.committed;
    }
}

pub(super) const ENTRIES: &str = "SELECT number, time, caller, peer, action, agent, task, no, owner, refusal, detail
    FROM audit WHERE number > ?1 ORDER BY number LIMIT ?2";

pub(super) fn entries(conn: &Connection, query: &AuditQuery) -> Result<AuditPage, StoreError> {
    let mut select = conn.prepare_cached(ENTRIES)?;
    let after = i64::try_from(query.after).unwrap_or(i64::MAX);
    let rows = select.query_map((after, MAX_LOOKS as i64 + 1), record)?;
    Ok(AuditPage::read(query, rows.filter_map(Result::transpose))?)
}

/// A value that cannot be read costs its column alone, but for the action, without which an entry says nothing.
fn record(row: &Row<'_>) -> Result<Option<AuditRecord>> {
    let number = row.get::<_, i64>(0)?.unsigned_abs();
    let text = |column| row.get::<_, Option<String>>(column).ok().flatten();
    let owner = |column| text(column).map(|key| Owner::from_key(&key));
    let Some(action) = text(4).and_then(|name| AuditAction::parse(&name)) else {
        tracing::error!(number, "an entry of the audit log is damaged and not shown");
        return Ok(None);
    };
    let entry = AuditEntry {
        time: Timestamp::from_millis(row.get(1).unwrap_or_default()),
        caller: owner(2).unwrap_or_else(Owner::anonymous),
        peer: text(3).and_then(|peer| peer.parse().ok()),
        action,
        agent: text(5).and_then(|id| AgentId::parse(id).ok()),
        task: text(6).and_then(|id| TaskId::parse(id).ok()),
        no: row.get::<_, Option<i64>>(7).ok().flatten().map(|no| TaskNo(no.unsigned_abs())),
        owner: owner(8),
        refusal: text(9).map(Cow::Owned),
        detail: text(10).unwrap_or_default(),
    };
    Ok(Some(AuditRecord { number, entry }))
}
