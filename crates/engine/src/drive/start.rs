//! The start of a driver: its input, its initial state, and the first append.

use std::collections::VecDeque;
use std::sync::Arc;

use sabir_model::{
    Birth, ContextId, Created, Error, Event, IdempotencyKey, Message, Purpose, Standing, Task, TaskBirth, TaskId,
    Timestamp,
};
use sabir_store::{AfterAppend, AuditAction, AuditEntry, Epoch, SendDigest, SentKey, SideRow, Webhook};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::append::{Ack, PendingAppend};
use super::{Control, Driver, InboxMessage, InboxRow};
use crate::audit::message_row;
use crate::engine::Core;
use crate::executor::Executor;
use crate::feed::Lease;
use crate::in_flight::InFlightGuard;
use crate::limits::TaskPlace;
use crate::schedule::Scheduled;
use crate::turn::Outcome;

/// The reason why a driver starts.
pub(crate) enum DriverStart {
    /// To create a task.
    Create {
        created: Created,
        context: ContextId,
        born: Birth,
        key: Option<IdempotencyKey>,
        /// See `sabir_store::NewTask`.
        send_digest: Option<[u8; 16]>,
        webhook: Option<Box<Webhook>>,
        /// `None`: the tasks of a caller are not limited.
        place: Option<TaskPlace>,
        audit: Option<Box<AuditEntry>>,
    },
    /// To deliver a message to a task at rest. `inbox` has messages that an earlier run left.
    Deliver {
        message: Arc<Message>,
        key: Option<SentKey>,
        /// See `sabir_store::SideRow::SendInFlight`.
        send_digest: Option<[u8; 16]>,
        inbox: Vec<Arc<Message>>,
        audit: Option<Box<AuditEntry>>,
    },
    /// To run a task that an earlier process left. `first` begins its turn if it is in the history already; otherwise
    /// the oldest message of the inbox does.
    Recover {
        first: Option<TurnMessage>,
        inbox: Vec<Arc<Message>>,
        attempts: u32,
        /// The task's question without the note that it may be shown with.
        plain_question: Option<Arc<Message>>,
    },
    /// To cancel a task at rest.
    Cancel { inbox: Vec<Arc<Message>>, audit: Option<Box<AuditEntry>>, reason: Option<String> },
    /// To settle a task that an earlier process left, or that has waited too long.
    Settle { outcome: Outcome, inbox: Vec<Arc<Message>> },
}

/// The message that a turn begins with.
pub(crate) struct TurnMessage {
    pub(crate) message: Arc<Message>,
    /// The question that it answers, if the run that asked it is gone.
    pub(crate) interrupted_question: Option<Arc<Message>>,
}

impl TurnMessage {
    pub(crate) fn beginning(message: Arc<Message>) -> Self {
        Self { message, interrupted_question: None }
    }
}

/// Gets the result of what a caller wanted of a driver.
pub(crate) type DoneSender = oneshot::Sender<Result<(), NotDone>>;

/// Why a driver has not done what its caller wanted.
#[derive(Debug)]
pub(crate) enum NotDone {
    Refused(Error),
    /// Another driver, perhaps on another node, was quicker: look again.
    Contended,
    /// A task of the same context has a run on another node.
    ContextBusy(Option<TaskId>),
    /// This task has the id or the idempotency key, or was made by the same message.
    Exists(TaskId),
    /// An earlier driver of the task has stored the same message.
    Repeated,
}

impl From<Error> for NotDone {
    fn from(error: Error) -> Self {
        NotDone::Refused(error)
    }
}

/// What a driver has or wants of its task, where several nodes share the store.
#[derive(Default)]
pub(crate) struct DriverOwnership {
    /// Since when this node owns the task; `None`: the first append makes it the owner.
    pub(crate) epoch: Option<Epoch>,
    /// The driver only stores what it begins with, and leaves the task for another one.
    pub(crate) leave: Option<AfterAppend>,
    /// The messages that earlier drivers have stored since the task was last at rest.
    pub(crate) sends: Vec<SendDigest>,
}

