//! A git worktree for one task, and what was changed in it.
//!
//! The tree is removed when the turn is over. Its content stays in the repository under `refs/sabir/AGENT/NAME/work`, so
//! that the next turn of the task continues from there and people can look at it (`git diff refs/sabir/AGENT/NAME/base
//! refs/sabir/AGENT/NAME/work`). NAME is the task's id and a hash of owner, agent and id, since ids repeat.
//!
//! A separate tokio task keeps the content. The caller of the diff may be gone, and a turn may be dropped at any point: the
//! content is kept anyway, after the program has ended. If the server is killed meanwhile, the next one finds the tree and
//! its record. A tree is removed only after its content is kept.
//!
//! | in the folder of worktrees | what it is                                                              |
//! |----------------------------|-------------------------------------------------------------------------|
//! | `NAME`                     | the tree                                                                |
//! | `NAME.json`                | the record: there from before the tree is made until after it is gone   |
//! | `NAME.git`                 | git's directory while Sabir runs git (`OwnGitDir`)                      |

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use sabir_model::Owner;
use serde::{Deserialize, Serialize};
use tokio::sync::{oneshot, watch};

use super::Host;
use super::blocking::{self, blocking};
use super::folder_name::folder_name;
use super::git::{Git, GitError, OwnGitDir, at_path};
use super::kept_refs::StoredTask;
use super::leftover_trees::clear_place;
use super::regular_file;
use super::remove_folder::remove_folder;
use super::worktrees::{Claim, RECORD};
use crate::adapter::Exit;

/// Longer diffs are cut; the repository has all of it.
const LONGEST_DIFF: usize = 4 << 20;

/// How many bytes the list of an index may have: some hundred thousand files.
const LONGEST_LIST: usize = 256 << 20;

/// Where earlier versions put worktrees, in the repository's git directory.
const OLD_PLACE: &str = "sabir-worktrees";

/// How many bytes the reflog of a tree's HEAD may have.
const LONGEST_LOG: u64 = 16 << 20;

/// How many nested repositories are updated in the index. The rest stays as the task found it: each needs a command.
const MOST_NESTED: usize = 100;

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
        let hash = git.hash(&format!("{}\0{agent}\0{task}", owner.as_key())).await?;
        let name = format!("{}-{}", folder_name(&task), hash.get(..16).unwrap_or(&hash));
        let claim = tokio::select! {
            claim = host.worktrees.claim(&name) => claim,
            () = git.until_unwanted() => return Err(GitError::Stopped),
        };
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
        let (left, old_refs) = repository.left_by(&owner, &agent, &task, &name).await?;
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

/// A repository of an agent.
struct Repository {
    git: Git,
    /// The git directory that all its worktrees share.
    common: PathBuf,
}

/// A commit, and the prefix of the refs where it was found.
type LeftWork = Option<(String, String)>;

impl Repository {
    async fn commit(&self, name: &str) -> Result<Option<String>, GitError> {
        commit(&self.git, &self.common, name).await
    }

