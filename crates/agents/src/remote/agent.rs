//! The agent: one turn is one message to the remote agent, and what comes of it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use sabir_engine::{
    About, AboutFuture, Agent, AgentError, AgentFuture, ArtifactUpdate, InterruptedRun, Outcome, StopCause, Survives,
    Turn,
};
use sabir_model::{
    Artifact, Birth, Call, Cancel, Get, IdempotencyKey, IncomingMessage, MessageId, OnFinishedCancel, Part, Send,
    State, Status, Task, TaskId, Wanted,
};
use sabir_outbound::remote::{Following, Mirror, Remote, RemoteError, Step, Update};
use sabir_outbound::{PeerErrorKind, PeerResponse, sha256};
use tokio::time::{Instant, sleep, timeout_at};

use super::memory::{ContextMemory, TaskMemory};
use super::{about, failure};

#[derive(Debug, Clone)]
pub struct RemoteAgentSettings {
    /// How often its card is looked at.
    pub refresh: Duration,
    /// Whether a message is sent again of which nobody knows whether it arrived.
    pub repeats_unknown: bool,
}

/// An agent of another server.
pub struct RemoteAgent {
    remote: Remote,
    settings: RemoteAgentSettings,
    shown: Mutex<Shown>,
}

/// What the card says now, and how often it could not be fetched since.
#[derive(Default)]
struct Shown {
    about: Option<About>,
    failures: u32,
}

/// How long a cancel of a task that waits may take at the remote agent.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(30);
/// The first wait after the card could not be fetched.
const FIRST_RETRY: Duration = Duration::from_secs(1);

/// A message that comes from this server has no dialect of its own.
const BORN_HERE: Birth = Birth(0);

impl RemoteAgent {
    pub fn new(remote: Remote, settings: RemoteAgentSettings) -> Self {
        RemoteAgent { remote, settings, shown: Mutex::default() }
    }

    async fn next_card(&self) -> About {
        loop {
            let wait = {
                let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
                match (&shown.about, shown.failures) {
                    (None, 0) => Duration::ZERO,
                    (Some(_), 0) => self.settings.refresh,
                    (_, failures) => (FIRST_RETRY * 2u32.pow(failures.min(10))).min(self.settings.refresh),
                }
            };
            sleep(wait).await;
            let found = self.remote.discover().await;
            let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
            match found {
                Ok(found) => {
                    shown.failures = 0;
                    let about = found.card.as_deref().map_or_else(about::unknown, about::of);
                    if shown.about.as_ref() != Some(&about) {
                        for note in &found.notes {
                            tracing::warn!(url = self.remote.settings().url, "{note}");
                        }
                        tracing::info!(
                            url = self.remote.settings().url,
                            endpoint = found.endpoint.url,
                            protocol = %found.endpoint.protocol,
                            "the remote agent has a new card"
                        );
                        shown.about = Some(about.clone());
                        return about;
                    }
                }
                Err(error) => {
                    shown.failures += 1;
                    tracing::warn!(url = self.remote.settings().url, %error, "the card of a remote agent cannot be fetched");
                }
            }
        }
    }

    async fn work(&self, turn: Turn) -> Result<Outcome, AgentError> {
        let memory = turn.task_memory().await?.as_deref().and_then(TaskMemory::read);
        let mirror = Mirror::new(&turn.artifacts().await?);
        let is_taken = memory.as_ref().is_some_and(|memory| memory.message == turn.message().id);
        let following = match memory {
            // A run before this one has sent the message.
            Some(memory) if is_taken => Following::task(self.remote.clone(), memory.task, mirror),
            memory => {
                if turn.is_resumed()
                    && let Some(outcome) = self.outcome_of_lost_send(&turn, memory.as_ref()).await
                {
                    return outcome;
                }
                let send = self.send(&turn, memory).await?;
                Following::send(self.remote.clone(), send, mirror)
            }
        };
        self.follow(&turn, following).await
    }

    /// An earlier run may have sent the message before its server ended. `None`: it may be sent now.
    async fn outcome_of_lost_send(
        &self,
        turn: &Turn,
        memory: Option<&TaskMemory>,
    ) -> Option<Result<Outcome, AgentError>> {
        if self.settings.repeats_unknown || self.remote.repeats_are_safe().await {
            return None;
        }
        // The history of a task that goes on shows whether it has the message.
        if let Some(memory) = memory
            && let Ok(task) = self.ask(&memory.task).await
            && !task.history.is_empty()
            && !task.history.iter().any(|message| message.id == turn.message().id)
            && task.status.state.is_waiting()
        {
            return None;
        }
        let unknown = RemoteError::OutcomeUnknown("this server was restarted".to_owned());
        Some(failure::outcome(&unknown))
    }

