//! A worktree on the disk and its record: made, found again by another server, removed.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::super::blocking::{self, blocking};
use super::super::git::{Git, GitError, OwnGitDir, at_path};
use super::super::kept_refs::StoredTask;
use super::super::remove_folder::remove_folder;
use super::super::worktrees::{Claim, RECORD};
use super::git_data::{data_of, linked_data};
use super::repository::{Repository, at, recovered_refs};

/// What a server stores about a worktree, for itself or the next server.
#[derive(Debug, Serialize, Deserialize)]
pub(in super::super) struct Record {
    /// The git directory that all worktrees of the repository share.
    pub(super) common: PathBuf,
    pub(super) refs: String,
    /// The commit with which the task began.
    pub(super) base: String,
    /// An earlier turn has kept work. If this turn undoes it, the refs must change, too.
    pub(super) continues: bool,
    /// Where an earlier version kept the content.
    pub(super) old_refs: Option<String>,
    /// Git's data folder for the tree. It is stored here since a program may have removed the tree's link to it. `None`: the
    /// tree is incomplete, so no program has worked there.
    pub(super) tree_data: Option<PathBuf>,
    /// `None`: the task is not in a database, or an earlier version made the record.
    #[serde(default)]
    pub(super) stored_as: Option<StoredTask>,
}

/// Where the record and the git directory of a tree are.
pub(super) enum OwnPlace {
    Beside(Claim),
    /// For a tree of an earlier version: where git's directory can be.
    Old(PathBuf),
}

/// A tree and its record.
pub(in super::super) struct Tree {
    pub(super) git: Git,
    pub(super) root: PathBuf,
    pub(super) record: Record,
    pub(super) place: OwnPlace,
}

impl Tree {
    /// A tree of another server, from its record.
    pub fn of_record(git: Git, claim: Claim, record: Record) -> Self {
        Self { git, root: claim.path(None), record, place: OwnPlace::Beside(claim) }
    }

    /// A tree whose record is lost. `known` has the repository and the refs of the task, if the task itself asks. Returns
    /// the claim if git knows nothing about the tree.
    pub async fn without_record(
        git: Git,
        claim: Claim,
        known: Option<(&Path, &str)>,
    ) -> Result<Result<Self, Claim>, GitError> {
        let (root, common) = (claim.path(None), known.map(|(common, _)| common.to_owned()));
        let tree = root.clone();
        let found = blocking(blocking::SHORT, move || {
            linked_data(&tree).or_else(|| {
                let common = common?;
                data_of(&common, &tree).map(|data| (common, data))
            })
        });
        let Some((common, data)) = found.await? else { return Ok(Err(claim)) };
        let repository = Repository { git: git.clone(), common };
        let refs = match known {
            Some((_, refs)) => refs.to_owned(),
            None => {
                // The refs of an earlier turn show the agent's name.
                let pattern = format!("refs/sabir/*/{}/work", claim.name);
                let list = at(&git, &repository.common, &["for-each-ref", "--format=%(refname)", &pattern]).await?;
                let first = list.lines().next().and_then(|name| name.strip_suffix("/work"));
                first.map_or_else(|| recovered_refs(&claim.name), str::to_owned)
            }
        };
        match repository.rebuilt_record(refs, Some(data)).await? {
            Some(record) => Ok(Ok(Self::of_record(git, claim, record))),
            None => Ok(Err(claim)),
        }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Replaces the record atomically.
    pub(super) async fn write_record(&self) -> Result<(), GitError> {
        let OwnPlace::Beside(claim) = &self.place else { return Ok(()) };
        let (path, half) = (claim.path(Some(RECORD)), claim.path(Some("half")));
        let text = serde_json::to_vec(&self.record).map_err(|error| error.to_string())?;
        let place = path.clone();
        let written = blocking(blocking::SHORT, move || {
            let mut file = fs::File::create(&half)?;
            io::Write::write_all(&mut file, &text)?;
            // Otherwise a power failure can leave an empty record.
            file.sync_all()?;
            fs::rename(&half, &path)
        });
        written.await?.map_err(|error| at_path(&place, error))
    }

    pub(super) async fn check_out(&mut self, git: &Git, workspace: &Path, start: &str) -> Result<(), GitError> {
        // `--force` replaces a tree that git still knows but whose folder is gone.
        let add = ["worktree", "add", "--quiet", "--detach", "--no-checkout", "--force"].map(OsStr::new);
        let add: Vec<&OsStr> = add.into_iter().chain([self.root.as_os_str(), OsStr::new(start)]).collect();
        git.in_repository(workspace, &add).await?;
        let data = ["rev-parse", "--absolute-git-dir"].map(OsStr::new);
        let data = PathBuf::from(git.in_repository(&self.root, &data).await?);
        let own = self.own_git_dir(git, &data).await?;
        own.git(&["read-tree", "-u", "--reset", start]).await?;
        own.give_index(&data).await?;
        own.remove().await;
        self.record.tree_data = Some(data);
        self.write_record().await
    }

    pub(super) async fn own_git_dir<'g>(&self, git: &'g Git, data: &Path) -> Result<OwnGitDir<'g>, GitError> {
        let folder = match &self.place {
            OwnPlace::Beside(claim) => claim.path(Some("git")),
            OwnPlace::Old(folder) => folder.clone(),
        };
        OwnGitDir::make(git, folder, &self.root, data, &self.record.common).await
    }

    pub(super) async fn in_repository(&self, arguments: &[&str]) -> Result<String, GitError> {
        at(&self.git, &self.record.common, arguments).await
    }

    /// Removes the tree. Its content must have been kept.
    pub async fn remove(self) -> Claim {
        self.remove_files().await;
        match self.place {
            OwnPlace::Beside(claim) => claim,
            OwnPlace::Old(_) => unreachable!("only trees beside the database are claimed"),
        }
    }

    pub(super) async fn remove_files(&self) {
        let (common, root) = (self.record.common.clone(), self.root.clone());
        let beside = match &self.place {
            OwnPlace::Beside(claim) => Some((claim.path(Some("git")), claim.path(Some(RECORD)))),
            OwnPlace::Old(_) => None,
        };
        let removed = blocking(blocking::LONG, move || {
            let data = data_of(&common, &root);
            remove_folder(&root)?;
            if let Some(data) = data {
                remove_folder(&data)?;
            }
            match beside {
                Some((own, record)) => remove_folder(&own).and(fs::remove_file(record)),
                None => Ok(()),
            }
        });
        let removed = removed.await.map_err(io::Error::other).flatten();
        if let Err(error) = removed {
            tracing::warn!(%error, folder = %self.root.display(), "a worktree cannot be removed");
        }
    }
}
