//! The driver: runs one task, from its creation or from the message that wakes it until the task is at rest.
//!
//! A task is at rest when it has no run: it is settled, or it waits for its next message. Until then it has exactly one
//! driver. Only the driver writes to the task's log, so decisions never race. The driver lets the agent run as far as
//! it can, decides everything that the agent has reported, and stores it in one append. While an append is in progress,
//! the next one is collected.
//!
//! Three views of a task. `State` is the protocol's; `RunState` follows from it and from whether the turn is over;
//! `TaskActivity` says whether readers can expect more events:
//!
//! | `State`              | turn over | `RunState` | the driver                           | `TaskActivity`               |
//! |----------------------|-----------|------------|--------------------------------------|------------------------------|
//! | submitted            | no        | `Queued`   | waits for its context, its folder    | `Busy`                       |
//! |                      |           |            | and a slot (`acquire.rs`)            |                              |
//! | working              | no        | `Active`   | receives updates of the agent        | `Busy`                       |
//! |                      |           |            | (`active_turn.rs`)                   |                              |
//! | input-, auth-required | no       | `Parked`   | the agent waits for an answer; with  | `Parked`; `Busy` with an     |
//! |                      |           |            | one in the inbox, for folder and slot | answer in the inbox         |
//! | input-, auth-required | yes      | `None`     | releases the task                    | `Waiting`; `Busy` with a     |
//! |                      |           |            |                                      | message in the inbox         |
//! | a terminal state     | yes       | `None`     | releases the task                    | `Finished`                   |
//!
//! The order is always the same: decide, append, commit; only then are events shown, callers acknowledged, and answers
//! given to the agent, and only then does the agent start. Stopping an agent is the only thing that does not wait for a
//! commit.
//!
//! A message to a task with a driver is first put into the task's inbox, and its sender is acknowledged when that row
//! is stored. From the inbox, the driver takes it as the answer to the open question or as the beginning of the next
//! turn.

mod acquire;
mod active_turn;
mod append;
mod control;
mod figures;
mod operator_log;
mod outcome;
mod start;

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use sabir_model::{Command, ContextId, Delegated, Event, Message, Purpose, Required, Seq, Standing, Timestamp, Usage};
use sabir_store::{AfterAppend, Epoch, SendDigest, SideRow, TaskNo};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::engine::{Core, Engine};
use crate::executor::Executor;
use crate::feed::Lease;
use crate::in_flight::InFlightGuard;
use crate::limits::TaskPlace;
use crate::log_entry::message_weight;
use crate::schedule::{Permit, Scheduled};
use crate::turn::Outcome;
use crate::turn_signals::TurnSignals;
use crate::wait_reason::WaitReason;
use crate::watch_cell::WatchCell;
use crate::working_folders::{FolderLock, FolderOrder};
use crate::{Effects, LogEntry};
use acquire::Acquiring;
use active_turn::{ActiveTurn, PreparedTurn};
use append::{PendingAppend, Storing};
pub(crate) use control::{Control, MessageDelivery};
pub(crate) use outcome::{QUESTION_LOST, failure};
pub(crate) use start::{Assignment, DoneSender, DriverOwnership, DriverStart, NotDone, TurnMessage};
use start::{FirstAppend, FirstMessage};