    async fn send(&self, turn: &Turn, memory: Option<TaskMemory>) -> Result<Send, AgentError> {
        let context = match &memory {
            Some(memory) => Some(memory.context.clone()),
            None => turn.memory().await?.as_deref().and_then(ContextMemory::read).map(|memory| memory.context),
        };
        let message = turn.message();
        let message = IncomingMessage {
            task: memory.map(|memory| memory.task),
            context,
            extensions: message.extensions.clone(),
            metadata: message.metadata.clone(),
            ..IncomingMessage::new(Some(message.id.clone()), message.role, message.parts.clone())
        };
        Ok(Send {
            metadata: turn.metadata().cloned(),
            accepted_output: turn.accepted_output().to_vec(),
            extensions: turn.extensions().to_vec(),
            trace: turn.trace().cloned(),
            idempotency: Some(idempotency_key(turn)),
            ..Send::new(message, BORN_HERE)
        })
    }

    async fn follow(&self, turn: &Turn, mut following: Following) -> Result<Outcome, AgentError> {
        let mut is_remembered = false;
        let mut has_told_trouble = false;
        loop {
            let step = tokio::select! {
                biased;
                () = turn.cancelled() => return self.stop(turn, following, is_remembered).await,
                step = following.next() => step,
            };
            let step = match step {
                Ok(Some(step)) => step,
                Ok(None) => return failure::outcome(&RemoteError::StreamEnded),
                Err(error) => return failure::outcome(&error),
            };
            if !is_remembered {
                is_remembered = remember(turn, &following).await;
            }
            if let Step::Trouble(_) = &step
                && !std::mem::replace(&mut has_told_trouble, true)
            {
                turn.progress("the remote agent cannot be reached now; it is tried again").await;
            }
            if let Some(outcome) = tell(turn, step).await {
                return Ok(outcome);
            }
        }
    }

    /// The turn must stop. The remote task is canceled if our caller cancels or the turn took too long; if this server
    /// stops, it goes on and is found again at the next start.
    async fn stop(&self, turn: &Turn, mut following: Following, is_remembered: bool) -> Result<Outcome, AgentError> {
        let deadline = turn.stop_deadline().unwrap_or_else(Instant::now);
        // A message that is on its way makes a task that must not be forgotten.
        while following.task_id().is_none() {
            match timeout_at(deadline, following.next()).await {
                Ok(Ok(Some(step))) => {
                    if let Some(outcome) = tell(turn, step).await {
                        return Ok(outcome);
                    }
                }
                Ok(Ok(None) | Err(_)) | Err(_) => return Ok(Outcome::Canceled(Vec::new())),
            }
        }
        if !is_remembered {
            remember(turn, &following).await;
        }
        let Some(task) = following.task_id().cloned() else { return Ok(Outcome::Canceled(Vec::new())) };
        if !matches!(turn.stop_cause(), Some(StopCause::Canceled | StopCause::TimedOut)) {
            return Ok(Outcome::Canceled(Vec::new()));
        }
        match timeout_at(deadline, cancel(&self.remote, task.clone())).await {
            Ok(Ok(())) => Ok(Outcome::Canceled(Vec::new())),
            // It was over before the cancel came.
            Ok(Err(error)) if error.peer_kind() == Some(PeerErrorKind::NotCancelable) => {
                let rest = timeout_at(deadline, self.ask(&task)).await;
                Ok(match rest {
                    Ok(Ok(task)) => outcome_of(task.status, None).unwrap_or(Outcome::Canceled(Vec::new())),
                    _ => Outcome::Canceled(Vec::new()),
                })
            }
            Ok(Err(error)) => {
                tracing::warn!(%task, %error, "the remote agent could not be told to cancel");
                Ok(Outcome::Canceled(vec![Part::text("the remote agent could not be told to stop")]))
            }
            Err(_) => {
                tracing::warn!(%task, "the remote agent did not answer the cancel in time");
                Ok(Outcome::Canceled(vec![Part::text("the remote agent did not confirm that it stopped")]))
            }
        }
    }

    async fn ask(&self, task: &TaskId) -> Result<Task, RemoteError> {
        let call = Call::Get(Get { agent: None, task: task.clone(), history: None, earlier: Wanted::No });
        match self.remote.call(&call).await?.response {
            PeerResponse::Task(task) => Ok(*task),
            _ => Err(RemoteError::StreamEnded),
        }
    }
}

