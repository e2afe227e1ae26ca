//! What a driver does when no turn is running: before its turn comes, and after it is over.

use std::future::poll_fn;
use std::task::{Context, Poll};

use sabir_model::{Action, Command, Error, IdempotencyKey, Run};
use sabir_store::Beside;
use tokio::sync::oneshot;

use super::storing::{Ack, Waiting};
use super::{Done, Driver, Unread};
use crate::schedule::Permit;
use crate::topic::{Control, Delivered};

impl Driver {
    /// Waits for a place, and answers callers meanwhile. `None`: it is not wanted any more.
    pub(super) async fn wait_for_room(&mut self, mut permit: oneshot::Receiver<Permit>) -> Option<Permit> {
        poll_fn(|cx| {
            while let Poll::Ready(Some(control)) = self.control.poll_recv(cx) {
                match control {
                    // It stays queued in the store and runs after the next start.
                    Control::Settle => return Poll::Ready(None),
                    control => self.answer(control),
                }
            }
            let is_stored = self.poll_store(cx).is_ready();
            if self.is_lost || self.standing.state.is_terminal() {
                return Poll::Ready(None);
            }
            // A place that comes before the commit is no reason to run: nobody was told of the task yet.
            if !is_stored {
                return Poll::Pending;
            }
            std::pin::Pin::new(&mut permit).poll(cx).map(Result::ok)
        })
        .await
    }

    /// Stores all there is, and answers callers meanwhile.
    pub(super) async fn flush(&mut self) {
        poll_fn(|cx| {
            self.answer_callers(cx);
            let stored = self.poll_store(cx);
            if self.is_lost {
                return Poll::Ready(());
            }
            stored
        })
        .await;
    }

    fn answer_callers(&mut self, cx: &mut Context<'_>) {
        while let Poll::Ready(Some(control)) = self.control.poll_recv(cx) {
            self.answer(control);
        }
    }

    /// What a caller wants while no turn is running.
    fn answer(&mut self, control: Control) {
        match control {
            Control::Deliver(delivered) => {
                let Delivered { message, key, tickets, done } = *delivered;
                if self.is_inbox_full() {
                    let _ = done.send(Err(Error::Busy(self.lease.key.agent.clone())));
                    return;
                }
                self.tickets.extend(tickets);
                let decided = sabir_model::decide(&self.standing, Command::Deliver(message), self.core.clock.now());
                match decided {
                    Ok(decision) => self.take_in(decision.actions, key, done),
                    // As for any message, the disk is not waited for.
                    Err(_) if self.is_store_full() => drop(done.send(Err(Error::StoreFull))),
                    Err(refusal) => self.refuse(done, refusal),
                }
            }
            Control::Cancel { done } => {
                if self.standing.state.is_terminal() {
                    return self.refuse(done, Error::NotCancelable(self.standing.task.clone()));
                }
                let unread = self.take_inbox();
                self.withheld = None;
                // No turn is running, so there is nobody to stop.
                self.standing.run = Run::None;
                self.decide(Command::Cancel { unread });
                self.batch.acks.push(Ack::plain(done));
            }
            Control::Settle => self.is_settling = true,
        }
    }

    /// What waits for one task counts like what waits for its agent.
    pub(super) fn is_inbox_full(&self) -> bool {
        self.inbox.len() >= self.agency.hosted.limits.queue.max(1)
    }

    /// Puts a message into the inbox, and acknowledges it when that is stored.
    pub(super) fn take_in(&mut self, actions: Vec<Action>, key: Option<IdempotencyKey>, done: Done) {
        let mut waiting = None;
        self.batch.beside.extend(key.clone().map(Beside::Key));
        for action in actions {
            if let Action::StartRun(message) | Action::Enqueue(message) = action {
                waiting = Some(Waiting { message: message.id.clone(), key: key.clone() });
                self.batch.beside.push(Beside::InboxAdd(message.clone()));
                self.inbox.push_back(Unread { message, is_stored: true });
            }
        }
        self.batch.acks.push(Ack::of_message(done, waiting));
    }
}
