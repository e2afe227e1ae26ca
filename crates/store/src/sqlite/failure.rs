//! What SQLite says, in our words.

use rusqlite::{Error, ErrorCode, ffi};

use crate::StoreError;
use crate::damage::Damage;

/// What keeps a task from being read: error of the whole store, or damage of its own rows.
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

/// Why a transaction of the writer is not stored.
#[derive(Debug)]
pub(super) enum WriteError {
    Sqlite(Error),
    /// The files are not those that were opened.
    Lost(String),
    /// A sync has failed before.
    Unsynced,
}

impl From<Error> for WriteError {
    fn from(error: Error) -> Self {
        WriteError::Sqlite(error)
    }
}

/// A failed sync. The system may have dropped what it could not write and call the next sync a success, so nothing that
/// is stored from then on can be promised to anybody.
const UNSYNCED: &str = "the disk failed to write what was stored (fsync); nothing is stored any more: \
     check the disk and the system's log, then restart the server";

impl WriteError {
    /// The same, for each of several who have it.
    pub fn to_store_error(&self) -> StoreError {
        match self {
            WriteError::Sqlite(error) if is_unsynced(error) => StoreError::Failed(UNSYNCED.into()),
            WriteError::Sqlite(error) if is_full(error) => StoreError::Full,
            WriteError::Sqlite(error) => StoreError::Failed(error.to_string().into()),
            WriteError::Lost(reason) => StoreError::Lost(reason.clone()),
            WriteError::Unsynced => StoreError::Failed(UNSYNCED.into()),
        }
    }

    /// The error is the disk's or the file's, not the one append's: trying each alone would not help.
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

/// The system could not say that what was written is on the disk.
pub(super) fn is_unsynced(error: &Error) -> bool {
    matches!(extended_code(error), Some(ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC))
}

/// An equal row is there already.
pub(super) fn is_duplicate(error: &Error) -> bool {
    matches!(extended_code(error), Some(ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_PRIMARYKEY))
}

/// What SQLite tells of a write that found no room depends on which of its files it was for.
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
