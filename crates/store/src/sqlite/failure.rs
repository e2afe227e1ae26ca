//! What SQLite says, in our words.

use rusqlite::{Error, ErrorCode, ffi};

use crate::StoreError;
use crate::damage::Damage;

/// What keeps a task from being read: trouble of the whole store, or damage of its own rows.
#[derive(Debug)]
pub(super) enum Unread {
    Store(StoreError),
    Damaged(Damage),
}

impl From<StoreError> for Unread {
    fn from(error: StoreError) -> Self {
        Unread::Store(error)
    }
}

impl From<Damage> for Unread {
    fn from(damage: Damage) -> Self {
        Unread::Damaged(damage)
    }
}

impl From<Error> for Unread {
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

/// The same trouble, for each of several who have it.
pub(super) fn share(error: &Error) -> StoreError {
    if is_full(error) { StoreError::Full } else { StoreError::Failed(error.to_string().into()) }
}

/// The trouble is the disk's or the file's, not the one append's: trying each alone would not help.
pub(super) fn concerns_all(error: &Error) -> bool {
    !matches!(
        error.sqlite_error_code(),
        None | Some(ErrorCode::ConstraintViolation | ErrorCode::TooBig | ErrorCode::TypeMismatch)
    )
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
                | ffi::SQLITE_IOERR_FSYNC
                | ffi::SQLITE_IOERR_DIR_FSYNC
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
