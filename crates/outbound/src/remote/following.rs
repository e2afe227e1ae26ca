//! Following one remote task until its turn is over, whatever happens to the connection.
//!
//! ```text
//!             stream refused, or none offered
//!   Start ─────────────────────────────────────────────▶ Polling ──▶ Over
//!     │ stream opened                                     ▲  │ task is settled or waits
//!     ▼            stream broke              no subscribe │  ▼
//!   Streaming ───────────────────▶ Broken ────────────────┘  Over
//!     ▲                              │ subscribed again (with the last event's id, if there is one)
//!     └──────────────────────────────┘
//! ```
//!
//! A stream that resumes with numbered events, or begins with the whole task, leaves no gap. After one that does neither,
//! pieces of artifacts are not believed: the whole task is asked for instead. What is new is told by the mirror.

use std::collections::VecDeque;
use std::time::Duration;

use sabir_model::{
    Call, ContextId, Event, Get, Message, OnFinishedSubscribe, Part, Send, Status, Subscribe, Task, TaskId, Wanted,
};
use sabir_wire::{PeerErrorKind, PeerResponse, Received};
use tokio::time::{Instant, sleep};

use super::back_off::BackOff;
use super::call::Remote;
use super::error::RemoteError;
use super::mirror::{Mirror, Update, ends_turn};
use super::stream::{Frame, RemoteStream};

/// What happened to a task that is followed.
#[derive(Debug)]
pub enum Step {
    /// The remote agent has the task, under these ids.
    Known {
        task: TaskId,
        context: ContextId,
    },
    Update(Update),
    /// The agent answered without a task; nothing follows.
    Replied(Box<Message>),
    /// The turn is over: the task is settled, or waits for its caller. Nothing follows.
    Over {
        status: Status,
        /// What the agent said last in the history, where it made nothing and the status says nothing.
        last_words: Option<Vec<Part>>,
    },
    /// The connection is lost, and it is tried again. For people who wait.
    Trouble(String),
}

pub struct Following {
    remote: Remote,
    stage: Stage,
    task: Option<TaskId>,
    context: Option<ContextId>,
    mirror: Mirror,
    steps: VecDeque<Step>,
    /// The id of the last event, by which the stream can be resumed.
    cursor: Option<String>,
    /// Whether pieces of artifacts can be believed: nothing was missed between them.
    is_gapless: bool,
    /// A piece of an artifact was not believed, so the whole task has news.
    has_news: bool,
    last_asked: Instant,
    can_subscribe: bool,
    has_sent_again: bool,
    /// The message was for a task that waits, and nothing shows yet that the task has it: servers may still say that it
    /// waits.
    awaits_change: bool,
    failures: BackOff,
    polls: BackOff,
    failing_since: Option<Instant>,
}

enum Stage {
    Start(Box<Send>),
    Streaming { stream: Box<RemoteStream>, is_first_frame: bool, began: Began },
    Broken,
    Polling,
    Over,
}

/// How a stream began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Began {
    /// With the message that made the task, or woke it: all events are in it.
    BySend,
    BySubscription,
}

/// Where pieces of artifacts cannot be believed, the whole task is looked at so often at most.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

/// For how long frames that follow the last status are waited for.
const AFTER_THE_END: Duration = Duration::from_millis(200);

impl Following {
    /// Sends a message, and follows what becomes of it. `mirror` knows what was passed on of the task before.
    pub fn send(remote: Remote, send: Send, mirror: Mirror) -> Self {
        let task = send.message.task.clone();
        let context = send.message.context.clone();
        let awaits_change = task.is_some();
        Self { task, context, awaits_change, ..Self::new(remote, Stage::Start(Box::new(send)), mirror) }
    }

    /// Follows a task that the remote agent has.
    pub fn task(remote: Remote, task: TaskId, mirror: Mirror) -> Self {
        Self { task: Some(task), ..Self::new(remote, Stage::Broken, mirror) }
    }

