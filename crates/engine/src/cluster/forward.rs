//! Forwards messages and cancels to the node that drives their task, and hands those of other nodes to drivers here.
//!
//! A forwarded call is a row in the store. The driver that does what it wants removes the row in the same append, so a message
//! is delivered once, whichever node dies meanwhile. A call that can be repeated (a cancel) or that is refused is answered in
//! the row. If the task comes to rest first, the sender takes the call back and looks again.
//!
//! | the sender                            | the call                                                                         |
//! |---------------------------------------|----------------------------------------------------------------------------------|
//! | waits                                 | it extends the call's life at each look                                          |
//! | is gone, or its caller is             | expires within `LIFETIME`                                                        |
//! | cannot reach the store                | it looks again until the call has expired, and only then tells its caller of the failure |
//! | was frozen for longer than that       | a row that is missing may have been forgotten, so it tells its caller of a failure |

use std::sync::Arc;
use std::time::Duration;

use sabir_model::{AgentId, Caller, Error, IdempotencyKey, Message, Owner, TaskId, Violation};
use sabir_store::{AuditEntry, Cluster, ForwardNo, ForwardState, ForwardedCall, SentKey, StoreError, TaskNo};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::Membership;
use crate::drive::{Control, MessageDelivery, NotDone};
use crate::engine::Engine;
use crate::in_flight::{InFlightGuard, Registration};
use crate::recover::causes;
use crate::sharded::lock;
use crate::topic::TopicKey;

/// How long a forwarded message waits for an equal one, before the store is asked for it again.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// How long a call may be done after its sender has last looked.
const LIFETIME: Duration = Duration::from_secs(10);

/// How long the row of a call is there for certain after its life. Any node may remove it a minute after that
/// (`sabir_store::postgres`), and half of it is kept as a margin.
const REMEMBERED: Duration = Duration::from_secs(30);

/// What is forwarded.
#[derive(Serialize, Deserialize)]
struct Envelope {
    owner: Owner,
    agent: AgentId,
    task: TaskId,
    call: Call,
}

#[derive(Serialize, Deserialize)]
enum Call {
    Message {
        sender: Caller,
        message: Box<Message>,
        key: Option<IdempotencyKey>,
        audit: Option<Box<AuditEntry>>,
    },
    Cancel {
        audit: Option<Box<AuditEntry>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

/// What the owner writes into the row, unless an append removes it.
#[derive(Debug, Serialize, Deserialize)]
enum Reply {
    Done,
    Refused(Refusal),
}

/// The errors of drivers.
#[derive(Debug, Serialize, Deserialize)]
enum Refusal {
    TaskNotFound,
    NotCancelable,
    TaskFinished,
    NotWaiting,
    QuestionClosed,
    Invalid(Vec<(String, String)>),
    Busy,
    Stopping,
    StoreFull,
    Forbidden(String),
    LimitReached { sentence: String, retry_after: u32 },
    Internal(String),
}

impl Refusal {
    fn of(error: &Error) -> Self {
        match error {
            Error::TaskNotFound(_) => Refusal::TaskNotFound,
            Error::NotCancelable(_) => Refusal::NotCancelable,
            Error::TaskFinished(_) => Refusal::TaskFinished,
            Error::NotWaiting(_) => Refusal::NotWaiting,
            Error::QuestionClosed(_) => Refusal::QuestionClosed,
            Error::Invalid(violations) => {
                let fields = violations.iter().map(|one| (one.field.clone(), one.description.clone()));
                Refusal::Invalid(fields.collect())
            }
            Error::Busy(_) => Refusal::Busy,
            Error::Stopping => Refusal::Stopping,
            Error::StoreFull => Refusal::StoreFull,
            Error::Forbidden(sentence) => Refusal::Forbidden(sentence.clone()),
            Error::LimitReached { sentence, retry_after } => {
                Refusal::LimitReached { sentence: sentence.clone(), retry_after: *retry_after }
            }
            // Drivers have no others.
            other => Refusal::Internal(causes(other)),
        }
    }

    fn into_error(self, key: &TopicKey) -> Error {
        let task = key.task.clone();
        match self {
            Refusal::TaskNotFound => Error::TaskNotFound(task),
            Refusal::NotCancelable => Error::NotCancelable(task),
            Refusal::TaskFinished => Error::TaskFinished(task),
            Refusal::NotWaiting => Error::NotWaiting(task),
            Refusal::QuestionClosed => Error::QuestionClosed(task),
            Refusal::Invalid(fields) => {
                let violation = |(field, description)| Violation { field, description };
                Error::Invalid(fields.into_iter().map(violation).collect())
            }
            Refusal::Busy => Error::Busy(key.agent.clone()),
            Refusal::Stopping => Error::Stopping,
            Refusal::StoreFull => Error::StoreFull,
            Refusal::Forbidden(sentence) => Error::Forbidden(sentence),
            Refusal::LimitReached { sentence, retry_after } => Error::LimitReached { sentence, retry_after },
            Refusal::Internal(cause) => Error::internal(cause),
        }
    }
}

/// What became of a call that was forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Forwarding {
    Done,
    /// The task has no owner any more, and nothing was done: look again.
    Withdrawn,
}

/// A message for a task of another node.
pub(crate) struct OutgoingMessage<'a> {
    pub(crate) sender: &'a Caller,
    pub(crate) message: &'a Message,
    pub(crate) sent_key: Option<&'a IdempotencyKey>,
    pub(crate) audit: Option<Box<AuditEntry>>,
    pub(crate) send_guards: &'a [Arc<InFlightGuard>],
}

