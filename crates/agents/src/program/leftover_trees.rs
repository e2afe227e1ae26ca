//! Cleans up what another server has left in the folder of worktrees, whether its record can be read or not.
//!
//! | found                            | what becomes of it                                                             |
//! |----------------------------------|--------------------------------------------------------------------------------|
//! | a record                         | the content is kept as the record says, the tree goes                          |
//! | a record that cannot be read     | it is set aside as `NAME.unreadable`; then as without a record                 |
//! | a tree without a record          | the content is kept by what git knows of the tree, the tree goes               |
//! | a folder that git knows nothing of | it is set aside as `NAME.lost`, unless it is empty                           |
//! | only `NAME.git` or `NAME.half`   | it goes                                                                        |

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::blocking::{self, blocking};
use super::git::{Git, GitError};
use super::regular_file;
use super::remove_folder::remove_folder;
use super::worktree::{Record, Tree};
use super::worktrees::{Claim, RECORD};

/// Suffixes of what was set aside for the operator.
const UNREADABLE: &str = "unreadable";
const LOST: &str = "lost";

/// The longest record in bytes: it has a few paths and hashes.
const LONGEST_RECORD: u64 = 1 << 20;

/// The names of all worktrees that have left something in the folder.
pub(super) fn names_in(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| PathBuf::from(entry.file_name()));
    let is_aside = |path: &PathBuf| path.extension().is_some_and(|end| end == UNREADABLE || end == LOST);
    let name = |path: PathBuf| path.file_stem().and_then(OsStr::to_str).map(str::to_owned);
    paths.filter(|path| !is_aside(path)).filter_map(name).collect()
}

/// Keeps the content of a leftover worktree and removes it. `known` has the repository and the refs of the task, if the task
/// itself asks.
pub(super) async fn clear_place(git: &Git, claim: Claim, known: Option<(&Path, &str)>) -> Result<Claim, GitError> {
    let paths = Paths::of(&claim);
    let claim = match blocking(blocking::SHORT, move || paths.look()).await?? {
        Found::Nothing => return Ok(claim),
        Found::Record(record) => {
            let tree = Tree::of_record(git.clone(), claim, record);
            tree.keep().await?;
            tree.remove().await
        }
        Found::TreeWithoutRecord => match Tree::without_record(git.clone(), claim, known).await? {
            Ok(tree) => {
                tracing::warn!(folder = %tree.root().display(), "a worktree has no record; its content is kept");
                tree.keep().await?;
                tree.remove().await
            }
            Err(claim) => claim,
        },
        Found::Rest => claim,
    };
    let paths = Paths::of(&claim);
    blocking(blocking::LONG, move || paths.clear()).await??;
    Ok(claim)
}

enum Found {
    Nothing,
    Record(Record),
    TreeWithoutRecord,
    Rest,
}

/// The paths of a worktree.
struct Paths {
    tree: PathBuf,
    record: PathBuf,
    unreadable: PathBuf,
    lost: PathBuf,
    own_git_dir: PathBuf,
    half_record: PathBuf,
}

impl Paths {
    fn of(claim: &Claim) -> Self {
        Self {
            tree: claim.path(None),
            record: claim.path(Some(RECORD)),
            unreadable: claim.path(Some(UNREADABLE)),
            lost: claim.path(Some(LOST)),
            own_git_dir: claim.path(Some("git")),
            half_record: claim.path(Some("half")),
        }
    }

    fn look(&self) -> Result<Found, GitError> {
        let failed = |error: io::Error| GitError::Other(format!("{}: {error}", self.record.display()));
        let unreadable = match regular_file::read_up_to(&self.record, LONGEST_RECORD) {
            Ok(text) => match serde_json::from_slice(&text) {
                Ok(record) => return Ok(Found::Record(record)),
                Err(error) => Some(error.to_string()),
            },
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            // There is something else than a file.
            Err(error) if error.kind() == ErrorKind::Other => Some(error.to_string()),
            // It may be readable next time.
            Err(error) => return Err(failed(error)),
        };
        if let Some(error) = unreadable {
            tracing::error!(error, record = %self.record.display(), "the record of a worktree is set aside");
            set_aside(&self.record, &self.unreadable).map_err(failed)?;
        }
        Ok(match (self.tree.is_dir(), self.own_git_dir.exists() || self.half_record.exists()) {
            (true, _) => Found::TreeWithoutRecord,
            (false, true) => Found::Rest,
            (false, false) => Found::Nothing,
        })
    }

    /// Removes what has no content to keep.
    fn clear(&self) -> Result<(), GitError> {
        let cleared = remove_folder(&self.own_git_dir).and_then(|()| match fs::remove_file(&self.half_record) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        });
        let cleared = cleared.and_then(|()| match fs::remove_dir(&self.tree) {
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {
                tracing::error!(folder = %self.tree.display(), "a worktree of which git knows nothing is set aside");
                set_aside(&self.tree, &self.lost)
            }
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        });
        cleared.map_err(|error| GitError::Other(format!("{}: {error}", self.tree.display())))
    }
}

/// Renames without overwriting what was set aside before.
fn set_aside(path: &Path, aside: &Path) -> io::Result<()> {
    let numbered = (2..).map(|number| {
        let ending = aside.extension().unwrap_or_default().display();
        aside.with_extension(format!("{number}.{ending}"))
    });
    let is_free = |aside: &PathBuf| fs::symlink_metadata(aside).is_err();
    let mut places = std::iter::once(aside.to_owned()).chain(numbered);
    fs::rename(path, places.find(is_free).expect("one of all numbers is free"))
}
