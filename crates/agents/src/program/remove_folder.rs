//! Removes folders that a program has written to, however deep they are nested.
//!
//! The standard library removes folders recursively, with a descriptor for each level. A program that nests ten thousand
//! folders would overflow the stack and end the whole server. Here a nested folder is first moved up, next to its parent, so
//! nothing is ever deeper than two levels. Links are never followed.

use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, chmodat, fchmod, openat, renameat, statat, unlinkat};
use rustix::io::Errno;

/// How often to retry if somebody else removes the folder at the same time.
const ATTEMPTS: usize = 1_000;

/// Removes a folder with all that is in it, if it is there. Some tools write-protect the folders that they make. Others may
/// remove the same folder at the same time.
pub(super) fn remove_folder(folder: &Path) -> io::Result<()> {
    let mut attempts = ATTEMPTS;
    loop {
        attempts -= 1;
        let Err(error) = empty(folder).and_then(|()| fs::remove_dir(folder)) else { return Ok(()) };
        if is_gone(folder) {
            return Ok(());
        }
        if attempts == 0 || !is_changed_meanwhile(&error) {
            return Err(error);
        }
    }
}

fn is_gone(folder: &Path) -> bool {
    fs::symlink_metadata(folder).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Whether the error is due to somebody who has removed an entry, or has moved a folder to its place or next to it.
fn is_changed_meanwhile(error: &io::Error) -> bool {
    use io::ErrorKind::{DirectoryNotEmpty, IsADirectory, NotFound};
    matches!(error.kind(), NotFound | DirectoryNotEmpty | IsADirectory)
}

fn empty(folder: &Path) -> io::Result<()> {
    let about = fs::symlink_metadata(folder)?;
    if !about.is_dir() {
        return Err(io::Error::from(io::ErrorKind::NotADirectory));
    }
    let top = open(CWD, &CString::new(folder.as_os_str().as_encoded_bytes())?)?;
    let mut inner = Vec::new();
    for (name, is_folder) in entries(&top)? {
        match is_folder {
            true => inner.push(name),
            false => allowed(&top, || unlinkat(&top, &name, AtFlags::empty()))?,
        }
    }
    let mut moved = 0_u64;
    while let Some(name) = inner.pop() {
        let opened = open(&top, &name)?;
        for (entry, is_folder) in entries(&opened)? {
            if !is_folder {
                allowed(&opened, || unlinkat(&opened, &entry, AtFlags::empty()))?;
                continue;
            }
            inner.push(move_up(&opened, &entry, &top, &mut moved)?);
        }
        allowed(&top, || unlinkat(&top, &name, AtFlags::REMOVEDIR))?;
    }
    Ok(())
}

/// Moves a folder to a name in `top` that is free.
fn move_up(from: &OwnedFd, name: &CStr, top: &OwnedFd, moved: &mut u64) -> io::Result<CString> {
    loop {
        *moved += 1;
        let place = CString::new(format!("removed-{moved}"))?;
        let mut renamed = renameat(from, name, top, &place);
        if renamed == Err(Errno::ACCESS) {
            // A folder that is moved must be writable too, since its `..` changes.
            for dir in [from, top] {
                fchmod(dir, Mode::RWXU)?;
            }
            chmodat(from, name, Mode::RWXU, AtFlags::empty())?;
            renamed = renameat(from, name, top, &place);
        }
        match renamed {
            Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR | Errno::ISDIR) => {}
            renamed => return renamed.map(|()| place).map_err(io::Error::from),
        }
    }
}

/// Opens a folder, and makes it readable if necessary.
fn open(parent: impl AsFd, name: &CStr) -> io::Result<OwnedFd> {
    let open = || {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(&parent, name, flags, Mode::empty())
    };
    match open() {
        Err(Errno::ACCESS) => {
            chmodat(&parent, name, Mode::RWXU, AtFlags::empty())?;
            Ok(open()?)
        }
        opened => Ok(opened?),
    }
}

/// Makes the change, and makes the folder writable first if necessary.
fn allowed(folder: &OwnedFd, change: impl Fn() -> rustix::io::Result<()>) -> io::Result<()> {
    let done = match change() {
        Err(Errno::ACCESS) => fchmod(folder, Mode::RWXU).and_then(|()| change()),
        done => done,
    };
    match done {
        Err(Errno::NOENT) => Ok(()),
        done => Ok(done?),
    }
}

/// The names in a folder, and which of them are folders.
fn entries(folder: &OwnedFd) -> io::Result<Vec<(CString, bool)>> {
    let mut found = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(about) => FileType::from_raw_mode(about.st_mode),
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(error.into()),
            },
            kind => kind,
        };
        found.push((name.to_owned(), kind == FileType::Directory));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::thread;

    use rustix::fs::mkdirat;

    use super::*;

    /// Makes folders in each other, deeper than any path can name.
    fn make_deep(folder: &Path, depth: usize) {
        let mut inner = open(CWD, &CString::new(folder.as_os_str().as_encoded_bytes()).unwrap()).unwrap();
        for _ in 0..depth {
            mkdirat(&inner, "removed-1", Mode::RWXU).unwrap();
            inner = open(&inner, c"removed-1").unwrap();
        }
    }

    #[test]
    fn however_deep_a_folder_is_it_goes() {
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path().join("tree");
        fs::create_dir(&tree).unwrap();
        make_deep(&tree, 10_000);
        remove_folder(&tree).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    /// Two turns of a task that end together remove the same folders.
    #[test]
    fn a_folder_that_is_removed_twice_at_the_same_time_goes() {
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path().join("tree");
        for round in 0..50 {
            for inner in ["a/b/c/d", "a/b/e/f", "a/g", "h/i/j"] {
                fs::create_dir_all(tree.join(inner)).unwrap();
                fs::write(tree.join(inner).join("file"), "x").unwrap();
            }
            thread::scope(|threads| {
                for removal in [0; 2].map(|_| threads.spawn(|| remove_folder(&tree))) {
                    removal.join().unwrap().unwrap();
                }
            });
            assert!(!tree.exists(), "round {round}");
        }
    }

    #[test]
    fn all_kinds_of_files_go_and_what_links_lead_to_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (tree, outside) = (folder.path().join("tree"), folder.path().join("outside"));
        fs::create_dir_all(outside.join("a")).unwrap();
        fs::create_dir_all(tree.join("a/b/removed-1")).unwrap();
        fs::create_dir_all(tree.join("c/empty")).unwrap();
        for file in ["removed-1", "a/removed-2", "a/b/removed-1/file"] {
            fs::write(tree.join(file), "x").unwrap();
        }
        for link in ["link", "a/link", "a/b/removed-1/link"] {
            symlink(&outside, tree.join(link)).unwrap();
        }
        for (protected, mode) in [("a/b/removed-1", 0o500), ("a/b", 0o000), ("c", 0o500), ("", 0o500)] {
            fs::set_permissions(tree.join(protected), fs::Permissions::from_mode(mode)).unwrap();
        }
        remove_folder(&tree).unwrap();
        assert!(!tree.exists() && outside.join("a").exists());
        // There is nothing now.
        remove_folder(&tree).unwrap();
        // A link is no folder.
        symlink(&outside, &tree).unwrap();
        assert!(remove_folder(&tree).is_err());
        assert!(outside.join("a").exists());
    }
}
