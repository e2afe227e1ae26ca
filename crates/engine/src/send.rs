//! Sends: finds the task that a message is for, or creates one, and answers the sender.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use sabir_model::{
    Addressee, AgentId, Caller, ContextAlone, ContextId, Created, Delivery, Direct, Error, Message, MessageId,
    OnFinished, OnUnknown, Owner, Part, Role, TaskId,
};
use sabir_store::AfterAppend;
use tokio::sync::oneshot;

use crate::access::{Action, TaskRights};
use crate::audit::CallAudit;
use crate::cluster::Loaded;
use crate::delegation::ChildPlace;
use crate::deliver::{Delivered, Sender};
use crate::drive::{self, Assignment, DriverOwnership, DriverStart, NotDone};
use crate::engine::{Engine, RegisteredAgent, new_id};
use crate::executor::{Executor, RunRequest};
use crate::in_flight::InFlightGuard;
use crate::limits::check_message_size;
use crate::media::check_media_types;
use crate::push::InlineWebhook;
use crate::read::Located;
use crate::request::request_context;
use crate::schedule::{Scheduled, SlotUse};
use crate::send_result::{SendEffect, SendResult};
use crate::topic::TopicKey;
use crate::wait_reason::WaitReason;
use crate::{About, Admission, Answer};

/// The agent that a message is addressed to, and the task that it names.
struct Addressed {
    agent: AgentId,
    task: NamedTask,
}

enum NamedTask {
    Nothing,
    Known(Located),
    /// The caller chose the id of a task that does not exist yet.
    New(TaskId),
}

impl Addressed {
    fn is_for_approval(&self) -> bool {
        matches!(&self.task, NamedTask::Known(task) if task.rights == TaskRights::Approver)
    }

    /// The task that exists already.
    fn known(&self) -> Option<&TopicKey> {
        match &self.task {
            NamedTask::Known(task) => Some(&task.key),
            NamedTask::Nothing | NamedTask::New(_) => None,
        }
    }

    /// The owner of the task that the message is for.
    fn owner<'a>(&'a self, caller: &'a Caller) -> &'a Owner {
        match &self.task {
            NamedTask::Known(task) => &task.key.owner,
            NamedTask::Nothing | NamedTask::New(_) => &caller.owner,
        }
    }
}

/// Where a message is delivered.
enum Destination {
    /// A task that exists.
    Task(TopicKey),
    New(NewTaskPlan),
}

/// A task to be created. Ids that the caller did not choose are generated.
struct NewTaskPlan {
    task: Option<TaskId>,
    context: Option<ContextId>,
    /// The finished task that it continues.
    parent: Option<TaskId>,
}

impl NewTaskPlan {
    fn in_context(context: Option<ContextId>) -> Self {
        Self { task: None, context, parent: None }
    }
}

/// The ids of a new task.
struct TaskIds {
    /// The id that the caller chose; `None`: a generated one.
    task: Option<TaskId>,
    context: ContextId,
    webhook: Option<InlineWebhook>,
    left_for: Option<LeftFor>,
    send_digest: Option<[u8; 16]>,
    /// `None`: no program has delegated the task.
    child_place: Option<ChildPlace>,
}

/// Why a new task does not run here now.
#[derive(Clone)]
enum LeftFor {
    /// The sessions of its context are on this node.
    Home(Arc<str>),
    /// This task of its context runs on another node. Without one: the agent has as many runs as it may have on all nodes.
    Context(Option<TaskId>),
    /// All slots of this node are taken, and the runs of the agent are counted on all nodes: one that waits here for a slot would count.
    Slot(WaitReason),
}

impl LeftFor {
    fn wait_reason(&self) -> WaitReason {
        match self {
            LeftFor::Home(node) => WaitReason::Node(node.clone()),
            LeftFor::Context(Some(task)) => WaitReason::Task { task: task.clone(), needs_answer: false },
            LeftFor::Context(None) => WaitReason::TotalRuns,
            LeftFor::Slot(reason) => reason.clone(),
        }
    }

    fn after_append(self) -> AfterAppend {
        match self {
            LeftFor::Home(node) => AfterAppend::Leave { home: Some(node) },
            LeftFor::Context(_) | LeftFor::Slot(_) => AfterAppend::Leave { home: None },
        }
    }
}

