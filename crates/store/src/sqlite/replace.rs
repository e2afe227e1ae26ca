//! Puts another database in the place of a file, so that at any moment one of the two is there, and keeps the old one.
//!
//! | step | what is there if the machine stops after it                                       |
//! |------|---------------------------------------------------------------------------------|
//! | the write-ahead log of the old file is moved into it | the old database                  |
//! | the old file gets a second name                      | the old database, with two names  |
//! | the new file is renamed to the name of the old one   | the new database                  |
//!
//! A log that stayed beside the new file would be taken for its own, so one that cannot be moved goes with the old file.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::examine::beside;
use super::lock::Lock;
use super::{connect, open};
use crate::OpenError;

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
    /// The old database is still in its place.
    pub fn put(self, new: &Path) -> io::Result<Option<PathBuf>> {
        File::open(new)?.sync_all()?;
        let kept = self.free_name();
        self.set_wal_aside(&kept)?;
        let is_taken = self.is_taken();
        if is_taken {
            keep(&self.path, &kept)?;
            fs::rename(new, &self.path)?;
        } else {
            // Unlike a rename, this fails if somebody has made a file there meanwhile.
            fs::hard_link(new, &self.path)?;
            fs::remove_file(new)?;
        }
        if let Some(folder) = self.path.parent() {
            File::open(folder)?.sync_all()?;
        }
        Ok(is_taken.then_some(kept))
    }

    fn set_wal_aside(&self, kept: &Path) -> io::Result<()> {
        let (wal, shm) = (beside(&self.path, "-wal"), beside(&self.path, "-shm"));
        if self.is_taken() && wal.exists() {
            // The last connection removes the log if it could move all of it. Else the file is damaged, and goes as it is.
            let _ = connect::open(&self.path).and_then(|conn| conn.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)"));
        }
        if wal.exists() {
            fs::rename(&wal, beside(kept, "-wal"))?;
        }
        match fs::remove_file(shm) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// An old database of an earlier time is not overwritten.
    fn free_name(&self) -> PathBuf {
        let is_free = |path: &PathBuf| !path.exists() && !beside(path, "-wal").exists();
        let first = beside(&self.path, ".before-restore");
        let others = (2..).map(|number| beside(&self.path, &format!(".before-restore-{number}")));
        std::iter::once(first).chain(others).find(is_free).expect("there is always another number")
    }
}

/// A second name for the file; a copy where the file system has no second names.
fn keep(path: &Path, kept: &Path) -> io::Result<()> {
    match fs::hard_link(path, kept) {
        Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::Unsupported) => {
            fs::copy(path, kept)?;
            File::open(kept)?.sync_all()
        }
        linked => linked,
    }
}