impl Membership {
    /// Forwards a message to the node that drives the task; returns when it is stored.
    pub(crate) async fn forward_message(
        &self,
        no: TaskNo,
        key: &TopicKey,
        OutgoingMessage { sender, message, sent_key, audit, send_guards }: OutgoingMessage<'_>,
    ) -> Result<Forwarding, Error> {
        let message = Box::new(message.clone());
        let call = Call::Message { sender: sender.clone(), message, key: sent_key.cloned(), audit };
        let forwarded = self.forward(no, key, call, send_guards).await?;
        if forwarded == Forwarding::Done {
            // Equal sends that wait for this one join its task.
            send_guards.iter().for_each(|guard| guard.complete(key));
        }
        Ok(forwarded)
    }

    /// Forwards a cancel; returns when the run has stopped and that is stored.
    pub(crate) async fn forward_cancel(
        &self,
        no: TaskNo,
        key: &TopicKey,
        audit: Option<Box<AuditEntry>>,
        reason: Option<String>,
    ) -> Result<Forwarding, Error> {
        self.forward(no, key, Call::Cancel { audit, reason }, &[]).await
    }

    async fn forward(
        &self,
        no: TaskNo,
        key: &TopicKey,
        call: Call,
        send_guards: &[Arc<InFlightGuard>],
    ) -> Result<Forwarding, Error> {
        let TopicKey { owner, agent, task } = key.clone();
        let envelope = serde_json::to_vec(&Envelope { owner, agent, task, call }).map_err(Error::internal)?;
        let number = self.cluster.next_forward();
        let _sent = SentCall::new(self, number, send_guards);
        let mut until = Instant::now() + LIFETIME;
        let forwarded = self.cluster.forward(ForwardedCall { number, task: no, call: envelope }, until).await;
        let (mut is_stored, mut failure) = (forwarded.is_ok(), forwarded.err());
        let mut known_until = until;
        loop {
            let mut changed = std::pin::pin!(self.forwards_changed.notified());
            // Registered before the look, so that no change is missed.
            changed.as_mut().enable();
            let now = Instant::now();
            match failure.take() {
                Some(error) if now >= until || matches!(error, StoreError::Closed) => return Err(error.into()),
                Some(error) => failure = Some(error),
                // After a failure the call is not extended, so that its end comes.
                None => until = now + LIFETIME,
            }
            match self.cluster.forward_state(number, until).await {
                Ok(ForwardState::Done) if is_stored && was_done(known_until, Instant::now()) => {
                    return Ok(Forwarding::Done);
                }
                // It may have been stored and done, or forgotten, or it will be stored when it has expired.
                Ok(ForwardState::Done) => {
                    failure.get_or_insert_with(|| StoreError::Failed("a forwarded call is not to be found".into()));
                }
                Ok(ForwardState::Withdrawn) => return Ok(Forwarding::Withdrawn),
                Ok(ForwardState::Answered(reply)) => {
                    return match serde_json::from_slice(&reply).map_err(Error::internal)? {
                        Reply::Done => Ok(Forwarding::Done),
                        Reply::Refused(refusal) => Err(refusal.into_error(key)),
                    };
                }
                Ok(ForwardState::Pending) => (is_stored, failure, known_until) = (true, None, until),
                // It may have been withdrawn.
                Err(error) => (is_stored, failure) = (false, Some(error)),
            }
            let _ = tokio::time::timeout(self.cluster.poll_interval(), changed).await;
        }
    }
}