/// The agent that the task is addressed to, and the agent that executes it.
struct TaskAgents<'a> {
    addressed: &'a Arc<RegisteredAgent>,
    executor: Executor,
}

enum CreateResult {
    Created(SendResult),
    /// Somebody else has created a task with this id or this key in the meantime.
    IdTaken,
    /// An equal message, which came through another node, has created this task.
    Repeated(SendResult),
    /// A task of the same context runs on another node.
    ContextBusy(Option<TaskId>),
    /// This node has no slot for it, and another one may.
    NoSlot(WaitReason),
}

impl Engine {
    pub(crate) async fn send(
        &self,
        caller: &Caller,
        mut send: sabir_model::Send,
        audit: &CallAudit,
    ) -> Result<Answer, Error> {
        // While the server stops, active tasks still accept messages; new tasks are refused.
        if *self.core.stopping.borrow() && send.message.task.is_none() {
            return Err(Error::Stopping);
        }
        if send.push.is_some() && !self.offers_webhooks() {
            return Err(Error::PushNotSupported);
        }
        // The call may wait for its answer for hours, and must not hold a copy of the message meanwhile.
        let bare = Message {
            task: send.message.task.clone(),
            context: send.message.context.clone(),
            ..Message::new(None, send.message.role, Vec::new())
        };
        let delegation = caller.delegation.as_deref();
        if let Some(delegation) = delegation {
            self.restrict_send(delegation, &mut send)?;
        }
        let message = std::mem::replace(&mut send.message, bare);
        let mut message = Arc::new(message.or_with_id(|| new_id(MessageId::parse)));
        let send_digest = self.core.membership.as_ref().map(|_| send_digest(caller, &message));
        let mut left_for = None;
        loop {
            let addressed = self.addressed(caller, &send).await?;
            let mut send_guards = Vec::new();
            if addressed.is_for_approval() {
                // An approver answers one question, and a repeated answer finds it closed: there is nothing to join.
                send.idempotency = None;
                if send.push.is_some() {
                    return Err(Error::Forbidden("an approver answers the question, and cannot set a webhook".into()));
                }
            } else if let Some(joined) =
                self.find_duplicate(caller, &addressed.agent, &send, &message, &mut send_guards).await?
            {
                drop(message);
                return joined.answer(self, &send).await;
            }
            let registered = self.registered_agent(Some(&addressed.agent));
            let registered = registered.ok_or_else(|| self.agent_not_found(caller, Some(&addressed.agent)))?.clone();
            let answered = match send.further[..] {
                [] => None,
                [..] => Some(self.sort_answers(addressed.known(), &send, &mut message).await?),
            };
            let about = registered.hosted.about();
            check_offer(&registered, &about, &send, &message)?;
            check_media_types(&about, &message)?;
            check_message_size(&registered, &message, &send.further)?;
            // Before anything is stored: whoever names a forbidden URL hears so, and no work is begun.
            let webhook = self.admit_inline(send.push.as_ref(), send.born, &message).await?;
            let request = request_context(caller, addressed.owner(caller), &about, &send, &message);
            if message.request != request {
                Arc::make_mut(&mut message).request = request;
            }
            let is_for_approval = addressed.is_for_approval();
            let plan = match self.destination(caller, &send, &message, addressed).await? {
                Destination::Task(key) => {
                    if let Some(webhook) = webhook {
                        self.add_webhook(&key, webhook, audit).await?;
                    }
                    let sender = Sender { caller, is_approver: is_for_approval, audit };
                    let delivered = self.deliver(&registered, key, sender, &send, message.clone(), send_guards).await?;
                    let sent = match delivered {
                        Delivered::Stored(sent) => sent,
                        // The next look finds the first send by its key.
                        Delivered::Repeated => continue,
                    };
                    let answer = match is_for_approval {
                        true => sent.answer_approver(self, &send)?,
                        false => sent.answer(self, &send).await?,
                    };
                    return Ok(match (answer, answered) {
                        (Answer::Task(task), Some(results)) => Answer::Answered(task, results),
                        (answer, _) => answer,
                    });
                }
                Destination::New(plan) => plan,
            };
            let context = plan.context.unwrap_or_else(|| new_id(ContextId::parse));
            let executor = self.executor(&registered, &message, send.metadata.as_ref());
            if send.direct == Direct::Message
                && let Admission::Reply(parts) = executor.agent.hosted.agent.admit(&message)
            {
                return Ok(Answer::Message(Box::new(reply(parts, context))));
            }
            let delegating_task = delegation.map(|delegation| delegation.delegated.parent.task.clone());
            for parent in plan.parent.into_iter().chain(delegating_task) {
                if !message.references.contains(&parent) {
                    Arc::make_mut(&mut message).references.push(parent);
                }
            }
            let child_place = match delegation {
                Some(delegation) => Some(self.check_child(delegation, &registered.hosted.id, &executor, &context)?),
                None => None,
            };
            let agents = TaskAgents { addressed: &registered, executor };
            let sender = Sender { caller, is_approver: false, audit };
            let ids =
                TaskIds { task: plan.task, context, webhook, left_for: left_for.take(), send_digest, child_place };
            match self.create(sender, agents, &send, &message, ids, send_guards).await? {
                CreateResult::Created(sent) => {
                    drop(message);
                    return sent.answer(self, &send).await;
                }
                CreateResult::ContextBusy(task) => left_for = Some(LeftFor::Context(task)),
                CreateResult::NoSlot(reason) => left_for = Some(LeftFor::Slot(reason)),
                CreateResult::Repeated(sent) => return sent.answer(self, &send).await,
                // The message is for the task that exists now, or the next look finds the first send by its key.
                CreateResult::IdTaken => {}
            }
        }
    }

