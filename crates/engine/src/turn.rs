//! The agent's side of a turn: what it is given, and how it reports.
//!
//! Everything an agent reports waits until there is room for it, by number and by bytes, so an agent that talks faster
//! than the disk can write is slowed down and never buffered without bound.

use std::sync::Arc;
use std::time::Duration;

use sabir_model::{
    AgentId, Artifact, ArtifactId, Caller, ContextId, Cost, Json, Message, Owner, Part, RequestContext, Required,
    State, Task, TaskId, ToolCall, TraceContext, Usage,
};
use sabir_store::{Store, TaskNo};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::Instant;

use crate::delegation::Grants;
use crate::log_entry::{artifact_weight, parts_weight};
use crate::read::{CONVERSATION, CONVERSATION_BYTES};
use crate::turn_signals::{TurnHold, TurnSignals};
use crate::watch_cell::WatchCell;
use crate::{AgentError, TaskLookup};

/// How an agent ends its turn. The parts become the status message.
pub type Outcome = sabir_model::Outcome<Vec<Part>>;

/// One turn of a task, as the agent has it: the message and what is known of it, and the ways to report, to ask and to
/// remember.
pub struct Turn {
    pub(crate) message: Arc<Message>,
    pub(crate) opening: Arc<Message>,
    pub(crate) interrupted_question: Option<Arc<Message>>,
    pub(crate) task: TaskId,
    pub(crate) no: Option<TaskNo>,
    pub(crate) context: ContextId,
    pub(crate) owner: Owner,
    pub(crate) caller: Caller,
    pub(crate) is_resumed: bool,
    pub(crate) agent: AgentId,
    pub(crate) executor: AgentId,
    pub(crate) model: Option<String>,
    pub(crate) metadata: Option<Json>,
    pub(crate) task_metadata: Option<Json>,
    /// Of the run, if somebody observes it.
    pub(crate) trace: Option<TraceContext>,
    pub(crate) began: Instant,
    pub(crate) updates: UpdateSender,
    pub(crate) signals: Arc<WatchCell<TurnSignals>>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) grants: Arc<Grants>,
}

/// Why an agent must stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StopCause {
    /// The caller cancels the task.
    Canceled,
    /// The turn has taken too long, or nothing was heard of the agent for too long.
    TimedOut,
    /// The server ends. What survives that ([`Survives`](crate::Survives)) should be left as it is.
    ServerStops,
    /// What the agent says can no longer be stored.
    StoreFailed,
    /// The turn is over, and something that the agent has started still listens.
    TurnOver,
}

/// That an agent must stop, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stop {
    pub(crate) cause: StopCause,
    pub(crate) deadline: Instant,
    /// The server ends while a question of the run is open.
    pub(crate) stopped_while_asking: bool,
}

/// What an agent reports in the middle of its turn. What is large is in boxes: the channel has room for many.
pub(crate) enum AgentUpdate {
    /// No parts at all is a mere sign of life.
    Progress {
        parts: Vec<Part>,
        metadata: Option<Json>,
    },
    Tool(Box<ToolCall>),
    Artifact(Box<ArtifactUpdate>),
    Ask(Box<Ask>),
    Usage(Usage),
    /// How the turn ends; what is left is tidying up.
    LastWord(Box<Outcome>),
    /// What the agent wants to remember of the context.
    Remember(Option<String>),
    /// What the agent wants to remember of the task.
    RememberInTask(Option<String>),
    /// The agent has to wait for so long before it can go on.
    Wait(Duration),
    /// Who wants to know when nobody works on the task any more, and whether it is over then.
    WatchEnd(oneshot::Sender<bool>),
    /// Who wants to know when all that was reported before is stored.
    WatchStore(oneshot::Sender<()>),
}

/// A question to the caller.
pub(crate) struct Ask {
    pub(crate) required: Required,
    pub(crate) parts: Vec<Part>,
    /// How long the caller may take.
    pub(crate) limit: Option<Duration>,
    pub(crate) answer: oneshot::Sender<CallersAnswer>,
}

