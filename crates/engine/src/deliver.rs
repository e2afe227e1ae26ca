//! Delivers a message to an existing task: to its driver, or to a new driver if the task is at rest.

use std::sync::Arc;

use sabir_model::{Caller, Delivery, Error, Message, Purpose, check_named_question};
use sabir_store::{AfterAppend, SentKey};
use tokio::sync::oneshot;

use crate::access::check_message;
use crate::audit::CallAudit;
use crate::cluster::{Contention, Forwarding, Loaded, OutgoingMessage};
use crate::drive::{self, Assignment, Control, DriverOwnership, DriverStart, MessageDelivery, NotDone};
use crate::engine::{Engine, RegisteredAgent};
use crate::executor::RunRequest;
use crate::in_flight::InFlightGuard;
use crate::schedule::{Scheduled, SlotUse};
use crate::send::send_digest;
use crate::send_result::{SendEffect, SendResult};
use crate::subscribe::cursor_beyond_log;
use crate::topic::TopicKey;

/// What became of a message to a task.
pub(crate) enum Delivered {
    Stored(SendResult),
    /// Its key is that of an earlier send.
    Repeated,
}

/// Who sends a message.
#[derive(Clone, Copy)]
pub(crate) struct Sender<'a> {
    pub(crate) caller: &'a Caller,
    /// It has no other right on the task than to answer its question.
    pub(crate) is_approver: bool,
    pub(crate) audit: &'a CallAudit,
}

impl Sender<'_> {
    /// The key of the message. It belongs to the sender, also in somebody else's task.
    fn key(self, task: &TopicKey, send: &sabir_model::Send) -> Option<SentKey> {
        let sender = Some(&self.caller.owner).filter(|sender| **sender != task.owner).cloned();
        send.idempotency.clone().map(|key| SentKey { key, sender })
    }
}

