//! One process per file.
//!
//! The lock is the operating system's, on the database file itself, so it ends with the process however
//! that ends, whatever name leads to the file, and there is no lock file that somebody could tidy away.
//! SQLite's own locks are of another kind and do not meet it; but closing any descriptor of the file would
//! drop those, so this one is closed after the last connection.

use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::OpenError;

/// A process that was killed while it started another one leaves a copy of its lock with that one, until that one executes its
/// own program.
const COPY_LIMIT: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_millis(10);

pub(super) struct Lock {
    file: File,
}

impl Lock {
    /// Takes the lock or says why not.
    pub fn take(path: &Path) -> Result<Self, OpenError> {
        // It will hold what callers said to each other: nobody else's business.
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

    /// Of the file that is locked, whatever its name leads to by now.
    pub fn metadata(&self) -> io::Result<Metadata> {
        self.file.metadata()
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing does it too, but not while a child process that was just started still holds a copy.
        let _ = self.file.unlock();
    }
}
