//! Appends: how a driver stores what it has decided, and what it does after the commit.
//!
//! If the first append of a driver fails, the task was never created, or is at rest as before, and the sender gets the
//! error. Later appends are retried, since they contain what the agent has already done; meanwhile new messages and
//! cancels are refused, so that nothing is acknowledged that is not stored. The driver waits for a full disk as long as
//! it takes. Other failures are retried for `GIVE_UP_AFTER`; then the task releases its slot, all waiting callers get
//! the cause, and only the failure of the task remains to be stored.

use std::collections::HashSet;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use sabir_model::{Error, Message, Purpose, RunState, Task, apply};
use sabir_store::{
    AfterAppend, Append, AppendResult, AppendTarget, AuditAction, Claim, ContextUse, Epoch, ForwardNo, NewTask,
    Ownership, SendDigest, SentKey, SideRow, StoreError, StoreFuture,
};
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep};

use super::active_turn::StopReason;
use super::outcome::failure;
use super::start::{FirstAppend, NotDone};
use super::{DoneSender, Driver, InboxRow, ReleaseReason, operator_log};
use crate::LogEntry;
use crate::in_flight::InFlightGuard;
use crate::topic::{SnapshotWrite, TaskActivity, activity_of};
use crate::turn::CallersAnswer;

const FIRST_RETRY: Duration = Duration::from_millis(100);
const LAST_RETRY: Duration = Duration::from_secs(5);
/// How long the store may fail, for other reasons than a full disk, before the driver gives up.
const GIVE_UP_AFTER: Duration = Duration::from_secs(30);
/// How much is collected while an append is in progress; beyond that the agent has to wait.
const MAX_ENTRIES: usize = 1024;
const MAX_WEIGHT: usize = 1 << 20;
/// While the server stops, no larger snapshots are made: a program may have printed gigabytes, and copying them takes
/// longer than the grace time. The log alone is enough.
const LAST_SNAPSHOT: usize = 1 << 20;

/// What is decided and not stored yet.
#[derive(Default)]
pub(super) struct PendingAppend {
    entries: Vec<Arc<LogEntry>>,
    /// Approximate bytes of the entries.
    weight: usize,
    pub(super) side_rows: Vec<SideRow>,
    pub(super) acks: Vec<Ack>,
    snapshot: SnapshotWrite,
    /// Answers that the agent gets after the commit.
    pub(super) answers: Vec<(oneshot::Sender<CallersAnswer>, CallersAnswer)>,
    /// Agents that wait until what they have reported is stored.
    store_watchers: Vec<oneshot::Sender<()>>,
}

/// A caller who waits for the commit.
pub(super) struct Ack {
    done: DoneSender,
    /// The guards of its send, which duplicates wait for.
    send_guards: Vec<Arc<InFlightGuard>>,
    /// The result that the caller gets after the commit.
    answer: Result<(), Error>,
    kind: AckKind,
}

enum AckKind {
    /// For what the driver began with.
    Plain,
    /// For a cancel or a refusal: if the store fails, the caller need not wait.
    Notice,
    /// For a message in the inbox, which can be refused if the store fails.
    Message(SentMessage),
}

/// A message in the inbox, and the rows that are stored with it.
pub(super) struct SentMessage {
    pub(super) message: Arc<Message>,
    pub(super) key: Option<SentKey>,
    pub(super) forwarded: Option<ForwardNo>,
    pub(super) send_digest: Option<SendDigest>,
}

impl Ack {
    fn forwarded(&self) -> Option<ForwardNo> {
        match self.kind {
            AckKind::Message(SentMessage { forwarded, .. }) => forwarded,
            AckKind::Plain | AckKind::Notice => None,
        }
    }

    fn send_digest(&self) -> Option<SendDigest> {
        match self.kind {
            AckKind::Message(SentMessage { send_digest, .. }) => send_digest,
            AckKind::Plain | AckKind::Notice => None,
        }
    }

    pub(super) fn plain(done: DoneSender, send_guards: Vec<Arc<InFlightGuard>>) -> Self {
        Self { done, send_guards, answer: Ok(()), kind: AckKind::Plain }
    }

    pub(super) fn cancel(done: DoneSender) -> Self {
        Self { kind: AckKind::Notice, ..Self::plain(done, Vec::new()) }
    }

