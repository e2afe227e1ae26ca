//! Keeps the content of a tree as a commit in its repository, and computes its diff.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use super::super::blocking::{self, blocking};
use super::super::git::{GitError, OwnGitDir};
use super::repository::head;
use super::tree::{Record, Tree};

/// Longer diffs are cut; the repository has all of it.
const LONGEST_DIFF: usize = 4 << 20;

/// How many bytes the list of an index may have: some hundred thousand files.
const LONGEST_LIST: usize = 256 << 20;

/// How many nested repositories are updated in the index. The rest stays as the task found it: each needs a command.
const MOST_NESTED: usize = 100;

impl Tree {
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
