//! The folder of all worktrees, next to the database, and which of them are in use.
//!
//! A worktree is in use from before it is made until its content is kept and the tree is removed. What a killed server has
//! left is kept by the next one, when it starts (`sweep`) or when the task continues.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use super::Host;
use super::blocking::{self, blocking};
use super::git::Git;
use super::leftover_trees::{clear_place, names_in};

/// The suffix of a worktree's record.
pub(super) const RECORD: &str = "json";

#[derive(Debug, Clone)]
pub struct Worktrees(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    folder: PathBuf,
    in_use: Mutex<HashSet<String>>,
    freed: Notify,
}

impl Worktrees {
    /// Does not make the folder yet.
    pub fn new(folder: PathBuf) -> Self {
        Self(Arc::new(Shared { folder, in_use: Mutex::default(), freed: Notify::new() }))
    }

    pub(super) fn folder(&self) -> &Path {
        &self.0.folder
    }

    /// Makes the folder. Only this user may write there: others could put settings for git there.
    pub(super) fn make_folder(&self) -> Result<(), String> {
        let folder = self.folder();
        let failed = |error: io::Error| format!("{}: {error}", folder.display());
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        let found = fs::symlink_metadata(folder).map_err(failed)?;
        match found.is_dir() && found.uid() == rustix::process::geteuid().as_raw() {
            true => Ok(()),
            false => Err(format!("{} does not belong to the user who runs the server", folder.display())),
        }
    }

    /// Waits until nobody else uses the worktree of this name.
    pub(super) async fn claim(&self, name: &str) -> Claim {
        loop {
            let mut freed = std::pin::pin!(self.0.freed.notified());
            freed.as_mut().enable();
            if let Some(claim) = self.try_claim(name) {
                return claim;
            }
            freed.await;
        }
    }

    fn try_claim(&self, name: &str) -> Option<Claim> {
        let is_free = self.in_use().insert(name.to_owned());
        is_free.then(|| Claim { worktrees: self.clone(), name: name.to_owned() })
    }

    fn in_use(&self) -> std::sync::MutexGuard<'_, HashSet<String>> {
        self.0.in_use.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no worktree is in use, so that all work is kept.
    pub async fn until_unused(&self) {
        loop {
            let mut freed = std::pin::pin!(self.0.freed.notified());
            freed.as_mut().enable();
            if self.in_use().is_empty() {
                return;
            }
            freed.await;
        }
    }
}

/// Keeps the content of leftover worktrees, and removes them.
pub async fn sweep(host: &Host) {
    let folder = host.worktrees.folder().to_owned();
    for name in blocking(blocking::SHORT, move || names_in(&folder)).await.unwrap_or_default() {
        let Some(claim) = host.worktrees.try_claim(&name) else { continue };
        match clear_place(&Git::new(host), claim, None).await {
            Ok(_) => tracing::info!(worktree = name, "kept what a task had left in its worktree"),
            Err(error) => tracing::error!(%error, worktree = name, "what a task has left cannot be kept"),
        }
    }
}

/// The right to use a worktree.
#[derive(Debug)]
pub(super) struct Claim {
    worktrees: Worktrees,
    pub(super) name: String,
}

impl Claim {
    /// The path of the tree, or with a suffix of what belongs to it.
    pub(super) fn path(&self, ending: Option<&str>) -> PathBuf {
        let name = ending.map_or_else(|| self.name.clone(), |ending| format!("{}.{ending}", self.name));
        self.worktrees.folder().join(name)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut in_use = self.worktrees.in_use();
        in_use.remove(&self.name);
        if in_use.is_empty() {
            // Only an empty folder goes.
            let _ = fs::remove_dir(self.worktrees.folder());
        }
        drop(in_use);
        self.worktrees.0.freed.notify_waiters();
    }
}