pub(crate) struct Driver {
    core: Arc<Core>,
    /// The agent that executes the task; the task may be addressed to another one.
    executor: Executor,
    lease: Lease,
    context: ContextId,
    /// Which tasks it comes from, if a program has delegated it.
    delegated: Option<Arc<Delegated>>,
    /// The task with all decided events, stored or not.
    standing: Standing,
    first_append: FirstAppend,
    no: Option<TaskNo>,
    /// Since when this node owns the task in the store; `None`: it does not, and the next append makes it the owner.
    epoch: Option<Epoch>,
    /// The driver has the context on this node, or waits for a slot with it.
    is_scheduled: bool,
    /// The incarnation of this node that the driver began in.
    incarnation: u64,
    /// The context is this task's, on all nodes.
    has_context: bool,
    /// What is stored now is all that this driver does: another one runs the task.
    leave: Option<AfterAppend>,
    /// The messages that earlier drivers, perhaps on other nodes, have stored since the task was last at rest. A repeated one joins.
    known_sends: Vec<SendDigest>,
    /// The time of the last status. Clocks of several nodes differ, and the times of a task never go back.
    last_time: Timestamp,
    /// The last stored event.
    stored: Seq,
    control: mpsc::UnboundedReceiver<Control>,
    pending: PendingAppend,
    storing: Option<Storing>,
    inbox: VecDeque<InboxMessage>,
    /// Stored answers to questions that have closed; they enter the history with the next status.
    unused_answers: Vec<Arc<Message>>,
    /// The right to run; `None` while the task waits for it, or has nothing to run.
    permit: Option<Permit>,
    /// The folder that the current turn has for itself.
    folder: Option<FolderLock>,
    wanted_folder: Option<PathBuf>,
    /// The order of the current turn among those that need its folder, once it has had the folder.
    folder_order: Option<FolderOrder>,
    /// The signals of the last turn, while something that its agent started still holds the folder.
    turn_holds: Option<Arc<WatchCell<TurnSignals>>>,
    /// What the run currently waits for: its folder or a slot.
    acquiring: Option<Acquiring>,
    /// The wait reason that the caller has been shown.
    noted_wait_reason: Option<WaitReason>,
    /// The question of a parked run without the note, while it is shown with one.
    plain_question: Option<Arc<Message>>,
    turn: Option<ActiveTurn>,
    /// Callers who wait until the run has stopped and that is stored.
    cancels: Vec<DoneSender>,
    /// The usage of the current turn.
    usage: Option<Usage>,
    /// When the last turn began.
    began: Instant,
    /// When the driver began to wait for what its first turn needs. `None`: it has that, or no figures are kept.
    queued_since: Option<Instant>,
    /// When the message came whose first event is still to be stored. `None`: there is none, or no figures are kept.
    message_since: Option<Instant>,
    /// Metadata of the request that created the task.
    metadata: Option<sabir_model::Json>,
    /// Keep the stored sends registered until the task is at rest, so that repeated sends are found.
    send_guards: Vec<Arc<InFlightGuard>>,
    /// The outcome of the last turn, deferred because messages in the inbox may change it.
    deferred_outcome: Option<Outcome>,
    /// How often recovery has started the current turn.
    attempts: u32,
    /// Its place among the tasks of its owner, where these are limited.
    place: Option<TaskPlace>,
    /// The server stops: no more turns begin.
    is_settling: bool,
    /// The store has refused this task's events for so long that only its failure will be stored.
    has_given_up: bool,
    /// The claim is released; another driver may have the task now.
    is_given_back: bool,
    release_reason: Option<ReleaseReason>,
    /// A turn has begun.
    has_run: bool,
    /// Agents that wait for the driver to release the task, and want to know whether it has ended.
    end_watchers: Vec<oneshot::Sender<bool>>,
}

/// How long a routed task is kept, whose agent has no free run on any node, before it is tried again. Others are claimed only when
/// there is a free run, so they need no pause.
const BUSY_PAUSE: Duration = Duration::from_millis(500);

/// Why a driver releases its task without settling it. Nothing more is stored after that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReleaseReason {
    /// The first append failed: the task was never created, or is at rest as before.
    NeverStored,
    /// Another node drives the task now, or the store is closed.
    LogLost,
    /// A task of the same context runs on another node. The task is run when that is over.
    ContextBusy,
    /// The server stops, and the next start runs the turn again.
    ForNextStart,
    /// The server stops while the run waits for an answer, and a later run can use the answer.
    StaysParked,
}

/// A message that waits in the task's inbox.
struct InboxMessage {
    message: Arc<Message>,
    purpose: Purpose,
    row: InboxRow,
    /// Approximate bytes in memory.
    weight: usize,
}

impl InboxMessage {
    fn new(message: Arc<Message>, purpose: Purpose, row: InboxRow) -> Self {
        Self { weight: message_weight(&message), message, purpose, row }
    }
}

/// Whether a message in the inbox has a row in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InboxRow {
    /// Not needed: the message is stored with the turn that it starts.
    None,
    Pending,
    Stored,
}

/// A turn that has all that it needs to begin.
struct NextTurn {
    /// The messages that enter the history with it.
    input: Vec<Arc<Message>>,
    prepared: PreparedTurn,
}

/// Starts a driver in a task of its own.
pub(crate) fn start(core: &Arc<Core>, executor: Executor, assignment: Assignment) {
    let (mut driver, first, scheduled) = Driver::new(core, executor, assignment);
    let running = core.drivers.enter();
    tokio::spawn(async move {
        match AssertUnwindSafe(driver.drive(first, scheduled)).catch_unwind().await {
            Ok(()) => {
                driver.give_back_ownership().await;
                driver.release();
            }
            Err(_) => {
                if AssertUnwindSafe(driver.settle_after_panic()).catch_unwind().await.is_err() {
                    driver.leave_unsettled("the server had an internal error");
                }
            }
        }
        drop(running);
    });
}

