//! Runs tasks. This crate is the only one that starts work, keeps time and decides when something is stored.
//!
//! A `Call` comes in, `sabir-model` decides what it means, and the store commits that before anybody sees it. Each
//! active task has exactly one driver, and only the driver writes to the task's log. Everybody else reads the log
//! through a cursor and is woken when the log grows.
#![warn(missing_docs)]

mod agent;
mod answers;
mod audit;
mod cards;
mod clock;
mod turn;
mod watch_cell;

mod feed;
mod log_entry;
mod log_pages;
mod schedule;
mod sharded;
mod shared_reads;
mod topic;
mod topic_cache;
mod wait_reason;
mod working_folders;

mod limits;
mod metrics;

mod drive;
mod in_flight;
mod run_observer;
mod turn_signals;

mod access;
mod assign;
mod backup;
mod engine;
mod executor;
mod health;
mod reply;
mod task_lookup;

mod deduplicate;
mod deliver;
mod media;
mod push;
mod request;
mod send;
mod send_result;

mod cluster;

mod delegation;

mod cancel;
mod operators;
mod read;
mod subscribe;

mod recover;
mod retain;
mod stop;

pub use agent::{
    About, AboutFuture, Admission, Agent, AgentError, AgentFuture, Effects, Hosted, Inputs, InterruptedRun, Limits,
    Locality, Route, Router, Streaming, Survives, WorkingTreeFuture,
};
pub use assign::Assigned;
pub use audit::AuditKeep;
pub use clock::{Clock, SystemClock};
pub use cluster::LeaseObserver;
pub use delegation::{CREDENTIAL_PREFIX, DelegationLimits, Grant, LentGrant, ProgramCredential};
pub use engine::{Builder, Engine, EngineSettings, Recovery, RetentionPolicy};
pub use health::Health;
pub use limits::CallerLimits;
pub use log_entry::LogEntry;
pub use metrics::EngineMetrics;
pub use operators::{AgentLoad, Canceled, TaskDetails, TaskFilter};
pub use push::{AdmittedWebhook, WebhookPolicy, WebhookRefusal};
pub use reply::ReplyStream;
pub use run_observer::{ObservedRun, RunEnd, RunFailure, RunObserver, RunStart};
pub use sabir_store::backup::BackupStream;
pub use sabir_store::{
    AuditAction, AuditEntry, AuditPage, AuditQuery, AuditRecord, Delivery, DeliveryCounts, DeliveryKind, Member,
    MemberState, StoreFacts, SummaryPage, TaskCount, TaskNo, TaskSummary,
};
pub use schedule::QueueLoad;
pub use subscribe::{Batch, Subscription};
pub use task_lookup::TaskLookup;
pub use turn::{ArtifactUpdate, Outcome, StopCause, Turn};
pub use turn_signals::TurnHold;

/// The answer to a call.
pub type Answer = sabir_model::Answer<Subscription>;
