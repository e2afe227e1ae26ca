//! Puts another database in the place of a file, so that at any moment one of the two is there, and keeps the old one.
//!
//! | step | what is there if the machine stops after it                                       |
//! |------|---------------------------------------------------------------------------------|
//! | the new file gets the owner, group and mode of the old one | the old database            |
//! | the write-ahead log of the old file is moved into it | the old database                  |
//! | the old file gets a second name                      | the old database, with two names  |
//! | the new file is renamed to the name of the old one   | the new database                  |
//!
//! A log that stayed beside the new file would be taken for its own. So nothing is replaced while another program keeps the
//! log from being moved. The log of a damaged file cannot be moved into it, and goes with it under the second name.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;

use super::examine::beside;
use super::lock::Lock;
use super::{connect, open};
use crate::OpenError;

/// How long a program that reads the old file may keep its log from being moved.
const PATIENCE: Duration = Duration::from_secs(1);

/// A place for a database. While this is there, no server can open the file that is in it.
pub struct SqlitePlace {
    path: PathBuf,
    /// `None`: there is no file yet.
    lock: Option<Lock>,
}

impl SqlitePlace {
    /// # Errors
    /// A server has the file open, or it cannot be written.
    pub fn take(path: &Path) -> Result<Self, OpenError> {
        let path = open::canonical_path(path)?;
        open::check_writable(&path)?;
        let lock = if path.exists() { Some(Lock::take(&path)?) } else { None };
        Ok(Self { path, lock })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn is_taken(&self) -> bool {
        self.lock.is_some()
    }

    /// Puts the file `new` into this place; it must be closed and in the same folder. Returns where the old one is now.
    ///
    /// # Errors
    /// The old database is still in its place, with all its commits.
    pub fn put(self, new: &Path) -> io::Result<Option<PathBuf>> {
        let folder = self.path.parent().expect("a canonical path of a file has a folder");
        // Not a link, so that root changes the owner of no other file.
        let new_file = OpenOptions::new().read(true).custom_flags(OFlags::NOFOLLOW.bits() as i32).open(new)?;
        match &self.lock {
            Some(old) => give_to_owner_of_old(&new_file, &old.metadata()?)?,
            None => give_to_owner_of_folder(&new_file, &fs::metadata(folder)?)?,
        }
        new_file.sync_all()?;
        let folder = File::open(folder)?;
        self.move_wal_into_file()?;
        let kept = self.free_name();
        self.exchange(new, &kept)?;
        folder.sync_all()?;
        Ok(self.is_taken().then_some(kept))
    }

    /// Afterwards the old file alone is the old database, unless it is damaged.
    fn move_wal_into_file(&self) -> io::Result<()> {
        let wal = beside(&self.path, "-wal");
        if !self.is_taken() || !wal.exists() {
            return Ok(());
        }
        let busy = "another program has the database open; close that program and try again".to_owned();
        let reason = match checkpoint(&self.path) {
            // The last connection that is closed removes the log.
            Ok(true) if !wal.exists() => return Ok(()),
            Ok(_) => busy,
            Err(error) => match (error.sqlite_error_code(), open::open_error(&self.path, error)) {
                (_, OpenError::Damaged { .. }) => return Ok(()),
                (Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked), _) => busy,
                (Some(rusqlite::ErrorCode::DiskFull), _) => "the disk is full; make room and try again".to_owned(),
                (_, error) => format!("{error}; move both files to another folder and try again"),
            },
        };
        let message = format!("{} has commits that cannot be moved into the database: {reason}", wal.display());
        Err(io::Error::other(message))
    }

    /// If a step fails, those before it are undone.
    fn exchange(&self, new: &Path, kept: &Path) -> io::Result<()> {
        let (wal, kept_wal) = (beside(&self.path, "-wal"), beside(kept, "-wal"));
        let has_wal = wal.exists();
        if has_wal {
            fs::rename(&wal, &kept_wal)?;
        }
        let exchanged = self.exchange_files(new, kept);
        if exchanged.is_err() && has_wal {
            fs::rename(kept_wal, wal)?;
        }
        exchanged
    }

    fn exchange_files(&self, new: &Path, kept: &Path) -> io::Result<()> {
        remove_if_there(&beside(&self.path, "-shm"))?;
        let Some(old) = &self.lock else {
            // Unlike a rename, this fails if somebody has made a file there meanwhile.
            fs::hard_link(new, &self.path)?;
            // From here on the new database is in its place, with or without its first name.
            let _ = fs::remove_file(new);
            return Ok(());
        };
        keep(&self.path, kept, old)?;
        fs::rename(new, &self.path).inspect_err(|_| drop(fs::remove_file(kept)))
    }