impl Driver {
    async fn drive(&mut self, first: FirstMessage, scheduled: Option<Scheduled>) {
        self.wait_for_slot(&first, scheduled).await;
        let mut next = match first {
            _ if self.permit.is_none() => None,
            FirstMessage::InHistory(message) => {
                self.prepare(message).await.map(|prepared| NextTurn { input: Vec::new(), prepared })
            }
            FirstMessage::InInbox => self.prepare_next().await,
            FirstMessage::Nothing => None,
        };
        if next.is_some() {
            self.note_queue_wait();
        }
        loop {
            if let Some(turn) = next.take() {
                self.take_turn(turn).await;
            }
            self.flush().await;
            if self.is_message_due() {
                next = self.prepare_next().await;
                continue;
            }
            // Callers who come after this are dropped at the release, and retry.
            if !self.settle_deferred_outcome() {
                break;
            }
        }
        self.release_resources();
        if let Some(membership) = &self.core.membership
            && self.executor.agent.hosted.limits.concurrent_total.is_some()
        {
            // This node claims tasks of the agent only while it has a free slot, which it has now.
            membership.claim_soon();
        }
    }

    /// Whether the next message of the inbox begins a turn now.
    fn is_message_due(&self) -> bool {
        self.permit.is_some() && !self.is_leaving() && !self.inbox.is_empty()
    }

    /// Whether no more turns begin.
    fn is_leaving(&self) -> bool {
        self.is_settling || self.release_reason.is_some() || self.standing.state.is_terminal()
    }

    /// Prepares the turn of the oldest message. The message stays in the inbox until the turn can begin.
    async fn prepare_next(&mut self) -> Option<NextTurn> {
        loop {
            let (place, interrupted_question) = self.choose_next();
            let message = self.inbox.get(place)?.message.clone();
            let prepared = self.prepare(TurnMessage { message: message.clone(), interrupted_question }).await?;
            // A message with precedence may have arrived in the meantime.
            let (place, _) = self.choose_next();
            if self.inbox.get(place).is_some_and(|unread| Arc::ptr_eq(&unread.message, &message)) {
                let input = self.next_input(place)?;
                return Some(NextTurn { input, prepared });
            }
        }
    }

    /// The index in the inbox of the message that begins the next turn, and the question that it answers if the run
    /// that asked it is gone.
    fn choose_next(&mut self) -> (usize, Option<Arc<Message>>) {
        let open = self.standing.open_question();
        self.set_aside_unused_answers(open);
        // The answer to the open question goes before older messages.
        let is_answer = |unread: &InboxMessage| open.is_some_and(|event| unread.purpose == Purpose::Answer(event));
        let answer = self.inbox.iter().position(is_answer);
        // Between turns this driver has no parked run, so a parked task was left by an earlier process.
        let interrupted_question = self.standing.question().filter(|_| answer.is_some() || open.is_none()).cloned();
        (answer.unwrap_or(0), interrupted_question)
    }

    async fn take_turn(&mut self, turn: NextTurn) {
        if self.attempts > 0 {
            // Counted here and not when recovery queued the task: a task that only waited for a slot was not tried.
            self.pending.side_rows.push(SideRow::Attempts(self.attempts));
        }
        self.show_plain_question();
        self.decide(Command::Begin { input: turn.input });
        let is_confined = self.executor.agent.hosted.agent.effects() == Effects::ThroughTurn;
        if !is_confined || self.attempts > 0 {
            // The agent starts after the commit. A turn that kills the server must be counted first.
            self.flush().await;
        }
        if self.release_reason.is_some() || self.standing.state.is_terminal() {
            return;
        }
        if self.core.membership.is_some() {
            self.wait_for_lease().await;
            if self.is_leaving() && !self.is_settling {
                return;
            }
        }
        if self.is_settling {
            return match self.is_resumable().await {
                true => self.release_reason = Some(ReleaseReason::ForNextStart),
                false => self.interrupt(),
            };
        }
        self.run_turn(turn.prepared).await;
        if self.has_given_up {
            // The rest needs the store, not a slot.
            self.release_resources();
        }
    }

    /// Takes the message at this index out of the inbox. Returns it with the messages that enter the history before it.
    fn next_input(&mut self, place: usize) -> Option<Vec<Arc<Message>>> {
        if self.release_reason.is_some() || self.standing.state.is_terminal() {
            return None;
        }
        let message = self.take_from_inbox(place)?;
        match self.deferred_outcome.take() {
            // The turn did not end the task after all, so its final message becomes progress.
            Some(Outcome::Completed(parts)) if !parts.is_empty() => {
                let message = self.agent_message_if_any(parts);
                self.decide(Command::Progress { message, metadata: None });
            }
            Some(Outcome::InputRequired(parts)) => self.ask_between_turns(Required::Input, parts),
            Some(Outcome::AuthRequired(parts)) => self.ask_between_turns(Required::Auth, parts),
            Some(Outcome::Completed(_) | Outcome::Failed(_) | Outcome::Rejected(_) | Outcome::Canceled(_)) | None => {}
        }
        let mut input = std::mem::take(&mut self.unused_answers);
        input.push(message);
        Some(input)
    }

