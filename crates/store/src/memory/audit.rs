//! The audit log of the store in memory: the plain meaning of `crate::audit`.

use std::collections::VecDeque;
use std::convert::Infallible;

use super::{MemoryStore, answer};
use crate::{AuditEntry, AuditLog, AuditPage, AuditQuery, AuditRecord, AuditRetention, AuditTrimmed, StoreFuture};

#[derive(Default)]
pub(super) struct AuditEntries {
    last: u64,
    records: VecDeque<AuditRecord>,
}

impl AuditEntries {
    pub(super) fn push(&mut self, entry: AuditEntry) {
        self.last += 1;
        self.records.push_back(AuditRecord { number: self.last, entry });
    }
}

impl AuditLog for MemoryStore {
    fn record(&self, entry: AuditEntry) -> StoreFuture<'static, ()> {
        self.lock().audit.push(entry);
        answer(Ok(()))
    }

    fn entries(&self, query: AuditQuery) -> StoreFuture<'_, AuditPage> {
        let state = self.lock();
        let later = state.audit.records.iter().filter(|record| record.number > query.after);
        let Ok(page) = AuditPage::read(&query, later.cloned().map(Ok::<_, Infallible>));
        answer(Ok(page))
    }

    fn trim(&self, retention: AuditRetention) -> StoreFuture<'static, AuditTrimmed> {
        let mut state = self.lock();
        let AuditEntries { last, records } = &mut state.audit;
        let oldest = records.iter().map(|record| (record.number, record.entry.time));
        let (until, trimmed) = retention.slice(*last, oldest);
        records.retain(|record| until.is_none_or(|until| record.number > until));
        answer(Ok(trimmed))
    }
}
