//! What operators see of all tasks.

use std::collections::BTreeMap;

use sabir_model::Owner;

use super::{MemoryState, MemoryTask};
use crate::damage::DamageLog;
use crate::page::cut;
use crate::summary::take;
use crate::{SummaryPage, SummaryQuery, TaskCount, TaskNo, TaskSummary};

impl MemoryState {
    pub(super) fn summaries(&self, damages: &DamageLog, query: &SummaryQuery) -> SummaryPage {
        if let Some(prefix) = query.limited_prefix() {
            let with_prefix = self.tasks.values().filter(|entry| entry.row.task.as_str().starts_with(prefix));
            if with_prefix.count() > query.most_with_prefix {
                return SummaryPage::of_too_many();
            }
        }
        let mut matching: Vec<&MemoryTask> = self.tasks.values().filter(|entry| query.matches(&entry.row)).collect();
        if let Some(from) = &query.from {
            let number = from.number.map_or(TaskNo(0), TaskNo);
            matching.retain(|entry| entry.order() < (from.time, &from.task, &from.agent, number));
        }
        matching.sort_by(|a, b| b.order().cmp(&a.order()));
        let more = cut(&mut matching, query.limit);
        let (mut page, mut left) = (SummaryPage { more, ..SummaryPage::default() }, query.max_bytes);
        for entry in matching {
            if !take(&mut page, &mut left, entry.summary(damages)) {
                break;
            }
        }
        page
    }

    pub(super) fn task_counts(&self, owner: Option<&Owner>) -> Vec<TaskCount> {
        let mut counts = BTreeMap::new();
        for row in self.tasks.values().map(|entry| &entry.row) {
            if owner.is_none_or(|owner| row.owner == *owner) {
                *counts.entry((row.agent.clone(), row.state)).or_default() += 1;
            }
        }
        counts.into_iter().map(|((agent, state), count)| TaskCount { agent, state, count }).collect()
    }
}

impl MemoryTask {
    pub(super) fn summary(&self, damages: &DamageLog) -> TaskSummary {
        let task = self.fold(damages);
        let first = task.history.first().cloned();
        TaskSummary::new(self.row.clone(), task, first, None)
    }
}
