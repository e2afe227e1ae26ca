//! A git worktree for one task, and what was changed in it.
//!
//! The tree goes when the turn is over; its content stays in the repository under `refs/sabir/AGENT/NAME/work`, so that
//! the next turn of the task goes on from there and people can look at it
//! (`git diff refs/sabir/AGENT/NAME/base refs/sabir/AGENT/NAME/work`). The name is the task's id and a hash of owner, agent
//! and id, since ids repeat.
//!
//! Keeping the content is a task of its own. Whoever waits for the diff may go away, and a turn may be dropped at any point:
//! the content is kept all the same, after the program has ended. If the server itself is killed meanwhile, tree and record
//! are found by the next one. So a tree is removed only after its content is kept.
//!
//! | in the folder of worktrees | what it is                                                              |
//! |----------------------------|-------------------------------------------------------------------------|
//! | `NAME`                     | the tree                                                                |
//! | `NAME.json`                | the record: there from before the tree is made until after it is gone   |
//! | `NAME.git`                 | git's directory while Sabir runs git (`OwnGitDir`)                      |

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use sabir_model::Owner;
use serde::{Deserialize, Serialize};
use tokio::sync::{oneshot, watch};

use super::Host;
use super::folder_name::folder_name;
use super::git::{Git, OwnGitDir, remove_folder};
use super::worktrees::{Claim, RECORD};
use crate::protocol::Exit;

/// A diff beyond this is cut; all of it is in the repository.
const LONGEST_DIFF: usize = 4 << 20;

/// What the list of an index may take: some hundred thousand files.
const LONGEST_LIST: usize = 256 << 20;

/// Where worktrees lay in earlier versions, in the repository's own data.
const OLD_PLACE: &str = "sabir-worktrees";

/// The worktree of a turn. If it is dropped, its content is kept as soon as the program has ended.
pub struct Worktree {
    tree: Option<Tree>,
    /// Where the program works: as deep in the tree as the workspace lies in its repository.
    pub folder: PathBuf,
    ended: Option<watch::Receiver<Option<Exit>>>,
}

impl Worktree {
    /// Makes a worktree of what the repository has checked out, or of what the task has left there.
    pub async fn open(host: &Host, workspace: &Path, owner: &Owner, agent: &str, task: &str) -> Result<Self, String> {
        let git = Git(host.clone());
        let hash = git.hash(&format!("{}\0{agent}\0{task}", owner.as_key())).await?;
        let name = format!("{}-{}", folder_name(task), hash.get(..16).unwrap_or(&hash));
        let mut claim = host.worktrees.claim(&name).await;
        let places = ["rev-parse", "--path-format=absolute", "--git-common-dir", "--show-prefix"].map(OsStr::new);
        let places = git.in_repository(workspace, &places).await?;
        let (common, prefix) = places.split_once('\n').unwrap_or((&places, ""));
        let repository = Repository { git, common: PathBuf::from(common) };
        repository.keep_old_places(host).await;
        host.worktrees.make_folder()?;
        if claim.path(Some(RECORD)).exists() {
            // A server was killed while the task ran. The task resumes from what it left.
            let left = Tree::left_behind(repository.git.clone(), claim)?;
            left.keep().await?;
            claim = left.remove();
        }
        let refs = format!("refs/sabir/{}/{name}", folder_name(agent));
        let old_refs = format!("refs/sabir/{}/{}", folder_name(agent), folder_name(task));
        let mut left = repository.commit(&format!("{refs}/work")).await.map(|work| (work, refs.clone()));
        let mut is_old = false;
        if left.is_none() && *owner == Owner::anonymous() {
            // Earlier versions knew one owner, and no hash.
            left = repository.commit(&format!("{old_refs}/work")).await.map(|work| (work, old_refs.clone()));
            is_old = left.is_some();
        }
        let base = match &left {
            Some((_, refs)) => repository.commit(&format!("{refs}/base")).await,
            // Of the workspace, which may be a worktree itself.
            None => {
                let head = ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"].map(OsStr::new);
                repository.git.in_repository(workspace, &head).await.ok()
            }
        };
        let base = base.ok_or_else(|| {
            format!("{} has no commit yet, so there is nothing to make a worktree of", workspace.display())
        })?;
        let continues = left.is_some();
        let start = left.map_or_else(|| base.clone(), |(work, _)| work);
        let old_refs = is_old.then_some(old_refs);
        let record = Record { common: repository.common, refs, base, continues, old_refs, tree_data: None };
        let root = claim.path(None);
        let tree = Tree { git: repository.git, root: root.clone(), record, place: OwnPlace::Beside(claim) };
        tree.write_record()?;
        let mut worktree = Self { folder: root.join(prefix), tree: Some(tree), ended: None };
        if let Some(tree) = &mut worktree.tree {
            tree.check_out(workspace, &start).await?;
        }
        let made = fs::create_dir_all(&worktree.folder);
        made.map_err(|error| format!("{}: {error}", worktree.folder.display()))?;
        Ok(worktree)
    }

