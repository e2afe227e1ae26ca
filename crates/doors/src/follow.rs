//! Waiting for a task: until it is settled, until it asks something, or for so long.
//!
//! A door waits with its caller, and holds nothing else. Whoever stops waiting leaves the task as it is.

use std::sync::Arc;
use std::time::Duration;

use sabir_engine::{Answer, Batch, Engine, LogEntry, Subscription};
use sabir_model::{
    AgentId, Call, Caller, Delivery, Direct, Error, Event, Get, OnFinishedSubscribe, Part, QuestionId, Send, Subscribe,
    Task, TaskId, Wanted,
};
use tokio::time::{Instant, sleep, timeout_at};

use crate::words::status_text;

/// How often a task is read whose agent offers no streams.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// The longest words of one step.
const LONGEST_WORDS: usize = 200;

/// A task that somebody waits for.
pub(crate) struct Following {
    engine: Engine,
    caller: Caller,
    /// `None`: its agent offers no streams.
    subscription: Option<Subscription>,
    task: Arc<Task>,
    /// A question that is no reason to stop waiting: it is answered, though the task may still show it, or somebody is about to.
    answered: Option<QuestionId>,
    /// The message repeats an earlier send to the task, so it answers nothing.
    is_repeated: bool,
    server_stops: bool,
    /// Its last stream ended before the task was at rest.
    stream_ended: bool,
}

/// Why the wait is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitEnd {
    Settled,
    /// It waits for an answer.
    Asks,
    TimeIsOver,
}

/// Something that happened to a task that somebody waits for.
pub(crate) enum Step {
    /// The task as it was when its stream began.
    Snapshot,
    Events(Vec<Arc<LogEntry>>),
    /// The task was read once more: its agent offers no streams, or a further stream begins behind it.
    ReadAgain,
    End(WaitEnd),
}

impl Following {
    /// Sends a message, and follows the task that it begins or continues.
    pub(crate) async fn send(engine: &Engine, caller: &Caller, send: Send) -> Result<Self, Error> {
        let answered = match &send.message.task {
            Some(task) => read(engine, caller, send.agent.clone(), task.clone()).await?.open_question(),
            None => None,
        };
        let continues = send.message.task.is_some();
        let following = Self::send_message(engine, caller, send).await?;
        // Only the stream of a repeated send begins with the first event of a task that was there before.
        let begins_anew = |subscription: &Subscription| subscription.first_number() <= 1;
        let is_repeated = continues && following.subscription.as_ref().is_some_and(begins_anew);
        Ok(Self { answered: answered.filter(|_| !is_repeated), is_repeated, ..following })
    }

    async fn send_message(engine: &Engine, caller: &Caller, mut send: Send) -> Result<Self, Error> {
        send.direct = Direct::StoredTask;
        send.delivery = Delivery::Stream;
        let refused = match engine.call(caller, Call::Send(Box::new(send.clone()))).await {
            Ok(Answer::Stream(subscription)) => return Self::watching(engine, caller, subscription).await,
            Ok(answer) => return Self::without_stream(engine, caller, answer).await,
            Err(error) => error,
        };
        // An agent without streams refuses them before anything is done, and so does a limit of streams.
        if !matches!(refused, Error::Unsupported(_) | Error::LimitReached { .. }) {
            return Err(refused);
        }
        send.delivery = Delivery::Immediately;
        let answer = engine.call(caller, Call::Send(Box::new(send))).await?;
        Self::without_stream(engine, caller, answer).await
    }

    /// Follows a task that exists.
    pub(crate) async fn task(
        engine: &Engine,
        caller: &Caller,
        agent: Option<AgentId>,
        task: TaskId,
    ) -> Result<Self, Error> {
        let on_finished = OnFinishedSubscribe::ShowEnd;
        let subscribe = Subscribe { agent: agent.clone(), task: task.clone(), after: None, on_finished };
        match engine.call(caller, Call::Subscribe(subscribe)).await {
            Ok(Answer::Stream(subscription)) => Self::watching(engine, caller, subscription).await,
            Ok(_) => Err(Error::internal("a subscription is answered with something else".to_owned())),
            Err(Error::Unsupported(_) | Error::LimitReached { .. }) => {
                let task = read(engine, caller, agent, task).await?;
                Self::without_stream(engine, caller, Answer::Task(task)).await
            }
            Err(error) => Err(error),
        }
    }

    async fn watching(engine: &Engine, caller: &Caller, subscription: Subscription) -> Result<Self, Error> {
        let (id, agent) = (subscription.task().clone(), subscription.agent().clone());
        let task = match subscription.whole() {
            Some(task) => task,
            None => read(engine, caller, Some(agent), id).await?,
        };
        Ok(Self {
            engine: engine.clone(),
            caller: caller.clone(),
            subscription: Some(subscription),
            task,
            answered: None,
            is_repeated: false,
            server_stops: false,
            stream_ended: false,
        })
    }

    async fn without_stream(engine: &Engine, caller: &Caller, answer: Answer) -> Result<Self, Error> {
        let Answer::Task(task) = answer else {
            return Err(Error::internal("a message is answered with something else than its task".to_owned()));
        };
        Ok(Self {
            engine: engine.clone(),
            caller: caller.clone(),
            subscription: None,
            task,
            answered: None,
            is_repeated: false,
            server_stops: false,
            stream_ended: false,
        })
    }

    /// The task as it was last seen.
    pub(crate) fn as_seen(&self) -> &Arc<Task> {
        &self.task
    }

    /// Its message had been sent before, and nothing was done now.
    pub(crate) fn is_repeated(&self) -> bool {
        self.is_repeated
    }