    /// Finds the agent that a message is addressed to, and the task that it names.
    async fn addressed(&self, caller: &Caller, send: &sabir_model::Send) -> Result<Addressed, Error> {
        let Some(task) = &send.message.task else {
            return Ok(Addressed {
                agent: self.agent_for(caller, send.agent.as_ref(), Action::Run)?.hosted.id.clone(),
                task: NamedTask::Nothing,
            });
        };
        let context = send.message.context.as_ref();
        match (self.locate_addressed(caller, send.agent.as_ref(), task, context).await, send.on_unknown) {
            (Ok(found), _) => Ok(Addressed { agent: found.key.agent.clone(), task: NamedTask::Known(found) }),
            (Err(Error::TaskNotFound(task)), OnUnknown::Create) => {
                let agent = self.agent_for(caller, send.agent.as_ref(), Action::Run)?.hosted.id.clone();
                Ok(Addressed { agent, task: NamedTask::New(task) })
            }
            (Err(error), _) => Err(error),
        }
    }

    async fn destination(
        &self,
        caller: &Caller,
        send: &sabir_model::Send,
        message: &Message,
        addressed: Addressed,
    ) -> Result<Destination, Error> {
        let context = &send.message.context;
        let task = match addressed.task {
            NamedTask::Known(task) => task,
            NamedTask::New(task) => {
                return Ok(Destination::New(NewTaskPlan {
                    task: Some(task),
                    ..NewTaskPlan::in_context(context.clone())
                }));
            }
            NamedTask::Nothing => {
                return match context {
                    Some(context) if send.context_alone == ContextAlone::AnswersWaiting => {
                        self.waiting_in(caller, &addressed.agent, context).await
                    }
                    context => Ok(Destination::New(NewTaskPlan::in_context(context.clone()))),
                };
            }
        };
        if context.as_ref().is_some_and(|named| *named != task.context) {
            return Err(Error::invalid("message.contextId", "does not match the task"));
        }
        if send.addressee == Addressee::Waiting && !task.state.is_waiting() {
            let is_late = !task.state.is_terminal() && !message.named_questions().is_empty();
            return Err(if is_late { Error::QuestionClosed } else { Error::NotWaiting }(task.key.task));
        }
        match (task.state.is_terminal(), send.on_finished) {
            (true, OnFinished::Refuse) => Err(Error::TaskFinished(task.key.task)),
            (true, OnFinished::StartTask) => {
                let parent = Some(task.key.task);
                Ok(Destination::New(NewTaskPlan { parent, ..NewTaskPlan::in_context(Some(task.context)) }))
            }
            (false, _) => {
                if !task.state.is_waiting() {
                    self.check_stored_bytes(caller, &task.key.owner).await?;
                }
                Ok(Destination::Task(task.key))
            }
        }
    }

