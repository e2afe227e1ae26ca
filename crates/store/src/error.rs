//! The errors of a store, with texts that say what to do next.

use std::path::PathBuf;
use std::sync::Arc;

use sabir_model::{BoxError, Error, TaskId};

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another append has changed the task, or the task is deleted.
    #[error("the task has changed meanwhile")]
    Conflict,
    /// This task has the id or the idempotency key already.
    #[error("task {0} exists already")]
    Exists(TaskId),
    /// Another node owns the task.
    #[error("node {0} has the task")]
    OwnedElsewhere(Arc<str>),
    /// This task of the same context has a run, so no other may begin one. Without a task: the agent has as many runs as it may
    /// have on all nodes together.
    #[error("the context is busy")]
    ContextBusy(Option<TaskId>),
    /// The rows of this task cannot be read. Other tasks are not affected.
    #[error("task {task} is damaged in the store: {reason}")]
    Damaged { task: TaskId, reason: String },
    #[error("the disk or the quota is full")]
    Full,
    #[error("the store is closed")]
    Closed,
    /// The database file is gone or replaced. The text says what happened and what to do.
    #[error("{0}")]
    Lost(String),
    #[error(transparent)]
    Failed(BoxError),
}

/// The error that a caller gets when the store fails.
impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Full => Error::StoreFull,
            StoreError::Closed => Error::Stopping,
            StoreError::Conflict
            | StoreError::Exists(_)
            | StoreError::OwnedElsewhere(_)
            | StoreError::ContextBusy(_)
            | StoreError::Damaged { .. }
            | StoreError::Lost(_)
            | StoreError::Failed(_) => Error::internal(error),
        }
    }
}

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("{} is in use by another Sabir; stop it, or choose another file with --store", .0.display())]
    InUse(PathBuf),
    #[error("{} cannot be written; check its permissions and those of its folder, or choose another file with --store", .0.display())]
    ReadOnly(PathBuf),
    #[error("{} is not a Sabir database or is damaged: {reason}; move it away or restore a backup", .path.display())]
    Damaged { path: PathBuf, reason: String },
    #[error("{} was written by a newer Sabir (format {found}, this one knows {known}); run that version, or choose another file with --store", .path.display())]
    Newer { path: PathBuf, found: i64, known: i64 },
    #[error("{} cannot be opened: {reason}", .path.display())]
    Other { path: PathBuf, reason: String },
    #[error("the connection string of the Postgres store cannot be used: {0}")]
    BadUrl(String),
    #[error(
        "Postgres at {server} cannot be reached: {reason}; check that it runs, its address in the connection string, and the network in between"
    )]
    Unreachable { server: String, reason: String },
    #[error(
        "Postgres at {server} cannot be reached with TLS: {reason}; check sslmode and sslrootcert in the connection string, and ssl in the \
         settings of the server"
    )]
    Tls { server: String, reason: String },
    #[error(
        "Postgres at {server} refuses to let us in: {reason}; check user and password in the connection string, and pg_hba.conf"
    )]
    Credentials { server: String, reason: String },
    #[error(
        "Postgres at {server} has no such database: {reason}; create it with CREATE DATABASE, or correct the connection string"
    )]
    NoDatabase { server: String, reason: String },
    #[error(
        "the database at {server} was written by a newer Sabir (format {found}, this one knows {known}); run that version, or choose another database"
    )]
    NewerDatabase { server: String, found: i64, known: i64 },
    #[error(
        "the database at {server} is not one of Sabir or is damaged: {reason}; choose an empty database or restore a backup"
    )]
    ForeignDatabase { server: String, reason: String },
    #[error("the database at {server} cannot be used: {reason}")]
    OtherDatabase { server: String, reason: String },
}