    fn ask_between_turns(&mut self, required: Required, parts: Vec<sabir_model::Part>) {
        let question = Some(Arc::new(self.agent_message(parts)));
        self.decide(Command::AskBetweenTurns { required, question });
    }

    /// Sets aside answers to questions that have closed. An approval, or an answer that names its question, must not
    /// begin a turn, so it only enters the history. Any other text becomes the next turn, as if the question had not
    /// been asked.
    fn set_aside_unused_answers(&mut self, open: Option<Seq>) {
        let mut place = 0;
        while let Some(unread) = self.inbox.get_mut(place) {
            let is_unused = matches!(unread.purpose, Purpose::Answer(event) if Some(event) != open);
            if !is_unused {
                place += 1;
                continue;
            }
            unread.purpose = Purpose::NextTurn;
            let message = &unread.message;
            if message.is_only_approval() || !message.named_questions().is_empty() {
                let unused = self.take_from_inbox(place);
                self.unused_answers.extend(unused);
            } else {
                place += 1;
            }
        }
    }

    /// Removes one message from the inbox, and its row from the store.
    fn take_from_inbox(&mut self, place: usize) -> Option<Arc<Message>> {
        let rows_before = self.inbox.iter().take(place).filter(|unread| unread.row != InboxRow::None).count();
        let unread = self.inbox.remove(place)?;
        if unread.row != InboxRow::None {
            self.pending.side_rows.push(SideRow::InboxTakeAt(rows_before));
        }
        Some(unread.message)
    }

    /// Removes all messages from the inbox. No turn will use them.
    fn take_inbox(&mut self) -> Vec<Arc<Message>> {
        let rows = self.inbox.iter().filter(|unread| unread.row != InboxRow::None).count();
        if rows > 0 {
            self.pending.side_rows.push(SideRow::InboxTake(rows));
        }
        self.inbox.drain(..).map(|unread| unread.message).collect()
    }

    /// Decides a command and adds its events to the pending append.
    fn decide(&mut self, command: Command) {
        self.last_time = self.core.clock.now().max(self.last_time);
        for event in sabir_model::decide(&self.standing, command, self.last_time) {
            self.record(event);
        }
    }

    fn record(&mut self, event: Event) {
        self.standing.follow(&event);
        if let Some(place) = &mut self.place {
            // Before the event is stored: whoever reads that the task has ended may send the next one.
            let state = self.standing.state;
            place.set_counted(!state.is_terminal() && !state.is_waiting());
        }
        self.pending.push(Arc::new(LogEntry::new(self.standing.seq, event)));
    }

    /// The driver itself has crashed, which is a defect; its task must get an end all the same. The claim stays until
    /// another driver replaces this one, so that no caller can claim the task in between.
    async fn settle_after_panic(&mut self) {
        tracing::error!(task = %self.lease.key.task, agent = %self.lease.key.agent, "the driver of a task crashed");
        let engine = Engine { core: self.core.clone() };
        let was_canceled = !self.cancels.is_empty();
        self.cancels.clear();
        self.release_resources();
        self.place = None;
        self.turn = None;
        self.pending = PendingAppend::default();
        self.finish_append().await;
        if self.no.is_none() {
            return self.abandon();
        }
        match engine.start_after_crash(&self.lease, self.attempts, was_canceled).await {
            Ok(Some(start)) => {
                self.is_given_back = true;
                let sends = std::mem::take(&mut self.known_sends);
                engine.replace_driver(&self.lease, start, DriverOwnership { epoch: self.epoch, leave: None, sends });
            }
            Ok(None) => {
                self.give_back_ownership().await;
                self.give_back(None);
                self.lease.restore_activity();
            }
            Err(error) => self.leave_unsettled(&append::chain(&error)),
        }
    }

