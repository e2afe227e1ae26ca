//! The event log and its lookups.
//!
//! `Store` is the interface. `sqlite` is for a laptop or a single server; `memory` gives the same answers without a
//! disk, for tests and trials. One contract suite in `sabir-testkit` runs against every implementation.

mod audit;
mod error;
mod outbox;
mod store;

mod damage;
mod encode;
mod fold;
mod head;
mod page;

mod memory;
mod sqlite;

pub use audit::{AuditAction, AuditEntry, AuditLog, AuditPage, AuditQuery, AuditRecord, AuditRetention, AuditTrimmed};
pub use error::{OpenError, StoreError};
pub use memory::MemoryStore;
pub use outbox::{
    Delivery, DeliveryKind, Due, Failure, GivenUpNo, MAX_WEBHOOKS, Outbox, Webhook, WebhookEvents, WebhookNo,
    WebhookSet,
};
pub use sqlite::{Durability, SqliteSettings, SqliteStore};
pub use store::{
    Append, AppendResult, AppendTarget, Listing, MAX_EVENTS_WITHOUT_SNAPSHOT, NewTask, Others, Query, Retention,
    SentKey, SideRow, Store, StoreFuture, SweepResult, TASK_ROW_BYTES, TaskNo, TaskRow, UnfinishedTask,
};