    /// A message with a context and no task answers the one task of the context that waits.
    async fn waiting_in(&self, caller: &Caller, agent: &AgentId, context: &ContextId) -> Result<Destination, Error> {
        let waiting = self.core.store.waiting(&caller.owner, agent, context).await?;
        match waiting.as_slice() {
            [] => Ok(Destination::New(NewTaskPlan::in_context(Some(context.clone())))),
            [row] => Ok(Destination::Task(TopicKey {
                owner: row.owner.clone(),
                agent: row.agent.clone(),
                task: row.task.clone(),
            })),
            several => {
                let ids: Vec<&str> = several.iter().map(|row| row.task.as_str()).collect();
                Err(Error::invalid(
                    "message.taskId",
                    format!("several tasks of this context wait; name one of {}", ids.join(", ")),
                ))
            }
        }
    }

    async fn create(
        &self,
        Sender { caller, audit, .. }: Sender<'_>,
        TaskAgents { addressed, executor }: TaskAgents<'_>,
        send: &sabir_model::Send,
        message: &Message,
        ids: TaskIds,
        send_guards: Vec<Arc<InFlightGuard>>,
    ) -> Result<CreateResult, Error> {
        if *self.core.stopping.borrow() {
            return Err(Error::Stopping);
        }
        self.check_stored_bytes(caller, &caller.owner).await?;
        let TaskIds { task: named, context, webhook, left_for, send_digest, mut child_place } = ids;
        let is_named = named.is_some();
        let task = named.unwrap_or_else(|| new_id(TaskId::parse));
        let key = TopicKey { owner: caller.owner.clone(), agent: addressed.hosted.id.clone(), task: task.clone() };
        // Asked before the claim, since a future that holds a claim must not be dropped at an await.
        let home = self.home_elsewhere(addressed, &key, &context).await?;
        let left_for = home.map(LeftFor::Home).or(left_for);
        if left_for.is_some() {
            self.check_left(addressed).await?;
        }
        let lease = self.core.feed.open(key.clone());
        let control = match lease.claim() {
            Ok(control) => control,
            Err(_) => {
                lease.until_stored().await;
                return Ok(CreateResult::IdTaken);
            }
        };
        // The claim keeps others from creating the task from now on, but not before.
        if lease.with_task(|_| ()).is_some() {
            lease.release(None);
            return Ok(CreateResult::IdTaken);
        }
        let place = match self.place_for_new_task(&caller.owner, addressed) {
            Ok(place) => place,
            Err(refusal) => {
                lease.release(None);
                return Err(refusal);
            }
        };
        if is_named {
            // The topic may be left over from an earlier creation that failed.
            lease.expect_more();
        }
        let owner = &caller.owner;
        let slot_use = SlotUse::of(message.request.as_ref().and_then(|request| request.delegated.as_ref()));
        let context_of_run = context.clone();
        let run = RunRequest { addressed, executor: &executor, owner, context: context_of_run, task: &task, slot_use };
        let scheduled = left_for.is_none().then(|| self.enter(run));
        let wait_reason = match (&scheduled, &left_for) {
            (Some(Scheduled::QueueFull), _) => {
                lease.release(None);
                return Err(Error::Busy(addressed.hosted.id.clone()));
            }
            (Some(Scheduled::Later(queued)), _) if self.core.membership.is_some() && queued.waits_for_context() => {
                // Beside other nodes, it does not wait here: the store keeps the order of all nodes.
                lease.release(None);
                return Ok(CreateResult::ContextBusy(queued.wait_reason().into_task()));
            }
            (Some(Scheduled::Later(queued)), _) if self.is_left_for_slot(&executor, queued) => {
                lease.release(None);
                return Ok(CreateResult::NoSlot(queued.wait_reason()));
            }
            (Some(Scheduled::Later(queued)), _) => Some(queued.wait_reason()),
            (None, Some(left_for)) => Some(left_for.wait_reason()),
            (Some(Scheduled::Now(_)) | None, _) => None,
        };
        let note = wait_reason.map(|reason| Arc::new(reply(vec![reason.note()], context.clone())));
        let leave = left_for.map(LeftFor::after_append);
        let message = Message { task: Some(task.clone()), context: Some(context.clone()), ..Message::clone(message) };
        let message = Arc::new(message);
        for guard in &send_guards {
            guard.share(&message);
        }
        let webhook = webhook.map(|webhook| Box::new(webhook.of_task(&task)));
        let created = Created { message, metadata: send.metadata.clone(), note, time: self.core.clock.now() };
        let (done, stored) = oneshot::channel();
        let audit_entry = audit.for_driver(&key);
        let keep = self.core.feed.open(key);
        let start = DriverStart::Create {
            created: created.clone(),
            context,
            born: send.born,
            key: send.idempotency.clone(),
            send_digest,
            webhook,
            place,
            audit: audit_entry,
        };
        let ownership = DriverOwnership { leave, ..DriverOwnership::default() };
        let assignment = Assignment { lease, control, start, scheduled, send_guards, done: Some(done), ownership };
        drive::start(&self.core, executor, assignment);
        if let Some(place) = &mut child_place {
            // From here on the task is made, also if its program hangs up.
            place.keep();
            self.watch_parent_of_new(self.core.feed.open(keep.key.clone()));
        }
        let stored = stored.await.map_err(|_| Error::internal("the driver of a new task is gone"))?;
        if let (Err(_), Some(place)) = (&stored, &mut child_place) {
            place.give_back();
        }
        if is_named && stored.is_err() && self.is_stored(&keep.key).await? {
            // The id was free when this call checked it; another task has it now.
            return Ok(CreateResult::IdTaken);
        }
        match stored {
            Ok(()) => {
                audit.set_stored();
                Ok(CreateResult::Created(SendResult { lease: keep, effect: SendEffect::Created(Box::new(created)) }))
            }
            Err(NotDone::Refused(error)) => Err(error),
            Err(NotDone::Exists(_)) if send.idempotency.is_some() => Ok(CreateResult::IdTaken),
            Err(NotDone::Exists(task)) => self.joined(&keep.key, task).await,
            Err(NotDone::Contended | NotDone::Repeated) => Ok(CreateResult::IdTaken),
            Err(NotDone::ContextBusy(task)) => Ok(CreateResult::ContextBusy(task)),
        }
    }

