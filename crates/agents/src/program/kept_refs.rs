//! Removes the refs of tasks that retention has deleted.
//!
//! The commit that keeps the work of a task names the task: `Sabir-Task: STORE-NUMBER`. A ref is removed if this server's
//! own store does not have that task any more. Refs of other servers, of tasks in memory and of earlier versions stay. Refs
//! that are older than the database stay too: with a new database, no task was deleted.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sabir_engine::TaskLookup;
use serde::{Deserialize, Serialize};

use super::Host;
use super::blocking::{self, blocking};
use super::git::{Git, GitError};
use super::uploads::store_name;

/// The key of the line in the commit message that names the task.
const TRAILER: &str = "Sabir-Task";

/// A task of a database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredTask {
    /// The name of the database in refs and folders.
    store: String,
    number: u64,
}

impl StoredTask {
    /// `None`: tasks are in memory and end with the server, but their work must stay.
    pub fn new(host: &Host, number: u64) -> Option<Self> {
        host.database.as_deref().map(|database| Self { store: store_name(Some(database)), number })
    }

    /// The line in a commit message that names the task.
    pub fn trailer(&self) -> String {
        format!("{TRAILER}: {}-{}", self.store, self.number)
    }

    fn parse(text: &str) -> Option<Self> {
        let (store, number) = text.split_once('-')?;
        Some(Self { store: store.to_owned(), number: number.parse().ok()? })
    }
}

/// Removes the refs of deleted tasks from the repository around a folder.
pub(super) async fn sweep(host: &Host, workspace: &Path, tasks: &TaskLookup) -> Result<(), GitError> {
    let Some(database) = host.database.clone() else { return Ok(()) };
    let store = store_name(Some(&database));
    let birth = blocking(blocking::SHORT, move || database.metadata().and_then(|about| about.created())).await?;
    // On file systems without creation times nothing is removed.
    let Ok(birth) = birth else { return Ok(()) };
    let git = Git::new(host);
    let common = ["rev-parse", "--path-format=absolute", "--git-common-dir"].map(OsStr::new);
    let common = PathBuf::from(git.in_repository(workspace, &common).await?);
    let format = format!(
        "--format=%(refname)%00%(objectname)%00%(committerdate:unix)%00%(contents:trailers:key={TRAILER},valueonly)"
    );
    let list = git.list_in_repository(&common, &["for-each-ref", &format, "refs/sabir/"]).await?;
    for kept in String::from_utf8_lossy(&list).lines().filter_map(Kept::parse) {
        // Git has a resolution of seconds.
        let is_younger = kept.time + Duration::from_secs(1) > birth;
        let is_ours = kept.task.store == store && is_younger;
        if is_ours && tasks.is_deleted(kept.task.number).await.unwrap_or(false) {
            kept.remove(&git, &common).await?;
            tracing::info!(refs = kept.refs, "removed the work of a task that retention has deleted");
        }
    }
    Ok(())
}

/// The kept work of a task, as its ref shows it.
struct Kept<'a> {
    /// The prefix of the refs `work` and `base`.
    refs: &'a str,
    commit: &'a str,
    time: SystemTime,
    task: StoredTask,
}

impl<'a> Kept<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut fields = line.split('\0');
        let refs = fields.next()?.strip_suffix("/work")?;
        let commit = fields.next()?;
        let time = UNIX_EPOCH + Duration::from_secs(fields.next()?.parse().ok()?);
        Some(Self { refs, commit, time, task: StoredTask::parse(fields.next()?.trim())? })
    }

    /// Removes `work` last, since the sweep finds the rest by it, and only if nobody has changed it.
    async fn remove(&self, git: &Git, common: &Path) -> Result<(), GitError> {
        let (base, work) = (format!("{}/base", self.refs), format!("{}/work", self.refs));
        git.list_in_repository(common, &["update-ref", "-d", &base]).await?;
        git.list_in_repository(common, &["update-ref", "-d", &work, self.commit]).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_work_that_names_its_task_is_known() {
        for (fields, expected) in [
            ("refs/sabir/a/t/work abc 7 0123456789abcdef-42", Some("refs/sabir/a/t abc 0123456789abcdef 42")),
            ("refs/sabir/a/t/base abc 7 0123456789abcdef-42", None),
            ("refs/sabir/a/t/work abc 7 ", None),
            ("refs/sabir/a/t/work abc 7 0123456789abcdef-x", None),
            ("refs/sabir/a/t/work", None),
            ("", None),
        ] {
            let line = fields.replace(' ', "\0");
            let kept = Kept::parse(&line);
            let shown =
                kept.map(|kept| format!("{} {} {} {}", kept.refs, kept.commit, kept.task.store, kept.task.number));
            assert_eq!(shown.as_deref(), expected, "{fields}");
        }
    }
}