/// What a caller answered. `None`: nobody answered in time.
pub(crate) type CallersAnswer = Result<Option<Arc<Message>>, TooManyQuestions>;

/// The question was not put, because too many of the turn wait already.
#[derive(Debug)]
pub(crate) struct TooManyQuestions;

/// How many questions of a turn may wait until the open one is closed.
pub(crate) const MAX_QUEUED_QUESTIONS: usize = 100;

/// A piece of an artifact. The id is the agent's own name for it, the same for every piece.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArtifactUpdate {
    /// The piece.
    pub artifact: Artifact,
    /// Goes behind what is there; the first piece of an artifact never does.
    pub append: bool,
    /// No more pieces follow.
    pub last: bool,
    /// About this piece, beside the metadata of the artifact.
    pub metadata: Option<Json>,
}

impl ArtifactUpdate {
    /// The first of several pieces.
    pub fn new(artifact: Artifact) -> Self {
        Self { artifact, append: false, last: false, metadata: None }
    }

    /// Whether it goes behind what is there.
    pub fn append(mut self, append: bool) -> Self {
        self.append = append;
        self
    }

    /// Whether no more pieces follow.
    pub fn last(mut self, last: bool) -> Self {
        self.last = last;
        self
    }

    /// Says something about this piece, beside the metadata of the artifact.
    pub fn metadata(mut self, metadata: Json) -> Self {
        self.metadata = Some(metadata);
        self
    }
}

/// Updates that may wait for the driver: so many, and so many kilobytes.
const WAITING_UPDATES: usize = 256;
const WAITING_KILOBYTES: u32 = 1024;

/// The way to the driver, for the agent and its helpers.
#[derive(Clone)]
pub(crate) struct UpdateSender {
    updates: mpsc::Sender<WeighedUpdate>,
    kilobytes: Arc<Semaphore>,
}

/// An update and its part of the bytes that may wait.
pub(crate) struct WeighedUpdate {
    update: AgentUpdate,
    _weight: Option<OwnedSemaphorePermit>,
}

impl UpdateSender {
    pub(crate) fn new() -> (Self, mpsc::Receiver<WeighedUpdate>) {
        let (updates, receiver) = mpsc::channel(WAITING_UPDATES);
        (Self { updates, kilobytes: Arc::new(Semaphore::new(WAITING_KILOBYTES as usize)) }, receiver)
    }

    async fn send(&self, update: AgentUpdate) {
        // What is small is bounded by its number alone.
        let weight = match u32::try_from(update.weight() / 1024).unwrap_or(u32::MAX).min(WAITING_KILOBYTES) {
            0 | 1 => None,
            kilobytes => self.kilobytes.clone().acquire_many_owned(kilobytes).await.ok(),
        };
        // A driver that is gone has been stopped; the agent will see that by `cancelled`.
        let _ = self.updates.send(WeighedUpdate { update, _weight: weight }).await;
    }
}

impl WeighedUpdate {
    pub(crate) fn into_inner(self) -> AgentUpdate {
        self.update
    }
}

impl AgentUpdate {
    /// About how much memory it holds.
    fn weight(&self) -> usize {
        let json = |json: &Option<Json>| json.as_ref().map_or(0, |json| json.as_str().len());
        match self {
            AgentUpdate::Progress { parts, metadata } => parts_weight(parts) + json(metadata),
            AgentUpdate::Tool(call) => {
                json(&call.args)
                    + [&call.result, &call.error].iter().map(|text| text.as_ref().map_or(0, String::len)).sum::<usize>()
            }
            AgentUpdate::Artifact(update) => artifact_weight(&update.artifact) + json(&update.metadata),
            AgentUpdate::Ask(ask) => parts_weight(&ask.parts),
            AgentUpdate::Usage(_) => 0,
            AgentUpdate::LastWord(_) | AgentUpdate::Wait(_) | AgentUpdate::WatchEnd(_) | AgentUpdate::WatchStore(_) => {
                0
            }
            AgentUpdate::Remember(memory) | AgentUpdate::RememberInTask(memory) => {
                memory.as_ref().map_or(0, String::len)
            }
        }
    }
}