impl Agent for RemoteAgent {
    fn about(&self) -> About {
        about::unknown()
    }

    fn next_about(&self) -> Option<AboutFuture<'_>> {
        Some(Box::pin(self.next_card()))
    }

    fn run(&self, turn: Turn) -> AgentFuture<'_> {
        Box::pin(self.work(turn))
    }

    /// The remote task goes on without us. Where nobody knows whether it exists, the next run says so.
    fn survives_restart(&self, _run: &InterruptedRun<'_>) -> Survives {
        Survives::Runs
    }

    fn end_between_turns(&self, task_memory: &str) -> Option<BoxFuture<'static, ()>> {
        let TaskMemory { task, .. } = TaskMemory::read(task_memory)?;
        let remote = self.remote.clone();
        Some(Box::pin(async move {
            match timeout_at(Instant::now() + CANCEL_TIMEOUT, cancel(&remote, task.clone())).await {
                Ok(Err(error)) if error.peer_kind() != Some(PeerErrorKind::NotCancelable) => {
                    tracing::warn!(%task, %error, "the remote agent could not be told to cancel a waiting task");
                }
                Err(_) => tracing::warn!(%task, "the remote agent did not answer the cancel of a waiting task in time"),
                Ok(_) => {}
            }
        }))
    }
}

async fn cancel(remote: &Remote, task: TaskId) -> Result<(), RemoteError> {
    let call = Call::Cancel(Cancel { agent: None, task, metadata: None, on_finished: OnFinishedCancel::Refuse });
    remote.call(&call).await.map(|_| ())
}

/// Keeps the ids of the remote task, as soon as they are known. Answers whether they are.
async fn remember(turn: &Turn, following: &Following) -> bool {
    let (Some(task), Some(context)) = (following.task_id(), following.context_id()) else { return false };
    let message: MessageId = turn.message().id.clone();
    let memory = TaskMemory { task: task.clone(), context: context.clone(), message };
    turn.remember(Some(ContextMemory { context: context.clone() }.write())).await;
    turn.remember_in_task(Some(memory.write())).await;
    true
}

/// Passes on what happened. The outcome, if the turn is over.
async fn tell(turn: &Turn, step: Step) -> Option<Outcome> {
    match step {
        Step::Known { .. } => None,
        Step::Update(Update::Artifact { artifact, append, last, metadata }) => {
            let mut update = ArtifactUpdate::new(artifact).append(append).last(last);
            update.metadata = metadata;
            turn.artifact_update(update).await;
            None
        }
        Step::Update(Update::Progress(change)) => {
            let parts = change.status.message.map(|message| message.parts.clone()).unwrap_or_default();
            // That it is submitted or works is known; what it says of it is news.
            if !parts.is_empty() || change.metadata.is_some() {
                turn.progress_with(parts, change.metadata).await;
            }
            None
        }
        Step::Replied(message) => {
            turn.artifact(Artifact::new(turn.new_artifact_id(), message.parts)).await;
            Some(Outcome::Completed(Vec::new()))
        }
        Step::Over { status, last_words } => outcome_of(status, last_words),
        Step::Trouble(why) => {
            tracing::debug!(task = %turn.task(), why, "the connection to a remote agent is lost; it is tried again");
            None
        }
    }
}

/// `None`: the status does not end a turn.
fn outcome_of(status: Status, last_words: Option<Vec<Part>>) -> Option<Outcome> {
    let parts = status.message.map(|message| message.parts.clone()).or(last_words).unwrap_or_default();
    Some(match status.state {
        State::Completed => Outcome::Completed(parts),
        State::Failed => Outcome::Failed(parts),
        State::Rejected => Outcome::Rejected(parts),
        State::Canceled => Outcome::Canceled(parts),
        State::InputRequired => Outcome::InputRequired(parts),
        State::AuthRequired => Outcome::AuthRequired(parts),
        State::Submitted | State::Working => return None,
    })
}

/// The same for each repetition of this message, and no other message of any caller has it.
fn idempotency_key(turn: &Turn) -> IdempotencyKey {
    let number = turn.number().unwrap_or_default().to_string();
    let parts =
        [turn.owner().as_key(), turn.agent().as_str(), turn.task().as_str(), turn.message().id.as_str(), &number];
    let mut text = Vec::new();
    for part in parts {
        // The length keeps the parts apart.
        text.extend_from_slice(format!("{}:{part}", part.len()).as_bytes());
    }
    let digest: String = sha256(&text)[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    IdempotencyKey::parse(format!("sabir-{digest}")).expect("letters and digits are a key")
}
