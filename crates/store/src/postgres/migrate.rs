//! The format of the database: makes the tables of an empty one, and brings an older one forward.
//!
//! `sabir_format` has one row: the format, and the oldest format whose servers can still work with it. All of it happens in one
//! transaction under a lock, so of several servers that start at once the first does it, and the others find it done.

use std::io;

use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use super::failure::{describe, is_lost};
use super::link::Link;
use crate::OpenError;

/// The statements that lead from each format to the next, and the oldest format that can work with the result.
const STEPS: [(&str, i64); 1] = [(include_str!("schema_1.sql"), 1)];

/// The format that this version writes.
pub(super) const KNOWN: i64 = STEPS.len() as i64;

/// What helps whoever lacks rights, while there are no tables and where there are.
pub(super) const GRANT_ON_SCHEMA: &str =
    "make its user the owner of the database, or run GRANT CREATE, USAGE ON SCHEMA public TO that user";
pub(super) const GRANT_ON_TABLES: &str = "make its user the owner of the tables, or run GRANT ALL ON ALL TABLES IN SCHEMA public \
                                          and GRANT ALL ON ALL SEQUENCES IN SCHEMA public, each TO that user";

/// The key of the lock: "sabir" in ASCII.
const LOCK: &str = "SELECT pg_advisory_xact_lock(x'7361626972'::bigint)";

pub(super) async fn migrate(link: &Link, server: &str) -> Result<(), OpenError> {
    let failed = |error| open_error(server, &error);
    // A server that freezes meanwhile must not keep others from starting.
    link.batch("BEGIN; SET LOCAL idle_in_transaction_session_timeout = '5s'").await.map_err(failed)?;
    let done = in_transaction(link, server).await;
    let end = if done.is_ok() { "COMMIT" } else { "ROLLBACK" };
    let ended = link.batch(end).await.map_err(failed);
    done.and(ended)
}

/// Refuses a database that `sabir store migrate` or `restore` has filled only in part.
pub(super) async fn check_transfer(link: &Link, server: &str) -> Result<(), OpenError> {
    if !has_unfinished_transfer(link, server).await? {
        return Ok(());
    }
    let reason = "the migration or the restore into it was interrupted; run the same `sabir store migrate` or `sabir store \
                  restore` again, which goes on where it ended";
    Err(OpenError::OtherDatabase { server: server.to_owned(), reason: reason.to_owned() })
}

pub(super) async fn has_unfinished_transfer(link: &Link, server: &str) -> Result<bool, OpenError> {
    let failed = |error| open_error(server, &error);
    let is_there = "SELECT to_regclass('sabir_transfer') IS NOT NULL";
    let yes = [[Some("t".to_owned())]];
    if link.texts(is_there).await.map_err(failed)? != yes {
        return Ok(false);
    }
    let is_unfinished = "SELECT EXISTS (SELECT FROM sabir_transfer WHERE NOT is_finished)";
    Ok(link.texts(is_unfinished).await.map_err(failed)? == yes)
}

/// The names of the tables, without `sabir_format`.
pub(super) fn tables() -> impl Iterator<Item = &'static str> {
    let made = STEPS.iter().flat_map(|(step, _)| step.lines()).filter_map(|line| line.strip_prefix("CREATE TABLE "));
    made.filter_map(|table| table.split_whitespace().next())
}

/// The format of a database that has tables. Refuses one that this version cannot work with.
pub(super) async fn known_format(link: &Link, server: &str) -> Result<i64, OpenError> {
    let foreign = |reason: &str| OpenError::ForeignDatabase { server: server.to_owned(), reason: reason.to_owned() };
    let rows = link.texts("SELECT format, readable_by FROM sabir_format").await;
    let rows = rows.map_err(|error| open_error(server, &error))?;
    let number = |text: &Option<String>| text.as_ref().and_then(|text| text.parse::<i64>().ok());
    let [row] = rows.as_slice() else { return Err(foreign("the table sabir_format does not have one row")) };
    let (Some(found), Some(readable_by)) = (row.first().and_then(number), row.get(1).and_then(number)) else {
        return Err(foreign("the table sabir_format has no numbers"));
    };
    if found > KNOWN && readable_by > KNOWN {
        return Err(OpenError::NewerDatabase { server: server.to_owned(), found, known: KNOWN });
    }
    Ok(found)
}

