//! Errors of Postgres, as errors of the store, and what can be done about them.

use std::error::Error as _;

use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use crate::StoreError;

/// What an error of a statement means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    /// The connection is lost, or the server does not work now. Nobody knows whether the statement was committed, and another
    /// connection may help.
    Lost,
    /// The disk or a quota is full.
    Full,
    /// Nothing was stored: another transaction has held a lock for too long.
    Locked,
    /// Nothing was stored, and a part of the statement may be the reason: its parts can be tried one by one.
    Refused,
    Other,
}

pub(super) fn trouble(error: &Error) -> Trouble {
    let Some(code) = error.code() else {
        // Errors of the client: a closed connection, or a value that cannot be encoded.
        let is_lost = error.is_closed() || error.source().is_none_or(|source| source.is::<std::io::Error>());
        return if is_lost { Trouble::Lost } else { Trouble::Refused };
    };
    if *code == SqlState::TOO_MANY_CONNECTIONS {
        return Trouble::Lost;
    }
    match code.code().get(..2) {
        // Connection exceptions, also those of poolers; operator intervention (a server that shuts down or starts).
        Some("08") => Trouble::Lost,
        Some("57") if *code != SqlState::QUERY_CANCELED => Trouble::Lost,
        // The server has become a standby, so another one is the primary now.
        _ if *code == SqlState::READ_ONLY_SQL_TRANSACTION => Trouble::Lost,
        Some("53") => Trouble::Full,
        _ if *code == SqlState::LOCK_NOT_AVAILABLE => Trouble::Locked,
        // Data exceptions, constraints, deadlocks and serialization failures, limits of the server.
        Some("22" | "23" | "40" | "54") => Trouble::Refused,
        _ => Trouble::Other,
    }
}

pub(super) fn is_lost(error: &Error) -> bool {
    trouble(error) == Trouble::Lost
}

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        to_store_error(&error)
    }
}

/// The error for each of several callers.
pub(super) fn to_store_error(error: &Error) -> StoreError {
    match trouble(error) {
        Trouble::Full => StoreError::Full,
        Trouble::Lost | Trouble::Locked | Trouble::Refused | Trouble::Other => {
            StoreError::Failed(describe(error).into())
        }
    }
}

/// What the server or the system says, in one line. Neither has the password in it.
pub(super) fn describe(error: &Error) -> String {
    if let Some(db) = error.as_db_error() {
        return format!("Postgres: {} ({})", db.message(), db.code().code());
    }
    let mut text = format!("Postgres: {error}");
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
