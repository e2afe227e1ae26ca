//! Control messages: what callers and the server want of a task that has a driver.
//!
//! The same functions serve a task whose agent works and a task that waits for a slot.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use sabir_model::{Caller, Command, Error, Message, Part, Purpose, QuestionState, Timestamp};
use sabir_store::{AuditEntry, ForwardNo, SendDigest, SentKey, SideRow};

use super::active_turn::StopReason;
use super::append::{Ack, SentMessage};
use super::{DoneSender, Driver, InboxMessage, InboxRow, NotDone};
use crate::access::check_message;
use crate::audit::message_row;
use crate::in_flight::InFlightGuard;
use crate::send::send_digest;

/// A control message to a driver.
pub(crate) enum Control {
    /// Boxed, since the channel of every running task reserves room for the largest variant.
    Deliver(Box<MessageDelivery>),
    Cancel {
        done: DoneSender,
        audit: Option<Box<AuditEntry>>,
        /// Why, for the status message; `None`: its caller wants it.
        reason: Option<String>,
    },
    /// Another node has the task: nothing more may be done for it here.
    Lose {
        /// Only drivers of earlier incarnations of this node have lost their tasks.
        incarnation: u64,
    },
    /// The server stops: a task that waits for a slot stays queued in the store.
    LeaveQueue,
    /// The server stops: settle the task as `Recovery` says. The agent must stop within this time.
    Settle { within: Duration },
    /// Fails the task if its question was asked before this time and is not answered.
    Expire { before: Timestamp, reason: String },
}

/// A message for a task that has a driver.
pub(crate) struct MessageDelivery {
    pub(crate) sender: Caller,
    pub(crate) message: Arc<Message>,
    pub(crate) key: Option<SentKey>,
    pub(crate) send_guards: Vec<Arc<InFlightGuard>>,
    pub(crate) done: DoneSender,
    /// Stored with the message.
    pub(crate) audit: Option<Box<AuditEntry>>,
    /// Another node has forwarded it.
    pub(crate) forwarded: Option<ForwardNo>,
}

/// The inbox of a task is in memory, so it holds at most this many bytes.
const MAX_INBOX_BYTES: usize = 64 << 20;

impl Driver {
    /// Stores everything that is pending, and serves callers meanwhile. A driver that releases the task stores nothing
    /// new, but waits for the append in progress, since callers wait for that.
    pub(super) async fn flush(&mut self) {
        poll_fn(|cx| {
            self.serve_callers(cx);
            self.poll_store(cx)
        })
        .await;
    }

    pub(super) fn serve_callers(&mut self, cx: &mut Context<'_>) {
        while let Poll::Ready(Some(control)) = self.control.poll_recv(cx) {
            match control {
                Control::Deliver(delivered) => self.deliver(*delivered),
                Control::Cancel { done, audit, reason } => self.cancel(done, audit, reason),
                Control::Expire { before, reason } => {
                    if let Some(turn) = &mut self.turn
                        && turn
                            .question
                            .as_ref()
                            .is_some_and(|question| !question.is_answered && question.asked < before)
                    {
                        turn.stop(StopReason::TimedOut(reason));
                    }
                }
                Control::Lose { incarnation } => {
                    if self.incarnation < incarnation {
                        self.lose_task();
                    }
                }
                // A run with a slot counts as working, even if the event about it is not stored yet.
                Control::LeaveQueue => self.is_settling |= self.turn.is_none() && !self.has_slot(),
                Control::Settle { within } => {
                    self.is_settling = true;
                    if let Some(turn) = &mut self.turn {
                        turn.stop_within(StopReason::ServerStops, within);
                    }
                }
            }
        }
    }