async fn in_transaction(link: &Link, server: &str) -> Result<(), OpenError> {
    let failed = |error| open_error(server, &error);
    link.batch(LOCK).await.map_err(failed)?;
    let exists = link.texts("SELECT to_regclass('sabir_format') IS NOT NULL").await.map_err(failed)?;
    let is_new = exists != [[Some("t".to_owned())]];
    if is_new {
        link.batch("CREATE TABLE sabir_format (format int NOT NULL, readable_by int NOT NULL)")
            .await
            .map_err(failed)?;
        link.batch("INSERT INTO sabir_format VALUES (0, 0)").await.map_err(failed)?;
    }
    let found = known_format(link, server).await?;
    if found >= KNOWN {
        return Ok(());
    }
    for (step, _) in STEPS.iter().skip(found as usize) {
        link.batch(step).await.map_err(failed)?;
    }
    let readable_by = STEPS.last().map_or(KNOWN, |(_, readable_by)| *readable_by);
    let update = format!("UPDATE sabir_format SET format = {KNOWN}, readable_by = {readable_by}");
    link.batch(&update).await.map_err(failed)
}

/// Why the database cannot be used, and what to do.
pub(super) fn open_error(server: &str, error: &Error) -> OpenError {
    let (server, reason) = (server.to_owned(), describe(error));
    match error.code() {
        Some(code) if matches!(code.code(), "28000" | "28P01") => OpenError::Credentials { server, reason },
        Some(code) if *code == SqlState::INVALID_CATALOG_NAME => OpenError::NoDatabase { server, reason },
        Some(code) if matches!(code.code(), "42P07" | "42P01" | "42703" | "42723" | "XX001" | "XX002") => {
            OpenError::ForeignDatabase { server, reason }
        }
        Some(code) if *code == SqlState::INSUFFICIENT_PRIVILEGE => {
            let is_of_table = [" table ", " sequence ", " relation "].iter().any(|kind| reason.contains(kind));
            let remedy = if is_of_table { GRANT_ON_TABLES } else { GRANT_ON_SCHEMA };
            OpenError::OtherDatabase { server, reason: format!("{reason}; {remedy}") }
        }
        // What a user is told who may use no schema.
        Some(code) if *code == SqlState::INVALID_SCHEMA_NAME => {
            OpenError::OtherDatabase { server, reason: format!("{reason}; {GRANT_ON_SCHEMA}") }
        }
        Some(code) if *code == SqlState::READ_ONLY_SQL_TRANSACTION => {
            let reason = format!("{reason}; it is a standby or set to be read-only: name the primary");
            OpenError::OtherDatabase { server, reason }
        }
        None if is_authentication(error) => OpenError::Credentials { server, reason },
        None if is_tls_refusal(error) => OpenError::Tls { server, reason },
        _ if is_lost(error) || error.code().is_none() => OpenError::Unreachable { server, reason },
        _ => OpenError::OtherDatabase { server, reason },
    }
}

/// Whether the server has no TLS, or a certificate that is not accepted. A connection that is lost meanwhile is another matter: the
/// server may just be starting.
fn is_tls_refusal(error: &Error) -> bool {
    let is_lost = |source: &(dyn std::error::Error + 'static)| {
        source.downcast_ref::<io::Error>().is_some_and(|error| error.kind() != io::ErrorKind::InvalidData)
    };
    error.to_string().contains("TLS handshake") && !std::error::Error::source(error).is_some_and(is_lost)
}

/// The driver has no kind for errors of authentication that it finds itself, such as a missing password.
fn is_authentication(error: &Error) -> bool {
    let text = describe(error);
    text.contains("authentication error") || text.contains("password missing")
}
