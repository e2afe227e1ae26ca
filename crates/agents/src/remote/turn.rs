//! One turn: a message to the remote agent, and what comes of it.
//!
//! A turn that asks leaves a remote task that waits, and the answer goes there. Any other turn ends its remote task, so the
//! next message of our task begins another one in the same remote context.

use std::sync::Arc;

use sabir_engine::{AgentError, ArtifactUpdate, Outcome, StopCause, Turn};
use sabir_model::{
    Artifact, Birth, Call, Get, IdempotencyKey, IncomingMessage, Part, Send, State, Status, Task, TaskId, Wanted,
};
use sabir_outbound::remote::{Following, Mirror, OnUnknown, Remote, RemoteError, Step, Update};
use sabir_outbound::{PeerResponse, sha256};
use tokio::time::{Instant, timeout_at};

use super::RemoteAgentSettings;
use super::artifact_names::ArtifactNames;
use super::end::{self, Canceled};
use super::failure;
use super::memory::{ContextMemory, TaskMemory};

/// A message that comes from this server has no dialect of its own.
const BORN_HERE: Birth = Birth(0);

pub(super) async fn run(remote: &Remote, settings: &RemoteAgentSettings, turn: Turn) -> Result<Outcome, AgentError> {
    // The first run of a task has nothing behind it.
    let is_first = !turn.is_resumed() && Arc::ptr_eq(turn.opening(), turn.message());
    let memory = match is_first {
        true => None,
        false => turn.task_memory().await?.as_deref().and_then(TaskMemory::read),
    };
    let (following, earlier, stored) = match memory {
        // A run before this one has sent the message.
        Some(memory) if turn.is_resumed() && !memory.waits && memory.message == turn.message().id => {
            (follow_known(remote, &turn, &memory).await?, memory.earlier, Some(memory))
        }
        Some(memory) if memory.waits => {
            let following = match was_sent(remote, settings, &turn, &memory).await {
                Sent::Yes => follow_known(remote, &turn, &memory).await?,
                Sent::No => {
                    let mirror = mirror_of(&turn, &memory).await?;
                    Following::send(remote.clone(), send(&turn, Some(&memory)).await?, mirror)
                }
                Sent::Unknown => {
                    return failure::outcome(&RemoteError::OutcomeUnknown("this server was restarted".to_owned()));
                }
            };
            (following, memory.earlier, None)
        }
        memory => {
            let send = send(&turn, memory.as_ref()).await?;
            let following = if turn.is_resumed() && !remote.repeats_are_safe().await {
                let on_unknown = if settings.repeats_unknown { OnUnknown::Repeat } else { OnUnknown::GiveUp };
                Following::perhaps_sent(remote.clone(), send, Mirror::default(), on_unknown)
            } else {
                Following::send(remote.clone(), send, Mirror::default())
            };
            (following, memory.map_or(0, |memory| memory.earlier + 1), None)
        }
    };
    RemoteTurn { remote, turn: &turn, following, earlier, stored, has_told_trouble: false }.follow().await
}

async fn follow_known(remote: &Remote, turn: &Turn, memory: &TaskMemory) -> Result<Following, AgentError> {
    let mirror = mirror_of(turn, memory).await?;
    Ok(Following::task(remote.clone(), memory.task.clone(), mirror).in_context(memory.context.clone()))
}

/// What was passed on of the remote task before.
async fn mirror_of(turn: &Turn, memory: &TaskMemory) -> Result<Mirror, AgentError> {
    let names = ArtifactNames::of_task(&memory.task, memory.earlier);
    Ok(Mirror::new(&names.there(&turn.artifacts().await?)))
}

/// Whether a run that has ended with its server had sent its message.
enum Sent {
    Yes,
    No,
    Unknown,
}

/// For a message to a remote task that waited: its history shows whether it has the message.
async fn was_sent(remote: &Remote, settings: &RemoteAgentSettings, turn: &Turn, memory: &TaskMemory) -> Sent {
    if !turn.is_resumed() || remote.repeats_are_safe().await {
        return Sent::No;
    }
    if let Ok(task) = ask(remote, &memory.task).await
        && !task.history.is_empty()
    {
        let message = turn.message();
        if task.history.iter().any(|known| known.id == message.id) {
            return Sent::Yes;
        }
        // Not every server keeps the ids of messages.
        let has_same = task.history.iter().any(|known| known.role == message.role && known.parts == message.parts);
        if !has_same && task.status.state.is_waiting() {
            return Sent::No;
        }
    }
    if settings.repeats_unknown { Sent::No } else { Sent::Unknown }
}

