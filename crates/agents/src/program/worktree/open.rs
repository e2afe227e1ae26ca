//! Makes the worktree of a turn, and keeps its content when the turn is over.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use sabir_model::Owner;
use tokio::sync::{oneshot, watch};

use super::super::Host;
use super::super::blocking::{self, blocking};
use super::super::folder_name::folder_name;
use super::super::git::{Git, GitError, at_path};
use super::super::kept_refs::StoredTask;
use super::super::leftover_trees::clear_place;
use super::super::worktrees::Claim;
use super::repository::{Repository, TreeNames, none_if_missing};
use super::tree::{OwnPlace, Record, Tree};
use crate::adapter::Exit;

/// Which task a worktree is for. Ids repeat across owners and agents.
#[derive(Debug, Clone, Copy)]
pub struct TaskName<'a> {
    pub owner: &'a Owner,
    pub agent: &'a str,
    pub task: &'a str,
    /// In the server's store.
    pub number: Option<u64>,
}

/// The worktree of a turn. If it is dropped, its content is kept as soon as the program has ended.
pub struct Worktree {
    tree: Option<Tree>,
    /// Where the program works: the folder in the tree that matches the workspace in its repository.
    pub folder: PathBuf,
    ended: Option<watch::Receiver<Option<Exit>>>,
}

impl Worktree {
    /// Makes a worktree of the repository's current commit, or of what earlier turns of the task have kept.
    pub async fn open(host: &Host, workspace: &Path, whose: TaskName<'_>) -> Result<Self, GitError> {
        let (wanted, is_wanted) = watch::channel(());
        let opening = Opening {
            host: host.clone(),
            git: Git::while_wanted(host, is_wanted),
            workspace: workspace.to_owned(),
            owner: whose.owner.clone(),
            agent: whose.agent.to_owned(),
            task: whose.task.to_owned(),
            stored_as: whose.number.and_then(|number| StoredTask::new(host, number)),
        };
        // A separate tokio task, since the caller may be dropped at any point. Then git is ended first, and what exists
        // already is removed after that; otherwise git could make a worktree that nobody knows of.
        let opened = tokio::spawn(opening.open()).await;
        drop(wanted);
        opened.unwrap_or_else(|error| Err(GitError::Other(error.to_string())))
    }

    /// Sets the program that works in the tree. The content is kept only after it has ended.
    pub fn is_used_until(&mut self, ended: watch::Receiver<Option<Exit>>) {
        self.ended = Some(ended);
    }

    /// Where the content will be found in the repository.
    pub fn work_ref(&self) -> String {
        self.tree.as_ref().map_or_else(String::new, |tree| format!("{}/work", tree.record.refs))
    }

    /// Keeps the content and removes the tree, whether somebody waits for the diff or not.
    pub fn keep(mut self) -> oneshot::Receiver<Result<Vec<u8>, GitError>> {
        let (sender, receiver) = oneshot::channel();
        self.keep_for(Some(sender));
        receiver
    }

    fn keep_for(&mut self, waiting: Option<oneshot::Sender<Result<Vec<u8>, GitError>>>) {
        let Some(tree) = self.tree.take() else { return };
        // Without a runtime nothing can be done; the next server finds the tree.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let ended = self.ended.take();
        runtime.spawn(async move {
            if let Some(mut ended) = ended {
                let _ = ended.wait_for(Option::is_some).await;
            }
            let kept = tree.keep().await;
            match &kept {
                Ok(_) => drop(tree.remove().await),
                // The tree stays, and the next sweep tries again.
                Err(error) => tracing::error!(%error, refs = tree.record.refs, "the changes of a task cannot be kept"),
            }
            if let Some(waiting) = waiting {
                let _ = waiting.send(kept);
            }
        });
    }
}

impl Drop for Worktree {
    fn drop(&mut self) {
        self.keep_for(None);
    }
}