    /// This server stops: there is nothing to wait for.
    pub(crate) fn server_stops(&self) -> bool {
        self.server_stops
    }

    /// Somebody has been asked this question, so the wait goes on until it is answered.
    pub(crate) fn waits_for_answer(&mut self, question: QuestionId) {
        self.answered = Some(question);
    }

    /// Waits, and tells `show` what happens meanwhile.
    ///
    /// # Errors
    /// The task cannot be read any more.
    pub(crate) async fn wait(&mut self, until: Instant, mut show: impl FnMut(&str)) -> Result<WaitEnd, Error> {
        loop {
            match self.step(Some(until)).await? {
                Step::End(end) => return Ok(end),
                Step::Snapshot => {
                    let words = status_text(&self.task);
                    if !words.is_empty() && !self.task.status.state.is_terminal() {
                        show(short(&words));
                    }
                }
                Step::Events(entries) => {
                    for entry in &entries {
                        if let Some(words) = progress_words(&entry.event) {
                            show(&words);
                        }
                    }
                    // A stream that never pauses is not waited for.
                    if Instant::now() >= until {
                        return Ok(self.rest().unwrap_or(WaitEnd::TimeIsOver));
                    }
                }
                Step::ReadAgain => {}
            }
        }
    }

    /// Waits for the next thing that happens; `until` `None`: as long as it takes. `as_seen` is the task with that, and maybe
    /// with more.
    ///
    /// # Errors
    /// The task cannot be read any more.
    pub(crate) async fn step(&mut self, until: Option<Instant>) -> Result<Step, Error> {
        if let Some(end) = self.rest() {
            return Ok(Step::End(end));
        }
        let Some(subscription) = &mut self.subscription else {
            if until.is_some_and(|until| Instant::now() >= until) {
                return Ok(Step::End(WaitEnd::TimeIsOver));
            }
            sleep(LOOK_AGAIN).await;
            self.read_again().await?;
            return Ok(Step::ReadAgain);
        };
        let batch = match until {
            None => subscription.next().await,
            Some(until) => match timeout_at(until, subscription.next()).await {
                Ok(batch) => batch,
                Err(_) => return Ok(Step::End(WaitEnd::TimeIsOver)),
            },
        };
        match batch {
            Some(Ok(Batch::Snapshot(task))) => {
                (self.task, self.stream_ended) = (task, false);
                Ok(Step::Snapshot)
            }
            Some(Ok(Batch::Events(entries))) => {
                self.stream_ended = false;
                match subscription.whole() {
                    Some(task) => self.task = task,
                    None => self.read_again().await?,
                }
                Ok(Step::Events(entries))
            }
            Some(Err(error)) => Err(error),
            // The stream is over with its turn, or this server stops.
            None => {
                self.read_again().await?;
                if let Some(end) = self.rest() {
                    return Ok(Step::End(end));
                }
                // A stream that ends at once, twice, is that of a server that stops.
                if std::mem::replace(&mut self.stream_ended, true) {
                    self.server_stops = true;
                    return Ok(Step::End(WaitEnd::TimeIsOver));
                }
                self.subscribe_again().await?;
                Ok(Step::ReadAgain)
            }
        }
    }

    /// Why nobody has to wait now; `None`: somebody works on the task, or will.
    fn rest(&self) -> Option<WaitEnd> {
        let state = self.task.status.state;
        if state.is_terminal() {
            return Some(WaitEnd::Settled);
        }
        let question = self.task.open_question().filter(|_| state.is_waiting());
        (question.is_some() && question != self.answered).then_some(WaitEnd::Asks)
    }

    /// A further stream, of the next turn.
    async fn subscribe_again(&mut self) -> Result<(), Error> {
        let subscribe = Subscribe {
            agent: Some(self.task.agent.clone()),
            task: self.task.id.clone(),
            after: Some(self.task.seq),
            on_finished: OnFinishedSubscribe::ShowEnd,
        };
        match self.engine.call(&self.caller, Call::Subscribe(subscribe)).await? {
            Answer::Stream(subscription) => self.subscription = Some(subscription),
            _ => return Err(Error::internal("a subscription is answered with something else".to_owned())),
        }
        Ok(())
    }

    async fn read_again(&mut self) -> Result<(), Error> {
        let (agent, id) = (self.task.agent.clone(), self.task.id.clone());
        self.task = read(&self.engine, &self.caller, Some(agent), id).await?;
        Ok(())
    }
}

/// What an event says of a turn under way: the agent's words, or what it has just written.
fn progress_words(event: &Event) -> Option<String> {
    let words = match event {
        Event::Status(change) if change.is_final => return None,
        Event::Status(change) => change.status.message.as_ref()?.text(),
        Event::Artifact(chunk) => chunk.artifact.parts.iter().filter_map(Part::as_text).collect(),
        Event::Created(_) => return None,
    };
    let words = short(&words);
    (!words.is_empty()).then(|| words.to_owned())
}

fn short(words: &str) -> &str {
    let words = words.trim();
    words.char_indices().nth(LONGEST_WORDS).map_or(words, |(end, _)| &words[..end])
}

/// The task as it is now.
pub(crate) async fn read(
    engine: &Engine,
    caller: &Caller,
    agent: Option<AgentId>,
    task: TaskId,
) -> Result<Arc<Task>, Error> {
    let get = Get { agent, task, history: None, earlier: Wanted::No };
    match engine.call(caller, Call::Get(get)).await? {
        Answer::Task(task) => Ok(task),
        _ => Err(Error::internal("a task is answered with something else".to_owned())),
    }
}
