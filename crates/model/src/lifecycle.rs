//! The life of a task, as two pure functions.
//!
//! `decide` says what a command means now; `apply` folds one event into the task. Neither reads a
//! clock, awaits or locks, so replaying the log rebuilds the task exactly and a test can live through
//! a week of it at once.

use std::collections::HashMap;
use std::sync::Arc;

use crate::{
    Artifact, ArtifactId, Chunk, Created, Error, Event, Json, Message, Part, Seq, State, Status, StatusChange, Task,
    TaskId, Timestamp, Usage,
};

/// What the rules must know of a task: little, so that asking them never needs the whole of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    pub task: TaskId,
    pub state: State,
    pub run: Run,
    pub seq: Seq,
    artifacts: Vec<OpenArtifact>,
    /// Where each is in that list: a task may have thousands.
    places: HashMap<ArtifactId, u32>,
}

/// Whether somebody works on the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Run {
    /// Nobody, and nobody is due: finished, or waiting after a turn that ended by asking.
    None,
    /// A run is due as soon as there is room.
    Queued,
    Active,
    /// A run is alive and waits for the caller's answer.
    Parked,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct OpenArtifact {
    id: ArtifactId,
    /// No last chunk has been seen yet.
    is_open: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// A caller's message for this task.
    Deliver(Arc<Message>),
    /// The caller wants it to stop. Messages that nobody will take up any more go into the history.
    Cancel { unread: Vec<Arc<Message>> },
    /// A run takes up the task, with the messages that waited for it.
    Begin { input: Vec<Arc<Message>> },
    /// The run tells how it goes, in words or just by a sign of life.
    Say { message: Option<Arc<Message>>, metadata: Option<Json> },
    /// The run has made something.
    Make { artifact: Arc<Artifact>, append: bool, last: bool, metadata: Option<Json> },
    /// The run asks in the middle of its turn and stays alive.
    Ask { state: State, question: Arc<Message> },
    /// The turn is over. Messages that nobody will take up any more go into the history.
    Finish { outcome: Outcome, usage: Option<Usage>, unread: Vec<Arc<Message>> },
    /// The turn ended by asking, and a message that came before is the answer: another turn follows.
    AskedAndAnswered { state: State, question: Option<Arc<Message>> },
}

/// How a turn ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Completed(Option<Arc<Message>>),
    Failed(Option<Arc<Message>>),
    Rejected(Option<Arc<Message>>),
    Canceled(Option<Arc<Message>>),
    /// The turn ends by asking; the next message starts another one.
    InputRequired(Option<Arc<Message>>),
    AuthRequired(Option<Arc<Message>>),
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Decision {
    /// Stored first.
    pub events: Vec<Event>,
    /// Done after.
    pub actions: Vec<Action>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// A new turn is due for this message.
    StartRun(Arc<Message>),
    /// The message waits until the present turn is over.
    Enqueue(Arc<Message>),
    /// The parked run gets its answer.
    AnswerRun(Arc<Message>),
    /// The run answers with its own last state; nobody speaks for it.
    StopRun,
    /// A run that was due is not wanted any more.
    ForgetRun,
}