    /// Gives the task up in the store, if this node still owns it there: the last append of a driver mostly does so itself.
    async fn give_back_ownership(&mut self) {
        let (Some(no), Some(epoch)) = (self.no, self.epoch.take()) else { return };
        let then = match self.release_reason {
            Some(ReleaseReason::LogLost) => return,
            Some(ReleaseReason::StaysParked) => AfterAppend::Rest,
            _ if self.is_at_rest() => AfterAppend::Rest,
            Some(ReleaseReason::NeverStored | ReleaseReason::ContextBusy | ReleaseReason::ForNextStart) | None => {
                AfterAppend::Leave { home: None }
            }
        };
        let engine = Engine { core: self.core.clone() };
        let held = self.turn_holds.take().filter(|signals| signals.get().is_held());
        let is_busy = self.release_reason == Some(ReleaseReason::ContextBusy);
        let pause = (is_busy && self.is_routed()).then_some(BUSY_PAUSE);
        if held.is_none() && pause.is_none() {
            return engine.give_back(no, epoch, then).await;
        }
        let running = self.core.drivers.enter();
        engine.set_held(no, true);
        tokio::spawn(async move {
            // What the last turn has started still works there.
            if let Some(signals) = held {
                signals.until(|signals| !signals.is_held()).await;
            }
            // Whoever claims it next would find the same.
            if let Some(pause) = pause {
                tokio::time::sleep(pause).await;
            }
            engine.give_back(no, epoch, then).await;
            engine.set_held(no, false);
            drop(running);
        });
    }

    /// Whether another agent than the addressed one may execute the task.
    fn is_routed(&self) -> bool {
        let addressed = self.core.registered_agent(Some(&self.lease.key.agent));
        addressed.is_none_or(|registered| registered.hosted.router.is_some())
    }

    /// Whether the task needs no driver, as far as is decided.
    fn is_at_rest(&self) -> bool {
        let state = self.standing.state;
        let is_waiting = state.is_waiting() && !self.standing.is_parked();
        let has_more = !self.inbox.is_empty() || self.deferred_outcome.is_some() || !self.unused_answers.is_empty();
        state.is_terminal() || (is_waiting && !has_more)
    }

    /// Waits until the lease of this node is confirmed, and serves callers meanwhile.
    async fn wait_for_lease(&mut self) {
        let core = self.core.clone();
        let mut confirmed = std::pin::pin!(core.until_lease_confirmed());
        std::future::poll_fn(|cx| {
            self.serve_callers(cx);
            if self.is_leaving() || confirmed.as_mut().poll(cx).is_ready() {
                // The store is not asked yet: what the agent says at once is stored with its message.
                return std::task::Poll::Ready(());
            }
            let _ = self.poll_store(cx);
            match self.is_leaving() {
                true => std::task::Poll::Ready(()),
                false => std::task::Poll::Pending,
            }
        })
        .await;
    }

    /// Recovery has failed too: the task stays unsettled until the next start. Waiting callers get the cause.
    fn leave_unsettled(&mut self, cause: &str) {
        tracing::error!(task = %self.lease.key.task, cause, "cannot settle a task whose driver crashed");
        self.give_back(None);
        self.lease.set_store_failing(cause);
    }

    fn release(&mut self) {
        let standing = std::mem::replace(&mut self.standing, Standing::new(self.lease.key.task.clone()));
        let is_stored = standing.seq == self.stored && self.release_reason.is_none();
        let is_over = is_stored && standing.state.is_terminal();
        for watcher in self.end_watchers.drain(..) {
            let _ = watcher.send(is_over);
        }
        if is_over && !self.has_run {
            self.core.end_signals.without_turn.notify_one();
            self.end_elsewhere();
        }
        if self.is_settling {
            self.lease.leave_for_restart();
        }
        self.give_back(is_stored.then_some(standing));
        self.core.topic_cache.keep(&self.core.feed, &self.lease);
    }

    /// Lets the agent end what it has going elsewhere for a task that ended without a turn.
    fn end_elsewhere(&self) {
        let Some(no) = self.no else { return };
        let (store, agent) = (self.core.store.clone(), self.executor.agent.hosted.agent.clone());
        tokio::spawn(async move {
            if let Ok(Some(memory)) = store.task_state(no).await
                && let Some(end) = agent.end_between_turns(&memory)
            {
                end.await;
            }
        });
    }

    /// Releases the claim, once: after that, the task may have another driver.
    fn give_back(&mut self, standing: Option<Standing>) {
        if !std::mem::replace(&mut self.is_given_back, true) {
            self.lease.release(standing);
        }
    }

    /// The task was never stored, or another process writes its log. Callers stop waiting for this driver.
    fn abandon(&mut self) {
        self.give_back(None);
        self.lease.abandon();
    }
}

/// A driver is dropped without `release` when its runtime ends; its claim must not outlive it.
impl Drop for Driver {
    fn drop(&mut self) {
        self.give_back(None);
    }
}