    /// An old database of an earlier time is not overwritten.
    fn free_name(&self) -> PathBuf {
        let is_free = |path: &PathBuf| !path.exists() && !beside(path, "-wal").exists();
        let first = beside(&self.path, ".before-restore");
        let others = (2..).map(|number| beside(&self.path, &format!(".before-restore-{number}")));
        std::iter::once(first).chain(others).find(is_free).expect("there is always another number")
    }
}

/// Moves the log of a database into it. Returns whether all of it could be moved.
fn checkpoint(path: &Path) -> rusqlite::Result<bool> {
    let conn = connect::open(path)?;
    conn.busy_timeout(PATIENCE)?;
    let is_busy: bool = conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |row| row.get(0))?;
    Ok(!is_busy)
}

/// A second name for the file; a copy where the file system has no second names.
fn keep(path: &Path, kept: &Path, lock: &Lock) -> io::Result<()> {
    match fs::hard_link(path, kept) {
        Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::Unsupported) => {
            copy(path, kept, &lock.metadata()?)
        }
        linked => linked,
    }
}

fn copy(path: &Path, kept: &Path, old: &Metadata) -> io::Result<()> {
    let mut source = File::open(path)?;
    let mut target = OpenOptions::new().write(true).create_new(true).mode(0o600).open(kept)?;
    let copied = io::copy(&mut source, &mut target)
        .and_then(|_| give_to_owner_of_old(&target, old))
        .and_then(|()| target.sync_all());
    copied.inspect_err(|_| drop(fs::remove_file(kept)))
}

/// The server that could open the old file can open the new one, also after root has made it.
fn give_to_owner_of_old(new: &File, old: &Metadata) -> io::Result<()> {
    let mut mode = old.mode() & 0o777;
    let made = new.metadata()?;
    if (made.uid(), made.gid()) != (old.uid(), old.gid())
        && let Err(error) = give_to(new, &made, old)
    {
        if is_of_root(&made) {
            return Err(error);
        }
        // What the old file allowed its group is not meant for another group.
        mode &= 0o700;
    }
    new.set_permissions(Permissions::from_mode(mode))
}

/// Where root makes the first database, the folder says whose it is.
fn give_to_owner_of_folder(new: &File, folder: &Metadata) -> io::Result<()> {
    let made = new.metadata()?;
    if is_of_root(&made) && !is_of_root(folder) { give_to(new, &made, folder) } else { Ok(()) }
}

fn give_to(new: &File, made: &Metadata, owner: &Metadata) -> io::Result<()> {
    let (user, group) = (owner.uid(), owner.gid());
    let changed = match made.is_file() && made.nlink() == 1 {
        true => fchown(new, Some(user), Some(group)),
        false => Err(io::Error::other("it has a second name")),
    };
    changed.map_err(|error| {
        let message = format!(
            "the new file cannot be given to user {user} and group {group}: {error}; run the command as that user"
        );
        io::Error::new(error.kind(), message)
    })
}

/// Whether root made this file, and so whether this process is root.
fn is_of_root(file: &Metadata) -> bool {
    file.uid() == 0
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_step_that_fails_leaves_the_old_files_as_they_were() {
        for is_taken in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("sabir.db");
            if is_taken {
                fs::write(&path, "old").unwrap();
            }
            fs::write(beside(&path, "-wal"), "log").unwrap();
            let place = SqlitePlace::take(&path).unwrap();
            let entries = || {
                let entries = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap());
                let entries = entries.map(|entry| (entry.file_name(), fs::read(entry.path()).unwrap()));
                entries.collect::<BTreeSet<_>>()
            };
            let before = entries();
            // The last step finds no file that it could rename.
            let error = place.exchange(&beside(&path, ".new"), &place.free_name()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound, "{is_taken}");
            assert_eq!(entries(), before, "{is_taken}");
        }
    }

    #[test]
    fn a_copy_has_the_mode_of_the_old_file_and_takes_no_other_place() {
        let folder = tempfile::tempdir().unwrap();
        let (path, kept) = (folder.path().join("sabir.db"), folder.path().join("kept"));
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let old = fs::metadata(&path).unwrap();
        copy(&path, &kept, &old).unwrap();
        assert_eq!(fs::read(&kept).unwrap(), b"old");
        assert_eq!(fs::metadata(&kept).unwrap().mode() & 0o777, 0o640);
        fs::write(&kept, "another").unwrap();
        assert_eq!(copy(&path, &kept, &old).unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&kept).unwrap(), b"another");
    }
}