pub fn decide(task: &Standing, command: Command, now: Timestamp) -> Result<Decision, Error> {
    use Run::{Active, None, Parked, Queued};
    match (command, task.run) {
        (Command::Deliver(_), _) if task.state.is_terminal() => Err(Error::TaskFinished(task.task.clone())),
        (Command::Deliver(message), None) => Ok(does(Action::StartRun(message))),
        (Command::Deliver(message), Queued | Active) => Ok(does(Action::Enqueue(message))),
        (Command::Deliver(message), Parked) => Ok(Decision {
            events: vec![change(State::Working, Option::None, now, vec![message.clone()])],
            actions: vec![Action::AnswerRun(message)],
        }),

        (Command::Cancel { .. }, _) if task.state.is_terminal() => Err(Error::NotCancelable(task.task.clone())),
        (Command::Cancel { unread }, None | Queued) => {
            let events = task.finish(Outcome::Canceled(Option::None), Option::None, unread, now);
            let due = (task.run == Queued).then_some(Action::ForgetRun);
            Ok(Decision { events, actions: due.into_iter().collect() })
        }
        (Command::Cancel { .. }, Active | Parked) => Ok(does(Action::StopRun)),

        // A run that lost the race with a cancel may still speak; nobody waits for it.
        (_, _) if task.state.is_terminal() => Ok(Decision::default()),

        (Command::Begin { input }, _) => Ok(says(change(State::Working, Option::None, now, input))),
        (Command::Say { message, metadata }, _) => {
            let mut event = change(State::Working, message, now, Vec::new());
            if let Event::Status(change) = &mut event {
                change.metadata = metadata;
            }
            Ok(says(event))
        }
        (Command::Make { artifact, append, last, metadata }, _) => {
            Ok(says(task.chunk(artifact, append, last, metadata)))
        }
        (Command::Ask { state, question }, _) => Ok(says(change(state, Some(question), now, Vec::new()))),
        // Whoever reads along must not take this for the end.
        (Command::AskedAndAnswered { state, question }, _) => Ok(says(change(state, question, now, Vec::new()))),
        (Command::Finish { outcome, usage, unread }, _) => {
            Ok(Decision { events: task.finish(outcome, usage, unread, now), actions: Vec::new() })
        }
    }
}

/// Folds one event into the task. `Created` makes it, so it is only ever seen here on a replay.
pub fn apply(task: &mut Task, event: &Event) {
    task.seq += 1;
    match event {
        Event::Created(_) => {}
        Event::Status(change) => task.change_status(change.clone()),
        Event::Artifact(Chunk { index, artifact, append, last, .. }) => {
            task.put_chunk(*index, artifact.clone(), *append, *last);
        }
    }
}

/// The same with an event that nobody needs any more.
pub fn apply_owned(task: &mut Task, event: Event) {
    task.seq += 1;
    match event {
        Event::Created(_) => {}
        Event::Status(change) => task.change_status(change),
        Event::Artifact(Chunk { index, artifact, append, last, .. }) => {
            task.put_chunk(index, artifact, append, last);
        }
    }
}

impl Task {
    /// The task that its first event makes.
    pub fn create(id: TaskId, birth: TaskBirth, created: Created) -> Self {
        Self {
            context: birth.context,
            agent: birth.agent,
            owner: birth.owner,
            born: birth.born,
            created: created.time,
            status: Status { state: State::Submitted, message: created.note, time: created.time },
            turn_over: false,
            artifacts: Vec::new(),
            open: Vec::new(),
            history: vec![created.message],
            metadata: created.metadata,
            usage: None,
            seq: 1,
            id,
        }
    }

    fn change_status(&mut self, change: StatusChange) {
        if !change.input.is_empty() && self.status.state.is_waiting() {
            // The question belongs to the conversation once it is answered; progress texts do not.
            self.history.extend(self.status.message.take());
        }
        self.history.extend(change.input);
        self.status = change.status;
        self.turn_over = change.is_final;
        self.usage = change.usage.or(self.usage);
    }

    fn put_chunk(&mut self, index: u32, artifact: Arc<Artifact>, append: bool, last: bool) {
        match self.artifacts.get_mut(index as usize) {
            Some(known) if append => Arc::make_mut(known).extend(&artifact),
            Some(known) => *known = artifact,
            None => self.artifacts.push(artifact),
        }
        let open = self.open.iter().position(|open| *open == index);
        match (open, last) {
            (Some(place), true) => drop(self.open.remove(place)),
            (None, false) => self.open.push(index),
            (Some(_), false) | (None, true) => {}
        }
    }

