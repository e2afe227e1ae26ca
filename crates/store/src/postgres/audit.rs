//! The audit log in the database.
//!
//! Numbers come from a sequence. They grow, but an entry may be committed before one with a smaller number that another node
//! writes at the same moment. Numbers of entries that were not stored are not used again.

use std::borrow::Cow;

use sabir_model::{AgentId, Owner, TaskId, Timestamp};
use tokio_postgres::Row;

use crate::audit::{MAX_LOOKS, TRIM_SLICE};
use crate::{
    AuditAction, AuditEntry, AuditPage, AuditQuery, AuditRecord, AuditRetention, AuditTrimmed, StoreError, TaskNo,
};

use super::connections::Connections;
use super::rows::{self, value, without_nul};

pub(super) async fn record(db: &Connections, entry: &AuditEntry) -> Result<(), StoreError> {
    let sql = "INSERT INTO audit (time, caller, peer, action, agent, task, no, owner, refusal, detail)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
    db.execute(
        sql,
        &[
            &entry.time.as_millis(),
            &entry.caller.as_key().as_bytes(),
            &entry.peer.map(|peer| peer.to_string()),
            &entry.action.name(),
            &entry.agent.as_ref().map(AgentId::as_str),
            &entry.task.as_ref().map(TaskId::as_str),
            &entry.no.and_then(|no| rows::number(no.0)),
            &entry.owner.as_ref().map(|owner| owner.as_key().as_bytes()),
            &entry.refusal.as_deref().map(without_nul),
            &without_nul(&entry.detail),
        ],
    )
    .await?;
    Ok(())
}

/// A page is read in parts: mostly the first has as many entries as are wanted.
const ENTRIES: &str = "SELECT number, time, caller, peer, action, agent, task, no, owner, refusal, detail
    FROM audit WHERE number > $1 ORDER BY number LIMIT $2";
const PART: usize = 5_000;

pub(super) async fn entries(db: &Connections, query: &AuditQuery) -> Result<AuditPage, StoreError> {
    let (mut after, mut records, mut wanted) = (query.after, Vec::new(), 0);
    while let Some(last) = rows::number(after) {
        let part = (MAX_LOOKS + 1 - records.len()).min(PART.min(query.limit.saturating_add(1).max(100)));
        let rows = db.query(ENTRIES, &[&last, &rows::limit(part)]).await?;
        after = rows.last().map_or(after, |row| row.get::<_, i64>(0).unsigned_abs());
        for record in rows.iter().filter_map(audit_record) {
            wanted += usize::from(query.takes(&record.entry));
            records.push(record);
        }
        if rows.len() < part || records.len() > MAX_LOOKS || wanted > query.limit {
            break;
        }
    }
    AuditPage::read(query, records.into_iter().map(Ok))
}

/// A value that cannot be read costs its column alone, but for the action, without which an entry says nothing.
fn audit_record(row: &Row) -> Option<AuditRecord> {
    let number = row.get::<_, i64>(0).unsigned_abs();
    let text = |column| value::<Option<&str>>(row, column).ok().flatten();
    let owner = |column| value::<Option<&[u8]>>(row, column).ok().flatten().and_then(|key| rows::owner(key).ok());
    let Some(action) = text(4).and_then(AuditAction::parse) else {
        tracing::error!(number, "an entry of the audit log is damaged and not shown");
        return None;
    };
    let entry = AuditEntry {
        time: Timestamp::from_millis(row.get(1)),
        caller: owner(2).unwrap_or_else(Owner::anonymous),
        peer: text(3).and_then(|peer| peer.parse().ok()),
        action,
        agent: text(5).and_then(|id| AgentId::parse(id).ok()),
        task: text(6).and_then(|id| TaskId::parse(id).ok()),
        no: row.get::<_, Option<i64>>(7).map(|no| TaskNo(no.unsigned_abs())),
        owner: owner(8),
        refusal: text(9).map(|refusal| Cow::Owned(refusal.to_owned())),
        detail: text(10).unwrap_or_default().to_owned(),
    };
    Some(AuditRecord { number, entry })
}

/// Deletes one slice of the oldest entries. Two nodes that trim at once read the same slice, and the second deletes nothing.
pub(super) async fn trim(db: &Connections, retention: AuditRetention) -> Result<AuditTrimmed, StoreError> {
    let sql = "SELECT number, time, (SELECT max(number) FROM audit) FROM audit ORDER BY number LIMIT $1";
    let rows = db.query(sql, &[&(TRIM_SLICE as i64 + 1)]).await?;
    let Some(last) = rows.first().map(|row| row.get::<_, i64>(2)) else { return Ok(AuditTrimmed::default()) };
    let oldest =
        rows.iter().map(|row| (row.get::<_, i64>(0).unsigned_abs(), Timestamp::from_millis(row.get::<_, i64>(1))));
    // A number that was never stored counts as an entry, so a few entries may go early.
    let (until, trimmed) = retention.slice(last.unsigned_abs(), oldest);
    if let Some(until) = until.and_then(rows::number) {
        db.execute("DELETE FROM audit WHERE number <= $1", &[&until]).await?;
    }
    Ok(trimmed)
}
