//! The event log and its lookups.
//!
//! `Store` is the interface. `sqlite` is for a laptop or a single server, `postgres` for several servers that
//! share their tasks; `memory` gives the same answers without a disk, for tests and trials. One contract suite in `sabir-testkit` runs against every implementation.

mod audit;
mod cluster;
mod error;
mod metrics;
mod outbox;
mod store;
mod summary;

mod canonical;
mod damage;
mod encode;
mod fold;
mod head;
mod page;

pub mod backup;
pub mod transfer;

mod memory;
mod postgres;
mod sqlite;

pub use audit::{AuditAction, AuditEntry, AuditLog, AuditPage, AuditQuery, AuditRecord, AuditRetention, AuditTrimmed};
pub use cluster::{
    AfterAppend, Claim, ClaimedTask, ClaimingAgent, Cluster, ContextUse, Epoch, ForwardNo, ForwardState, ForwardedCall,
    GivenBack, Hints, Home, Member, MemberState, NodeLease, Ownership, SendDigest, TaskOwner, TaskProgress,
};
pub use error::{OpenError, StoreError};
pub use memory::MemoryStore;
pub use metrics::{Measured, StoreContents, StoreMetrics};
pub use outbox::{
    Delivery, DeliveryKind, Due, Failure, GivenUpNo, MAX_WEBHOOKS, Outbox, Webhook, WebhookEvents, WebhookNo,
    WebhookSet,
};
pub use postgres::{PostgresExamination, PostgresExport, PostgresImport, PostgresSettings, PostgresStore};
pub use sqlite::{Durability, SqliteExamination, SqliteExport, SqliteImport, SqlitePlace, SqliteSettings, SqliteStore};
pub use store::{
    Append, AppendResult, AppendTarget, Listing, MAX_EVENTS_WITHOUT_SNAPSHOT, NewTask, Others, Query, Retention,
    SentKey, SideRow, Store, StoreFuture, SweepResult, TASK_ROW_BYTES, TaskNo, TaskRow, UnfinishedTask,
};
pub use summary::{DeliveryCounts, StoreFacts, SummaryPage, SummaryQuery, TaskCount, TaskSummary};