impl Turn {
    /// What the caller said.
    pub fn message(&self) -> &Arc<Message> {
        &self.message
    }

    /// The id of the task, as the caller knows it.
    pub fn task(&self) -> &TaskId {
        &self.task
    }

    /// The number of the task in this server's store, for names of files: ids repeat across callers and agents. `None` in
    /// agents that start before their message is stored.
    pub fn number(&self) -> Option<u64> {
        self.no.map(|TaskNo(number)| number)
    }

    /// What became of other tasks, by their numbers.
    pub fn task_lookup(&self) -> TaskLookup {
        TaskLookup { store: self.store.clone() }
    }

    /// A future that may outlive the turn. It resolves when nobody works on the task any more, and says whether the task is
    /// over; it may as well wait for a caller.
    pub async fn task_end(&self) -> impl Future<Output = bool> + Send + 'static + use<> {
        let (end, ended) = oneshot::channel();
        self.updates.send(AgentUpdate::WatchEnd(end)).await;
        async { ended.await.unwrap_or(false) }
    }

    /// The agent that the task is addressed to.
    pub fn agent(&self) -> &AgentId {
        &self.agent
    }

    /// Whose task it is. Ids of tasks are unique only for each owner and agent.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Who sent the message of this turn. Somebody without a credential is anonymous, and scopes are there only if the
    /// credential names some. Those who answer questions later are in their messages: `message.request`.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// The extensions that are active: the request or the message names them, and the agent's card declares them.
    pub fn extensions(&self) -> &[String] {
        self.request().map_or(&[], |request| &request.extensions)
    }

    /// The media types that the caller can use in the answer, in its order of preference. Empty: it did not say.
    pub fn accepted_output(&self) -> &[String] {
        self.request().map_or(&[], |request| &request.accepted_output)
    }

    /// Whether the caller can use this media type in the answer. A caller who did not say takes anything.
    pub fn accepts(&self, media_type: &str) -> bool {
        let accepted = self.accepted_output();
        accepted.is_empty() || accepted.iter().any(|mode| crate::media::matches(mode, media_type))
    }

    /// The trace that the request belongs to, for spans and for the headers of requests that the agent makes. Where the
    /// server traces, it is at the span of this run. `None`: the server does not, and the request had no valid `traceparent`.
    pub fn trace(&self) -> Option<&TraceContext> {
        self.trace.as_ref().or_else(|| self.request()?.trace.as_ref())
    }

    fn request(&self) -> Option<&RequestContext> {
        self.message.request.as_deref()
    }

    /// Whether an earlier run of this turn has ended with its server, so that some of the work may be done. Such a run is
    /// there because the agent says that runs survive ([`Survives::Runs`](crate::Survives)), or because the server requeues
    /// what was running.
    pub fn is_resumed(&self) -> bool {
        self.is_resumed
    }

    /// The agent that executes the turn: the same, unless a route has chosen another one.
    pub fn executor(&self) -> &AgentId {
        &self.executor
    }

    /// The model that a route asks for, instead of the agent's own.
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// The id of the conversation that the task belongs to.
    pub fn context(&self) -> &ContextId {
        &self.context
    }

    /// Metadata of the request that brought the message; where it had none, of the request that made the task.
    pub fn metadata(&self) -> Option<&Json> {
        self.metadata.as_ref()
    }

    /// Metadata of the request that made the task.
    pub fn task_metadata(&self) -> Option<&Json> {
        self.task_metadata.as_ref()
    }

    /// Tells how it goes.
    pub async fn progress(&self, text: impl Into<String>) {
        self.progress_with(vec![Part::text(text)], None).await;
    }

    /// The same with parts of any kind, and metadata about this one report.
    pub async fn progress_with(&self, parts: Vec<Part>, metadata: Option<Json>) {
        self.updates.send(AgentUpdate::Progress { parts, metadata }).await;
    }

    /// A sign of life, without words.
    pub async fn still_working(&self) {
        self.updates.send(AgentUpdate::Progress { parts: Vec::new(), metadata: None }).await;
    }

    /// Waits until the time is over or the agent must stop. It is neither silence nor time of the turn: the limits of the
    /// agent do not count it.
    pub async fn wait(&self, time: Duration) {
        self.updates.send(AgentUpdate::Wait(time)).await;
        tokio::select! {
            () = tokio::time::sleep(time) => {}
            () = self.cancelled() => {}
        }
    }

    /// Tells of a tool: that it is used, and how that ended.
    pub async fn tool(&self, call: ToolCall) {
        self.updates.send(AgentUpdate::Tool(Box::new(call))).await;
    }

    /// Hands over a whole artifact.
    pub async fn artifact(&self, artifact: Artifact) {
        self.artifact_update(ArtifactUpdate::new(artifact).last(true)).await;
    }

    /// Hands over a piece of an artifact.
    pub async fn artifact_update(&self, update: ArtifactUpdate) {
        self.updates.send(AgentUpdate::Artifact(Box::new(update))).await;
    }

    /// What the turn has cost so far; the last word counts.
    pub async fn usage(&self, usage: Usage) {
        self.updates.send(AgentUpdate::Usage(usage)).await;
    }

    /// What the turn has cost by now, to be noted on what it made.
    pub fn cost(&self, usage: Usage) -> Cost {
        Cost { usage, duration_ms: self.began.elapsed().as_millis() as u64, is_success: true }
    }

    /// Asks the caller in the middle of the turn. The task waits, the stream stays open, and this returns the answer: the
    /// first message that comes after the question. Those from before are turns of their own. Dropping the future
    /// withdraws the question.
    ///
    /// The run is parked meanwhile: it gives its slot and its working tree back, and has them again when this returns. So
    /// the agent must do nothing else while it asks, but for asking more: at most a hundred questions wait behind the open
    /// one, and further ones are an error.
    pub async fn ask(&self, required: Required, parts: Vec<Part>) -> Result<Arc<Message>, AgentError> {
        match self.ask_within(None, required, parts).await? {
            Some(answer) => Ok(answer),
            None => Err(AgentError::for_caller("nobody answered")),
        }
    }

    /// The same for a caller who may take so long; `None`: nobody answered in time. The time for which an answered run
    /// waits for its slot does not count.
    pub async fn ask_within(
        &self,
        limit: Option<Duration>,
        required: Required,
        parts: Vec<Part>,
    ) -> Result<Option<Arc<Message>>, AgentError> {
        let (answer, answered) = oneshot::channel();
        self.updates.send(AgentUpdate::Ask(Box::new(Ask { required, parts, limit, answer }))).await;
        let answer =
            answered.await.map_err(|_| AgentError::for_caller("the turn was stopped before it was answered"))?;
        answer.map_err(|TooManyQuestions| {
            AgentError::for_caller(format!(
                "the agent asks too much: {MAX_QUEUED_QUESTIONS} of its questions wait already"
            ))
        })
    }

    /// Says how the turn ends. The agent tidies up from now on: neither a time limit nor a stop changes this outcome.
    pub async fn last_word(&self, outcome: Outcome) {
        self.updates.send(AgentUpdate::LastWord(Box::new(outcome))).await;
    }

    /// Resolves when the agent must stop.
    pub async fn cancelled(&self) {
        self.signals.until(|signals| signals.stop.is_some()).await;
    }

    /// Whether the agent must stop.
    pub fn is_cancelled(&self) -> bool {
        self.signals.get().stop.is_some()
    }

    /// Until when an agent that must stop may take. Then it is dropped, whatever it does.
    pub fn stop_deadline(&self) -> Option<Instant> {
        self.signals.get().stop.map(|stop| stop.deadline)
    }

    /// Why the agent must stop. `None`: it need not. An agent that passes its work on cancels it there only if its own
    /// caller cancels.
    pub fn stop_cause(&self) -> Option<StopCause> {
        self.signals.get().stop.map(|stop| stop.cause)
    }

    /// Whether the agent must stop because the server ends, while its question is open. A later run may get the answer
    /// ([`Agent::survives_restart`](crate::Agent::survives_restart)), so the agent leaves whatever asked as it is.
    pub fn stopped_while_asking(&self) -> bool {
        self.signals.get().stop.is_some_and(|stop| stop.stopped_while_asking)
    }

    /// For something that the agent has started and cannot end at once: nobody else works in this context and this folder
    /// as long as the hold exists, also after the turn.
    pub fn hold(&self) -> TurnHold {
        TurnHold::new(&self.signals)
    }

    /// The other tasks of this context, oldest first, without those that have not begun.
    pub async fn conversation(&self) -> Result<Vec<Task>, AgentError> {
        let tasks = self.store.conversation(&self.owner, &self.agent, &self.context, CONVERSATION, CONVERSATION_BYTES);
        let tasks = tasks.await?;
        let is_told = |task: &Task| task.id != self.task && task.status.state != State::Submitted;
        Ok(tasks.into_iter().filter(is_told).collect())
    }

    /// What the task has made so far, as it is stored: in earlier turns, or in a run that has ended with its server.
    pub async fn artifacts(&self) -> Result<Vec<Arc<Artifact>>, AgentError> {
        let Some(no) = self.no else { return Ok(Vec::new()) };
        Ok(self.store.load(no).await?.map(|task| task.artifacts).unwrap_or_default())
    }

    /// The message that began the task: this one, unless the task has had turns before.
    pub fn opening(&self) -> &Arc<Message> {
        &self.opening
    }

    /// The question that the message answers, if the run that asked it has ended with its server. The message makes sense
    /// only as the answer to it, so an agent must not take it for something to do.
    pub fn interrupted_question(&self) -> Option<&Message> {
        self.interrupted_question.as_deref()
    }

    /// The tasks that the message refers to, as far as its sender may see them.
    pub async fn references(&self) -> Result<Vec<Task>, AgentError> {
        let mut tasks = Vec::new();
        // Who answers a question in somebody else's task sees nothing else of that owner, unless it is an admin.
        if self.caller.owner != self.owner && !self.caller.is_admin() {
            return Ok(tasks);
        }
        for id in &self.message.references {
            if let Some(row) = self.store.find(&self.owner, None, id).await?
                && self.caller.may_read(&row.agent)
            {
                tasks.extend(self.store.load(row.no).await?);
            }
        }
        Ok(tasks)
    }

    /// What this agent remembered of the context.
    pub async fn memory(&self) -> Result<Option<String>, AgentError> {
        Ok(self.store.agent_state(&self.owner, &self.agent, &self.context).await?)
    }

    /// Keeps a little text for the next turn in this context, such as a session id. It is stored with
    /// what the agent says next.
    pub async fn remember(&self, memory: Option<String>) {
        self.updates.send(AgentUpdate::Remember(memory)).await;
    }

    /// What this agent remembered of the task, in this turn or an earlier one.
    pub async fn task_memory(&self) -> Result<Option<String>, AgentError> {
        let no = match self.no {
            Some(no) => Some(no),
            // The turn began before its message was stored.
            None => self.store.find(&self.owner, Some(&self.agent), &self.task).await?.map(|row| row.no),
        };
        match no {
            Some(no) => Ok(self.store.task_state(no).await?),
            None => Ok(None),
        }
    }

    /// Keeps a little text for later runs and turns of this task, such as the id of what it has started elsewhere. It is
    /// stored with what the agent says next, and goes with the task.
    pub async fn remember_in_task(&self, memory: Option<String>) {
        self.updates.send(AgentUpdate::RememberInTask(memory)).await;
    }

    /// Waits until all that the agent has reported so far is stored, what it remembers included: for an effect that must not
    /// happen before. `false`: it cannot be stored, and the turn is about to be stopped.
    pub async fn stored(&self) -> bool {
        let (watcher, stored) = oneshot::channel();
        self.updates.send(AgentUpdate::WatchStore(watcher)).await;
        stored.await.is_ok()
    }

    /// An id for a new artifact.
    pub fn new_artifact_id(&self) -> ArtifactId {
        crate::engine::new_id(ArtifactId::parse)
    }
}