/// A worktree that is being made.
struct Opening {
    host: Host,
    /// Its commands are ended when the caller is gone.
    git: Git,
    workspace: PathBuf,
    owner: Owner,
    agent: String,
    task: String,
    stored_as: Option<StoredTask>,
}

impl Opening {
    async fn open(self) -> Result<Worktree, GitError> {
        let Self { host, git, workspace, owner, agent, task, stored_as } = self;
        let by_owner = tree_name(&git, &task, &format!("{}\0{agent}\0{task}", owner.as_key())).await?;
        // A task keeps its number when it gets another owner. The id is in the name for people, and because a database
        // that is made anew counts from the beginning.
        let name = match &stored_as {
            Some(stored) => tree_name(&git, &task, &format!("{}\0{agent}\0{task}", stored.trailer())).await?,
            None => by_owner.clone(),
        };
        let claim = claim(&host, &git, &name).await?;
        let places = ["rev-parse", "--path-format=absolute", "--git-common-dir", "--show-prefix"].map(OsStr::new);
        let places = git.in_repository(&workspace, &places).await?;
        let (common, prefix) = places.split_once('\n').unwrap_or((&places, ""));
        let repository = Repository { git, common: PathBuf::from(common) };
        repository.keep_old_places(&host).await?;
        let worktrees = host.worktrees.clone();
        blocking(blocking::SHORT, move || worktrees.make_folder()).await??;
        let refs = format!("refs/sabir/{}/{name}", folder_name(&agent));
        // A server was killed while the task ran. The task resumes from what it left.
        let claim = clear_place(&repository.git, claim, Some((&repository.common, &refs))).await?;
        if by_owner != name {
            // Earlier versions named the tree by the owner.
            let old_place = self::claim(&host, &repository.git, &by_owner).await?;
            let old_refs = format!("refs/sabir/{}/{by_owner}", folder_name(&agent));
            clear_place(&repository.git, old_place, Some((&repository.common, &old_refs))).await?;
        }
        let names = TreeNames { current: &name, by_owner: &by_owner };
        let (left, old_refs) = repository.left_by(&owner, &agent, &task, names).await?;
        let base = match &left {
            Some((_, refs)) => repository.commit(&format!("{refs}/base")).await?,
            // The commit of the workspace, which may be a worktree itself.
            None => {
                let head = ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"].map(OsStr::new);
                none_if_missing(repository.git.in_repository(&workspace, &head).await)?
            }
        };
        let base = base.ok_or_else(|| {
            format!("{} has no commit yet, so there is nothing to make a worktree of", workspace.display())
        })?;
        let continues = left.is_some();
        let start = left.map_or_else(|| base.clone(), |(work, _)| work);
        let common = repository.common;
        let record = Record { common, refs, base, continues, old_refs, tree_data: None, stored_as };
        let root = claim.path(None);
        // From here on the content is kept, or removed, even if the caller is gone.
        let tree = Tree { git: Git::new(&host), root: root.clone(), record, place: OwnPlace::Beside(claim) };
        tree.write_record().await?;
        let mut worktree = Worktree { folder: root.join(prefix), tree: Some(tree), ended: None };
        if let Some(tree) = &mut worktree.tree {
            tree.check_out(&repository.git, &workspace, &start).await?;
        }
        let folder = worktree.folder.clone();
        let made = blocking(blocking::SHORT, move || fs::create_dir_all(folder)).await?;
        made.map_err(|error| at_path(&worktree.folder, error))?;
        Ok(worktree)
    }
}

/// The id of the task, and a hash of what tells it from others with the same id.
async fn tree_name(git: &Git, task: &str, whose: &str) -> Result<String, GitError> {
    let hash = git.hash(whose).await?;
    Ok(format!("{}-{}", folder_name(task), hash.get(..16).unwrap_or(&hash)))
}

async fn claim(host: &Host, git: &Git, name: &str) -> Result<Claim, GitError> {
    tokio::select! {
        claim = host.worktrees.claim(name) => Ok(claim),
        () = git.until_unwanted() => Err(GitError::Stopped),
    }
}
