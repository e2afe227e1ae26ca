//! The lock that allows one process per file.
//!
//! It is a lock of the operating system on the database file itself. So it ends with the process, applies to all names
//! of the file, and needs no lock file that somebody could delete. It does not interfere with SQLite's own locks; but
//! closing any descriptor of the file would drop those, so this descriptor is closed after the last connection.

use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::OpenError;

/// A process that is killed while it starts a child leaves a copy of its lock in the child, until the child executes
/// its own program. The new process waits this long for that.
const COPY_LIMIT: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_millis(10);

pub(super) struct Lock {
    file: File,
}

impl Lock {
    /// Takes the lock, or returns why it cannot.
    pub fn take(path: &Path) -> Result<Self, OpenError> {
        // The file will contain conversations, so only its owner may read it.
        let opened = OpenOptions::new().create(true).read(true).write(true).truncate(false).mode(0o600).open(path);
        let file = opened.map_err(|error| match error.kind() {
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => OpenError::ReadOnly(path.into()),
            _ => OpenError::Other { path: path.into(), reason: error.to_string() },
        })?;
        let deadline = Instant::now() + COPY_LIMIT;
        let mut locked = file.try_lock();
        while matches!(locked, Err(TryLockError::WouldBlock)) && Instant::now() < deadline {
            thread::sleep(PAUSE);
            locked = file.try_lock();
        }
        match locked {
            Ok(()) => Ok(Self { file }),
            Err(TryLockError::WouldBlock) => Err(OpenError::InUse(path.into())),
            Err(TryLockError::Error(error)) => {
                Err(OpenError::Other { path: path.into(), reason: format!("it cannot be locked: {error}") })
            }
        }
    }

    /// Whether a process holds the lock. It is taken for a moment to find out, together with whoever else asks; a process
    /// that opens the file in that moment waits for longer than that.
    pub fn is_held(path: &Path) -> bool {
        // To open a pipe would wait for its other end.
        if !fs::metadata(path).is_ok_and(|file| file.is_file()) {
            return false;
        }
        File::open(path).is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }

    /// The metadata of the locked file, even if its name leads to another file by now.
    pub fn metadata(&self) -> io::Result<Metadata> {
        self.file.metadata()
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing unlocks too, but not while a child process still has a copy of the descriptor.
        let _ = self.file.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_asks_for_the_lock_disturbs_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sabir.db");
        assert!(!Lock::is_held(&path), "there is no file");
        let lock = Lock::take(&path).ok().unwrap();
        assert!(Lock::is_held(&path));
        drop(lock);
        assert!(!Lock::is_held(&path));
        // One who asks at this very moment.
        let asking = File::open(&path).unwrap();
        asking.try_lock_shared().unwrap();
        assert!(!Lock::is_held(&path), "others who ask do not count");
    }
}