/// A claimed task, and what its driver needs to start.
pub(crate) struct Assignment {
    pub(crate) lease: Lease,
    pub(crate) control: mpsc::UnboundedReceiver<Control>,
    pub(crate) start: DriverStart,
    /// `None`: nothing is to be run.
    pub(crate) scheduled: Option<Scheduled>,
    /// Kept until the task is at rest.
    pub(crate) send_guards: Vec<Arc<InFlightGuard>>,
    /// Gets the result of the first append.
    pub(crate) done: Option<DoneSender>,
    pub(crate) ownership: DriverOwnership,
}

/// Whether the first append can still be undone, because it is not acknowledged yet.
pub(super) enum FirstAppend {
    /// It creates the task.
    Create(TaskCreation),
    /// It wakes a task at rest, for a message or a cancel.
    Wake,
    /// It is stored.
    Done,
}

pub(super) struct TaskCreation {
    pub(super) birth: TaskBirth,
    pub(super) key: Option<IdempotencyKey>,
    pub(super) send_digest: Option<[u8; 16]>,
}

/// Where the message of the first turn is.
pub(super) enum FirstMessage {
    InHistory(TurnMessage),
    InInbox,
    /// There is nothing to run.
    Nothing,
}

impl Driver {
    pub(super) fn new(
        core: &Arc<Core>,
        executor: Executor,
        assignment: Assignment,
    ) -> (Box<Self>, FirstMessage, Option<Scheduled>) {
        let Assignment { lease, control, mut start, scheduled, send_guards, done, ownership } = assignment;
        let key = lease.key.clone();
        let known = |task: &Task| (task.context.clone(), task.metadata.clone(), task.delegated().cloned());
        let (context, metadata, delegated, standing, first_append) = match &start {
            DriverStart::Create { created, context, born, key: idempotency, send_digest, .. } => {
                let (agent, owner) = (key.agent.clone(), key.owner.clone());
                let birth = TaskBirth { context: context.clone(), agent, owner, born: *born };
                let first_append =
                    FirstAppend::Create(TaskCreation { birth, key: idempotency.clone(), send_digest: *send_digest });
                let request = created.message.request.as_ref();
                let delegated = request.and_then(|request| request.delegated.clone());
                (context.clone(), created.metadata.clone(), delegated, Standing::new(key.task.clone()), first_append)
            }
            DriverStart::Deliver { .. }
            | DriverStart::Cancel { .. }
            | DriverStart::Recover { .. }
            | DriverStart::Settle { .. } => {
                let (context, metadata, delegated) =
                    lease.with_task(known).expect("a task that has been taken is loaded");
                let mut standing = lease.standing().expect("a task that has been taken is loaded");
                if matches!(start, DriverStart::Settle { .. }) && standing.state.is_terminal() {
                    // The store shows a damaged task as failed, although its row is not settled yet.
                    standing = Standing::unreadable(key.task.clone(), standing.seq);
                }
                let first_append = match start {
                    DriverStart::Deliver { .. } | DriverStart::Cancel { .. } => FirstAppend::Wake,
                    _ => FirstAppend::Done,
                };
                (context, metadata, delegated, standing, first_append)
            }
        };
        let is_parked = standing.is_parked();
        let question_form = executor.agent.hosted.agent.question_form();
        // The agent that acts needs the approval; the one that the task is addressed to may ask for one as well.
        let addressed = core.registered_agent(Some(&key.agent)).map(|registered| &registered.hosted);
        let approver = executor.agent.hosted.approver.as_ref().or_else(|| addressed?.approver.as_ref()).cloned();
        let place = match &mut start {
            DriverStart::Create { place, .. } => place.take(),
            DriverStart::Deliver { .. } | DriverStart::Recover { .. } => core.place_for_known_task(&key),
            DriverStart::Cancel { .. } | DriverStart::Settle { .. } => None,
        };
        let now = Instant::now();
        let is_counted = executor.agent.metrics.is_some();
        let has_message = matches!(start, DriverStart::Create { .. } | DriverStart::Deliver { .. });
        let last_time = lease.with_task(|task| task.status.time).unwrap_or(Timestamp::from_millis(i64::MIN));
        // Boxed: a future with the driver inside would be copied on its way to the tokio scheduler.
        let mut driver = Box::new(Driver {
            core: core.clone(),
            executor,
            no: lease.no(),
            epoch: ownership.epoch,
            is_scheduled: scheduled.is_some(),
            incarnation: core.incarnation(),
            has_context: false,
            leave: ownership.leave,
            known_sends: ownership.sends,
            last_time,
            lease,
            context,
            delegated,
            stored: standing.seq,
            standing: standing.with_question_form(question_form).with_approver(approver),
            first_append,
            control,
            pending: PendingAppend::default(),
            storing: None,
            inbox: VecDeque::new(),
            unused_answers: Vec::new(),
            permit: None,
            folder: None,
            wanted_folder: None,
            folder_order: None,
            turn_holds: None,
            acquiring: None,
            noted_wait_reason: match &scheduled {
                // A parked task has not been shown a reason yet.
                Some(Scheduled::Later(queued)) if !is_parked => Some(queued.wait_reason()),
                _ => None,
            },
            plain_question: None,
            turn: None,
            cancels: Vec::new(),
            usage: None,
            began: now,
            queued_since: (is_counted && scheduled.is_some()).then_some(now),
            message_since: (is_counted && has_message).then_some(now),
            metadata,
            send_guards: Vec::new(),
            deferred_outcome: None,
            attempts: 0,
            place,
            is_settling: false,
            has_given_up: false,
            is_given_back: false,
            release_reason: None,
            has_run: false,
            end_watchers: Vec::new(),
        });
        let first = driver.record_start(start, matches!(scheduled, Some(Scheduled::Now(_))));
        driver.pending.acks.extend(done.map(|done| Ack::plain(done, send_guards)));
        (driver, first, scheduled)
    }

