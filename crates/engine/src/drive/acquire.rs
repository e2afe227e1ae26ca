//! Acquires what a run needs before its agent works: the working folder, then a slot. `schedule` explains the order.
//!
//! Before its first turn, a task waits here and stays queued in the store. A parked run releases both and acquires them
//! again when it is answered.

use std::future::poll_fn;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use sabir_model::Command;
use sabir_store::SideRow;

use super::active_turn::PreparedTurn;
use super::start::{FirstMessage, TurnMessage};
use super::{Driver, InboxRow};
use crate::schedule::{Queued, Reacquired, Scheduled};
use crate::topic::TopicKey;
use crate::wait_reason::WaitReason;
use crate::working_folders::{FolderUser, QueuedFolder, ScheduledFolder};

/// What a run currently waits for.
pub(super) enum Acquiring {
    Folder(QueuedFolder),
    Slot(Queued<()>),
}

impl Driver {
    /// Waits for the context and a first slot, and serves callers meanwhile. Without a permit afterwards, nothing is
    /// run: the task was canceled, or the server stops and the task stays queued in the store.
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
            // A slot that comes before the commit must wait: the task is not acknowledged yet.
            if !is_stored {
                return Poll::Pending;
            }
            if let Poll::Ready(permit) = queued.poll(cx) {
                return Poll::Ready(permit);
            }
            let _ = self.note_wait_reason(queued.wait_reason());
            let _ = self.poll_store(cx);
            Poll::Pending
        })
        .await;
    }

    /// Prepares the turn of this message: the agent says which folder it needs for itself, and the run waits until it
    /// has this folder and a slot. `None`: no more turns begin.
    pub(super) async fn prepare(&mut self, message: TurnMessage) -> Option<PreparedTurn> {
        self.wait_for_holds().await;
        let prepared = self.new_turn(message);
        let registered = self.executor.agent.clone();
        let wanted = {
            let mut asked = registered.hosted.agent.working_tree(&prepared.turn);
            poll_fn(|cx| {
                self.serve_callers(cx);
                match self.is_leaving() {
                    true => Poll::Ready(None),
                    false => asked.as_mut().poll(cx).map(Some),
                }
            })
            .await?
        };
        if self.wanted_folder != wanted {
            // The next turn of a task may need another folder.
            self.folder = None;
            self.wanted_folder = wanted;
        }
        self.folder_order = self.folder.as_ref().map(|lock| lock.order);
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
                let _ = self.note_what_is_acquired();
            }
            let is_stored = self.poll_store(cx).is_ready();
            if has_all && is_stored { Poll::Ready(!self.is_leaving()) } else { Poll::Pending }
        })
        .await;
        self.acquiring = None;
        may_begin.then_some(prepared)
    }

    /// Ready when the run has its working folder and its slot.
    pub(super) fn poll_acquire(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(permit) = &self.permit else { return Poll::Ready(()) };
        loop {
            match &mut self.acquiring {
                Some(Acquiring::Folder(queued)) => {
                    self.folder = std::task::ready!(queued.poll(cx));
                    self.acquiring = None;
                }
                Some(Acquiring::Slot(queued)) => {
                    std::task::ready!(queued.poll(cx));
                    self.acquiring = None;
                }
                None => {
                    if let (Some(path), None) = (&self.wanted_folder, &self.folder) {
                        let user = self.folder_user(path);
                        match self.core.working_folders.enter(user, self.folder_order) {
                            ScheduledFolder::Now(lock) => self.folder = Some(lock),
                            ScheduledFolder::Later(queued) => {
                                // A run never holds a slot while it waits for a folder.
                                permit.release_slot();
                                self.acquiring = Some(Acquiring::Folder(queued));
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

    fn folder_user(&self, path: &Path) -> FolderUser {
        let TopicKey { owner, agent, task } = self.lease.key.clone();
        FolderUser { path: path.to_owned(), owner, agent, task, delegated: self.delegated.clone() }
    }

    /// Whether the run has a slot and waits for nothing.
    pub(super) fn has_slot(&self) -> bool {
        self.acquiring.is_none() && self.permit.as_ref().is_some_and(|permit| permit.has_slot())
    }

    /// Releases the folder and the slot while the run waits for its caller's answer.
    pub(super) fn release_while_parked(&mut self) {
        if let Some(lock) = self.folder.take() {
            self.folder_order = Some(lock.order);
        }
        if let Some(permit) = &self.permit {
            permit.park();
        }
    }

    /// The agent has withdrawn its question and works already, so its run gets the slot and the folder at once, beyond
    /// all limits. A run that was answered has both already.
    pub(super) fn acquire_at_once(&mut self) {
        self.acquiring = None;
        let Some(permit) = &self.permit else { return };
        if let (Some(path), None) = (&self.wanted_folder, &self.folder) {
            let user = self.folder_user(path);
            self.folder = Some(self.core.working_folders.enter_at_once(user, self.folder_order));
        }
        permit.reacquire_slot_at_once();
    }

    /// Releases everything, as soon as nothing that the last turn has started works in the folder.
    pub(super) fn release_resources(&mut self) {
        self.acquiring = None;
        let given_back = (self.folder.take(), self.permit.take());
        // A crashed driver still has its turn.
        let signals = self.turn_holds.clone().or_else(|| self.turn.as_ref().map(|turn| turn.signals.clone()));
        if let Some(signals) = signals.filter(|signals| signals.get().is_held()) {
            tokio::spawn(async move {
                signals.until(|signals| !signals.is_held()).await;
                drop(given_back);
            });
        }
    }

    /// Waits for the holds of the last turn: the next turn of the task works in the same context and folder.
    async fn wait_for_holds(&mut self) {
        let Some(signals) = self.turn_holds.clone() else { return };
        let mut released = pin!(signals.until(|signals| !signals.is_held()));
        let is_released = poll_fn(|cx| {
            self.serve_callers(cx);
            let _ = self.poll_store(cx);
            match self.is_leaving() {
                true => Poll::Ready(false),
                false => released.as_mut().poll(cx).map(|_| true),
            }
        })
        .await;
        if is_released {
            self.turn_holds = None;
        }
    }

    /// A message that got a slot at once needs no inbox row. Now it has to wait, so it gets one, and its sender is
    /// acknowledged when the row is stored.
    fn keep_queued_message(&mut self) {
        if let Some(first) = self.inbox.iter_mut().find(|unread| unread.row == InboxRow::None) {
            first.row = InboxRow::Pending;
            // Rows must be in the order of the inbox, and other messages may have arrived since.
            let rows = &mut self.pending.side_rows;
            let place = rows.iter().position(|row| matches!(row, SideRow::InboxAdd(_))).unwrap_or(rows.len());
            rows.insert(place, SideRow::InboxAdd(first.message.clone()));
        }
    }

    /// Shows the caller what the answered run waits for now. Returns whether that has changed.
    pub(super) fn note_what_is_acquired(&mut self) -> bool {
        let reason = self.acquiring.as_ref().map(Acquiring::wait_reason);
        reason.is_some_and(|reason| self.note_wait_reason(reason))
    }

    /// Shows the caller what its task waits for now. An answered run stays parked in the store until it has all that it
    /// needs, so the question is shown again behind the note. Returns whether the reason has changed.
    fn note_wait_reason(&mut self, reason: WaitReason) -> bool {
        if self.noted_wait_reason.as_ref() == Some(&reason) {
            return false;
        }
        let mut parts = vec![reason.note()];
        if let Some(shown) = self.standing.question() {
            let plain = self.plain_question.get_or_insert_with(|| shown.clone());
            parts.extend(plain.parts.iter().cloned());
        }
        let note = Arc::new(self.agent_message(parts));
        self.noted_wait_reason = Some(reason);
        self.decide(Command::Queue { note });
        true
    }

    /// The run no longer waits: the conversation keeps the question without the note.
    pub(super) fn show_plain_question(&mut self) {
        self.noted_wait_reason = None;
        if let Some(plain) = self.plain_question.take().filter(|_| self.standing.is_parked()) {
            self.decide(Command::Queue { note: plain });
        }
    }
}

impl Acquiring {
    fn wait_reason(&self) -> WaitReason {
        match self {
            Acquiring::Folder(queued) => queued.wait_reason(),
            Acquiring::Slot(queued) => queued.wait_reason(),
        }
    }
}
