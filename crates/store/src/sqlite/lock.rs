//! One process per file.
//!
//! The lock is the operating system's, on a file beside the database, so it ends with the process
//! however that ends. The file itself stays: deleting it would race with the next one who locks it.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::OpenError;

pub(super) struct Lock {
    file: File,
}

impl Lock {
    /// Takes the lock or says at once why not.
    pub fn take(path: &Path) -> Result<Self, OpenError> {
        let opened = OpenOptions::new().create(true).write(true).truncate(false).open(beside(path));
        let file = opened.map_err(|error| match error.kind() {
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => OpenError::ReadOnly(path.into()),
            _ => OpenError::Other { path: path.into(), reason: format!("its lock file: {error}") },
        })?;
        match file.try_lock() {
            Ok(()) => Ok(Self { file }),
            Err(TryLockError::WouldBlock) => Err(OpenError::InUse(path.into())),
            Err(TryLockError::Error(error)) => {
                Err(OpenError::Other { path: path.into(), reason: format!("it cannot be locked: {error}") })
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing does it too, but not while a child process that was just started still holds a copy.
        let _ = self.file.unlock();
    }
}

fn beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".lock");
    name.into()
}