    pub fn standing(&self) -> Standing {
        let run = match self.status.state {
            State::Submitted => Run::Queued,
            State::Working => Run::Active,
            _ if self.turn_over => Run::None,
            _ => Run::Parked,
        };
        let mut standing = Standing { state: self.status.state, run, seq: self.seq, ..Standing::new(self.id.clone()) };
        for artifact in &self.artifacts {
            standing.know(&artifact.id, true);
        }
        for index in &self.open {
            if let Some(artifact) = standing.artifacts.get_mut(*index as usize) {
                artifact.is_open = true;
            }
        }
        standing
    }
}

/// What a task is born with, beside its first event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskBirth {
    pub context: crate::ContextId,
    pub agent: crate::AgentId,
    pub owner: crate::Owner,
    pub born: crate::Birth,
}

impl Standing {
    /// A task before its first event.
    pub fn new(task: TaskId) -> Self {
        let (state, run) = (State::Submitted, Run::Queued);
        Self { task, state, run, seq: 0, artifacts: Vec::new(), places: HashMap::new() }
    }

    fn know(&mut self, id: &ArtifactId, is_whole: bool) {
        self.places.insert(id.clone(), self.artifacts.len() as u32);
        self.artifacts.push(OpenArtifact { id: id.clone(), is_open: !is_whole });
    }

    /// Keeps up with an event, as `apply` does for the whole task.
    pub fn follow(&mut self, event: &Event) {
        self.seq += 1;
        match event {
            Event::Created(_) => {}
            Event::Status(change) => {
                self.state = change.status.state;
                self.run = match self.state {
                    State::Submitted => Run::Queued,
                    State::Working => Run::Active,
                    _ if change.is_final => Run::None,
                    _ => Run::Parked,
                };
            }
            Event::Artifact(chunk) => match self.artifacts.get_mut(chunk.index as usize) {
                Some(known) => known.is_open = !chunk.last,
                None => self.know(&chunk.artifact.id, chunk.last),
            },
        }
    }

    fn chunk(&self, artifact: Arc<Artifact>, append: bool, last: bool, metadata: Option<Json>) -> Event {
        let known = self.places.get(&artifact.id).copied();
        let index = known.unwrap_or(self.artifacts.len() as u32);
        // There is nothing to append to before the first chunk.
        Event::Artifact(Chunk { index, artifact, append: append && known.is_some(), last, metadata })
    }

    fn finish(&self, outcome: Outcome, usage: Option<Usage>, unread: Vec<Arc<Message>>, now: Timestamp) -> Vec<Event> {
        let (state, message) = match outcome {
            Outcome::Completed(message) => (State::Completed, message),
            Outcome::Failed(message) => (State::Failed, message),
            Outcome::Rejected(message) => (State::Rejected, message),
            Outcome::Canceled(message) => (State::Canceled, message),
            Outcome::InputRequired(message) => (State::InputRequired, message),
            Outcome::AuthRequired(message) => (State::AuthRequired, message),
        };
        // An agent that could not know its last chunk leaves the artifact open; an empty chunk closes it.
        let mut events: Vec<Event> = self
            .artifacts
            .iter()
            .enumerate()
            .filter(|(_, artifact)| artifact.is_open)
            .map(|(index, artifact)| {
                let artifact = Arc::new(Artifact::new(artifact.id.clone(), vec![Part::text("")]));
                Event::Artifact(Chunk { index: index as u32, artifact, append: true, last: true, metadata: None })
            })
            .collect();
        let status = Status { state, message, time: now };
        events.push(Event::Status(StatusChange { status, is_final: true, input: unread, usage, metadata: None }));
        events
    }
}

fn does(action: Action) -> Decision {
    Decision { events: Vec::new(), actions: vec![action] }
}

fn says(event: Event) -> Decision {
    Decision { events: vec![event], actions: Vec::new() }
}

fn change(state: State, message: Option<Arc<Message>>, now: Timestamp, input: Vec<Arc<Message>>) -> Event {
    let status = Status { state, message, time: now };
    Event::Status(StatusChange { status, is_final: false, input, usage: None, metadata: None })
}

#[cfg(test)]
mod tests;