    /// Puts a message into the inbox. Its sender is acknowledged when the row is stored.
    fn deliver(&mut self, delivery: MessageDelivery) {
        let MessageDelivery { sender, mut message, key, send_guards, done, audit, forwarded } = delivery;
        if let Some(failure) = self.store_failure() {
            return drop(done.send(Err(failure.into())));
        }
        let send_digest = self.send_digest(&sender, &message);
        if send_digest.is_some_and(|digest| self.known_sends.contains(&digest)) {
            return drop(done.send(Err(NotDone::Repeated)));
        }
        // The inbox of a task has the same bound as the queue of its agent.
        let bytes: usize = self.inbox.iter().map(|unread| unread.weight).sum();
        if self.inbox.len() >= self.executor.agent.hosted.limits.queue.max(1) || bytes >= MAX_INBOX_BYTES {
            return drop(done.send(Err(Error::Busy(self.lease.key.agent.clone()).into())));
        }
        self.drop_abandoned_question();
        let purpose = sabir_model::purpose(&self.standing, &message, self.question_state());
        let question = self.standing.question().map(|question| &**question);
        let purpose = match check_message(&sender, &self.lease.key, &message, purpose, question) {
            Ok(purpose) => purpose,
            Err(refusal) => return self.refuse(done, refusal),
        };
        if let Purpose::Answer(event) = purpose {
            // Stored with the message, so that it cannot become the answer to another question after a restart.
            Arc::make_mut(&mut message).answers = Some(event);
            if let Some(question) = self.turn.as_mut().and_then(|turn| turn.question.as_mut()) {
                question.is_answered = true;
            }
        }
        let question = self.standing.question().map(|question| &**question);
        let audit = audit.map(|entry| message_row(entry, &self.lease.key.task, &purpose, question, &message));
        self.pending.side_rows.extend(audit);
        self.pending.side_rows.extend(key.clone().map(SideRow::Key));
        self.pending.side_rows.push(SideRow::InboxAdd(message.clone()));
        self.pending.side_rows.extend(forwarded.map(SideRow::ForwardDone));
        self.pending.side_rows.extend(send_digest.map(SideRow::SendInFlight));
        let sent = SentMessage { message: message.clone(), key, forwarded, send_digest };
        self.pending.acks.push(Ack::message(done, send_guards, sent));
        self.inbox.push_back(InboxMessage::new(message, purpose, InboxRow::Pending));
    }

    /// What the next owner of the task knows a message of this sender by, if it is repeated. `None`: this engine is alone, or the
    /// sender is not the owner of the task, and its messages are not the owner's.
    fn send_digest(&self, sender: &Caller, message: &Message) -> Option<SendDigest> {
        let is_needed = self.core.membership.is_some() && sender.owner == self.lease.key.owner;
        is_needed.then(|| send_digest(sender, message))
    }

    /// Stops the run, or cancels a task that has no run.
    fn cancel(&mut self, done: DoneSender, audit: Option<Box<AuditEntry>>, reason: Option<String>) {
        if self.standing.state.is_terminal() {
            return self.refuse(done, Error::NotCancelable(self.lease.key.task.clone()));
        }
        let failure = self.store_failure();
        match &mut self.turn {
            Some(turn) => {
                let is_first = turn.stop(StopReason::Canceled(reason));
                match failure {
                    Some(failure) => return drop(done.send(Err(failure.into()))),
                    // Stored, so that no recovery runs the task again after a crash.
                    None if is_first => self.pending.side_rows.push(SideRow::CancelRequested),
                    None => {}
                }
                self.pending.side_rows.extend(audit.map(SideRow::Audit));
                self.cancels.push(done);
            }
            None => {
                let mut unread = std::mem::take(&mut self.unused_answers);
                unread.extend(self.take_inbox());
                self.deferred_outcome = None;
                self.decide_cancel(unread, reason);
                match failure {
                    Some(failure) => drop(done.send(Err(failure.into()))),
                    None => {
                        self.pending.side_rows.extend(audit.map(SideRow::Audit));
                        self.pending.acks.push(Ack::cancel(done));
                    }
                }
            }
        }
    }

    /// Ends a task that has no run.
    pub(super) fn decide_cancel(&mut self, unread: Vec<Arc<Message>>, reason: Option<String>) {
        self.decide(match reason {
            None => Command::Cancel { unread },
            Some(reason) => {
                let message = Some(Arc::new(self.agent_message(vec![Part::text(reason)])));
                Command::Finish { outcome: sabir_model::Outcome::Canceled(message), usage: None, unread }
            }
        });
    }

    fn question_state(&self) -> QuestionState {
        match self.turn.as_ref().and_then(|turn| turn.question.as_ref()) {
            Some(question) if !question.is_answered && question.event <= self.stored => {
                QuestionState::Open(question.event)
            }
            _ => QuestionState::NotOpen,
        }
    }
}
