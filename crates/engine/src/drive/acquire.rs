//! What a run must have before its agent works: its working tree, then its slot. `schedule` says why in this order.
//!
//! Before a turn begins, the task waits here and stays queued in the store. A parked run gives both back and comes here
//! again when it is answered.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use sabir_model::Command;
use sabir_store::Beside;

use super::active_turn::PreparedTurn;
use super::start::{FirstMessage, TurnMessage};
use super::{Driver, InboxRow};
use crate::schedule::{Queued, Reacquired, Scheduled};
use crate::trees::{Occupant, QueuedTree, ScheduledTree};
use crate::wait_reason::WaitReason;

/// What a run waits for.
pub(super) enum Acquiring {
    Tree(QueuedTree),
    Slot(Queued<()>),
}

impl Driver {
    /// Waits for the context and a first slot, if there is something to run, and serves callers meanwhile. Without a permit
    /// afterwards, nothing is run: the task was cancelled, or the server stops and the task stays queued in the store.
    pub(super) async fn wait_for_slot(&mut self, first: &FirstMessage, scheduled: Option<Scheduled>) {
        let mut queued = match (first, scheduled) {
            (FirstMessage::Nothing, _) | (_, None | Some(Scheduled::QueueFull)) => return,
            (_, Some(Scheduled::Now(permit))) => {
                self.permit = Some(permit);
                return;
            }
            (_, Some(Scheduled::Later(queued))) => queued,
        };
        self.permit = poll_fn(|cx| {
            self.serve_callers(cx);
            let is_stored = self.poll_store(cx).is_ready();
            if self.is_leaving() {
                return Poll::Ready(None);
            }
            // A slot that comes before the commit is no reason to run: nobody was told of the task yet.
            if !is_stored {
                return Poll::Pending;
            }
            if let Poll::Ready(permit) = queued.poll(cx) {
                return Poll::Ready(permit);
            }
            self.note_wait_reason(queued.wait_reason());
            let _ = self.poll_store(cx);
            Poll::Pending
        })
        .await;
    }

    /// Gets the turn of this message ready to begin: the agent says which folder it needs for itself, and the run waits
    /// until it has that and a slot. `None`: nothing more is to be run.
    pub(super) async fn prepare(&mut self, message: TurnMessage) -> Option<PreparedTurn> {
        let prepared = self.new_turn(message);
        let agency = self.executor.agency.clone();
        let wanted = {
            let mut asked = agency.hosted.agent.working_tree(&prepared.turn);
            poll_fn(|cx| {
                self.serve_callers(cx);
                match self.is_leaving() {
                    true => Poll::Ready(None),
                    false => asked.as_mut().poll(cx).map(Some),
                }
            })
            .await?
        };
        if self.wanted_tree != wanted {
            // The next turn of a task may work elsewhere.
            self.tree = None;
            self.wanted_tree = wanted;
        }
        let mut has_waited = false;
        let may_begin = poll_fn(|cx| {
            self.serve_callers(cx);
            if self.is_leaving() {
                return Poll::Ready(false);
            }
            let has_all = self.poll_acquire(cx).is_ready();
            if has_all && !has_waited {
                return Poll::Ready(true);
            }
            if !has_all {
                has_waited = true;
                self.keep_queued_message();
                if let Some(acquiring) = &self.acquiring {
                    self.note_wait_reason(acquiring.wait_reason());
                }
            }
            let is_stored = self.poll_store(cx).is_ready();
            if has_all && is_stored { Poll::Ready(!self.is_leaving()) } else { Poll::Pending }
        })
        .await;
        self.acquiring = None;
        may_begin.then_some(prepared)
    }

    /// Ready when the run has its working tree and its slot.
    pub(super) fn poll_acquire(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(permit) = &self.permit else { return Poll::Ready(()) };
        loop {
            match &mut self.acquiring {
                Some(Acquiring::Tree(queued)) => {
                    self.tree = std::task::ready!(queued.poll(cx));
                    self.acquiring = None;
                }
                Some(Acquiring::Slot(queued)) => {
                    std::task::ready!(queued.poll(cx));
                    self.acquiring = None;
                }
                None => {
                    if let (Some(path), None) = (&self.wanted_tree, &self.tree) {
                        let (owner, task) = (self.lease.key.owner.clone(), self.lease.key.task.clone());
                        match self.core.trees.enter(Occupant { path: path.clone(), owner, task }) {
                            ScheduledTree::Now(tree) => self.tree = Some(tree),
                            ScheduledTree::Later(queued) => {
                                // Nobody waits for a tree while it holds a slot.
                                permit.release_slot();
                                self.acquiring = Some(Acquiring::Tree(queued));
                            }
                        }
                        continue;
                    }
                    match permit.reacquire_slot() {
                        Reacquired::Now => return Poll::Ready(()),
                        Reacquired::Later(queued) => self.acquiring = Some(Acquiring::Slot(queued)),
                    }
                }
            }
        }
    }

    /// Whether the run has all that it needs, or is about to say so.
    pub(super) fn has_slot(&self) -> bool {
        self.acquiring.is_none() && self.permit.as_ref().is_some_and(|permit| permit.has_slot())
    }

    /// The run waits for its caller's answer; others may work meanwhile.
    pub(super) fn give_back_while_parked(&mut self) {
        self.tree = None;
        if let Some(permit) = &self.permit {
            permit.park();
        }
    }

    /// The agent has taken its question back and works already: it has its slot and its working tree at once, whoever
    /// else has them. A run that was answered has them already.
    pub(super) fn acquire_at_once(&mut self) {
        self.acquiring = None;
        let Some(permit) = &self.permit else { return };
        if let (Some(path), None) = (&self.wanted_tree, &self.tree) {
            let (owner, task) = (self.lease.key.owner.clone(), self.lease.key.task.clone());
            self.tree = Some(self.core.trees.enter_at_once(Occupant { path: path.clone(), owner, task }));
        }
        permit.reacquire_slot_at_once();
    }

    pub(super) fn give_back_all(&mut self) {
        self.acquiring = None;
        self.tree = None;
        self.permit = None;
    }

    /// A message that found a slot at once needed no row of its own; now it waits, and its sender must be told that it is
    /// stored.
    fn keep_queued_message(&mut self) {
        if let Some(first) = self.inbox.front_mut().filter(|first| first.row == InboxRow::None) {
            first.row = InboxRow::Pending;
            // Rows lie in the order of the inbox, and others may have come since.
            let rows = &mut self.pending.side_rows;
            let place = rows.iter().position(|row| matches!(row, Beside::InboxAdd(_))).unwrap_or(rows.len());
            rows.insert(place, Beside::InboxAdd(first.message.clone()));
        }
    }

    /// Tells the caller of a queued task what it waits for now.
    fn note_wait_reason(&mut self, reason: WaitReason) {
        if self.noted_wait_reason.as_ref() == Some(&reason) {
            return;
        }
        let note = Arc::new(self.agent_message(vec![reason.note()]));
        self.noted_wait_reason = Some(reason);
        self.decide(Command::Queue { note });
    }
}

impl Acquiring {
    fn wait_reason(&self) -> WaitReason {
        match self {
            Acquiring::Tree(queued) => queued.wait_reason(),
            Acquiring::Slot(queued) => queued.wait_reason(),
        }
    }
}