    /// The program that works in the tree. Nothing is kept before it has ended.
    pub fn is_used_until(&mut self, ended: watch::Receiver<Option<Exit>>) {
        self.ended = Some(ended);
    }

    /// Where the content will be found in the repository.
    pub fn work_ref(&self) -> String {
        self.tree.as_ref().map_or_else(String::new, |tree| format!("{}/work", tree.record.refs))
    }

    /// Keeps the content and removes the tree, whether the diff is waited for or not.
    pub fn keep(mut self) -> oneshot::Receiver<Result<Vec<u8>, String>> {
        let (sender, receiver) = oneshot::channel();
        self.keep_for(Some(sender));
        receiver
    }

    fn keep_for(&mut self, waiting: Option<oneshot::Sender<Result<Vec<u8>, String>>>) {
        let Some(tree) = self.tree.take() else { return };
        // Without a runtime nothing can be done; the next start finds the tree.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let ended = self.ended.take();
        runtime.spawn(async move {
            if let Some(mut ended) = ended {
                let _ = ended.wait_for(Option::is_some).await;
            }
            let kept = tree.keep().await;
            match &kept {
                Ok(_) => drop(tree.remove()),
                // What cannot be kept stays where it is. The next sweep tries again.
                Err(error) => tracing::error!(error, refs = tree.record.refs, "the changes of a task cannot be kept"),
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

/// A repository of an agent.
struct Repository {
    git: Git,
    /// What all its worktrees share.
    common: PathBuf,
}

impl Repository {
    async fn commit(&self, name: &str) -> Option<String> {
        commit(&self.git, &self.common, name).await
    }

    /// Keeps and removes the trees of servers of earlier versions that were killed.
    async fn keep_old_places(&self, host: &Host) {
        let old = self.common.join(OLD_PLACE);
        if !old.exists() {
            return;
        }
        let _claim = host.worktrees.claim(&old.to_string_lossy()).await;
        for agent in folders(&old) {
            for root in folders(&agent) {
                let name = root.strip_prefix(&old).unwrap_or(&root).to_string_lossy().into_owned();
                let refs = format!("refs/sabir/{name}");
                let tree_data = data_of(&self.common, &root);
                let place = tree_data.as_deref().unwrap_or(&self.common);
                let head = commit(&self.git, place, "HEAD").await;
                let base = match self.commit(&format!("{refs}/base")).await {
                    Some(base) => base,
                    None => match first_head(place).or(head) {
                        Some(base) => base,
                        None => continue,
                    },
                };
                let continues = self.commit(&format!("{refs}/work")).await.is_some();
                let record = Record { common: self.common.clone(), refs, base, continues, old_refs: None, tree_data };
                let tree = Tree { git: self.git.clone(), root, record, place: OwnPlace::Old(old.join("git")) };
                match tree.keep().await {
                    Ok(_) => tree.remove_files(),
                    Err(error) => tracing::error!(error, name, "what a task has left cannot be kept"),
                }
            }
            let _ = fs::remove_dir(&agent);
        }
        let _ = fs::remove_dir(&old);
    }
}

/// What is known of a worktree, also by a server that did not make it.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    /// What all worktrees of the repository share.
    common: PathBuf,
    refs: String,
    /// What the task began with.
    base: String,
    /// An earlier turn has left something, which must not come back when this one undoes it.
    continues: bool,
    /// Where an earlier version kept the content.
    old_refs: Option<String>,
    /// Where git keeps what it knows of the tree. A program may have removed the tree's own link to it. `None`: the tree is
    /// not whole yet, so no program has worked there.
    tree_data: Option<PathBuf>,
}

/// Where the things lie that belong to a tree.
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
    /// A tree that another server has made.
    pub fn left_behind(git: Git, claim: Claim) -> Result<Self, String> {
        let path = claim.path(Some(RECORD));
        let failed = |error: String| format!("{}: {error}", path.display());
        let text = fs::read(&path).map_err(|error| failed(error.to_string()))?;
        let record = serde_json::from_slice(&text).map_err(|error| failed(error.to_string()))?;
        Ok(Self { git, root: claim.path(None), record, place: OwnPlace::Beside(claim) })
    }

    /// Replaces the record as a whole, so that half of one is never read.
    fn write_record(&self) -> Result<(), String> {
        let OwnPlace::Beside(claim) = &self.place else { return Ok(()) };
        let path = claim.path(Some(RECORD));
        let half = claim.path(Some("half"));
        let text = serde_json::to_vec(&self.record).map_err(|error| error.to_string())?;
        let written = fs::write(&half, text).and_then(|()| fs::rename(&half, &path));
        written.map_err(|error| format!("{}: {error}", path.display()))
    }

    async fn check_out(&mut self, workspace: &Path, start: &str) -> Result<(), String> {
        // With `--force` a tree that git still knows of, and whose folder is gone, is no hindrance.
        let add = ["worktree", "add", "--quiet", "--detach", "--no-checkout", "--force"].map(OsStr::new);
        let add: Vec<&OsStr> = add.into_iter().chain([self.root.as_os_str(), OsStr::new(start)]).collect();
        self.git.in_repository(workspace, &add).await?;
        let data = ["rev-parse", "--absolute-git-dir"].map(OsStr::new);
        let data = PathBuf::from(self.git.in_repository(&self.root, &data).await?);
        let own = self.own_git_dir(&data).await?;
        own.git(&["read-tree", "-u", "--reset", start]).await?;
        own.give_index(&data).map_err(|error| format!("{}: {error}", data.display()))?;
        drop(own);
        self.record.tree_data = Some(data);
        self.write_record()
    }

    async fn own_git_dir(&self, data: &Path) -> Result<OwnGitDir<'_>, String> {
        let folder = match &self.place {
            OwnPlace::Beside(claim) => claim.path(Some("git")),
            OwnPlace::Old(folder) => folder.clone(),
        };
        OwnGitDir::make(&self.git, folder, &self.root, data, &self.record.common).await
    }

    /// All that differs from where the task began: committed, changed and new. Empty: nothing. What is there is kept in the
    /// repository.
    pub async fn keep(&self) -> Result<Vec<u8>, String> {
        let Record { common: _, refs, base, continues, old_refs, tree_data } = &self.record;
        let Some(data) = tree_data.as_deref().filter(|_| self.root.is_dir()) else { return Ok(Vec::new()) };
        let head = commit(&self.git, data, "HEAD").await.unwrap_or_else(|| base.clone());
        let own = self.own_git_dir(data).await?;
        let has_index = own.take_index(data).unwrap_or(false);
        let tree = match has_index {
            true => self.add_all(&own).await,
            false => Err("there is no index".into()),
        };
        let tree = match tree {
            Ok(tree) => tree,
            // The program has left none, or one that cannot be read.
            Err(_) => {
                own.git(&["read-tree", &head]).await?;
                self.add_all(&own).await?
            }
        };
        let base_tree = own.git(&["rev-parse", &format!("{base}^{{tree}}")]).await?;
        if tree == base_tree && !continues {
            return Ok(Vec::new());
        }
        let message = "What a task changed";
        let commit = own.git(&["commit-tree", "--no-gpg-sign", &tree, "-p", &head, "-m", message]).await?;
        // The commit is what the work is found by, so it comes last.
        for (name, id) in [("base", base), ("work", &commit)] {
            self.in_repository(&["update-ref", &format!("{refs}/{name}"), id]).await?;
        }
        for name in ["work", "base"] {
            if let Some(old) = old_refs {
                let _ = self.in_repository(&["update-ref", "-d", &format!("{old}/{name}")]).await;
            }
        }
        // Not `git diff`: how that looks is for people to choose, and a patch has to be applied.
        let comparing = ["diff-tree", "-p", "-M", "--binary", "--no-ext-diff", "--no-textconv", base, &tree];
        let printed = own.output(&comparing, LONGEST_DIFF).await?;
        let mut diff = printed.bytes;
        if printed.is_cut {
            let is_inside = |byte: &u8| byte & 0xc0 == 0x80;
            // No character is longer than four bytes.
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

    /// Puts all files of the tree into the index, and returns the tree that it makes.
    async fn add_all(&self, own: &OwnGitDir<'_>) -> Result<String, String> {
        let nested = self.note_nested_repositories(own).await?;
        let mut add = vec!["add", "--all", "--ignore-errors", "--", "."];
        add.extend(nested.iter().map(String::as_str));
        if own.git(&add).await.is_err() {
            // A file that a filter or an encoding refuses costs all others. As they are, all can be taken.
            let nothing = own.git(&["hash-object", "-t", "tree", "/dev/null"]).await?;
            let plain = format!("--attr-source={nothing}");
            add.insert(0, &plain);
            if let Err(error) = own.git(&add).await {
                // What git cannot take, such as a repository without a commit, does not cost the rest.
                tracing::warn!(error, folder = %self.root.display(), "not all changes of a task can be kept");
            }
        }
        // A partial clone lacks the contents of files that nobody has looked at.
        own.git(&["write-tree", "--missing-ok"]).await
    }

    /// Notes where the HEADs of nested repositories stand, and returns patterns that leave these out. Git would look for
    /// changes in them with a command that obeys their settings.
    async fn note_nested_repositories(&self, own: &OwnGitDir<'_>) -> Result<Vec<String>, String> {
        let list = own.output(&["ls-files", "--stage", "-z"], LONGEST_LIST).await?;
        if list.is_cut {
            return Err("there are too many files".into());
        }
        let mut patterns = Vec::new();
        for entry in list.bytes.split(|byte| *byte == 0).filter(|entry| entry.starts_with(b"160000 ")) {
            let Some((about, path)) = std::str::from_utf8(entry).ok().and_then(|entry| entry.split_once('\t')) else {
                return Err("the path of a nested repository is no text".into());
            };
            let place = self.root.join(path);
            if fs::symlink_metadata(place.join(".git")).is_err() {
                continue;
            }
            patterns.push(format!(":(top,exclude,literal){path}"));
            let head = ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"].map(OsStr::new);
            if let Ok(head) = self.git.in_repository(&place, &head).await
                && !about.contains(&head)
            {
                own.git(&["update-index", "--cacheinfo", &format!("160000,{head},{path}")]).await?;
            }
        }
        Ok(patterns)
    }

    async fn in_repository(&self, arguments: &[&str]) -> Result<String, String> {
        at(&self.git, &self.record.common, arguments).await
    }

    /// Removes the tree. Its content must be kept.
    pub fn remove(self) -> Claim {
        self.remove_files();
        match self.place {
            OwnPlace::Beside(claim) => claim,
            OwnPlace::Old(_) => unreachable!("only trees beside the database are claimed"),
        }
    }

    fn remove_files(&self) {
        let data = data_of(&self.record.common, &self.root);
        let mut removed = remove_folder(&self.root);
        if let Some(data) = data {
            removed = removed.and(remove_folder(&data));
        }
        if let OwnPlace::Beside(claim) = &self.place
            && removed.is_ok()
        {
            removed = remove_folder(&claim.path(Some("git"))).and(fs::remove_file(claim.path(Some(RECORD))));
        }
        if let Err(error) = removed {
            tracing::warn!(%error, folder = %self.root.display(), "a worktree cannot be removed");
        }
    }
}

/// A command on a git directory.
async fn at(git: &Git, git_dir: &Path, arguments: &[&str]) -> Result<String, String> {
    let place = OsString::from_iter([OsStr::new("--git-dir="), git_dir.as_os_str()]);
    let arguments: Vec<&OsStr> = std::iter::once(&*place).chain(arguments.iter().map(OsStr::new)).collect();
    git.in_repository(git_dir, &arguments).await
}

async fn commit(git: &Git, git_dir: &Path, name: &str) -> Option<String> {
    at(git, git_dir, &["rev-parse", "--verify", "--quiet", &format!("{name}^{{commit}}")]).await.ok()
}

/// Where git keeps what it knows of a tree, if it knows of it.
fn data_of(common: &Path, root: &Path) -> Option<PathBuf> {
    let root = fs::canonicalize(root).ok()?;
    folders(&common.join("worktrees")).into_iter().find(|data| {
        let link = fs::read_to_string(data.join("gitdir")).unwrap_or_default();
        let tree = data.join(link.trim_end());
        tree.parent().and_then(|tree| fs::canonicalize(tree).ok()).is_some_and(|tree| tree == root)
    })
}

/// The first commit that a tree had checked out, if git has noted it.
fn first_head(data: &Path) -> Option<String> {
    let log = fs::read_to_string(data.join("logs/HEAD")).ok()?;
    log.lines().next()?.split(' ').nth(1).map(str::to_owned)
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_folder = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind: fs::FileType| kind.is_dir());
    entries.filter(is_folder).map(|entry| entry.path()).collect()
}