/// Whether a call whose row is missing now was done. `known_until`: the end of its life when the row was last seen.
fn was_done(known_until: Instant, now: Instant) -> bool {
    now < known_until + REMEMBERED
}

/// A message that this node has forwarded. This node may become the owner of the task, and must not take the message for a
/// repetition of itself then.
struct SentCall<'a> {
    membership: &'a Membership,
    number: ForwardNo,
}

impl<'a> SentCall<'a> {
    fn new(membership: &'a Membership, number: ForwardNo, send_guards: &[Arc<InFlightGuard>]) -> Self {
        lock(&membership.sent).insert(number, send_guards.to_vec());
        Self { membership, number }
    }
}

impl Drop for SentCall<'_> {
    fn drop(&mut self) {
        lock(&self.membership.sent).remove(&self.number);
    }
}

impl Engine {
    /// Hands calls that other nodes have forwarded to drivers of this node.
    pub(crate) fn accept_forwarded(&self) {
        let engine = self.clone();
        tokio::spawn(async move {
            let Some(membership) = &engine.core.membership else { return };
            match membership.cluster.forwarded().await {
                Ok(calls) => {
                    for call in calls {
                        engine.accept(call);
                    }
                }
                Err(StoreError::Closed) => {}
                Err(error) => tracing::warn!(%error, "cannot read what other nodes forward; will try again"),
            }
        });
    }

    /// Works on a call, unless that is under way already.
    fn accept(&self, ForwardedCall { number, call, .. }: ForwardedCall) {
        let Some(membership) = &self.core.membership else { return };
        if !lock(&membership.accepted).insert(number) {
            return;
        }
        let engine = self.clone();
        tokio::spawn(async move {
            let result = engine.execute_forwarded(number, &call).await;
            let Some(membership) = &engine.core.membership else { return };
            if let Some(reply) = result {
                answer(&*membership.cluster, number, &reply).await;
            }
            lock(&membership.accepted).remove(&number);
        });
    }

