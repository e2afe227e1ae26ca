//! `sabir store check`: reads the whole store, and says whether every task is complete and readable.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use sabir_store::transfer::{ExportTasks, TransferredTally};
use serde_json::json;

use crate::config::{Audience, StoreUrl};
use crate::store_source::open_export;
use crate::terminal_text::visible;
use crate::transfer_progress::ProgressLine;

/// What is read at once.
const BATCH_BYTES: usize = 4 << 20;
const BATCH_ROWS: usize = 1000;
/// A store that is damaged all over needs no longer list.
const MOST_PROBLEMS: usize = 100;

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub tasks: u64,
    pub events: u64,
    pub contexts: u64,
    pub audit_entries: u64,
    /// The first of them, each with what it is about.
    pub problems: Vec<Problem>,
    pub more_problems: u64,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Problem {
    /// The id of a task, or nothing: it is about the store as a whole.
    pub task: Option<String>,
    pub reason: String,
}

pub fn run(store: &StoreUrl, mut progress: ProgressLine) -> anyhow::Result<Report> {
    if let StoreUrl::Sqlite(path) = store
        && let Some(kind) = kind_of_no_file(path)
    {
        bail!("{} {kind}; name the file of the database", path.display());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    runtime.block_on(async { check(&mut *open_export(store).await?, &mut progress).await })
}

/// What is at this path instead of a file. To open a FIFO would wait for somebody to write into it.
pub fn kind_of_no_file(path: &Path) -> Option<&'static str> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Some("is a folder"),
        Ok(found) if !found.is_file() => Some("is no regular file"),
        _ => None,
    }
}

pub async fn check(store: &mut dyn ExportTasks, progress: &mut ProgressLine) -> anyhow::Result<Report> {
    let mut report = Report::default();
    for reason in store.check_database().await? {
        report.add(None, reason);
    }
    let size = store.size().await?;
    let mut counted: BTreeMap<(String, String, i64), i64> = BTreeMap::new();
    let mut last = 0;
    loop {
        let batch = store.tasks(last, BATCH_BYTES).await?;
        let Some(newest) = batch.last() else { break };
        last = newest.no;
        for task in &batch {
            report.tasks += 1;
            match task.check() {
                Ok(events) => report.events += events,
                Err(reason) => report.add(Some(task.id.clone()), reason),
            }
            *counted.entry((task.owner.clone(), task.agent.clone(), task.state)).or_default() += 1;
        }
        progress.show("checking", report.tasks, size.tasks);
    }
    let mut after = None;
    loop {
        let batch = store.agent_states(after, BATCH_ROWS).await?;
        let Some(newest) = batch.last() else { break };
        after = Some(newest.key.clone());
        report.contexts += batch.len() as u64;
    }
    let mut after = 0;
    loop {
        let batch = store.audit(after, BATCH_ROWS).await?;
        let Some(newest) = batch.last() else { break };
        after = newest.number;
        report.audit_entries += batch.len() as u64;
        for entry in &batch {
            if let Err(reason) = entry.check() {
                report.add(None, format!("entry {} of the audit log: {reason}", entry.number));
            }
        }
    }
    report.compare_totals(counted, store.tallies().await?);
    progress.clear();
    Ok(report)
}

impl Report {
    pub fn is_well(&self) -> bool {
        self.problems.is_empty()
    }

    fn add(&mut self, task: Option<String>, reason: String) {
        match self.problems.len() < MOST_PROBLEMS {
            true => self.problems.push(Problem { task, reason }),
            false => self.more_problems += 1,
        }
    }

    /// Lists show these totals, so they must be those of the rows.
    fn compare_totals(&mut self, counted: BTreeMap<(String, String, i64), i64>, tallies: Vec<TransferredTally>) {
        let mut known: BTreeMap<(String, String, i64), i64> = BTreeMap::new();
        for TransferredTally { owner, agent, state, tasks } in tallies {
            *known.entry((owner, agent, state)).or_default() += tasks;
        }
        known.retain(|_, tasks| *tasks != 0);
        if known == counted {
            return;
        }
        let differing = counted.iter().filter(|(key, tasks)| known.get(key) != Some(tasks)).count()
            + known.keys().filter(|key| !counted.contains_key(key)).count();
        self.add(None, format!("{differing} of the totals that lists show are not those of the rows"));
    }

    pub fn show(&self, audience: Audience) -> String {
        let Report { tasks, events, contexts, audit_entries, problems, more_problems } = self;
        if audience == Audience::Program {
            let problem = |Problem { task, reason }: &Problem| json!({"task": task, "problem": reason});
            let problems: Vec<_> = problems.iter().map(problem).collect();
            let report = json!({"ok": self.is_well(), "tasks": tasks, "events": events, "contexts": contexts,
                "audit_entries": audit_entries, "problems": problems, "more_problems": more_problems});
            return format!("{report}\n");
        }
        let mut text = String::new();
        for Problem { task, reason } in problems {
            let subject = task.as_deref().map_or("the store".to_owned(), |task| format!("task {}", visible(task)));
            text += &format!("{subject}: {}\n", visible(reason));
        }
        if *more_problems > 0 {
            text += &format!("and {more_problems} more problems\n");
        }
        let verdict = match self.is_well() {
            true => "everything is complete and readable".to_owned(),
            false => format!(
                "{} problems; restore a backup, or ask for help with these lines",
                problems.len() as u64 + more_problems
            ),
        };
        text + &format!("{tasks} tasks with {events} events, {audit_entries} audit entries: {verdict}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_that_are_not_those_of_the_rows_are_a_problem() {
        let key = |state| ("o".to_owned(), "a".to_owned(), state);
        let tally = |state, tasks| TransferredTally { owner: "o".into(), agent: "a".into(), state, tasks };
        for (tallies, problems) in [
            (vec![tally(4, 2), tally(1, 1)], 0),
            (vec![tally(4, 3), tally(4, -1), tally(1, 1), tally(5, 0)], 0),
            (vec![tally(4, 1), tally(1, 1)], 1),
            (vec![tally(4, 2)], 1),
            (vec![tally(4, 2), tally(1, 1), tally(7, 1)], 1),
        ] {
            let mut report = Report::default();
            report.compare_totals(BTreeMap::from([(key(4), 2), (key(1), 1)]), tallies.clone());
            assert_eq!(report.problems.len(), problems, "{tallies:?}");
        }
    }

    #[test]
    fn people_see_lines_and_programs_json() {
        let mut report = Report { tasks: 2, events: 7, ..Report::default() };
        assert!(report.show(Audience::Person).ends_with("everything is complete and readable\n"));
        report.add(Some("t\u{1b}".into()), "event 3 cannot be read".into());
        let text = report.show(Audience::Person);
        assert!(
            text.contains("event 3 cannot be read\n") && text.contains("1 problems") && !text.contains('\u{1b}'),
            "{text}"
        );
        let json: serde_json::Value = serde_json::from_str(&report.show(Audience::Program)).unwrap();
        assert_eq!((&json["ok"], &json["problems"][0]["problem"]), (&json!(false), &json!("event 3 cannot be read")));
    }
}