    pub(super) fn refusal(done: DoneSender, refusal: Error) -> Self {
        Self { answer: Err(refusal), kind: AckKind::Notice, ..Self::plain(done, Vec::new()) }
    }

    pub(super) fn message(done: DoneSender, send_guards: Vec<Arc<InFlightGuard>>, sent: SentMessage) -> Self {
        Self { kind: AckKind::Message(sent), ..Self::plain(done, send_guards) }
    }
}

/// An append in progress.
pub(super) struct Storing {
    append: PendingAppend,
    attempt: Attempt,
    /// What the append makes of the owner of the task.
    then: AfterAppend,
    /// It takes the context, if it is stored.
    takes_context: bool,
    pause: Duration,
    /// Since when the store fails for another reason than a full disk.
    failing_since: Option<Instant>,
}

enum Attempt {
    Running(StoreFuture<'static, AppendResult>),
    Pausing(Pin<Box<Sleep>>, StoreError),
}

impl PendingAppend {
    pub(super) fn push(&mut self, entry: Arc<LogEntry>) {
        self.weight += entry.weight();
        self.entries.push(entry);
    }

    /// Adds what the agent wants to remember. Only the newest value counts, but each has weight, so that the agent
    /// waits for the store.
    pub(super) fn remember(&mut self, memory: Option<String>) {
        self.weight += memory.as_ref().map_or(0, String::len);
        self.side_rows.push(SideRow::AgentState(memory));
    }

    /// The same of the task.
    pub(super) fn remember_in_task(&mut self, memory: Option<String>) {
        self.weight += memory.as_ref().map_or(0, String::len);
        self.side_rows.push(SideRow::TaskState(memory));
    }

    fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.side_rows.is_empty() && self.acks.is_empty() && self.answers.is_empty()
    }

    /// Whether something that the agent has reported may be in it.
    fn has_reports(&self) -> bool {
        !self.entries.is_empty() || !self.side_rows.is_empty()
    }

    /// Whether the agent may go on. A full append waits for the one that is being stored, and the agent waits for both.
    pub(super) fn has_room(&self) -> bool {
        self.entries.len() + self.side_rows.len() < MAX_ENTRIES && self.weight < MAX_WEIGHT
    }
}

impl Driver {
    /// Refuses a caller because of the state of the task, as soon as that state is stored: a refusal reveals it too.
    pub(super) fn refuse(&mut self, done: DoneSender, refusal: Error) {
        if let Some(failure) = self.store_failure() {
            return drop(done.send(Err(failure.into())));
        }
        let ack = Ack::refusal(done, refusal);
        match &mut self.storing {
            _ if !self.pending.entries.is_empty() => self.pending.acks.push(ack),
            Some(storing) => storing.append.acks.push(ack),
            None => drop(ack.done.send(ack.answer.map_err(NotDone::Refused))),
        }
    }

    /// Tells an agent when all that it has reported so far is stored.
    pub(super) fn watch_store(&mut self, watcher: oneshot::Sender<()>) {
        match &mut self.storing {
            _ if self.pending.has_reports() => self.pending.store_watchers.push(watcher),
            Some(storing) => storing.append.store_watchers.push(watcher),
            None => drop(watcher.send(())),
        }
    }

    /// Why the store refused the current append, if it will be retried.
    pub(super) fn store_failure(&self) -> Option<Error> {
        match &self.storing {
            Some(Storing { attempt: Attempt::Pausing(_, error), .. }) => Some(copy_of(error)),
            _ => None,
        }
    }