    /// `None`: an append has removed the row, or the task has no driver here, so whoever has it next finds the call.
    async fn execute_forwarded(&self, number: ForwardNo, call: &[u8]) -> Option<Reply> {
        let envelope: Envelope = match serde_json::from_slice(call) {
            Ok(envelope) => envelope,
            Err(error) => {
                tracing::error!(%error, "a forwarded call cannot be read; nodes of different versions?");
                return Some(Reply::Refused(Refusal::Internal(error.to_string())));
            }
        };
        let Envelope { owner, agent, task, call } = envelope;
        let key = TopicKey { owner, agent, task };
        let lease = self.core.feed.find(&key.owner, Some(&key.agent), &key.task)?;
        let driver = lease.driver()?;
        let (done, finished) = oneshot::channel();
        let is_cancel = matches!(call, Call::Cancel { .. });
        let control = match call {
            Call::Cancel { audit, reason } => Control::Cancel { done, audit, reason },
            Call::Message { sender, message, key: sent_key, audit } => {
                let message = Arc::from(message);
                let own =
                    self.core.membership.as_ref().and_then(|membership| lock(&membership.sent).get(&number).cloned());
                let send_guards = match own {
                    Some(guards) => guards,
                    None => {
                        let registered = self.register_forwarded(&sender, &key, sent_key.as_ref(), &message);
                        // The first one may be this very message, which this node has just forwarded: look again then.
                        match tokio::time::timeout(LOOK_AGAIN, registered).await.ok()? {
                            Ok(guards) => guards,
                            // The first of several equal sends is stored, so this one is done too.
                            Err(IsStored) => return Some(Reply::Done),
                        }
                    }
                };
                let sent_key = sent_key.map(|sent_key| {
                    let foreign = Some(&sender.owner).filter(|sender| **sender != key.owner).cloned();
                    SentKey { key: sent_key, sender: foreign }
                });
                let forwarded = Some(number);
                Control::Deliver(Box::new(MessageDelivery {
                    sender,
                    message,
                    key: sent_key,
                    send_guards,
                    done,
                    audit,
                    forwarded,
                }))
            }
        };
        driver.send(control).ok()?;
        match finished.await {
            Ok(Ok(())) if is_cancel => Some(Reply::Done),
            Ok(Ok(())) => None,
            Ok(Err(NotDone::Refused(error))) => Some(Reply::Refused(Refusal::of(&error))),
            // The message or its key is that of an earlier one.
            Ok(Err(NotDone::Exists(_) | NotDone::Repeated)) => Some(Reply::Done),
            Ok(Err(NotDone::Contended | NotDone::ContextBusy(_))) | Err(_) => None,
        }
    }

    /// Equal sends may come through several nodes at once; the first one counts.
    async fn register_forwarded(
        &self,
        sender: &Caller,
        key: &TopicKey,
        sent_key: Option<&IdempotencyKey>,
        message: &Arc<Message>,
    ) -> Result<Vec<Arc<InFlightGuard>>, IsStored> {
        let in_flight = &self.core.in_flight;
        loop {
            let mut guards = Vec::new();
            let mut duplicate = None;
            if let Some(sent_key) = sent_key {
                match in_flight.by_key(sender, &key.agent, sent_key, message) {
                    Registration::First(guard) => guards.push(Arc::new(guard)),
                    Registration::Duplicate(first) => duplicate = Some(first),
                }
            }
            if duplicate.is_none() {
                match in_flight.by_message(sender, &key.agent, message) {
                    Registration::First(guard) => guards.push(Arc::new(guard)),
                    Registration::Duplicate(first) => duplicate = Some(first),
                }
            }
            let Some(first) = duplicate else { return Ok(guards) };
            drop(guards);
            if first.stored_as().await.is_some() {
                return Err(IsStored);
            }
            tokio::task::yield_now().await;
        }
    }
}

/// An equal send is stored already.
struct IsStored;

async fn answer(cluster: &dyn Cluster, number: ForwardNo, reply: &Reply) {
    let reply = match serde_json::to_vec(reply) {
        Ok(reply) => reply,
        Err(error) => return tracing::error!(%error, "cannot write the answer to a forwarded call"),
    };
    if let Err(error) = cluster.answer_forwarded(number, reply).await {
        // The call is found again, and answered again.
        tracing::warn!(%error, "cannot answer a call that another node forwarded; will try again");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sender that was stopped for minutes finds no row, whether its call was done or has expired and was forgotten.
    #[test]
    fn a_missing_row_is_believed_only_while_nobody_may_have_forgotten_it() {
        let seen = Instant::now();
        let known_until = seen + LIFETIME;
        for (seconds, expected) in
            [(0, true), (1, true), (16, true), (39, true), (40, false), (70, false), (600, false)]
        {
            let now = seen + Duration::from_secs(seconds);
            assert_eq!(was_done(known_until, now), expected, "{seconds} s after the last look");
        }
    }
}
