//! A git worktree for one task, and what was changed in it.
//!
//! The tree goes when the turn is over; its content stays in the repository under `refs/sabir/AGENT/TASK/work`, so that
//! the next turn of the task goes on from there and people can look at it
//! (`git diff refs/sabir/AGENT/TASK/base refs/sabir/AGENT/TASK/work`).

use std::path::{Path, PathBuf};

use tokio::process::Command;

use super::folder_name::folder_name;

/// A diff beyond this is cut; all of it is in the repository.
const LONGEST_DIFF: usize = 4 << 20;

pub(super) struct Worktree {
    repository: PathBuf,
    root: PathBuf,
    /// Where git keeps what it knows of the tree. It is named in every call: a program may have removed the tree's own link
    /// to it, and git would then find the repository around the tree.
    data: PathBuf,
    /// Where the program works: as deep in the tree as the workspace lies in its repository.
    pub folder: PathBuf,
    refs: String,
    /// What the task began with.
    base: String,
    /// An earlier turn has left something, which must not come back when this one undoes it.
    is_gone_on_with: bool,
}

impl Worktree {
    /// Makes a worktree of what the repository has checked out, or of what the task has left there, beside the
    /// repository's own data, so that nothing shows in the workspace.
    pub async fn open(repository: &Path, agent: &str, task: &str) -> Result<Self, String> {
        let data = git(repository, &["rev-parse", "--path-format=absolute", "--git-common-dir"]).await?;
        let prefix = git(repository, &["rev-parse", "--show-prefix"]).await?;
        // Two agents may have one repository, and a caller who chooses ids may give one to both.
        let name = format!("{}/{}", folder_name(agent), folder_name(task));
        let refs = format!("refs/sabir/{name}");
        let known = |which: &str| [format!("{refs}/{which}^{{commit}}")];
        let left = git(repository, &["rev-parse", "--verify", "--quiet", &known("work")[0]]).await.ok();
        let base = match &left {
            Some(_) => git(repository, &["rev-parse", "--verify", &known("base")[0]]).await?,
            None => git(repository, &["rev-parse", "--verify", "HEAD^{commit}"]).await.map_err(|_| {
                format!("{} has no commit yet, so there is nothing to make a worktree of", repository.display())
            })?,
        };
        let base = base.trim().to_owned();
        let start = left.as_deref().map_or(base.as_str(), str::trim);
        let root = Path::new(data.trim()).join("sabir-worktrees").join(&name);
        if root.exists() {
            // Left behind by a server that was killed.
            remove(repository, &root).await;
        }
        git(repository, &["worktree", "prune"]).await?;
        git(repository, &["worktree", "add", "--quiet", "--detach", &root.to_string_lossy(), start]).await?;
        let own = git(&root, &["rev-parse", "--absolute-git-dir"]).await?;
        let own = PathBuf::from(own.trim());
        let folder = root.join(prefix.trim());
        let made = std::fs::create_dir_all(&folder);
        made.map_err(|error| format!("{}: {error}", folder.display()))?;
        let is_gone_on_with = left.is_some();
        Ok(Self { repository: repository.into(), root, data: own, folder, refs, base, is_gone_on_with })
    }

    /// All that differs from where the task began: committed, changed and new. Empty: nothing. What is there is kept in the
    /// repository.
    pub async fn keep(&self) -> Result<Vec<u8>, String> {
        // A program that was stopped in the midst of a commit leaves its lock.
        let _ = std::fs::remove_file(self.data.join("index.lock"));
        // What git cannot take, such as a repository without a commit, does not cost the rest.
        if let Err(error) = self.git(&["add", "--all", "--ignore-errors"]).await {
            tracing::warn!(error, folder = %self.root.display(), "not all changes of a task can be kept");
        }
        let tree = self.git(&["write-tree"]).await?;
        // Not `git diff`: how that looks is for people to choose, and a patch has to be applied.
        let comparing =
            ["diff-tree", "-p", "-M", "--binary", "--no-ext-diff", "--no-textconv", &self.base, tree.trim()];
        let mut diff = self.output(&comparing).await?;
        if diff.is_empty() && !self.is_gone_on_with {
            return Ok(diff);
        }
        let commit = self.git(&["commit-tree", tree.trim(), "-p", "HEAD", "-m", "What a task changed"]).await?;
        self.git(&["update-ref", &format!("{}/base", self.refs), &self.base]).await?;
        self.git(&["update-ref", &format!("{}/work", self.refs), commit.trim()]).await?;
        if diff.len() > LONGEST_DIFF {
            let is_inside = |byte: &u8| byte & 0xc0 == 0x80;
            let end = (0..=LONGEST_DIFF).rev().find(|at| !is_inside(&diff[*at])).unwrap_or(0);
            diff.truncate(end);
            let rest = format!("\n[cut here; the rest: git diff {0}/base {0}/work]\n", self.refs);
            diff.extend_from_slice(rest.as_bytes());
        }
        Ok(diff)
    }

