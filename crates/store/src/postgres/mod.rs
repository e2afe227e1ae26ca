//! The store in a Postgres database, which several servers (nodes) may share.
//!
//! Every append goes to a writer, which sends all that is queued as one statement and one transaction, so that many callers share
//! one round trip and one commit. Reads have a few connections that all tasks use at once. A node has a lease, which it renews
//! on a connection of its own, and tells other nodes about changed tasks with NOTIFY, also on a connection of its own.
//!
//! Nothing here needs a session: behind a pooler in transaction mode there are no named statements and no LISTEN, and
//! everything else works as before.

mod failure;
mod settings;
mod tls;

mod connections;
mod contents;
mod link;
mod migrate;
mod parties;

mod append;
mod writer;

mod claims;
mod forwards;
mod nodes;
mod notices;

mod assign;
mod audit;
mod list;
mod list_of_owners;
mod outbox;
mod reader;
mod rows;
mod stored_bytes;
mod summaries;
mod sweep;
mod webhooks;

mod examine;
mod store;
mod transfer;

pub use examine::PostgresExamination;
pub use settings::PostgresSettings;
pub use store::PostgresStore;
pub use transfer::{PostgresExport, PostgresImport};

/// Why a lock is never poisoned.
const UNBROKEN: &str = "nobody panics with the lock in hand";