    fn new(remote: Remote, stage: Stage, mirror: Mirror) -> Self {
        let polls = BackOff::between_polls(remote.settings().poll_interval);
        Following {
            remote,
            stage,
            task: None,
            context: None,
            mirror,
            steps: VecDeque::new(),
            cursor: None,
            is_gapless: true,
            has_news: false,
            last_asked: Instant::now(),
            can_subscribe: true,
            has_sent_again: false,
            awaits_change: false,
            failures: BackOff::after_failures(),
            polls,
            failing_since: None,
        }
    }

    /// The id of the task, as soon as it is known.
    pub fn task_id(&self) -> Option<&TaskId> {
        self.task.as_ref()
    }

    /// The context of the task, as soon as it is known.
    pub fn context_id(&self) -> Option<&ContextId> {
        self.context.as_ref()
    }

    /// What happens next. An error ends it: the message was not taken, or nothing more can be learned of the task. Once the
    /// task is known, dropping the future loses nothing; before that, it may leave a message behind that nobody follows.
    pub async fn next(&mut self) -> Result<Option<Step>, RemoteError> {
        loop {
            if let Some(step) = self.steps.pop_front() {
                return Ok(Some(step));
            }
            match &self.stage {
                Stage::Start(_) => self.start().await?,
                Stage::Streaming { .. } => self.read_stream().await?,
                Stage::Broken => self.reattach().await?,
                Stage::Polling => self.poll().await?,
                Stage::Over => return Ok(None),
            }
        }
    }

    /// Sends the message. As long as it cannot have arrived, that is tried again.
    async fn start(&mut self) -> Result<(), RemoteError> {
        match self.try_to_start().await {
            Err(error) if error.did_nothing() && error.is_transient() => self.wait_after(error).await,
            outcome => outcome,
        }
    }

    async fn try_to_start(&mut self) -> Result<(), RemoteError> {
        let known = self.remote.discovered().await?;
        let Stage::Start(send) = &self.stage else { return Ok(()) };
        let mut send = send.clone();
        if known.streams() {
            send.delivery = sabir_model::Delivery::Stream;
            match self.remote.stream(&Call::Send(send.clone()), None).await {
                Ok(stream) => {
                    self.stage =
                        Stage::Streaming { stream: Box::new(stream), is_first_frame: true, began: Began::BySend };
                    return Ok(());
                }
                // The card promised too much.
                Err(error) if is_refusal_to_stream(&error) => self.can_subscribe = false,
                Err(error) => return self.look_for_chosen_task(&send, error).await,
            }
        } else {
            self.can_subscribe = false;
        }
        send.delivery = sabir_model::Delivery::Immediately;
        let received = match self.remote.call(&Call::Send(send.clone())).await {
            Ok(received) => received,
            Err(error) => return self.look_for_chosen_task(&send, error).await,
        };
        self.stage = Stage::Polling;
        self.take_answer(received);
        // The answer says how the task stands now, so there is no hurry to ask again.
        if !self.is_over() {
            self.pause().await;
        }
        Ok(())
    }

    /// Whether a message has arrived is not known. Where the id of its task is ours, the server can be asked for it: it is
    /// followed if it is there, and the message is sent again if it is not.
    async fn look_for_chosen_task(&mut self, send: &Send, error: RemoteError) -> Result<(), RemoteError> {
        let RemoteError::OutcomeUnknown(_) = error else { return Err(error) };
        if self.task.is_some() {
            // The message was for a task that exists: that says how it stands, and asks again if it got no answer.
            self.stage = Stage::Broken;
            return Ok(());
        }
        let Some(chosen) = self.remote.chosen_task(send).await else { return Err(error) };
        self.task = Some(chosen);
        match self.ask().await {
            Ok(_) => {
                self.stage = Stage::Broken;
                Ok(())
            }
            Err(answer) => {
                self.task = None;
                let is_missing = answer.peer_kind() == Some(PeerErrorKind::TaskNotFound);
                let is_second = std::mem::replace(&mut self.has_sent_again, true);
                if is_missing && !is_second { Ok(()) } else { Err(error) }
            }
        }
    }

