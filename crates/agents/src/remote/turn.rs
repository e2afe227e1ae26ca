//! One turn: a message to the remote agent, and what comes of it.
//!
//! A turn that asks leaves a remote task that waits, and the answer goes there. Any other turn ends its remote task, so the
//! next message of our task begins another one in the same remote context.
//!
//! What is remembered of the message decides what a run after a crash does with it:
//!
//! | remembered                     | the next run                                                        |
//! |--------------------------------|---------------------------------------------------------------------|
//! | nothing                        | asks whether it was sent, where that can be known                   |
//! | that nothing of it has left    | sends it                                                            |
//! | the remote task that has it    | follows that                                                        |

use std::sync::Arc;

use sabir_engine::{AgentError, ArtifactUpdate, Outcome, StopCause, Turn};
use sabir_model::{Artifact, MessageId, Part, State, Status, Timestamp};
use sabir_outbound::remote::{Following, Mirror, OnUnknown, OpenQuestion, Remote, RemoteError, Step, Update};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::RemoteAgentSettings;
use super::artifact_names::ArtifactNames;
use super::end::{self, Canceled, Sending};
use super::failure;
use super::memory::{ContextMemory, RemoteTask, TaskMemory, Waits};
use super::outgoing;

pub(super) async fn run(remote: &Remote, settings: &RemoteAgentSettings, turn: Turn) -> Result<Outcome, AgentError> {
    // The first run of a task has nothing behind it.
    let is_first = !turn.is_resumed() && Arc::ptr_eq(turn.opening(), turn.message());
    let memory = match is_first {
        true => TaskMemory::default(),
        false => turn.task_memory().await?.as_deref().and_then(TaskMemory::read).unwrap_or_default(),
    };
    let message = outgoing::message_id(&turn);
    let may_be_sent = turn.is_resumed() && memory.unsent.as_ref() != Some(&message);
    let following = match &memory.remote {
        // A run before this one has sent the message.
        Some(known) if turn.is_resumed() && known.waits.is_none() && known.message == message => {
            let mirror = mirror_of(&turn, known).await?;
            let following = Following::task(remote.clone(), known.id.clone(), mirror);
            let following = following.in_context(known.context.clone());
            let earlier = known.earlier;
            return RemoteTurn { is_taken: true, ..RemoteTurn::new(remote, &turn, message, memory, earlier) }
                .follow(following)
                .await;
        }
        known => {
            let waiting = known.as_ref().and_then(|known| Some((known, known.waits?)));
            let send = outgoing::send(&turn, &message, known.as_ref()).await?;
            let mirror = match waiting {
                Some((known, _)) => mirror_of(&turn, known).await?,
                None => Mirror::default(),
            };
            let on_unknown = if settings.repeats_unknown { OnUnknown::Repeat } else { OnUnknown::GiveUp };
            let following = match may_be_sent {
                true => Following::perhaps_sent(remote.clone(), send, mirror, on_unknown),
                false => Following::send(remote.clone(), send, mirror),
            };
            match waiting {
                Some((known, Waits { since })) => {
                    following.answering(OpenQuestion { asked: since, last_message: known.message.clone() })
                }
                None => following,
            }
        }
    };
    let earlier = match &memory.remote {
        Some(known) if known.waits.is_some() => known.earlier,
        Some(known) => known.earlier + 1,
        None => 0,
    };
    RemoteTurn::new(remote, &turn, message, memory, earlier).follow(following).await
}

/// What was passed on of the remote task before.
async fn mirror_of(turn: &Turn, known: &RemoteTask) -> Result<Mirror, AgentError> {
    let names = ArtifactNames::of_task(&known.id, known.earlier);
    Ok(Mirror::new(&names.there(&turn.artifacts().await?)))
}

struct RemoteTurn<'a> {
    remote: &'a Remote,
    turn: &'a Turn,
    /// The id of the turn's message at the remote agent.
    message: MessageId,
    memory: TaskMemory,
    /// How many other remote tasks our task has had before.
    earlier: u32,
    /// The remote task has the message, and that is remembered.
    is_taken: bool,
    trouble: Trouble,
}

