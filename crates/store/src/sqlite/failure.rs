//! Errors of SQLite, as errors of the store: of reads, and of transactions of the writer.

use rusqlite::{Error, ErrorCode, ffi};

use crate::StoreError;
use crate::damage::Damage;

/// Why a task cannot be read: the store fails, or the rows of the task are damaged.
#[derive(Debug)]
pub(super) enum ReadError {
    Store(StoreError),
    Damaged(Damage),
}

impl From<StoreError> for ReadError {
    fn from(error: StoreError) -> Self {
        ReadError::Store(error)
    }
}

impl From<Damage> for ReadError {
    fn from(damage: Damage) -> Self {
        ReadError::Damaged(damage)
    }
}

impl From<Error> for ReadError {
    fn from(error: Error) -> Self {
        let is_damage = match &error {
            Error::FromSqlConversionFailure(..)
            | Error::IntegralValueOutOfRange(..)
            | Error::InvalidColumnType(..)
            | Error::Utf8Error(..) => true,
            error => error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt),
        };
        if is_damage { Damage(error.to_string()).into() } else { StoreError::from(error).into() }
    }
}

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        if is_full(&error) { StoreError::Full } else { StoreError::Failed(error.into()) }
    }
}

/// Why a transaction of the writer has failed.
#[derive(Debug)]
pub(super) enum WriteError {
    Sqlite(Error),
    /// The paths no longer lead to the files that were opened.
    Lost(String),
    /// An earlier sync has failed.
    Unsynced,
}

impl From<Error> for WriteError {
    fn from(error: Error) -> Self {
        WriteError::Sqlite(error)
    }
}

/// After a failed sync, the system may have dropped what it could not write, and report the next sync as a success. So
/// nothing that is stored from then on is certain.
const UNSYNCED: &str = "the disk failed to write what was stored (fsync); nothing is stored any more: \
     check the disk and the system's log, then restart the server";

impl WriteError {
    /// The error for each of several callers.
    pub fn to_store_error(&self) -> StoreError {
        match self {
            WriteError::Sqlite(error) if is_unsynced(error) => StoreError::Failed(UNSYNCED.into()),
            WriteError::Sqlite(error) if is_full(error) => StoreError::Full,
            WriteError::Sqlite(error) => StoreError::Failed(error.to_string().into()),
            WriteError::Lost(reason) => StoreError::Lost(reason.clone()),
            WriteError::Unsynced => StoreError::Failed(UNSYNCED.into()),
        }
    }

    /// Whether the cause is the disk or the file and not a single append, so that a retry of each append would not
    /// help.
    pub fn concerns_all(&self) -> bool {
        match self {
            WriteError::Sqlite(error) => !matches!(
                error.sqlite_error_code(),
                None | Some(ErrorCode::ConstraintViolation | ErrorCode::TooBig | ErrorCode::TypeMismatch)
            ),
            WriteError::Lost(_) | WriteError::Unsynced => true,
        }
    }
}

/// Whether a sync to the disk has failed.
pub(super) fn is_unsynced(error: &Error) -> bool {
    matches!(extended_code(error), Some(ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC))
}

/// Whether an equal row exists already.
pub(super) fn is_duplicate(error: &Error) -> bool {
    matches!(extended_code(error), Some(ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_PRIMARYKEY))
}

/// The code of SQLite for a full disk depends on which of its files could not grow.
fn is_full(error: &Error) -> bool {
    matches!(
        extended_code(error),
        Some(
            ffi::SQLITE_FULL
                | ffi::SQLITE_IOERR_WRITE
                | ffi::SQLITE_IOERR_TRUNCATE
                | ffi::SQLITE_IOERR_SHMOPEN
                | ffi::SQLITE_IOERR_SHMSIZE
                | ffi::SQLITE_IOERR_SHMMAP
        )
    )
}

fn extended_code(error: &Error) -> Option<i32> {
    error.sqlite_error().map(|error| error.extended_code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_writer_says_of_trouble() {
        let sqlite = |code| WriteError::Sqlite(Error::SqliteFailure(ffi::Error::new(code), None));
        for (error, expected) in [
            (sqlite(ffi::SQLITE_FULL), "the disk or the quota is full"),
            (sqlite(ffi::SQLITE_IOERR_WRITE), "the disk or the quota is full"),
            (sqlite(ffi::SQLITE_IOERR_SHMSIZE), "the disk or the quota is full"),
            (sqlite(ffi::SQLITE_IOERR_FSYNC), UNSYNCED),
            (sqlite(ffi::SQLITE_IOERR_DIR_FSYNC), UNSYNCED),
            (WriteError::Unsynced, UNSYNCED),
            (sqlite(ffi::SQLITE_BUSY), "Error code 5: database is locked"),
            (WriteError::Lost("it is gone".into()), "it is gone"),
        ] {
            assert!(error.concerns_all(), "{error:?}");
            assert_eq!(error.to_store_error().to_string(), expected, "{error:?}");
        }
    }
}