    async fn read_stream(&mut self) -> Result<(), RemoteError> {
        // A connection without any byte is broken, which the stream itself notices; one with comments alone may be forgotten.
        let silence = self.remote.settings().stream_silence / 2;
        let Stage::Streaming { stream, .. } = &mut self.stage else { return Ok(()) };
        let next = match tokio::time::timeout(silence, stream.next()).await {
            Ok(next) => next,
            Err(_) if self.task.is_some() => {
                self.check_silent_task().await;
                return Ok(());
            }
            Err(_) => return Ok(()),
        };
        let failure = match next {
            Ok(Some(frame)) => {
                self.note_success();
                self.take_frame(frame).await;
                if self.has_news && self.last_asked.elapsed() >= BETWEEN_LOOKS {
                    self.catch_up().await;
                }
                return Ok(());
            }
            Ok(None) => RemoteError::StreamEnded,
            Err(error) => error,
        };
        let Stage::Streaming { began, is_first_frame, .. } = &self.stage else { return Ok(()) };
        let is_refused_subscription =
            *began == Began::BySubscription && *is_first_frame && matches!(failure, RemoteError::Peer { .. });
        self.is_gapless = false;
        match failure {
            error @ RemoteError::EventTooLarge(_) => return Err(error),
            // Servers that cannot be subscribed to may say so in the stream.
            _ if is_refused_subscription => self.stage = Stage::Polling,
            _ if self.task.is_none() => return Err(RemoteError::StreamEnded),
            _ => {
                self.stage = Stage::Broken;
                let wait = self.failures.next(None);
                sleep(wait).await;
            }
        }
        Ok(())
    }

    /// Looks at the task while its stream says nothing. Some servers leave a stream open when its task has ended.
    async fn check_silent_task(&mut self) {
        if let Ok(task) = self.ask().await
            && ends_turn(task.status.state)
        {
            self.take_snapshot(&task);
            self.end();
        }
    }

    async fn take_frame(&mut self, frame: Frame) {
        let Frame { id, received } = frame;
        let Stage::Streaming { is_first_frame, began, .. } = &mut self.stage else { return };
        let is_first = std::mem::replace(is_first_frame, false);
        let began = *began;
        let is_snapshot = matches!(received.response, PeerResponse::Task(_));
        if !is_snapshot && !self.follows(id.as_deref(), is_first, began) {
            return;
        }
        if is_first && began == Began::BySubscription && is_snapshot {
            // The whole task, and all that follows it.
            self.is_gapless = true;
        }
        self.cursor = id.or(self.cursor.take());
        self.take(received);
        if self.is_over() {
            self.finish().await;
        }
    }

    /// Whether a frame with this id is to be taken. Numbers that jump show that something is missing; those that were
    /// seen before are passed over.
    fn follows(&mut self, id: Option<&str>, is_first: bool, began: Began) -> bool {
        let number = |id: Option<&str>| id.and_then(|id| id.parse::<u64>().ok());
        match (number(self.cursor.as_deref()), number(id)) {
            (Some(last), Some(this)) if this <= last => return false,
            // The stream has resumed exactly where it broke.
            (Some(last), Some(this)) if this == last + 1 && is_first => self.is_gapless = true,
            (Some(last), Some(this)) if this == last + 1 => {}
            (Some(_), Some(_)) => self.is_gapless = false,
            _ if is_first && began == Began::BySubscription => self.is_gapless = false,
            _ => {}
        }
        true
    }

    fn take_answer(&mut self, received: Received) {
        self.take(received);
        if self.is_over() {
            self.end();
        }
    }