    /// Drives the store: finishes the append in progress and starts the next one. Ready when nothing is left to store.
    pub(super) fn poll_store(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            if self.storing.is_none() {
                if self.release_reason.is_some() || self.pending.is_empty() {
                    return Poll::Ready(());
                }
                let mut append = std::mem::take(&mut self.pending);
                let ownership = self.ownership();
                let (then, takes_context) = (ownership.then.clone(), ownership.context != ContextUse::Unchanged);
                let attempt = Attempt::Running(self.append(&mut append, ownership));
                let (pause, failing_since) = (FIRST_RETRY, None);
                self.storing = Some(Storing { append, attempt, then, takes_context, pause, failing_since });
                self.lease.set_storing(true);
            }
            let Some(storing) = &mut self.storing else { return Poll::Ready(()) };
            match &mut storing.attempt {
                Attempt::Running(append) => {
                    let result = std::task::ready!(append.as_mut().poll(cx));
                    self.stored(result);
                    self.lease.set_storing(self.storing.is_some());
                }
                Attempt::Pausing(..) if self.release_reason.is_some() => self.storing = None,
                Attempt::Pausing(pause, _) => {
                    std::task::ready!(pause.as_mut().poll(cx));
                    let Some(mut storing) = self.storing.take() else { continue };
                    let mut ownership = self.ownership();
                    // What is pending by now comes later.
                    ownership.then = storing.then.clone();
                    storing.attempt = Attempt::Running(self.append(&mut storing.append, ownership));
                    storing.pause = (storing.pause * 2).min(LAST_RETRY);
                    self.storing = Some(storing);
                }
            }
        }
    }

    /// What the next append needs of the owner of the task, and makes of it: all that is decided is in the append.
    fn ownership(&self) -> Ownership {
        if self.core.membership.is_none() {
            return Ownership::default();
        }
        let is_held = self.turn_holds.as_ref().is_some_and(|signals| signals.get().is_held());
        let then = match &self.leave {
            Some(leave) => leave.clone(),
            None if self.is_at_rest() && !is_held => AfterAppend::Rest,
            None => AfterAppend::Keep,
        };
        // A run takes its context on all nodes as soon as it has it on this one: with its first append if it has just come, and
        // else, if recovery queued it, when it gets its permit.
        let has_it_here = match self.first_append {
            FirstAppend::Create(_) | FirstAppend::Wake => self.is_scheduled,
            FirstAppend::Done => self.permit.is_some(),
        };
        let begins = has_it_here && !self.has_context && self.leave.is_none();
        let most_runs = self.executor.agent.hosted.limits.concurrent_total.filter(|_| self.delegated.is_none());
        Ownership {
            claim: self.epoch.map_or(Claim::Take, Claim::Hold),
            context: if begins { ContextUse::Begin { most_runs } } else { ContextUse::Unchanged },
            then,
        }
    }

    fn append(&self, append: &mut PendingAppend, ownership: Ownership) -> StoreFuture<'static, AppendResult> {
        let events: Vec<&sabir_model::Event> = append.entries.iter().map(|entry| &entry.event).collect();
        let key = &self.lease.key;
        let target = match (&self.first_append, self.no) {
            (FirstAppend::Create(new), _) => AppendTarget::New(NewTask {
                owner: &key.owner,
                agent: &key.agent,
                task: &key.task,
                context: &self.context,
                born: new.birth.born,
                key: new.key.as_ref(),
                send_digest: new.send_digest,
            }),
            (FirstAppend::Wake | FirstAppend::Done, Some(no)) => AppendTarget::Known(no),
            (FirstAppend::Wake | FirstAppend::Done, None) => return Box::pin(async { Err(StoreError::Conflict) }),
        };
        let snapshot = self.snapshot(append);
        append.snapshot = if snapshot.is_some() { SnapshotWrite::Stored } else { SnapshotWrite::None };
        let (after, side_rows) = (self.stored, &append.side_rows);
        self.core.store.append(Append {
            target,
            events: &events,
            after,
            snapshot: snapshot.as_ref(),
            side_rows,
            ownership,
        })
    }

    /// A snapshot of the task as of this append, if the log since the last snapshot has outgrown that snapshot, or if
    /// the task is finished. So snapshots cost no more than the log itself, and reading a task costs at most twice its
    /// size.
    fn snapshot(&self, append: &PendingAppend) -> Option<Task> {
        let is_born_with_it = matches!(self.first_append, FirstAppend::Create(_));
        let last = append.entries.last()?;
        let is_finished = last.event.status().is_some_and(|status| status.state.is_terminal());
        let has_no_time = *self.core.stopping.borrow() && self.lease.weight() > LAST_SNAPSHOT;
        if is_born_with_it || has_no_time || !self.lease.wants_snapshot(last.seq, append.weight, is_finished) {
            return None;
        }
        let mut task = Task::clone(&*self.lease.task()?);
        for entry in &append.entries {
            if entry.seq > task.seq {
                apply(&mut task, &entry.event);
            }
        }
        Some(task)
    }

    fn stored(&mut self, result: Result<AppendResult, StoreError>) {
        let Some(mut storing) = self.storing.take() else { return };
        match result {
            Ok(appended) => {
                let keeps = self.core.membership.is_some() && storing.then == AfterAppend::Keep;
                self.epoch = keeps.then_some(appended.epoch);
                self.has_context = keeps && (self.has_context || storing.takes_context);
                self.show(appended, storing.append);
                if keeps && appended.epoch == Epoch::default() {
                    // It was stored, but another node has the task by now.
                    self.lose_task();
                }
            }
            Err(error) if !matches!(self.first_append, FirstAppend::Done) => self.undo_start(error, storing.append),
            Err(StoreError::ContextBusy(_)) => self.leave_for_context(storing.append),
            // The key of a message in it is known. Its sender looks again, and joins the first.
            Err(StoreError::Exists(_)) if self.drop_keyed_messages(&mut storing.append) => {
                let mut ownership = self.ownership();
                ownership.then = storing.then.clone();
                storing.attempt = Attempt::Running(self.append(&mut storing.append, ownership));
                self.storing = Some(storing);
            }
            Err(
                error @ (StoreError::Conflict
                | StoreError::Exists(_)
                | StoreError::OwnedElsewhere(_)
                | StoreError::Closed),
            ) => {
                tracing::error!(task = %self.lease.key.task, %error, "the run has lost its task and stops");
                for ack in storing.append.acks {
                    let _ = ack.done.send(Err(self.not_done(&error)));
                }
                self.lose_task();
            }
            Err(error) => {
                tracing::warn!(task = %self.lease.key.task, error = chain(&error), "cannot store; will try again");
                self.refuse_callers(&mut storing.append, &error);
                let mut pending = std::mem::take(&mut self.pending);
                self.refuse_callers(&mut pending, &error);
                self.pending = pending;
                let is_full = matches!(error, StoreError::Full);
                let since = storing.failing_since.unwrap_or_else(Instant::now);
                storing.failing_since = (!is_full).then_some(since);
                if !is_full && !self.has_given_up && since.elapsed() >= GIVE_UP_AFTER {
                    return self.give_up(&error, storing.append);
                }
                storing.attempt = Attempt::Pausing(Box::pin(tokio::time::sleep(storing.pause)), error);
                if !storing.append.is_empty() {
                    self.storing = Some(storing);
                }
                if !self.has_given_up {
                    // Readers can no longer expect what was refused.
                    self.lease.set_activity(self.activity());
                }
            }
        }
    }

    /// After the commit: shows events, acknowledges callers, gives answers to the agent.
    fn show(&mut self, appended: AppendResult, append: PendingAppend) {
        self.no = Some(appended.task);
        self.stored = appended.last;
        self.add_stored_bytes(appended);
        let birth = match std::mem::replace(&mut self.first_append, FirstAppend::Done) {
            FirstAppend::Create(new) => Some(new.birth),
            FirstAppend::Wake | FirstAppend::Done => None,
        };
        let in_append = messages_of(&append.acks);
        for unread in self.inbox.iter_mut().filter(|_| !in_append.is_empty()) {
            if in_append.contains(&Arc::as_ptr(&unread.message)) {
                unread.row = InboxRow::Stored;
            }
        }
        let activity = self.activity();
        self.lease.show(appended.task, birth.as_ref(), &append.entries, append.snapshot, activity);
        operator_log::log_events(self, &append.entries);
        self.note_first_event(&append.entries);
        self.acknowledge(append.acks);
        for (reply, message) in append.answers {
            let _ = reply.send(message);
        }
        for watcher in append.store_watchers {
            let _ = watcher.send(());
        }
    }

    /// The activity of the task as stored; decided events count only as more to come. A parked run resumes with an
    /// answer alone, so other messages in its inbox do not count.
    fn activity(&self) -> impl FnOnce(&Task) -> TaskActivity + use<> {
        let is_storing = self.storing.as_ref().is_some_and(|storing| !storing.append.entries.is_empty());
        let is_decided = is_storing || !self.pending.entries.is_empty();
        let is_answered = self.inbox.iter().any(|unread| matches!(unread.purpose, Purpose::Answer(_)));
        let has_message = !self.inbox.is_empty();
        move |task: &Task| match task.run_state() {
            RunState::Parked => activity_of(task, is_decided || is_answered),
            RunState::None | RunState::Queued | RunState::Active => activity_of(task, is_decided || has_message),
        }
    }

    /// After a crash: waits for the append in progress, since the store may commit it. Its events are not shown from
    /// here; the next driver reads them from the store.
    pub(super) async fn finish_append(&mut self) {
        let Some(Storing { append, attempt: Attempt::Running(under_way), .. }) = self.storing.take() else { return };
        let Ok(appended) = under_way.await else { return };
        self.no = Some(appended.task);
        self.add_stored_bytes(appended);
        self.acknowledge(append.acks);
    }

    fn add_stored_bytes(&self, appended: AppendResult) {
        if let Some(stored) = &self.core.stored_bytes {
            stored.add(&self.lease.key.owner, appended.bytes);
        }
    }

    fn acknowledge(&mut self, acks: Vec<Ack>) {
        for ack in acks {
            for guard in &ack.send_guards {
                guard.complete(&self.lease.key);
            }
            self.send_guards.extend(ack.send_guards);
            let _ = ack.done.send(ack.answer.map_err(NotDone::Refused));
        }
    }

    /// Another node drives the task, or the store is closed: nothing more is stored or run here.
    pub(super) fn lose_task(&mut self) {
        self.release_reason = Some(ReleaseReason::LogLost);
        self.epoch = None;
        // Their senders notice, and look again.
        self.pending.acks.clear();
        self.cancels.clear();
        match self.core.membership {
            None => self.abandon(),
            // Readers follow the task on its new node.
            Some(_) => self.give_back(None),
        }
    }

    /// Another task of the context has a run, on another node. Nothing that was not stored was done, so this task is left as it
    /// is stored, and run later.
    fn leave_for_context(&mut self, append: PendingAppend) {
        self.release_reason = Some(ReleaseReason::ContextBusy);
        drop(append);
        self.pending = PendingAppend::default();
        self.cancels.clear();
        self.deferred_outcome = None;
        if let Some(standing) = self.lease.task().map(|task| task.standing()) {
            self.standing = standing;
        }
    }

    /// Takes all messages out of an append of which one may be stored already, so that their senders look again: it has a key
    /// that is known, or its sender has withdrawn it. Returns whether there was one.
    fn drop_keyed_messages(&mut self, append: &mut PendingAppend) -> bool {
        let is_keyed =
            |ack: &Ack| matches!(&ack.kind, AckKind::Message(sent) if sent.key.is_some() || sent.forwarded.is_some());
        if !append.acks.iter().any(is_keyed) {
            return false;
        }
        let is_message = |ack: &Ack| matches!(&ack.kind, AckKind::Message(_));
        let (messages, kept): (Vec<Ack>, Vec<Ack>) = std::mem::take(&mut append.acks).into_iter().partition(is_message);
        append.acks = kept;
        self.take_out(append, &messages);
        for ack in messages {
            let _ = ack.done.send(Err(NotDone::Contended));
        }
        true
    }

    /// What a first append that failed means for its caller.
    fn not_done(&self, error: &StoreError) -> NotDone {
        match error {
            StoreError::Exists(task) => NotDone::Exists(task.clone()),
            StoreError::ContextBusy(task) => NotDone::ContextBusy(task.clone()),
            StoreError::Conflict | StoreError::OwnedElsewhere(_) if self.core.membership.is_some() => {
                NotDone::Contended
            }
            other => NotDone::Refused(copy_of(other)),
        }
    }

    /// The first append of this driver has failed: the task was never created, or is at rest as before.
    fn undo_start(&mut self, error: StoreError, append: PendingAppend) {
        self.release_reason = Some(ReleaseReason::NeverStored);
        self.place = None;
        match self.first_append {
            FirstAppend::Create(_) => self.abandon(),
            FirstAppend::Wake | FirstAppend::Done => self.lease.restore_activity(),
        }
        for ack in append.acks.into_iter().chain(std::mem::take(&mut self.pending.acks)) {
            let _ = ack.done.send(Err(self.not_done(&error)));
        }
    }

    /// Refuses the callers that can be refused: messages that only wait in the inbox, and cancels. A run that a cancel
    /// has stopped stays stopped.
    fn refuse_callers(&mut self, append: &mut PendingAppend, error: &StoreError) {
        let (refused, kept) =
            std::mem::take(&mut append.acks).into_iter().partition(|ack: &Ack| !matches!(ack.kind, AckKind::Plain));
        append.acks = kept;
        self.take_out(append, &refused);
        for ack in refused {
            let _ = ack.done.send(Err(copy_of(error).into()));
        }
        for done in std::mem::take(&mut self.cancels) {
            let _ = done.send(Err(copy_of(error).into()));
        }
    }

    /// Takes what these callers wanted out of an append that is not stored.
    fn take_out(&mut self, append: &mut PendingAppend, refused: &[Ack]) {
        // Sets, since there may be thousands.
        let (messages, keys) = (messages_of(refused), keys_of(refused));
        let forwarded: HashSet<ForwardNo> = refused.iter().filter_map(Ack::forwarded).collect();
        let digests: HashSet<SendDigest> = refused.iter().filter_map(Ack::send_digest).collect();
        append.side_rows.retain(|row| match row {
            SideRow::InboxAdd(added) => !messages.contains(&Arc::as_ptr(added)),
            SideRow::Key(added) => !keys.contains(added),
            // What a refused message would have done was not done; a cancel has stopped the run.
            SideRow::Audit(entry) => entry.action == AuditAction::Cancel,
            SideRow::InboxTake(_)
            | SideRow::InboxTakeAt(_)
            | SideRow::AgentState(_)
            | SideRow::TaskState(_)
            | SideRow::CancelRequested
            | SideRow::Attempts(_)
            | SideRow::Webhook(_) => true,
            SideRow::SendInFlight(digest) => !digests.contains(digest),
            SideRow::ForwardDone(number) => !forwarded.contains(number),
        });
        self.inbox.retain(|unread| !messages.contains(&Arc::as_ptr(&unread.message)));
        self.unused_answers.retain(|answer| !messages.contains(&Arc::as_ptr(answer)));
        let is_answered = self.inbox.iter().any(|unread| matches!(unread.purpose, Purpose::Answer(_)));
        if let Some(question) = self.turn.as_mut().and_then(|turn| turn.question.as_mut()) {
            question.is_answered = is_answered;
        }
    }

    /// The store does not accept the events of this task. They were never shown, so they are discarded, and the task
    /// fails.
    fn give_up(&mut self, error: &StoreError, append: PendingAppend) {
        let cause = chain(error);
        tracing::error!(task = %self.lease.key.task, error = cause, "cannot store a task's events; the task fails");
        self.has_given_up = true;
        if let Some(turn) = &mut self.turn {
            turn.stop(StopReason::StoreFailed);
        }
        let gathered = std::mem::take(&mut self.pending);
        for ack in append.acks.into_iter().chain(gathered.acks) {
            let _ = ack.done.send(Err(Error::internal(cause.clone()).into()));
        }
        self.inbox.retain(|unread| unread.row == InboxRow::Stored);
        self.deferred_outcome = None;
        self.unused_answers.clear();
        if let Some(standing) = self.lease.task().map(|task| task.standing()) {
            self.standing = standing;
        }
        self.lease.set_store_failing(&cause);
        self.finish(failure("the server could not store what the agent said; its log has the cause"));
    }
}

/// The messages whose inbox rows are in an append, by address.
fn messages_of(acks: &[Ack]) -> HashSet<*const Message> {
    let message = |ack: &Ack| match &ack.kind {
        AckKind::Message(sent) => Some(Arc::as_ptr(&sent.message)),
        AckKind::Plain | AckKind::Notice => None,
    };
    acks.iter().filter_map(message).collect()
}

fn keys_of(acks: &[Ack]) -> HashSet<SentKey> {
    let key = |ack: &Ack| match &ack.kind {
        AckKind::Message(sent) => sent.key.clone(),
        AckKind::Plain | AckKind::Notice => None,
    };
    acks.iter().filter_map(key).collect()
}

/// The error for each of several callers.
fn copy_of(error: &StoreError) -> Error {
    match error {
        StoreError::Full => Error::StoreFull,
        StoreError::Closed => Error::Stopping,
        StoreError::Conflict
        | StoreError::Exists(_)
        | StoreError::OwnedElsewhere(_)
        | StoreError::ContextBusy(_)
        | StoreError::Damaged { .. }
        | StoreError::Lost(_)
        | StoreError::Failed(_) => Error::internal(chain(error)),
    }
}

/// The error with all its causes, for the operator.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