    /// Joins the task that an equal message has created through another node.
    async fn joined(&self, key: &TopicKey, task: TaskId) -> Result<CreateResult, Error> {
        let lease = self.core.feed.open(TopicKey { task, ..key.clone() });
        Ok(match self.load(&lease).await? {
            Loaded::Missing => CreateResult::IdTaken,
            Loaded::Here | Loaded::Left | Loaded::Elsewhere => {
                CreateResult::Repeated(SendResult { lease, effect: SendEffect::Duplicate })
            }
        })
    }

    async fn is_stored(&self, TopicKey { owner, agent, task }: &TopicKey) -> Result<bool, Error> {
        Ok(self.core.store.find(owner, Some(agent), task).await?.is_some())
    }
}

/// Identifies a message among those in flight: equal messages of one sender have the same. It need not be stronger than that,
/// since a sender can only harm itself.
pub(crate) fn send_digest(sender: &Caller, message: &Message) -> [u8; 16] {
    let parts = serde_json::to_string(&message.parts).unwrap_or_default();
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        // A message that names a task may name its context too, or leave that out.
        let context = message.context.as_ref().filter(|_| message.task.is_none());
        (salt, &message.id, &message.task, context, &parts).hash(&mut hasher);
        if let Some(delegation) = &sender.delegation {
            delegation.delegated.parent.hash(&mut hasher);
        }
        hasher.finish().to_be_bytes()
    };
    let mut digest = [0; 16];
    digest[..8].copy_from_slice(&half(0));
    digest[8..].copy_from_slice(&half(1));
    digest
}

/// What the card says is what the server does.
fn check_offer(
    registered: &RegisteredAgent,
    about: &About,
    send: &sabir_model::Send,
    message: &Message,
) -> Result<(), Error> {
    if send.delivery == Delivery::Stream {
        registered.check_streaming()?;
    }
    let is_active = |uri: &String| send.extensions.contains(uri) || message.extensions.contains(uri);
    match about.extensions.iter().find(|extension| extension.required && !is_active(&extension.uri)) {
        Some(missing) => Err(Error::ExtensionRequired(missing.uri.clone())),
        None => Ok(()),
    }
}

/// A message of the agent that belongs to no task.
fn reply(parts: Vec<Part>, context: ContextId) -> Message {
    Message { context: Some(context), ..Message::new(new_id(MessageId::parse), Role::Agent, parts) }
}