    fn take(&mut self, received: Received) {
        if let Some(violation) = &received.violation {
            tracing::debug!(%violation, "a remote agent does not follow the specification");
        }
        let mut updates = Vec::new();
        match received.response {
            PeerResponse::Message(message) => {
                self.steps.push_back(Step::Replied(message));
                self.stage = Stage::Over;
            }
            PeerResponse::Task(task) => {
                let is_old = self.awaits_change && task.status.state.is_waiting();
                if self.adopt(&task.id, &task.context) && !is_old {
                    self.mirror.take_snapshot(&task, &mut updates);
                }
            }
            PeerResponse::Event { task, context, event } => {
                if self.adopt(&task, &context) {
                    self.take_event(*event, &mut updates);
                }
            }
            PeerResponse::FinalEvent { task, event } => {
                if self.adopt(&task.id, &task.context) {
                    let whole = Task { status: self.mirror.status().cloned().unwrap_or(task.status.clone()), ..*task };
                    let mut artifacts = Vec::new();
                    self.mirror.take_snapshot(&whole, &mut artifacts);
                    updates.extend(artifacts.into_iter().filter(|update| matches!(update, Update::Artifact { .. })));
                    self.take_event(*event, &mut updates);
                }
            }
            PeerResponse::Page { .. }
            | PeerResponse::PushConfig(_)
            | PeerResponse::PushConfigs(_)
            | PeerResponse::Card(_)
            | PeerResponse::Empty => {}
        }
        self.steps.extend(updates.into_iter().map(Step::Update));
    }

    fn take_event(&mut self, event: Event, updates: &mut Vec<Update>) {
        match event {
            Event::Status(change) => {
                self.awaits_change = false;
                self.mirror.take_status(change, updates);
            }
            Event::Artifact(chunk) if self.is_gapless => self.mirror.take_chunk(chunk, updates),
            // Something before it may be missing; the whole task is asked for.
            Event::Artifact(_) => self.has_news = true,
            Event::Created(_) => {}
        }
    }

    /// Whether this is the task that is followed. The first one that is named is.
    fn adopt(&mut self, task: &TaskId, context: &ContextId) -> bool {
        let is_new = match &self.task {
            Some(known) if known == task => self.context.as_ref() != Some(context) && self.context.is_none(),
            // A message to a task may be answered with another one: its server goes on there.
            Some(_) if self.awaits_change => true,
            Some(_) => return false,
            None => true,
        };
        if is_new {
            self.task = Some(task.clone());
            self.context = Some(context.clone());
            if let Stage::Streaming { stream, .. } = &mut self.stage {
                stream.set_task(task.clone());
            }
            self.steps.push_back(Step::Known { task: task.clone(), context: context.clone() });
        }
        true
    }

    fn is_over(&self) -> bool {
        self.mirror.status().is_some_and(|status| ends_turn(status.state))
    }

    /// The turn is over by what a stream said. Reads what still comes, and asks for the whole task if something may be missing.
    async fn finish(&mut self) {
        let is_numbered = self.cursor.as_deref().is_some_and(|cursor| cursor.parse::<u64>().is_ok());
        if self.is_gapless && (is_numbered || !self.mirror.may_lack_something()) {
            self.end();
            return;
        }
        self.read_rest().await;
        if let Ok(task) = self.ask().await {
            self.take_snapshot(&task);
        }
        self.end();
    }

    fn take_snapshot(&mut self, task: &Task) {
        self.adopt(&task.id, &task.context);
        let mut updates = Vec::new();
        self.mirror.take_snapshot(task, &mut updates);
        self.steps.extend(updates.into_iter().map(Step::Update));
    }

    /// Frames that were sent after the last status, by servers that do not keep their order.
    async fn read_rest(&mut self) {
        if !self.is_gapless {
            return;
        }
        let Stage::Streaming { stream, .. } = &mut self.stage else { return };
        let deadline = Instant::now() + AFTER_THE_END;
        let mut updates = Vec::new();
        while let Ok(Ok(Some(frame))) = tokio::time::timeout_at(deadline, stream.next()).await {
            if let PeerResponse::Event { task, event, .. } = frame.received.response
                && self.task.as_ref() == Some(&task)
                && let Event::Artifact(chunk) = *event
            {
                self.mirror.take_chunk(chunk, &mut updates);
            }
        }
        self.steps.extend(updates.into_iter().map(Step::Update));
    }

    fn end(&mut self) {
        if let Some(status) = self.mirror.status().cloned() {
            let last_words = self.mirror.last_words().map(<[Part]>::to_vec).filter(|_| status.message.is_none());
            self.steps.push_back(Step::Over { status, last_words });
        }
        self.stage = Stage::Over;
    }