/// Whether callers know that the remote agent cannot be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trouble {
    NeverTold,
    Told,
    /// It is over, and is not told again: connections that often break are no news.
    Over,
}

enum Next {
    Step(Following, Result<Option<Step>, RemoteError>),
    /// The turn must stop.
    Stop(Following),
    /// The turn must stop, and nobody knows yet what became of its message.
    StopUnknown,
}

impl<'a> RemoteTurn<'a> {
    fn new(remote: &'a Remote, turn: &'a Turn, message: MessageId, memory: TaskMemory, earlier: u32) -> Self {
        RemoteTurn { remote, turn, message, memory, earlier, is_taken: false, trouble: Trouble::NeverTold }
    }

    async fn follow(mut self, mut following: Following) -> Result<Outcome, AgentError> {
        loop {
            if let Some(time) = following.retry_at()
                && !self.wait_unsent(time).await
            {
                return Ok(self.stop(following).await);
            }
            let step;
            (following, step) = match self.next(following).await {
                Next::Step(following, step) => (following, step),
                Next::Stop(following) => return Ok(self.stop(following).await),
                Next::StopUnknown => return Ok(self.announce(unconfirmed()).await),
            };
            let step = match step {
                Ok(Some(step)) => step,
                Ok(None) => return failure::outcome(&RemoteError::StreamEnded),
                Err(RemoteError::OutcomeUnknown(_)) if self.turn.stop_cause().is_some() => {
                    // A task that nobody can find may go on there.
                    return Ok(self.announce(unconfirmed()).await);
                }
                Err(error) => return self.fail(&following, &error),
            };
            if let Some(outcome) = self.tell(&following, step).await {
                return Ok(outcome);
            }
        }
    }

    /// Nothing of the message has left, and until this time nothing will. Whoever runs the turn after a crash must know the
    /// first, and must not believe it once the message may leave. `false`: the turn must stop.
    async fn wait_unsent(&mut self, time: Instant) -> bool {
        self.memory.unsent = Some(self.message.clone());
        self.turn.remember_in_task(Some(self.memory.write())).await;
        tokio::select! {
            biased;
            () = self.turn.cancelled() => return false,
            () = sleep_until(time) => {}
        }
        self.memory.unsent = None;
        self.turn.remember_in_task(Some(self.memory.write())).await;
        self.turn.stored().await
    }

    async fn next(&self, mut following: Following) -> Next {
        if !following.is_sending() {
            let step = tokio::select! {
                biased;
                () = self.turn.cancelled() => None,
                step = following.next() => Some(step),
            };
            return match step {
                Some(step) => Next::Step(following, step),
                None => Next::Stop(following),
            };
        }
        // A message that is on its way makes a task that must not be forgotten.
        let mut sending: Sending = Box::pin(async move {
            let step = following.next().await;
            (following, step)
        });
        tokio::select! {
            biased;
            () = self.turn.cancelled() => {}
            (following, step) = &mut sending => return Next::Step(following, step),
        }
        match timeout_at(self.deadline(), &mut sending).await {
            Ok((following, step)) => Next::Step(following, step),
            Err(_) => {
                if self.ends_task() {
                    tokio::spawn(end::cancel_when_known(self.remote.clone(), sending));
                }
                Next::StopUnknown
            }
        }
    }

    /// Until when a turn that must stop may take, with a little time left to say how that went.
    fn deadline(&self) -> Instant {
        self.turn.stop_deadline().unwrap_or_else(Instant::now) - end::RESERVE
    }

    /// Whether our task ends with a turn that must stop. If this server stops, the remote task goes on and is found again
    /// at the next start.
    fn ends_task(&self) -> bool {
        !matches!(self.turn.stop_cause(), Some(StopCause::ServerStops | StopCause::TurnOver) | None)
    }