    /// What earlier turns of the task have kept, and old refs that are to be removed once the task has its own.
    async fn left_by(
        &self,
        owner: &Owner,
        agent: &str,
        task: &str,
        name: &str,
    ) -> Result<(LeftWork, Option<String>), GitError> {
        let refs = format!("refs/sabir/{}/{name}", folder_name(agent));
        if let Some(work) = self.commit(&format!("{refs}/work")).await? {
            return Ok((Some((work, refs)), None));
        }
        let mut others = vec![recovered_refs(name)];
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
    async fn keep_old_places(&self, host: &Host) -> Result<(), GitError> {
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
    async fn rebuilt_record(&self, refs: String, tree_data: Option<PathBuf>) -> Result<Option<Record>, GitError> {
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
fn recovered_refs(name: &str) -> String {
    format!("refs/sabir/recovered/{name}")
}

/// What a server stores about a worktree, for itself or the next server.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Record {
    /// The git directory that all worktrees of the repository share.
    common: PathBuf,
    refs: String,
    /// The commit with which the task began.
    base: String,
    /// An earlier turn has kept work. If this turn undoes it, the refs must change, too.
    continues: bool,
    /// Where an earlier version kept the content.
    old_refs: Option<String>,
    /// Git's data folder for the tree. It is stored here since a program may have removed the tree's link to it. `None`: the
    /// tree is incomplete, so no program has worked there.
    tree_data: Option<PathBuf>,
    /// `None`: the task is not in a database, or an earlier version made the record.
    #[serde(default)]
    stored_as: Option<StoredTask>,
}

/// Where the record and the git directory of a tree are.
enum OwnPlace {
    Beside(Claim),
    /// For a tree of an earlier version: where git's directory can be.
    Old(PathBuf),
}

/// A tree and its record.
pub(super) struct Tree {
    git: Git,
    root: PathBuf,
    record: Record,
    place: OwnPlace,
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
    async fn write_record(&self) -> Result<(), GitError> {
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

    async fn check_out(&mut self, git: &Git, workspace: &Path, start: &str) -> Result<(), GitError> {
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

    async fn own_git_dir<'g>(&self, git: &'g Git, data: &Path) -> Result<OwnGitDir<'g>, GitError> {
        let folder = match &self.place {
            OwnPlace::Beside(claim) => claim.path(Some("git")),
            OwnPlace::Old(folder) => folder.clone(),
        };
        OwnGitDir::make(git, folder, &self.root, data, &self.record.common).await
    }

    /// Keeps the content of the tree in the repository, and returns its difference to the first commit: committed, changed
    /// and new files.
    pub async fn keep(&self) -> Result<Vec<u8>, GitError> {
        let Some(data) = self.record.tree_data.clone() else { return Ok(Vec::new()) };
        let (root, pipes_of) = (self.root.clone(), data.clone());
        let is_there = blocking(blocking::LONG, move || {
            remove_pipes(&root);
            remove_pipes(&pipes_of);
            root.is_dir()
        });
        if !is_there.await? {
            return Ok(Vec::new());
        }
        let head = head(&self.git, &data).await?.unwrap_or_else(|| self.record.base.clone());
        let own = self.own_git_dir(&self.git, &data).await?;
        let kept = self.keep_with(&own, &data, &head).await;
        own.remove().await;
        kept
    }

    async fn keep_with(&self, own: &OwnGitDir<'_>, data: &Path, head: &str) -> Result<Vec<u8>, GitError> {
        let Record { common: _, refs, base, continues, old_refs, tree_data: _, stored_as } = &self.record;
        let has_index = own.take_index(data).await?;
        let tree = match has_index {
            true => self.add_all(own).await,
            false => Err(GitError::Other("there is no index".into())),
        };
        let tree = match tree {
            // The program has left no index, or one that cannot be read.
            Err(GitError::Failed { .. } | GitError::Other(_)) => {
                own.git(&["read-tree", head]).await?;
                self.add_all(own).await?
            }
            tree => tree?,
        };
        let base_tree = own.git(&["rev-parse", &format!("{base}^{{tree}}")]).await?;
        if tree == base_tree && !continues {
            return Ok(Vec::new());
        }
        let mut message = "What a task changed\n".to_owned();
        if let Some(stored_as) = stored_as {
            message += &format!("\n{}\n", stored_as.trailer());
        }
        let commit = own.git(&["commit-tree", "--no-gpg-sign", &tree, "-p", head, "-m", &message]).await?;
        // `work` comes last, since others find the work by it.
        for (name, id) in [("base", base), ("work", &commit)] {
            self.in_repository(&["update-ref", &format!("{refs}/{name}"), id]).await?;
        }
        for name in ["work", "base"] {
            if let Some(old) = old_refs {
                let _ = self.in_repository(&["update-ref", "-d", &format!("{old}/{name}")]).await;
            }
        }
        // Not `git diff`: users can configure its output, and a patch has to apply.
        let comparing = ["diff-tree", "-p", "-M", "--binary", "--no-ext-diff", "--no-textconv", base, &tree];
        let printed = own.output(&comparing, LONGEST_DIFF).await?;
        let mut diff = printed.bytes;
        if printed.is_cut {
            let is_inside = |byte: &u8| byte & 0xc0 == 0x80;
            // A UTF-8 character has at most four bytes.
            for _ in 0..4 {
                if diff.pop_if(|last| is_inside(last)).is_none() {
                    break;
                }
            }
            diff.pop_if(|last| *last >= 0xc0);
            let rest = format!("\n[cut here; the rest: git diff {refs}/base {refs}/work]\n");
            diff.extend_from_slice(rest.as_bytes());
        }
        Ok(diff)
    }

    /// Adds all files of the tree to the index, and returns the git tree.
    async fn add_all(&self, own: &OwnGitDir<'_>) -> Result<String, GitError> {
        let mut patterns = vec![".".to_owned()];
        patterns.extend(self.note_nested_repositories(own).await?);
        // In a file, since a command line is limited.
        let patterns = own.put("pathspecs", patterns.join("\0").into_bytes()).await?;
        let patterns = format!("--pathspec-from-file={}", patterns.display());
        let mut add = vec!["add", "--all", "--ignore-errors", &patterns, "--pathspec-file-nul"];
        if let Err(error) = own.git(&add).await {
            let GitError::Failed { .. } = error else { return Err(error) };
            // One file that a filter or an encoding refuses would lose all others. Without attributes git takes all.
            let nothing = own.git(&["hash-object", "-t", "tree", "/dev/null"]).await?;
            let plain = format!("--attr-source={nothing}");
            add.insert(0, &plain);
            match own.git(&add).await {
                // Keep the rest if git cannot add something, such as a repository without a commit.
                Err(error @ GitError::Failed { .. }) => {
                    tracing::warn!(%error, folder = %self.root.display(), "not all changes of a task can be kept");
                }
                added => drop(added?),
            }
        }
        // A partial clone lacks the contents of files that were never checked out.
        own.git(&["write-tree", "--missing-ok"]).await
    }

    /// Writes the HEADs of nested repositories to the index, and returns patterns that exclude these folders. Otherwise git
    /// would look for changes in them with a command that obeys their settings.
    async fn note_nested_repositories(&self, own: &OwnGitDir<'_>) -> Result<Vec<String>, GitError> {
        let list = own.output(&["ls-files", "--stage", "-z"], LONGEST_LIST).await?;
        if list.is_cut {
            return Err(GitError::Other("there are too many files".into()));
        }
        let root = self.root.clone();
        let nested = blocking(blocking::LONG, move || nested_repositories(&root, &list.bytes)).await??;
        for Nested { place, path, about } in nested.iter().take(MOST_NESTED) {
            let head = ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"].map(OsStr::new);
            match self.git.in_repository(place, &head).await {
                Ok(head) if !about.contains(&head) => {
                    own.git(&["update-index", "--cacheinfo", &format!("160000,{head},{path}")]).await?;
                }
                Ok(_) | Err(GitError::Failed { .. }) => {}
                Err(GitError::Stopped) => return Err(GitError::Stopped),
                // The others would time out, too.
                Err(error) => {
                    tracing::warn!(%error, folder = %place.display(), "nested repositories are left as they were");
                    break;
                }
            }
        }
        Ok(nested.iter().map(|nested| format!(":(top,exclude,literal){}", nested.path)).collect())
    }

    async fn in_repository(&self, arguments: &[&str]) -> Result<String, GitError> {
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

    async fn remove_files(&self) {
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

/// Runs a command on a git directory.
async fn at(git: &Git, git_dir: &Path, arguments: &[&str]) -> Result<String, GitError> {
    let place = OsString::from_iter([OsStr::new("--git-dir="), git_dir.as_os_str()]);
    let arguments: Vec<&OsStr> = std::iter::once(&*place).chain(arguments.iter().map(OsStr::new)).collect();
    git.in_repository(git_dir, &arguments).await
}

/// The commit of this name. `None` only if it certainly does not exist: otherwise the task would start again and lose its
/// work.
async fn commit(git: &Git, git_dir: &Path, name: &str) -> Result<Option<String>, GitError> {
    let name = format!("{name}^{{commit}}");
    none_if_missing(at(git, git_dir, &["rev-parse", "--verify", "--quiet", &name]).await)
}

/// The commit that a tree has checked out. `None` if it cannot be read: the program may have changed anything.
async fn head(git: &Git, data: &Path) -> Result<Option<String>, GitError> {
    match commit(git, data, "HEAD").await {
        Err(GitError::Failed { .. }) => Ok(None),
        head => head,
    }
}

/// Exit code 1 of `rev-parse --verify --quiet` means that there is no such commit.
fn none_if_missing(found: Result<String, GitError>) -> Result<Option<String>, GitError> {
    match found {
        Err(GitError::Failed { exit: Exit::Code(1), .. }) => Ok(None),
        found => found.map(Some),
    }
}

/// A repository in the tree of another one.
struct Nested {
    place: PathBuf,
    path: String,
    /// Its entry in the index.
    about: String,
}

fn nested_repositories(root: &Path, list: &[u8]) -> Result<Vec<Nested>, GitError> {
    let mut nested = Vec::new();
    for entry in list.split(|byte| *byte == 0).filter(|entry| entry.starts_with(b"160000 ")) {
        let Some((about, path)) = std::str::from_utf8(entry).ok().and_then(|entry| entry.split_once('\t')) else {
            return Err(GitError::Other("the path of a nested repository is no text".into()));
        };
        let place = root.join(path);
        if fs::symlink_metadata(place.join(".git")).is_ok() {
            nested.push(Nested { place, path: path.to_owned(), about: about.to_owned() });
        }
    }
    Ok(nested)
}

/// Removes pipes, which git cannot keep anyway: a pipe in the place of a file that git reads, such as `.gitignore`, would
/// block git for ever.
fn remove_pipes(folder: &Path) {
    // Not recursive: folders may be deep.
    let mut left = vec![folder.to_owned()];
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => left.push(entry.path()),
                Ok(kind) if kind.is_fifo() => drop(fs::remove_file(entry.path())),
                _ => {}
            }
        }
    }
}

/// The shared git directory of a tree and git's data folder for it, from the tree's own link. Only if the data folder points
/// back to the tree: a program may have changed the link.
fn linked_data(root: &Path) -> Option<(PathBuf, PathBuf)> {
    let link = read_small(&root.join(".git"))?;
    let data = fs::canonicalize(root.join(link.strip_prefix("gitdir:")?.trim())).ok()?;
    let common = fs::canonicalize(data.join(read_small(&data.join("commondir"))?.trim_end())).ok()?;
    (data_of(&common, root)? == data).then_some((common, data))
}

/// Reads a file of git with one line.
fn read_small(path: &Path) -> Option<String> {
    let is_small = fs::symlink_metadata(path).is_ok_and(|about| about.is_file() && about.len() < 64 * 1024);
    is_small.then(|| fs::read_to_string(path).ok()).flatten()
}

/// Git's data folder for a tree, if git knows the tree.
fn data_of(common: &Path, root: &Path) -> Option<PathBuf> {
    let root = fs::canonicalize(root).ok()?;
    let common = fs::canonicalize(common).ok()?;
    folders(&common.join("worktrees")).into_iter().find(|data| {
        let link = read_small(&data.join("gitdir")).unwrap_or_default();
        let tree = data.join(link.trim_end());
        tree.parent().and_then(|tree| fs::canonicalize(tree).ok()).is_some_and(|tree| tree == root)
    })
}

/// The first commit that a tree had checked out, from its reflog.
fn first_head(data: &Path) -> Option<String> {
    let log = regular_file::read_up_to(&data.join("logs/HEAD"), LONGEST_LOG).ok()?;
    String::from_utf8_lossy(&log).lines().next()?.split(' ').nth(1).map(str::to_owned)
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_folder = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind: fs::FileType| kind.is_dir());
    entries.filter(is_folder).map(|entry| entry.path()).collect()
}
