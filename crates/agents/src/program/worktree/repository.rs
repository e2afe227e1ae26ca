//! The repository of a worktree: what earlier turns have kept there, and trees of earlier versions.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use sabir_model::Owner;

use super::super::Host;
use super::super::blocking::{self, blocking};
use super::super::folder_name::folder_name;
use super::super::git::{Git, GitError};
use super::git_data::{data_of, first_head, folders};
use super::tree::{OwnPlace, Record, Tree};
use crate::adapter::Exit;

/// Where earlier versions put worktrees, in the repository's git directory.
const OLD_PLACE: &str = "sabir-worktrees";

/// A repository of an agent.
pub(super) struct Repository {
    pub(super) git: Git,
    /// The git directory that all its worktrees share.
    pub(super) common: PathBuf,
}

/// The names of a task's tree.
#[derive(Clone, Copy)]
pub(super) struct TreeNames<'a> {
    /// By the number of the task in its store, if it has one.
    pub(super) current: &'a str,
    /// By its owner, as earlier versions named it.
    pub(super) by_owner: &'a str,
}

/// A commit, and the prefix of the refs where it was found.
pub(super) type LeftWork = Option<(String, String)>;

impl Repository {
    pub(super) async fn commit(&self, name: &str) -> Result<Option<String>, GitError> {
        commit(&self.git, &self.common, name).await
    }

    /// What earlier turns of the task have kept, and old refs that are to be removed once the task has its own.
    pub(super) async fn left_by(
        &self,
        owner: &Owner,
        agent: &str,
        task: &str,
        names: TreeNames<'_>,
    ) -> Result<(LeftWork, Option<String>), GitError> {
        let TreeNames { current, by_owner } = names;
        let refs = format!("refs/sabir/{}/{current}", folder_name(agent));
        if let Some(work) = self.commit(&format!("{refs}/work")).await? {
            return Ok((Some((work, refs)), None));
        }
        let mut others = vec![recovered_refs(current)];
        if by_owner != current {
            others.extend([format!("refs/sabir/{}/{by_owner}", folder_name(agent)), recovered_refs(by_owner)]);
        }
        if *owner == Owner::anonymous() {
            // Earlier versions had one owner and no hash.
            others.push(format!("refs/sabir/{}/{}", folder_name(agent), folder_name(task)));
        }
        for other in others {
            if let Some(work) = self.commit(&format!("{other}/work")).await? {
                return Ok((Some((work, other.clone())), Some(other)));
            }
        }
        Ok((None, None))
    }

    /// Keeps and removes trees that killed servers of earlier versions have left.
    pub(super) async fn keep_old_places(&self, host: &Host) -> Result<(), GitError> {
        let old = self.common.join(OLD_PLACE);
        let place = old.clone();
        let find = move || folders(&place).iter().flat_map(|agent| folders(agent)).collect::<Vec<PathBuf>>();
        let is_there = {
            let old = old.clone();
            move || old.exists()
        };
        if !blocking(blocking::SHORT, is_there).await? {
            return Ok(());
        }
        let name = old.to_string_lossy();
        let _claim = tokio::select! {
            claim = host.worktrees.claim(&name) => claim,
            () = self.git.until_unwanted() => return Err(GitError::Stopped),
        };
        for root in blocking(blocking::SHORT, find).await? {
            let name = root.strip_prefix(&old).unwrap_or(&root).to_string_lossy().into_owned();
            let refs = format!("refs/sabir/{name}");
            let (common, tree) = (self.common.clone(), root.clone());
            let tree_data = blocking(blocking::SHORT, move || data_of(&common, &tree)).await?;
            let Some(record) = self.rebuilt_record(refs, tree_data).await? else { continue };
            let tree = Tree { git: self.git.clone(), root, record, place: OwnPlace::Old(old.join("git")) };
            match tree.keep().await {
                Ok(_) => tree.remove_files().await,
                Err(GitError::Stopped) => return Err(GitError::Stopped),
                Err(error) => tracing::error!(%error, name, "what a task has left cannot be kept"),
            }
        }
        let remove = move || {
            folders(&old).iter().chain([&old]).for_each(|folder| drop(fs::remove_dir(folder)));
        };
        Ok(blocking(blocking::SHORT, remove).await?)
    }

    /// A record for a tree that has none. `None`: its first commit is unknown.
    pub(super) async fn rebuilt_record(
        &self,
        refs: String,
        tree_data: Option<PathBuf>,
    ) -> Result<Option<Record>, GitError> {
        let place = tree_data.clone().unwrap_or_else(|| self.common.clone());
        let base = match self.commit(&format!("{refs}/base")).await? {
            Some(base) => Some(base),
            None => {
                let data = place.clone();
                match blocking(blocking::SHORT, move || first_head(&data)).await? {
                    Some(base) => Some(base),
                    None => head(&self.git, &place).await?,
                }
            }
        };
        let Some(base) = base else { return Ok(None) };
        let continues = self.commit(&format!("{refs}/work")).await?.is_some();
        let (common, old_refs, stored_as) = (self.common.clone(), None, None);
        Ok(Some(Record { common, refs, base, continues, old_refs, tree_data, stored_as }))
    }
}

/// The refs for a tree whose record, and so its agent's name, is lost.
pub(super) fn recovered_refs(name: &str) -> String {
    format!("refs/sabir/recovered/{name}")
}

/// Runs a command on a git directory.
pub(super) async fn at(git: &Git, git_dir: &Path, arguments: &[&str]) -> Result<String, GitError> {
    let place = OsString::from_iter([OsStr::new("--git-dir="), git_dir.as_os_str()]);
    let arguments: Vec<&OsStr> = std::iter::once(&*place).chain(arguments.iter().map(OsStr::new)).collect();
    git.in_repository(git_dir, &arguments).await
}

/// The commit of this name. `None` only if it certainly does not exist: otherwise the task would start again and lose its
/// work.
pub(super) async fn commit(git: &Git, git_dir: &Path, name: &str) -> Result<Option<String>, GitError> {
    let name = format!("{name}^{{commit}}");
    none_if_missing(at(git, git_dir, &["rev-parse", "--verify", "--quiet", &name]).await)
}

/// The commit that a tree has checked out. `None` if it cannot be read: the program may have changed anything.
pub(super) async fn head(git: &Git, data: &Path) -> Result<Option<String>, GitError> {
    match commit(git, data, "HEAD").await {
        Err(GitError::Failed { .. }) => Ok(None),
        head => head,
    }
}

/// Exit code 1 of `rev-parse --verify --quiet` means that there is no such commit.
pub(super) fn none_if_missing(found: Result<String, GitError>) -> Result<Option<String>, GitError> {
    match found {
        Err(GitError::Failed { exit: Exit::Code(1), .. }) => Ok(None),
        found => found.map(Some),
    }
}