    /// The turn must stop.
    async fn stop(mut self, mut following: Following) -> Outcome {
        let task = match following.task_id() {
            Some(task) if self.ends_task() => task.clone(),
            // Nothing was sent.
            _ => return Outcome::Canceled(Vec::new()),
        };
        match end::cancel(self.remote, &task, self.deadline()).await {
            Canceled::Over(task) => following.end_with(&task),
            Canceled::Gone => return Outcome::Canceled(Vec::new()),
            Canceled::Unconfirmed => {
                tracing::warn!(%task, "a remote agent did not confirm that it stopped");
                return self.announce(unconfirmed()).await;
            }
            Canceled::NoAnswer => {
                tracing::warn!(%task, "a remote agent could not be told to cancel a task; it is told again for a while");
                tokio::spawn(end::cancel_late(self.remote.clone(), task));
                return self.announce(unconfirmed()).await;
            }
        }
        // What it has made until then, and how it ended.
        while let Ok(Some(step)) = following.next().await {
            if let Some(outcome) = self.tell(&following, step).await {
                return self.announce(outcome).await;
            }
        }
        Outcome::Canceled(Vec::new())
    }

    /// Without this, a turn that is stopped ends as whoever stops it says.
    async fn announce(&self, outcome: Outcome) -> Outcome {
        let is_canceled = matches!(outcome, Outcome::Canceled(_));
        let is_wanted = self.turn.stop_cause() == Some(StopCause::Canceled);
        if self.ends_task() && (is_wanted || !is_canceled) {
            self.turn.last_word(outcome.clone()).await;
        }
        outcome
    }

    fn fail(&self, following: &Following, error: &RemoteError) -> Result<Outcome, AgentError> {
        let is_too_large = matches!(error, RemoteError::EventTooLarge(_) | RemoteError::TaskTooLarge(_));
        if let Some(task) = following.task_id().filter(|_| is_too_large) {
            // It would go on for nobody.
            tokio::spawn(end::cancel_late(self.remote.clone(), task.clone()));
        }
        failure::outcome(error)
    }

    /// Passes on what happened. The outcome, if the turn is over.
    async fn tell(&mut self, following: &Following, step: Step) -> Option<Outcome> {
        let turn = self.turn;
        if let Step::Trouble(why) = &step {
            tracing::debug!(task = %turn.task(), why, "the connection to a remote agent is lost; it is tried again");
            if self.trouble == Trouble::NeverTold {
                self.trouble = Trouble::Told;
                turn.progress("the remote agent cannot be reached now; it is tried again").await;
            }
            return None;
        }
        self.remember(following).await;
        if self.trouble == Trouble::Told {
            self.trouble = Trouble::Over;
            turn.still_working().await;
        }
        match step {
            Step::Known { .. } | Step::Trouble(_) => None,
            Step::Update(Update::Artifact { mut artifact, append, last, metadata }) => {
                if let Some(task) = following.task_id() {
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
                if status.state.is_waiting()
                    && let Some(known) = &mut self.memory.remote
                {
                    let since = Some(status.time).filter(|time| *time != Timestamp::default());
                    known.waits = Some(Waits { since });
                    turn.remember_in_task(Some(self.memory.write())).await;
                }
                outcome_of(status, last_words)
            }
        }
    }

    /// Keeps the ids of the remote task and its context, as soon as it has the message.
    async fn remember(&mut self, following: &Following) {
        let Some(context) = following.context_id().filter(|_| !self.is_taken) else { return };
        self.is_taken = true;
        self.turn.remember(Some(ContextMemory { context: context.clone() }.write())).await;
        // A direct message has no task.
        let Some(id) = following.task_id().cloned() else { return };
        let (context, message) = (context.clone(), self.message.clone());
        self.memory.remote = Some(RemoteTask { id, context, message, waits: None, earlier: self.earlier });
        self.turn.remember_in_task(Some(self.memory.write())).await;
    }
}

fn unconfirmed() -> Outcome {
    Outcome::Canceled(vec![Part::text("the remote agent did not confirm that it stopped")])
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
