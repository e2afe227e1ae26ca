//! The errors of a store, with texts that say what to do next.

use std::path::PathBuf;

use sabir_model::{BoxError, Error, TaskId};

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another append has changed the task, or the task is deleted.
    #[error("the task has changed meanwhile")]
    Conflict,
    /// This task has the id or the idempotency key already.
    #[error("task {0} exists already")]
    Exists(TaskId),
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
}
