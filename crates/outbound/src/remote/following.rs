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
    Call, ContextId, Delivery, Event, Get, Message, OnFinishedSubscribe, Part, Send, Status, Subscribe, Task, TaskId,
    Wanted,
};
use sabir_wire::{PeerErrorKind, PeerResponse, ProtocolVersion, Received};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::call::{Remote, chosen_id};
use super::error::RemoteError;
use super::evidence::{MessageIds, OpenQuestion, has_message};
use super::mirror::{Mirror, Update, ends_turn};
use super::stream::{Frame, RemoteStream};
use crate::back_off::BackOff;

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
    pieces: Pieces,
    /// A piece of an artifact was not believed, or is missing, so the whole task has news.
    has_news: bool,
    last_asked: Instant,
    can_subscribe: bool,
    /// How often nobody knew whether the message had arrived.
    lost_sends: u32,
    /// The message was for a task that waits, and nothing shows yet that the task has it: servers may still say that it
    /// waits.
    answer_unconfirmed: bool,
    /// Subscriptions that ended without a word, one after the other.
    empty_streams: u32,
    /// The task is polled only to learn whether it has the message.
    polls_for_answer: bool,
    /// What the task asked before that message.
    question: Option<OpenQuestion>,
    /// When the message was taken, as far as that is known.
    sent: Option<Instant>,
    /// The message could not be sent, and nothing of it has left; from then on it is tried again.
    retry_at: Option<Instant>,
    failures: BackOff,
    polls: BackOff,
    failing_since: Option<Instant>,
}

/// Whether pieces of artifacts are believed. They are as long as the mirror is the task as of the last event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pieces {
    Believed,
    /// Nothing was missed until the stream broke. One that resumes just behind the last event is believed again.
    BelievedUntilBreak,
    /// Something may be missing, or be there already. Only the whole task says what.
    Doubted,
}

/// What to do with a message of which nobody can say whether it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnUnknown {
    /// Its outcome is unknown, and that is the error.
    GiveUp,
    Repeat,
}

enum Stage {
    /// An earlier run may have sent the message.
    LookFor(Box<Send>, OnUnknown),
    Start(Box<Send>),
    Streaming {
        stream: Box<RemoteStream>,
        is_first_frame: bool,
        began: Began,
    },
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

/// So often at most a message is looked for. One that nobody survives is not sent for ever.
const LOST_SENDS: u32 = 2;

/// After so many subscriptions that ended without a word, the task is polled.
const EMPTY_STREAMS: u32 = 3;

/// A question that is still shown after this time was not answered by the message.
const OLD_QUESTION: Duration = Duration::from_secs(5);

/// For how long the whole task is waited for when its stream has told everything up to the last status.
const LAST_LOOK: Duration = Duration::from_secs(5);

/// For how long frames that follow the last status are waited for.
const AFTER_THE_END: Duration = Duration::from_millis(200);

impl Following {
    /// Sends a message, and follows what becomes of it. `mirror` knows what was passed on of the task before.
    pub fn send(remote: Remote, send: Send, mirror: Mirror) -> Self {
        let task = send.message.task.clone();
        let context = send.message.context.clone();
        let answer_unconfirmed = task.is_some();
        Self { task, context, answer_unconfirmed, ..Self::new(remote, Stage::Start(Box::new(send)), mirror) }
    }

    /// The same for a message that an earlier run may have sent. The server is asked for its task: for the one that the
    /// message is for, or where the id of a new one is ours.
    pub fn perhaps_sent(remote: Remote, send: Send, mirror: Mirror, on_unknown: OnUnknown) -> Self {
        let task = send.message.task.clone();
        let context = send.message.context.clone();
        Self { task, context, ..Self::new(remote, Stage::LookFor(Box::new(send), on_unknown), mirror) }
    }

    /// The message answers this question of its task.
    pub fn answering(self, question: OpenQuestion) -> Self {
        Self { question: Some(question), ..self }
    }

    /// Follows a task that the remote agent has.
    pub fn task(remote: Remote, task: TaskId, mirror: Mirror) -> Self {
        Self { task: Some(task), pieces: Pieces::Doubted, ..Self::new(remote, Stage::Broken, mirror) }
    }

