//! Files in which git keeps what it knows about worktrees.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::regular_file;

/// How many bytes the reflog of a tree's HEAD may have.
const LONGEST_LOG: u64 = 16 << 20;

/// The shared git directory of a tree and git's data folder for it, from the tree's own link. Only if the data folder points
/// back to the tree: a program may have changed the link.
pub(super) fn linked_data(root: &Path) -> Option<(PathBuf, PathBuf)> {
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
pub(super) fn data_of(common: &Path, root: &Path) -> Option<PathBuf> {
    let root = fs::canonicalize(root).ok()?;
    let common = fs::canonicalize(common).ok()?;
    folders(&common.join("worktrees")).into_iter().find(|data| {
        let link = read_small(&data.join("gitdir")).unwrap_or_default();
        let tree = data.join(link.trim_end());
        tree.parent().and_then(|tree| fs::canonicalize(tree).ok()).is_some_and(|tree| tree == root)
    })
}

/// The first commit that a tree had checked out, from its reflog.
pub(super) fn first_head(data: &Path) -> Option<String> {
    let log = regular_file::read_up_to(&data.join("logs/HEAD"), LONGEST_LOG).ok()?;
    String::from_utf8_lossy(&log).lines().next()?.split(' ').nth(1).map(str::to_owned)
}

pub(super) fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_folder = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind: fs::FileType| kind.is_dir());
    entries.filter(is_folder).map(|entry| entry.path()).collect()
}