    /// The connection is lost: subscribes again, or goes over to asking.
    async fn reattach(&mut self) -> Result<(), RemoteError> {
        let Some(task) = self.task.clone() else { return Err(RemoteError::StreamEnded) };
        let streams = self.remote.discovered().await.is_ok_and(|known| known.streams());
        if !self.can_subscribe || !streams {
            self.stage = Stage::Polling;
            return Ok(());
        }
        let call = Call::Subscribe(Subscribe {
            agent: None,
            task: task.clone(),
            after: None,
            on_finished: OnFinishedSubscribe::ShowEnd,
        });
        match self.remote.stream(&call, self.cursor.as_deref()).await {
            Ok(stream) => {
                self.note_success();
                let mut stream = Box::new(stream);
                stream.set_task(task);
                // Most servers tell how the task stands first. One that does not is asked.
                self.stage = Stage::Streaming { stream, is_first_frame: true, began: Began::BySubscription };
                if self.cursor.is_none() {
                    self.catch_up().await;
                }
                Ok(())
            }
            Err(error) => match error.peer_kind() {
                // A finished task cannot be subscribed to, and some servers know no subscriptions at all. Whether the task
                // exists is for a get to say.
                Some(
                    PeerErrorKind::TaskNotFound
                    | PeerErrorKind::Unsupported
                    | PeerErrorKind::MethodNotFound
                    | PeerErrorKind::Invalid
                    | PeerErrorKind::InvalidRequest
                    | PeerErrorKind::Internal
                    | PeerErrorKind::Malformed,
                ) => {
                    self.stage = Stage::Polling;
                    Ok(())
                }
                _ => self.wait_after(error).await,
            },
        }
    }

    /// Asks for the whole task while a subscription waits to be read: what happened in between may be in neither of them.
    async fn catch_up(&mut self) {
        (self.has_news, self.last_asked) = (false, Instant::now());
        if let Ok(task) = self.ask().await {
            self.take_snapshot(&task);
            // Its events may be in the snapshot already.
            self.is_gapless = false;
            if self.is_over() {
                self.end();
            }
        }
    }

    async fn poll(&mut self) -> Result<(), RemoteError> {
        match self.ask().await {
            Ok(task) => {
                self.note_success();
                self.take_snapshot(&task);
                if self.steps.iter().any(|step| matches!(step, Step::Update(Update::Artifact { .. }))) {
                    self.polls.reset();
                }
                if self.is_over() {
                    self.end();
                } else if self.steps.is_empty() {
                    self.pause().await;
                }
                Ok(())
            }
            Err(error) if error.peer_kind() == Some(PeerErrorKind::TaskNotFound) => Err(error),
            Err(error) => self.wait_after(error).await,
        }
    }

    async fn pause(&mut self) {
        let wait = self.polls.next(None);
        sleep(wait).await;
    }

    async fn ask(&self) -> Result<Task, RemoteError> {
        let Some(task) = self.task.clone() else { return Err(RemoteError::StreamEnded) };
        let call = Call::Get(Get { agent: None, task, history: None, earlier: Wanted::No });
        match self.remote.call(&call).await?.response {
            PeerResponse::Task(task) => Ok(*task),
            _ => Err(RemoteError::StreamEnded),
        }
    }

    fn note_success(&mut self) {
        self.failing_since = None;
        self.failures.reset();
    }

    /// Waits before the next try, or gives up.
    async fn wait_after(&mut self, error: RemoteError) -> Result<(), RemoteError> {
        let limit = self.remote.settings().unreachable_timeout;
        let since = *self.failing_since.get_or_insert_with(Instant::now);
        if !error.is_transient() {
            return Err(error);
        }
        if since.elapsed() >= limit {
            return Err(RemoteError::Unreachable(limit, error.to_string()));
        }
        let wait = self.failures.next(error.retry_after());
        self.steps.push_back(Step::Trouble(error.to_string()));
        sleep(wait).await;
        Ok(())
    }
}

/// The server does not stream, whatever its card says. Nothing was done.
fn is_refusal_to_stream(error: &RemoteError) -> bool {
    matches!(error.peer_kind(), Some(PeerErrorKind::Unsupported | PeerErrorKind::MethodNotFound))
}
