//! Webhooks of tasks, and what still has to be sent to them.
//!
//! The log is the queue. A webhook has the number of the last event that was handled for it, so an event that is stored
//! is also queued, without a row of its own, and deliveries keep the order of the log. The append that stores an event
//! marks the webhooks of its task as due, in the same transaction.
//!
//! | a webhook is | and becomes                                              | by                                |
//! |--------------|----------------------------------------------------------|-----------------------------------|
//! | idle         | due now                                                  | an append with an event it wants  |
//! | due          | idle at the end of the log, else due now                 | `Outbox::delivered`               |
//! | due          | due later                                                | `Outbox::postpone`                |
//! | due          | as delivered; the event is given up                      | `Outbox::give_up`                 |
//!
//! An event that was given up is kept until it is delivered after a `retry`, until somebody drops it, or until its task
//! or its webhook is deleted.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use sabir_model::{AgentId, Birth, PushConfigId, Seq, TaskId, Timestamp};
use tokio::sync::Notify;

use crate::{DeliveryCounts, StoreFuture, TaskNo};

/// A task has at most so many webhooks.
pub const MAX_WEBHOOKS: usize = 20;

/// What was set for a webhook.
#[derive(Clone, PartialEq, Eq)]
pub struct Webhook {
    pub id: PushConfigId,
    pub url: String,
    /// Scheme, host and port of the URL. Deliveries to one receiver share its limits.
    pub receiver: String,
    /// Token and authentication. The store does not look into them: they may be encrypted.
    pub secrets: Vec<u8>,
    /// The dialect of the client that set it.
    pub dialect: Birth,
    pub events: WebhookEvents,
}

/// Without the secrets, and without the URL, whose path or query may hold one.
impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Webhook { id, receiver, dialect, events, .. } = self;
        f.debug_struct("Webhook")
            .field("id", id)
            .field("receiver", receiver)
            .field("dialect", dialect)
            .field("events", events)
            .finish_non_exhaustive()
    }
}

/// Which events a webhook gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebhookEvents {
    /// Every status but `submitted`.
    Statuses,
    /// Everything after the creation.
    All,
}

/// How a webhook was set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebhookSet {
    Done,
    /// The task has `MAX_WEBHOOKS` others.
    TooMany,
    NoTask,
}

/// The store's name for a webhook as it was set. A webhook that is set again gets another number, so the outcome of a
/// delivery to its old URL changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WebhookNo(pub u64);

/// The store's name for an event that was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GivenUpNo(pub u64);

/// Where deliveries are read from and their outcomes are written to. The same object is a `Store`.
pub trait Outbox: Send + Sync + 'static {
    /// Notified after a commit that made something due.
    fn due_signal(&self) -> Arc<Notify>;

    /// What becomes due at these receivers alone need not be signalled: nothing can be sent there now. Replaces those that
    /// were told before. Whoever waits for the signal must tell none before each look, and then those that have no room.
    fn ignore(&self, receivers: HashSet<String>) {
        let _ = receivers;
    }

    /// Every receiver that something is to be sent to, with the time of its earliest delivery.
    fn receivers(&self) -> StoreFuture<'_, Vec<(String, Timestamp)>>;

    /// What is due at one receiver until `now`, the longest due first, at most one for each webhook. Rows that cannot be
    /// read are left out: they must not stop the others.
    fn due(&self, receiver: &str, now: Timestamp, limit: usize) -> StoreFuture<'_, Vec<Due>>;

    /// Since when the deliveries to a receiver fail: the earliest failure of a webhook that still has something to send there.
    fn failing_since(&self, receiver: &str) -> StoreFuture<'_, Option<Timestamp>>;

    /// Everything up to `sent` has been handled. `false`: the webhook was removed, replaced or has nothing to send any
    /// more, so the caller must not send more on its behalf. Where several nodes share the store that is so at the end of the log:
    /// the node that stores the next event sends it.
    fn delivered(&self, webhook: WebhookNo, sent: Seq, now: Timestamp) -> StoreFuture<'static, bool>;

    /// The next event of the webhook could not be delivered, and will be tried again.
    fn postpone(&self, webhook: WebhookNo, failure: Failure, next: Timestamp) -> StoreFuture<'static, ()>;

    /// This event is not tried any more; deliveries go on with the one behind it.
    fn give_up(&self, webhook: WebhookNo, event: Seq, failure: Failure) -> StoreFuture<'static, ()>;

    /// An event that had been given up was tried once more: delivered without a failure, or given up still.
    fn retried(&self, given_up: GivenUpNo, failure: Option<Failure>) -> StoreFuture<'static, ()>;

    /// The clock may have been set back. Whatever is due after `latest` becomes due now, and so does everything that is due
    /// in the future without a failed attempt: nobody postponed it.
    fn clock_was_set(&self, now: Timestamp, latest: Timestamp) -> StoreFuture<'static, ()>;

    /// Deliveries in order of their numbers, which are above `after`.
    fn deliveries(&self, kind: DeliveryKind, after: u64, limit: usize) -> StoreFuture<'_, Vec<Delivery>>;

    /// How many deliveries there are.
    fn delivery_counts(&self) -> StoreFuture<'_, DeliveryCounts>;

    /// Makes a delivery due now. `false`: there is none of this number.
    fn retry(&self, kind: DeliveryKind, number: u64, now: Timestamp) -> StoreFuture<'static, bool>;

    /// Drops a delivery: all that a webhook has to send now, or an event that was given up.
    /// `false`: there is none of this number.
    fn discard(&self, kind: DeliveryKind, number: u64, now: Timestamp) -> StoreFuture<'static, bool>;
}

/// A webhook with something to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    pub webhook: WebhookNo,
    pub task: TaskNo,
    pub settings: Webhook,
    pub due: Timestamp,
    /// Events up to this one are handled.
    pub sent: Seq,
    /// How often the next event has been tried.
    pub attempts: u32,
    /// When the first delivery failed since the last success.
    pub failing_since: Option<Timestamp>,
    /// An event that had been given up and is tried once more.
    pub retry: Option<(GivenUpNo, Seq)>,
}

/// Why a delivery failed, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub reason: String,
    pub time: Timestamp,
}

/// Two lists of deliveries, each with numbers of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DeliveryKind {
    /// Webhooks with something to send, by `WebhookNo`.
    Pending,
    /// Events that were given up, by `GivenUpNo`.
    GivenUp,
}

/// A delivery as an operator sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    pub kind: DeliveryKind,
    pub number: u64,
    pub task_no: TaskNo,
    pub task: TaskId,
    pub agent: AgentId,
    pub webhook: PushConfigId,
    pub url: String,
    /// Of a pending delivery the last event that is handled already, of a given-up one its event.
    pub event: Seq,
    pub attempts: u32,
    /// Why the last attempt failed.
    pub reason: Option<String>,
    /// Since when it fails, or when it was given up.
    pub since: Option<Timestamp>,
    /// When it is tried next.
    pub next: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_printed() {
        let webhook = Webhook {
            id: PushConfigId::parse("c1").unwrap(),
            url: "https://a/geheim".to_owned(),
            receiver: "https://a:443".to_owned(),
            secrets: vec![103, 101, 104],
            dialect: Birth(1),
            events: WebhookEvents::All,
        };
        let text = format!("{webhook:?}");
        assert!(text.contains("https://a:443") && !text.contains("geheim") && !text.contains("103"), "{text}");
    }
}