    async fn git(&self, arguments: &[&str]) -> Result<String, String> {
        self.output(arguments).await.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    async fn output(&self, arguments: &[&str]) -> Result<Vec<u8>, String> {
        let (data, root) = (self.data.to_string_lossy(), self.root.to_string_lossy());
        let place = [format!("--git-dir={data}"), format!("--work-tree={root}")];
        let arguments: Vec<&str> = place.iter().map(String::as_str).chain(arguments.iter().copied()).collect();
        output(&self.root, &arguments).await
    }

    pub async fn remove(self) {
        remove(&self.repository, &self.root).await;
    }
}

async fn remove(repository: &Path, root: &Path) {
    if let Err(error) = git(repository, &["worktree", "remove", "--force", &root.to_string_lossy()]).await {
        tracing::warn!(error, folder = %root.display(), "a worktree could not be removed by git");
        let _ = std::fs::remove_dir_all(root);
    }
}

async fn git(folder: &Path, arguments: &[&str]) -> Result<String, String> {
    output(folder, arguments).await.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

async fn output(folder: &Path, arguments: &[&str]) -> Result<Vec<u8>, String> {
    let output = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(["-c", "user.name=Sabir", "-c", "user.email=sabir@localhost"])
        // What a program puts into the repository's settings is not run here, where no guard looks after it.
        .args(["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"])
        .args(arguments)
        // What these say is about another repository.
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env_remove("GIT_INDEX_FILE")
        .env_remove("GIT_COMMON_DIR")
        .env_remove("GIT_OBJECT_DIRECTORY")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("LC_ALL", "C")
        .stdin(std::process::Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .map_err(|error| format!("git cannot be run: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let what = arguments.iter().find(|argument| !argument.starts_with('-')).unwrap_or(&"");
        return Err(format!("git {what}: {}", said.trim()));
    }
    Ok(output.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    async fn repository(folder: &Path) {
        git(folder, &["init", "--quiet"]).await.unwrap();
        fs::create_dir(folder.join("sub")).unwrap();
        fs::write(folder.join("sub/file"), "one\n").unwrap();
        git(folder, &["add", "."]).await.unwrap();
        git(folder, &["commit", "--quiet", "-m", "first"]).await.unwrap();
    }

    async fn kept(tree: &Worktree) -> String {
        String::from_utf8(tree.keep().await.unwrap()).unwrap()
    }

    #[tokio::test]
    async fn the_next_turn_goes_on_where_the_last_one_ended() {
        let home = tempfile::tempdir().unwrap();
        repository(home.path()).await;
        let workspace = home.path().join("sub");
        let tree = Worktree::open(&workspace, "a", "t/1").await.unwrap();
        assert_eq!(fs::read_to_string(tree.folder.join("file")).unwrap(), "one\n");
        fs::write(tree.folder.join("file"), "two\n").unwrap();
        fs::write(tree.folder.join("made"), "new\n").unwrap();
        let diff = kept(&tree).await;
        assert!(diff.contains("-one\n+two\n") && diff.contains("sub/made"), "{diff}");
        let root = tree.root.clone();
        tree.remove().await;
        assert!(!root.exists());

        let tree = Worktree::open(&workspace, "a", "t/1").await.unwrap();
        assert_eq!(fs::read_to_string(tree.folder.join("made")).unwrap(), "new\n");
        fs::write(tree.folder.join("file"), "three\n").unwrap();
        let diff = kept(&tree).await;
        assert!(diff.contains("-one\n+three\n") && diff.contains("sub/made"), "{diff}");
        // A server that was killed leaves the folder; the next one takes over.
        drop(tree);
        Worktree::open(&workspace, "a", "t/1").await.unwrap().remove().await;
        assert_eq!(fs::read_to_string(workspace.join("file")).unwrap(), "one\n");
        assert_eq!(git(home.path(), &["status", "--porcelain"]).await.unwrap(), "");
    }

    #[tokio::test]
    async fn what_cannot_be_done_is_said() {
        let home = tempfile::tempdir().unwrap();
        assert!(Worktree::open(home.path(), "a", "t").await.err().unwrap().contains("git"));
        git(home.path(), &["init", "--quiet"]).await.unwrap();
        assert!(Worktree::open(home.path(), "a", "t").await.err().unwrap().contains("no commit yet"));
        git(home.path(), &["commit", "--quiet", "--allow-empty", "-m", "first"]).await.unwrap();
        let tree = Worktree::open(home.path(), "a", "t").await.unwrap();
        assert_eq!(kept(&tree).await, "");
        tree.remove().await;
    }

    #[tokio::test]
    async fn what_is_undone_stays_undone() {
        let home = tempfile::tempdir().unwrap();
        repository(home.path()).await;
        for (text, expected) in [("two\n", "-one\n+two\n"), ("one\n", "")] {
            let tree = Worktree::open(home.path(), "a", "t").await.unwrap();
            fs::write(tree.folder.join("sub/file"), text).unwrap();
            assert!(kept(&tree).await.ends_with(expected));
            tree.remove().await;
        }
        let tree = Worktree::open(home.path(), "a", "t").await.unwrap();
        assert_eq!(fs::read_to_string(tree.folder.join("sub/file")).unwrap(), "one\n");
        tree.remove().await;
    }

    #[tokio::test]
    async fn what_git_cannot_take_does_not_cost_the_rest() {
        let home = tempfile::tempdir().unwrap();
        repository(home.path()).await;
        let tree = Worktree::open(home.path(), "a", "t").await.unwrap();
        git(&tree.folder, &["init", "--quiet", "empty"]).await.unwrap();
        fs::write(tree.folder.join("made"), b"caf\xe9\n").unwrap();
        // Where it was stopped in the midst of a commit.
        let lock =
            git(&tree.folder, &["rev-parse", "--path-format=absolute", "--git-path", "index.lock"]).await.unwrap();
        fs::write(lock.trim(), "").unwrap();
        let diff = tree.keep().await.unwrap();
        assert!(diff.ends_with(b"+caf\xe9\n"), "{}", String::from_utf8_lossy(&diff));
        tree.remove().await;
    }

    #[tokio::test]
    async fn a_tree_without_its_link_is_not_taken_for_the_repository() {
        let home = tempfile::tempdir().unwrap();
        repository(home.path()).await;
        // Of the operator, who is in the midst of something.
        fs::write(home.path().join("secret"), "staged\n").unwrap();
        git(home.path(), &["add", "."]).await.unwrap();
        fs::write(home.path().join(".git/index.lock"), "").unwrap();
        let tree = Worktree::open(home.path(), "a", "t").await.unwrap();
        fs::write(tree.folder.join("made"), "new\n").unwrap();
        fs::remove_file(tree.folder.join(".git")).unwrap();
        let diff = kept(&tree).await;
        assert!(diff.contains("+new") && !diff.contains("staged"), "{diff}");
        assert!(home.path().join(".git/index.lock").exists());
        let root = tree.root.clone();
        tree.remove().await;
        assert!(!root.exists());
    }

    #[tokio::test]
    async fn the_settings_of_people_do_not_change_the_patch() {
        let home = tempfile::tempdir().unwrap();
        repository(home.path()).await;
        for (name, value) in [("diff.external", "false"), ("diff.noprefix", "true"), ("color.ui", "always")] {
            git(home.path(), &["config", name, value]).await.unwrap();
        }
        let tree = Worktree::open(home.path(), "a", "t").await.unwrap();
        fs::write(tree.folder.join("sub/file"), "two\n").unwrap();
        let diff = kept(&tree).await;
        assert!(diff.starts_with("diff --git a/sub/file b/sub/file\n") && diff.ends_with("-one\n+two\n"), "{diff}");
        tree.remove().await;
    }

    #[tokio::test]
    async fn one_id_at_two_agents_is_two_tasks() {
        let home = tempfile::tempdir().unwrap();
        repository(home.path()).await;
        let one = Worktree::open(home.path(), "a", "t").await.unwrap();
        fs::write(one.folder.join("made"), "one\n").unwrap();
        let other = Worktree::open(home.path(), "b", "t").await.unwrap();
        assert!(!other.folder.join("made").exists());
        assert!(kept(&one).await.contains("+one"));
        assert_eq!(kept(&other).await, "");
        one.remove().await;
        other.remove().await;
    }
}
