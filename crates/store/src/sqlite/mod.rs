//! The store in one SQLite file.
//!
//! One thread writes. It commits everything that is queued in one transaction, so that many callers share one sync of
//! the disk. Readers have their own connections and never wait for the writer. A third thread runs checkpoints of the
//! write-ahead log, so that commits do not have to.

mod failure;
mod key;
mod rows;
mod schema;

mod connect;
mod contents;
mod examine;
mod file_identity;
mod lock;
mod open;
mod replace;

mod append;
mod assign;
mod audit;
mod checkpoint;
mod due_index;
mod queue;
mod summaries;
mod sweep;
mod task_counts;
mod webhook_numbers;
mod webhooks;
mod writer;

mod list;
mod list_of_owners;
mod outbox;
mod pool;
mod reader;
mod recent_heads;
mod stored_bytes;
mod transfer;

mod store;

#[cfg(test)]
mod query_plans;

pub use connect::{Durability, SqliteSettings};
pub use examine::SqliteExamination;
pub use replace::SqlitePlace;
pub(crate) use rows::state_code;
pub use store::SqliteStore;
pub use transfer::{SqliteExport, SqliteImport};