impl Engine {
    /// Delivers a message to a task; returns when the message is stored.
    pub(crate) async fn deliver(
        &self,
        registered: &Arc<RegisteredAgent>,
        key: TopicKey,
        sender: Sender<'_>,
        send: &sabir_model::Send,
        message: Arc<Message>,
        send_guards: Vec<Arc<InFlightGuard>>,
    ) -> Result<Delivered, Error> {
        let mut message = Message::clone(&message);
        message.request_metadata = send.metadata.clone();
        message.task = Some(key.task.clone());
        let mut message = Arc::new(message);
        for guard in &send_guards {
            guard.share(&message);
        }
        let (mut context_busy, mut contention) = (None, Contention::default());
        loop {
            if *self.core.stopping.borrow() && !self.is_awaited(&key) {
                return Err(Error::Stopping);
            }
            let lease = self.core.feed.open(key.clone());
            let loaded = self.load(&lease).await?;
            if loaded == Loaded::Missing {
                return Err(Error::TaskNotFound(key.task));
            }
            let seen = lease.with_task(|task| (task.seq, task.context.clone(), task.status.state));
            let Some((seq, context, state)) = seen else { return Err(Error::TaskNotFound(key.task)) };
            if send.last_event_id.is_some_and(|id| id.is_beyond(seq)) {
                return Err(cursor_beyond_log(seq));
            }
            if message.context.as_ref() != Some(&context) {
                Arc::make_mut(&mut message).context = Some(context.clone());
            }
            // A stream begins with the task as it was, and an approver sees no more of it. Other sends must not hold it, or the next event would copy
            // it.
            let before = lease.task().filter(|_| send.delivery == Delivery::Stream || sender.is_approver);
            let inbox = self.stored_inbox(&lease).await?;
            let (done, stored) = oneshot::channel();
            let keep = self.core.feed.open(key.clone());
            let audit_entry = sender.audit.for_driver(&key);
            if let (Loaded::Elsewhere, Some(membership), Some(no)) = (loaded, &self.core.membership, lease.no()) {
                let outgoing = OutgoingMessage {
                    sender: sender.caller,
                    message: &message,
                    sent_key: send.idempotency.as_ref(),
                    audit: audit_entry,
                    send_guards: &send_guards,
                };
                let forwarded = membership.forward_message(no, &key, outgoing).await?;
                match forwarded {
                    Forwarding::Withdrawn => continue,
                    Forwarding::Done => {
                        sender.audit.set_stored();
                        self.load(&keep).await?;
                        return Ok(Delivered::Stored(SendResult {
                            lease: keep,
                            effect: SendEffect::Continued(before),
                        }));
                    }
                }
            }
            if loaded == Loaded::Left
                && let Some(no) = lease.no()
                && self.core.store.inbox(no).await?.len() >= registered.hosted.limits.queue.max(1)
            {
                return Err(Error::Busy(registered.hosted.id.clone()));
            }
            // Asked before the claim, since a future that holds a claim must not be dropped at an await.
            let home = self.home_elsewhere(registered, &key, &context).await?;
            match lease.claim() {
                Err(driver) => {
                    let (message, key) = (message.clone(), sender.key(&key, send));
                    let sender = sender.caller.clone();
                    // The guards are kept here too: a driver that releases the task drops its own, and the send is
                    // still in flight.
                    let delivered = MessageDelivery {
                        sender,
                        message,
                        key,
                        send_guards: send_guards.clone(),
                        done,
                        audit: audit_entry,
                        forwarded: None,
                    };
                    if driver.send(Control::Deliver(Box::new(delivered))).is_err() {
                        tokio::task::yield_now().await;
                        continue;
                    }
                }
                // The claim keeps others from changing the task from now on, but not before.
                Ok(_) if lease.with_task(|task| task.seq) != Some(seq) => {
                    lease.release(None);
                    continue;
                }
                Ok(control) => {
                    if state.is_terminal() {
                        lease.release(None);
                        return Err(Error::TaskFinished(key.task));
                    }
                    if *self.core.stopping.borrow() {
                        lease.release(None);
                        return Err(Error::Stopping);
                    }
                    let checked = lease.with_task(|task| {
                        check_named_question(task, &message)?;
                        let purpose = task.open_question().map_or(Purpose::NextTurn, |id| Purpose::Answer(id.event));
                        let question = task.status.message.as_deref().filter(|_| task.status.state.is_waiting());
                        check_message(sender.caller, &key, &message, Ok(purpose), question)
                    });
                    if let Some(Err(refusal)) = checked {
                        lease.release(None);
                        return Err(refusal);
                    }
                    let executor = self.executor_of(registered, &lease);
                    let (owner, task) = (&key.owner, &key.task);
                    let mut leave = (loaded == Loaded::Left).then_some(AfterAppend::Leave { home: None });
                    leave = home.map(|home| AfterAppend::Leave { home: Some(home) }).or(leave);
                    leave = leave.or(context_busy.take().map(|_| AfterAppend::Leave { home: None }));
                    let scheduled = match &leave {
                        Some(_) => None,
                        None => {
                            let slot_use =
                                lease.with_task(|task| SlotUse::of(task.delegated())).unwrap_or(SlotUse::Counted);
                            let executor = &executor;
                            let run = RunRequest { addressed: registered, executor, owner, context, task, slot_use };
                            Some(self.enter(run))
                        }
                    };
                    if matches!(scheduled, Some(Scheduled::QueueFull)) {
                        lease.release(None);
                        return Err(Error::Busy(registered.hosted.id.clone()));
                    }
                    let (scheduled, leave) = match scheduled {
                        // Beside other nodes, it does not wait here: the store keeps the order of all nodes.
                        Some(Scheduled::Later(queued))
                            if self.core.membership.is_some()
                                && (queued.waits_for_context() || self.is_left_for_slot(&executor, &queued)) =>
                        {
                            (None, Some(AfterAppend::Leave { home: None }))
                        }
                        scheduled => (scheduled, leave),
                    };
                    lease.expect_more();
                    let start = DriverStart::Deliver {
                        message: message.clone(),
                        key: sender.key(&key, send),
                        send_digest: self.core.membership.as_ref().map(|_| send_digest(sender.caller, &message)),
                        inbox,
                        audit: audit_entry,
                    };
                    let send_guards = send_guards.clone();
                    let ownership = DriverOwnership { leave, ..DriverOwnership::default() };
                    let assignment =
                        Assignment { lease, control, start, scheduled, send_guards, done: Some(done), ownership };
                    drive::start(&self.core, executor, assignment);
                }
            }
            // A driver that released the task before it read the message drops `done`; then the loop tries again.
            match stored.await {
                Ok(Ok(())) => {
                    sender.audit.set_stored();
                    return Ok(Delivered::Stored(SendResult { lease: keep, effect: SendEffect::Continued(before) }));
                }
                Ok(Err(NotDone::Refused(error))) => return Err(error),
                Ok(Err(NotDone::Exists(_))) if send.idempotency.is_some() => return Ok(Delivered::Repeated),
                // The same message came through another node.
                Ok(Err(NotDone::Exists(_) | NotDone::Repeated)) => {
                    self.load(&keep).await?;
                    return Ok(Delivered::Stored(SendResult { lease: keep, effect: SendEffect::Duplicate }));
                }
                Ok(Err(NotDone::ContextBusy(task))) => context_busy = Some(task),
                Ok(Err(NotDone::Contended)) => {
                    if send.idempotency.is_some() {
                        return Ok(Delivered::Repeated);
                    }
                    contention.pause().await?;
                }
                Err(_) => contention.pause().await?,
            }
        }
    }

    /// Whether the task has a driver, whose run may need the message as an answer even while the server stops.
    fn is_awaited(&self, key: &TopicKey) -> bool {
        let lease = self.core.feed.find(&key.owner, Some(&key.agent), &key.task);
        lease.is_some_and(|lease| lease.driver().is_some())
    }
}
