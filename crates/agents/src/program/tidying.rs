//! Removes what tasks have left behind if no turn has removed it.
//!
//! | what                                   | goes when                                             | looked for                           |
//! |----------------------------------------|-------------------------------------------------------|--------------------------------------|
//! | worktrees of a server that was killed  | their content is kept as a ref                        | at the start, every ten minutes      |
//! | files of messages in workspaces        | their task is over                                    | the same, and when a task ends alone |
//! | refs of worktrees                      | retention has deleted their task                      | the same, and after deletions        |
//!
//! It looks into the workspaces of all agents, and into those that callers have chosen since the start.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sabir_engine::{Engine, TaskLookup};
use tokio::time::sleep;

use super::{Host, Isolation, kept_refs, uploads, worktrees};

/// How often everything is checked.
const INTERVAL: Duration = Duration::from_secs(600);
/// The shortest pause between two checks, however many tasks end.
const PAUSE: Duration = Duration::from_secs(1);
/// How many workspaces are remembered: callers may choose any folder below the roots.
const MOST_WORKSPACES: usize = 1_000;

/// The folders in which programs work. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Workspaces(Arc<Mutex<BTreeMap<PathBuf, Isolation>>>);

impl Workspaces {
    pub(super) fn note(&self, folder: &Path, isolation: Isolation) {
        let mut folders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if folders.len() < MOST_WORKSPACES || folders.contains_key(folder) {
            let noted = folders.entry(folder.to_owned()).or_insert(isolation);
            // Two agents may work there, and one of them may use worktrees.
            if isolation == Isolation::Worktree {
                *noted = isolation;
            }
        }
    }

    fn all(&self) -> Vec<(PathBuf, Isolation)> {
        let folders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        folders.iter().map(|(folder, isolation)| (folder.clone(), *isolation)).collect()
    }
}

/// Tidies up for as long as the server runs.
pub async fn keep_tidy(host: Host, engine: Engine) {
    let tasks = engine.task_lookup();
    loop {
        tidy(&host, &tasks).await;
        let mut next = std::pin::pin!(sleep(INTERVAL));
        loop {
            sleep(PAUSE).await;
            tokio::select! {
                () = &mut next => break,
                () = engine.until_end_without_turn() => remove_uploads(&host, &tasks).await,
                () = engine.until_deletion() => remove_refs(&host, &tasks).await,
            }
        }
    }
}

/// Tidies up once.
pub async fn tidy(host: &Host, tasks: &TaskLookup) {
    remove_uploads(host, tasks).await;
    // These run git, which may take long.
    worktrees::sweep(host).await;
    remove_refs(host, tasks).await;
}

async fn remove_uploads(host: &Host, tasks: &TaskLookup) {
    for (folder, _) in host.workspaces.all() {
        uploads::sweep(&folder, host.database.as_deref(), None, tasks).await;
    }
}

async fn remove_refs(host: &Host, tasks: &TaskLookup) {
    for (folder, isolation) in host.workspaces.all() {
        if isolation == Isolation::Worktree
            && let Err(error) = kept_refs::sweep(host, &folder, tasks).await
        {
            tracing::warn!(%error, folder = %folder.display(), "refs of deleted tasks cannot be looked for");
        }
    }
}