    /// Records the start for the first append. Returns where the message of the first turn is.
    fn record_start(&mut self, start: DriverStart, has_slot: bool) -> FirstMessage {
        match start {
            DriverStart::Create { created, webhook, audit, .. } => {
                self.pending.side_rows.extend(webhook.map(SideRow::Webhook));
                self.pending.side_rows.extend(
                    audit.map(|entry| SideRow::Audit(Box::new(AuditEntry { action: AuditAction::Create, ..*entry }))),
                );
                let message = created.message.clone();
                self.record(Event::Created(created));
                FirstMessage::InHistory(TurnMessage::beginning(message))
            }
            DriverStart::Deliver { mut message, key, send_digest, inbox, audit } => {
                self.inherit_inbox(inbox);
                self.pending.side_rows.extend(send_digest.map(SideRow::SendInFlight));
                self.pending.side_rows.extend(key.map(SideRow::Key));
                let open = self.standing.open_question();
                Arc::make_mut(&mut message).answers = open;
                if !has_slot {
                    self.pending.side_rows.push(SideRow::InboxAdd(message.clone()));
                }
                let row = if has_slot { InboxRow::None } else { InboxRow::Pending };
                let purpose = open.map_or(Purpose::NextTurn, Purpose::Answer);
                let question = self.standing.question().map(|question| &**question);
                let audit = audit.map(|entry| message_row(entry, &self.lease.key.task, &purpose, question, &message));
                self.pending.side_rows.extend(audit);
                self.inbox.push_back(InboxMessage::new(message, purpose, row));
                FirstMessage::InInbox
            }
            DriverStart::Recover { first, inbox, attempts, plain_question } => {
                let shown = self.standing.question();
                self.plain_question = plain_question.filter(|plain| shown.is_some_and(|shown| shown != plain));
                self.inherit_inbox(inbox);
                self.attempts = attempts;
                first.map_or(FirstMessage::InInbox, FirstMessage::InHistory)
            }
            DriverStart::Cancel { inbox, audit, reason } => {
                self.pending.side_rows.extend(audit.map(SideRow::Audit));
                self.inherit_inbox(inbox);
                let unread = self.take_inbox();
                self.decide_cancel(unread, reason);
                FirstMessage::Nothing
            }
            DriverStart::Settle { outcome, inbox } => {
                self.inherit_inbox(inbox);
                self.finish(outcome);
                FirstMessage::Nothing
            }
        }
    }

    fn inherit_inbox(&mut self, inbox: Vec<Arc<Message>>) {
        let stored = |message: Arc<Message>| {
            let purpose = message.answers.map_or(Purpose::NextTurn, Purpose::Answer);
            InboxMessage::new(message, purpose, InboxRow::Stored)
        };
        self.inbox.extend(inbox.into_iter().map(stored));
    }
}