/// The message as the remote agent gets it. `memory` is of the remote task before.
async fn send(turn: &Turn, memory: Option<&TaskMemory>) -> Result<Send, AgentError> {
    let context = match memory {
        Some(memory) => Some(memory.context.clone()),
        None => turn.memory().await?.as_deref().and_then(ContextMemory::read).map(|memory| memory.context),
    };
    let (waiting, over) = match memory {
        Some(memory) if memory.waits => (Some(memory.task.clone()), None),
        memory => (None, memory.map(|memory| memory.task.clone())),
    };
    let message = turn.message();
    let message = IncomingMessage {
        task: waiting,
        context,
        references: over.into_iter().collect(),
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

async fn ask(remote: &Remote, task: &TaskId) -> Result<Task, RemoteError> {
    let call = Call::Get(Get { agent: None, task: task.clone(), history: None, earlier: Wanted::No });
    match remote.call(&call).await?.response {
        PeerResponse::Task(task) => Ok(*task),
        _ => Err(RemoteError::StreamEnded),
    }
}

struct RemoteTurn<'a> {
    remote: &'a Remote,
    turn: &'a Turn,
    following: Following,
    /// How many other remote tasks our task has had before.
    earlier: u32,
    /// What is remembered of the remote task. `None`: nothing yet that has this message.
    stored: Option<TaskMemory>,
    /// Callers know that the remote agent cannot be reached.
    has_told_trouble: bool,
}

impl RemoteTurn<'_> {
    async fn follow(mut self) -> Result<Outcome, AgentError> {
        let turn = self.turn;
        loop {
            let step = tokio::select! {
                biased;
                () = turn.cancelled() => return Ok(self.stop().await),
                step = self.following.next() => step,
            };
            let step = match step {
                Ok(Some(step)) => step,
                Ok(None) => return failure::outcome(&RemoteError::StreamEnded),
                Err(error) => return failure::outcome(&error),
            };
            if let Some(outcome) = self.tell(step).await {
                return Ok(outcome);
            }
        }
    }

    /// The turn must stop. The remote task is canceled if our task ends with it; if this server stops, it goes on and is
    /// found again at the next start.
    async fn stop(mut self) -> Outcome {
        let deadline = self.turn.stop_deadline().unwrap_or_else(Instant::now) - end::RESERVE;
        let ends_task = !matches!(self.turn.stop_cause(), Some(StopCause::ServerStops | StopCause::TurnOver) | None);
        // A message that is on its way makes a task that must not be forgotten.
        let task = loop {
            if let Some(task) = self.following.task_id() {
                break task.clone();
            }
            match timeout_at(deadline, self.following.next()).await {
                Ok(Ok(Some(step))) => {
                    if let Some(outcome) = self.tell(step).await {
                        return self.announce(outcome).await;
                    }
                }
                Ok(Ok(None) | Err(_)) => return Outcome::Canceled(Vec::new()),
                Err(_) => {
                    if ends_task {
                        tokio::spawn(end::cancel_when_known(self.remote.clone(), self.following));
                    }
                    return Outcome::Canceled(Vec::new());
                }
            }
        };
        self.remember().await;
        if !ends_task {
            return Outcome::Canceled(Vec::new());
        }
        let why = match end::cancel(self.remote, &task, deadline).await {
            Canceled::Stopped => return Outcome::Canceled(Vec::new()),
            Canceled::WasOver => return self.end_as_there(deadline).await,
            Canceled::Refused(error) => {
                tracing::warn!(%task, %error, "a remote agent did not take a cancel");
                "the remote agent did not take the cancel"
            }
            Canceled::NoAnswer => {
                tracing::warn!(%task, "a remote agent could not be told to cancel a task; it is told again for a while");
                tokio::spawn(end::cancel_late(self.remote.clone(), task));
                "the remote agent could not be told to stop"
            }
        };
        self.announce(Outcome::Canceled(vec![Part::text(why)])).await
    }

    /// The remote task had ended before the cancel came: ours ends like it.
    async fn end_as_there(&mut self, deadline: Instant) -> Outcome {
        while let Ok(Ok(Some(step))) = timeout_at(deadline, self.following.next()).await {
            if let Some(outcome) = self.tell(step).await {
                return self.announce(outcome).await;
            }
        }
        Outcome::Canceled(Vec::new())
    }

    /// Without this, a task that its caller has canceled ends as canceled, and says nothing of it.
    async fn announce(&self, outcome: Outcome) -> Outcome {
        if self.turn.stop_cause() == Some(StopCause::Canceled) {
            self.turn.last_word(outcome.clone()).await;
        }
        outcome
    }

    /// Passes on what happened. The outcome, if the turn is over.
    async fn tell(&mut self, step: Step) -> Option<Outcome> {
        let turn = self.turn;
        if !matches!(step, Step::Trouble(_)) {
            self.remember().await;
        }
        match step {
            Step::Known { .. } => None,
            Step::Update(Update::Artifact { mut artifact, append, last, metadata }) => {
                if let Some(task) = self.following.task_id() {
                    artifact.id = ArtifactNames::of_task(task, self.earlier).here(artifact.id);
                }
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
            Step::Over { status, last_words } => {
                if let Some(stored) = self.stored.as_ref().filter(|_| status.state.is_waiting()) {
                    let memory = TaskMemory { waits: true, ..stored.clone() };
                    turn.remember_in_task(Some(memory.write())).await;
                }
                outcome_of(status, last_words)
            }
            Step::Trouble(why) => {
                tracing::debug!(task = %turn.task(), why, "the connection to a remote agent is lost; it is tried again");
                if !std::mem::replace(&mut self.has_told_trouble, true) {
                    turn.progress("the remote agent cannot be reached now; it is tried again").await;
                }
                None
            }
        }
    }

    /// Keeps the ids of the remote task, as soon as it has the message.
    async fn remember(&mut self) {
        let (Some(task), Some(context)) = (self.following.task_id(), self.following.context_id()) else { return };
        if self.stored.is_some() {
            return;
        }
        let (task, context, message) = (task.clone(), context.clone(), self.turn.message().id.clone());
        self.turn.remember(Some(ContextMemory { context: context.clone() }.write())).await;
        let memory = TaskMemory { task, context, message, waits: false, earlier: self.earlier };
        self.turn.remember_in_task(Some(memory.write())).await;
        self.stored = Some(memory);
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