    /// With the context that the task is known to be in. Not every answer names it.
    pub fn in_context(self, context: ContextId) -> Self {
        Self { context: Some(context), ..self }
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
            pieces: Pieces::Believed,
            has_news: false,
            last_asked: Instant::now(),
            can_subscribe: true,
            lost_sends: 0,
            answer_unconfirmed: false,
            empty_streams: 0,
            polls_for_answer: false,
            question: None,
            sent: None,
            retry_at: None,
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

    /// The task has ended like this, as its server says elsewhere. `next` tells what is new of it, and then nothing more.
    pub fn end_with(&mut self, task: &Task) {
        self.answer_unconfirmed = false;
        self.take_snapshot(task);
        self.end();
    }

    /// Whether the message is on its way, or about to be. What becomes of it is lost with the future of `next`.
    pub fn is_sending(&self) -> bool {
        matches!(self.stage, Stage::LookFor(..) | Stage::Start(_))
    }

    /// Nothing of the message has left: `next` waits until then, and tries to send it again.
    pub fn retry_at(&self) -> Option<Instant> {
        self.retry_at
    }

    /// What happens next. An error ends it: the message was not taken, or nothing more can be learned of the task. Dropping the
    /// future loses nothing, unless the message `is_sending`: then it may leave a message behind that nobody follows.
    pub async fn next(&mut self) -> Result<Option<Step>, RemoteError> {
        let largest = self.remote.settings().largest_task;
        loop {
            if self.mirror.weight() > largest {
                return Err(RemoteError::TaskTooLarge(largest));
            }
            if let Some(step) = self.steps.pop_front() {
                return Ok(Some(step));
            }
            match &self.stage {
                Stage::LookFor(..) => self.look_for_sent().await?,
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
        if let Some(time) = self.retry_at {
            sleep_until(time).await;
            self.retry_at = None;
        }
        match self.try_to_start().await {
            Err(error) if error.did_nothing() && error.is_transient() => {
                let wait = self.next_wait(error)?;
                self.retry_at = Some(Instant::now() + wait);
                Ok(())
            }
            Ok(()) => {
                self.sent.get_or_insert_with(Instant::now);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    async fn try_to_start(&mut self) -> Result<(), RemoteError> {
        let known = self.remote.discovered().await?;
        let Stage::Start(send) = &self.stage else { return Ok(()) };
        let mut send = send.clone();
        if known.streams() {
            send.delivery = Delivery::Stream;
            let call = Call::Send(send);
            let opened = self.remote.stream(&call, None).await;
            let Call::Send(again) = call else { return Ok(()) };
            send = again;
            match opened {
                Ok(stream) => {
                    self.stage =
                        Stage::Streaming { stream: Box::new(stream), is_first_frame: true, began: Began::BySend };
                    return Ok(());
                }
                // The card promised too much.
                Err(error) if is_refusal_to_stream(&error) => self.can_subscribe = false,
                Err(error) => return self.find_out(send, error).await,
            }
        } else {
            self.can_subscribe = false;
        }
        send.delivery = Delivery::Immediately;
        let call = Call::Send(send);
        let answered = self.remote.call(&call).await;
        let Call::Send(send) = call else { return Ok(()) };
        let received = match answered {
            Ok(received) => received,
            Err(error) => return self.find_out(send, error).await,
        };
        self.stage = Stage::Polling;
        self.take_answer(received);
        // The answer says how the task stands now, so there is no hurry to ask again.
        if !self.is_over() {
            self.pause().await;
        }
        Ok(())
    }

    /// An earlier run may have sent the message.
    async fn look_for_sent(&mut self) -> Result<(), RemoteError> {
        let Stage::LookFor(send, on_unknown) = &self.stage else { return Ok(()) };
        let (send, on_unknown) = (send.clone(), *on_unknown);
        let was_taken = match &send.message.task {
            Some(_) => self.look_for_answer(&send).await,
            None => self.look_for_new_task(&send).await,
        };
        let was_taken = match was_taken {
            Ok(was_taken) => was_taken,
            Err(error) if error.is_transient() => return self.wait_after(error).await,
            Err(error) => return Err(error),
        };
        match was_taken {
            Some(true) => (self.stage, self.pieces) = (Stage::Broken, Pieces::Doubted),
            None if on_unknown == OnUnknown::GiveUp && !self.remote.repeats_are_safe().await => {
                return Err(RemoteError::OutcomeUnknown("this server was restarted after it was sent".to_owned()));
            }
            Some(false) | None => {
                self.answer_unconfirmed = send.message.task.is_some();
                self.stage = Stage::Start(send);
            }
        }
        Ok(())
    }

    /// Whether the task that the message answers has it. `None`: nobody can say.
    async fn look_for_answer(&self, send: &Send) -> Result<Option<bool>, RemoteError> {
        let ids = match self.remote.discovered().await?.endpoint.protocol.version() {
            ProtocolVersion::V0_1 => MessageIds::None,
            _ => MessageIds::Kept,
        };
        let task = self.ask().await?;
        let (Some(message), Some(question)) = (&send.message.id, &self.question) else { return Ok(None) };
        Ok(has_message(&task, message, question, ids))
    }

    /// Whether the task is there that the message makes, if the id of that task is ours: in 0.1. Which version a server speaks
    /// need not be known for that, since a get is the same in all that are not 1.0.
    async fn look_for_new_task(&mut self, send: &Send) -> Result<Option<bool>, RemoteError> {
        self.task = Some(chosen_id(send));
        let error = match self.ask().await {
            Ok(_) => return Ok(Some(true)),
            Err(error) => error,
        };
        self.task = None;
        if error.is_transient() {
            return Err(error);
        }
        Ok(self.remote.chosen_task(send).await.map(|_| false))
    }

    /// Whether a message has arrived is not known. Where the id of its task is ours, the server is asked for it, and where the
    /// server recognises the message, it is sent again.
    async fn find_out(&mut self, send: Box<Send>, error: RemoteError) -> Result<(), RemoteError> {
        let RemoteError::OutcomeUnknown(_) = error else { return Err(error) };
        if self.task.is_some() {
            // The message was for a task that exists: that says how it stands, and asks again if it got no answer.
            (self.stage, self.pieces) = (Stage::Polling, Pieces::Doubted);
            self.polls_for_answer = true;
            return Ok(());
        }
        self.lost_sends += 1;
        let can_find_out = self.remote.chosen_task(&send).await.is_some() || self.remote.repeats_are_safe().await;
        if !can_find_out || self.lost_sends > LOST_SENDS {
            return Err(error);
        }
        self.stage = Stage::LookFor(send, OnUnknown::GiveUp);
        let wait = self.failures.next(None);
        sleep(wait).await;
        Ok(())
    }

    async fn read_stream(&mut self) -> Result<(), RemoteError> {
        // A connection without any byte is broken, which the stream itself notices; one with comments alone may be forgotten.
        let silence = self.remote.settings().stream_silence / 2;
        let Stage::Streaming { stream, .. } = &mut self.stage else { return Ok(()) };
        let next = match timeout(silence, stream.next()).await {
            Ok(next) => next,
            Err(_) if stream.is_in_frame() => return Ok(()),
            Err(_) if self.task.is_some() => return self.check_silent_task().await,
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
        let is_empty = *began == Began::BySubscription && *is_first_frame;
        self.empty_streams = if is_empty { self.empty_streams + 1 } else { 0 };
        self.break_stream();
        match failure {
            error @ RemoteError::EventTooLarge(_) => return Err(error),
            // Servers that cannot be subscribed to may say so in the stream, or end it.
            _ if is_refused_subscription || self.empty_streams >= EMPTY_STREAMS => self.stage = Stage::Polling,
            _ if self.task.is_none() => return Err(RemoteError::StreamEnded),
            _ => {
                let wait = self.failures.next(None);
                sleep(wait).await;
            }
        }
        Ok(())
    }

    /// Looks at the task while its stream says nothing. Some servers leave a stream open when its task has ended, or when they
    /// have forgotten the stream.
    async fn check_silent_task(&mut self) -> Result<(), RemoteError> {
        match self.ask().await {
            Ok(task) => {
                self.note_success();
                self.take_snapshot(&task);
                if self.is_over() {
                    self.end();
                } else if !self.steps.is_empty() {
                    // The stream does not tell everything. Another one begins with the whole task.
                    (self.stage, self.cursor) = (Stage::Broken, None);
                }
                Ok(())
            }
            Err(error) => {
                self.break_stream();
                self.wait_after(error).await
            }
        }
    }

    /// The stream is of no use any more.
    fn break_stream(&mut self) {
        self.stage = Stage::Broken;
        if self.pieces == Pieces::Believed {
            self.pieces = Pieces::BelievedUntilBreak;
        }
    }

    async fn take_frame(&mut self, frame: Frame) {
        let Frame { id, received } = frame;
        let Stage::Streaming { is_first_frame, began, .. } = &mut self.stage else { return };
        let is_first = std::mem::replace(is_first_frame, false);
        let began = *began;
        let is_snapshot = matches!(received.response, PeerResponse::Task(_));
        if !is_snapshot && !self.follows(id.as_deref()) {
            return;
        }
        let whole = match &received.response {
            PeerResponse::Task(task) if is_first && began == Began::BySubscription => Some(task.clone()),
            _ => None,
        };
        // Some subscriptions, and all of 0.1, begin with the status, which has the number of the last event, whatever that
        // was.
        let is_summary = is_first && began == Began::BySubscription && is_status(&received.response);
        self.cursor = id.or(self.cursor.take());
        self.take(received);
        if is_summary {
            (self.pieces, self.has_news) = (Pieces::Doubted, true);
        }
        if let Some(whole) = whole {
            // The whole task, and all that follows it. It may be older than what was asked for meanwhile.
            self.pieces = if self.mirror.has_just(&whole.artifacts) { Pieces::Believed } else { Pieces::Doubted };
        }
        if self.is_over() {
            self.finish().await;
        }
    }

    /// Whether a frame with this id is to be taken. Numbers that jump show that something is missing; those that were
    /// seen before are passed over.
    fn follows(&mut self, id: Option<&str>) -> bool {
        let number = |id: Option<&str>| id.and_then(|id| id.parse::<u64>().ok());
        match (number(self.cursor.as_deref()), number(id)) {
            (Some(last), Some(this)) if this <= last => return false,
            (Some(last), Some(this)) if this == last + 1 && self.pieces == Pieces::BelievedUntilBreak => {
                self.pieces = Pieces::Believed;
            }
            (Some(last), Some(this)) if this == last + 1 => {}
            (Some(_), Some(_)) => (self.pieces, self.has_news) = (Pieces::Doubted, true),
            // Without numbers, nobody knows where the stream goes on.
            _ if self.pieces == Pieces::BelievedUntilBreak => self.pieces = Pieces::Doubted,
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
                self.context = message.context.clone().or(self.context.take());
                self.steps.push_back(Step::Replied(message));
                self.stage = Stage::Over;
            }
            PeerResponse::Task(task) => {
                if self.adopt(&task.id, &task.context) && !self.shows_old_question(&task.status) {
                    self.answer_unconfirmed = false;
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
                self.answer_unconfirmed = false;
                self.mirror.take_status(change, updates);
            }
            Event::Artifact(chunk) if self.pieces == Pieces::Believed => self.mirror.take_chunk(chunk, updates),
            // Something before it may be missing; the whole task is asked for.
            Event::Artifact(_) => self.has_news = true,
            Event::Created(_) => {}
        }
    }

    /// Whether this is the task that is followed. The first one that is named is.
    fn adopt(&mut self, task: &TaskId, context: &ContextId) -> bool {
        let is_new = match &self.task {
            Some(known) if known == task => self.context.is_none(),
            // A message to a task may be answered with another one: its server goes on there.
            Some(_) if self.answer_unconfirmed => true,
            Some(_) => return false,
            None => true,
        };
        if is_new {
            // Some servers, and all of 0.1, do not name the context in every answer. Then it is the one that was sent; a
            // context that has the name of its task was named by nobody.
            let is_named = context.as_str() != task.as_str();
            let context = self.context.take().filter(|_| !is_named).unwrap_or_else(|| context.clone());
            self.task = Some(task.clone());
            self.context = Some(context.clone());
            if let Stage::Streaming { stream, .. } = &mut self.stage {
                stream.set_task(task.clone());
            }
            self.steps.push_back(Step::Known { task: task.clone(), context });
        }
        true
    }

    /// Whether a status is from before the message: some servers still show the question for a while after its answer.
    fn shows_old_question(&self, status: &Status) -> bool {
        let asked = self.question.as_ref().and_then(|question| question.asked);
        self.answer_unconfirmed
            && status.state.is_waiting()
            && asked.is_none_or(|asked| status.time == asked)
            && self.sent.is_none_or(|sent| sent.elapsed() < OLD_QUESTION)
    }

    fn is_over(&self) -> bool {
        self.mirror.status().is_some_and(|status| ends_turn(status.state))
    }

    /// The turn is over by what a stream said. Reads what still comes, and asks for the whole task if something may be missing.
    async fn finish(&mut self) {
        let is_numbered = self.cursor.as_deref().is_some_and(|cursor| cursor.parse::<u64>().is_ok());
        if self.pieces == Pieces::Believed && (is_numbered || !self.mirror.may_be_incomplete()) {
            self.end();
            return;
        }
        self.read_rest().await;
        // All that the server has sent was received: a look that fails takes nothing away.
        let is_all_received = self.pieces == Pieces::Believed;
        let asked = match is_all_received {
            true => timeout(LAST_LOOK, self.ask()).await.unwrap_or(Err(RemoteError::StreamEnded)),
            false => self.ask().await,
        };
        match asked {
            Ok(task) => {
                self.take_snapshot(&task);
                self.end();
            }
            // What is missing is there, so it is waited for.
            Err(error) if error.is_transient() && !is_all_received => self.stage = Stage::Polling,
            Err(_) => self.end(),
        }
    }

    /// Takes the task as it was asked for. Events that are still on their way may be in it already.
    fn take_snapshot(&mut self, task: &Task) {
        if !self.adopt(&task.id, &task.context) || self.shows_old_question(&task.status) {
            return;
        }
        self.answer_unconfirmed = false;
        let mut updates = Vec::new();
        self.mirror.take_snapshot(task, &mut updates);
        if updates.iter().any(|update| matches!(update, Update::Artifact { .. })) {
            self.pieces = Pieces::Doubted;
        }
        self.steps.extend(updates.into_iter().map(Step::Update));
    }

    /// Frames that were sent after the last status, by servers that do not keep their order.
    async fn read_rest(&mut self) {
        if self.pieces != Pieces::Believed {
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
        // A server that numbers its events keeps them, so nothing is stored for a subscriber.
        let is_numbered = self.cursor.is_some();
        let streams = match self.remote.discovered().await {
            Ok(known) => known.streams() && (is_numbered || known.subscriptions_are_harmless()),
            Err(error) if error.is_transient() => return self.wait_after(error).await,
            Err(_) => false,
        };
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
                // Whether it works is shown by its first frame.
                self.failing_since = None;
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
        match self.ask().await {
            Ok(task) => {
                self.take_snapshot(&task);
                if self.is_over() {
                    self.end();
                }
            }
            // Some servers begin a stream for a task that they do not have.
            Err(error) if error.peer_kind() == Some(PeerErrorKind::TaskNotFound) => self.stage = Stage::Polling,
            Err(_) => {}
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
                } else if !self.answer_unconfirmed && std::mem::take(&mut self.polls_for_answer) {
                    self.stage = Stage::Broken;
                } else if self.steps.is_empty() {
                    self.pause().await;
                }
                Ok(())
            }
            Err(error) => {
                let is_gone = error.peer_kind() == Some(PeerErrorKind::TaskNotFound);
                let waited = if is_gone { Err(error) } else { self.wait_after(error).await };
                match waited {
                    // How it ended is known, and more cannot be learned.
                    Err(_) if self.is_over() => {
                        self.end();
                        Ok(())
                    }
                    waited => waited,
                }
            }
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
        let wait = self.next_wait(error)?;
        sleep(wait).await;
        Ok(())
    }

    /// How long to wait before the next try. An error: it has failed for too long, or will not work later either.
    fn next_wait(&mut self, error: RemoteError) -> Result<Duration, RemoteError> {
        if !error.is_transient() {
            return Err(error);
        }
        let limit = self.remote.settings().unreachable_timeout;
        let since = *self.failing_since.get_or_insert_with(Instant::now);
        let left = limit.saturating_sub(since.elapsed());
        if left.is_zero() {
            return Err(RemoteError::Unreachable(limit, error.to_string()));
        }
        if error.retry_after().is_some_and(|asked| asked > left) {
            return Err(error);
        }
        self.steps.push_back(Step::Trouble(error.to_string()));
        Ok(self.failures.next(error.retry_after()).min(left))
    }
}

fn is_status(response: &PeerResponse) -> bool {
    matches!(response, PeerResponse::Event { event, .. } if matches!(**event, Event::Status(_)))
}

/// The server does not stream, whatever its card says. Nothing was done.
fn is_refusal_to_stream(error: &RemoteError) -> bool {
    matches!(error.peer_kind(), Some(PeerErrorKind::Unsupported | PeerErrorKind::MethodNotFound))
}
