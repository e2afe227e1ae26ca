//! The life of a task, as pure functions.
//!
//! `decide` says which events a command means now; `apply` folds one event into the task; `purpose` says what a caller's
//! message is for. None reads a clock, awaits or locks, so replaying the log rebuilds the task exactly and a test can
//! live through a week of it at once.
//!
//! | state                         | turn over | run    | a message is                  | who may move it           |
//! |-------------------------------|-----------|--------|-------------------------------|---------------------------|
//! | submitted                     | no        | queued | for a later turn              | the run that is due       |
//! | working                       | no        | active | for a later turn              | the run                   |
//! | input-required, auth-required | no        | parked | the answer to the question    | the answer, or the run    |
//! | input-required, auth-required | yes       | none   | the beginning of a turn       | the message               |
//! | completed, failed, canceled, rejected | yes | none | refused                       | nobody                    |
//!
//! A cancel moves every row but the last to canceled.

use std::collections::HashMap;
use std::sync::Arc;

use crate::{
    Artifact, ArtifactId, Chunk, Created, Error, Event, Json, Message, Outcome, Part, QuestionForm, QuestionId,
    QuestionType, Required, Seq, State, Status, StatusChange, Task, TaskId, Timestamp, Usage,
};

/// What the rules must know of a task: little, so that asking them never needs the whole of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    pub task: TaskId,
    pub state: State,
    pub seq: Seq,
    /// The question that a live run waits to have answered.
    question: Option<Arc<Message>>,
    /// The event that asked what the task waits for, with a live run or without.
    open_question: Option<Seq>,
    question_form: QuestionForm,
    /// The scope without which nobody may answer questions of the type `permission`.
    approver: Option<Arc<str>>,
    artifacts: Vec<OpenArtifact>,
    /// Where each is in that list: a task may have thousands.
    places: HashMap<ArtifactId, u32>,
}

/// Whether somebody works on a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunState {
    /// Nobody, and nobody is due: finished, or waiting after a turn that ended by asking.
    None,
    /// A run is due as soon as there is room.
    Queued,
    Active,
    /// The turn is not over: a run waits for the caller's answer, or did when the server died.
    Parked,
}

impl RunState {
    pub fn of(state: State, turn_over: bool) -> Self {
        match state {
            State::Submitted => RunState::Queued,
            State::Working => RunState::Active,
            State::InputRequired | State::AuthRequired if !turn_over => RunState::Parked,
            State::InputRequired
            | State::AuthRequired
            | State::Completed
            | State::Failed
            | State::Canceled
            | State::Rejected => RunState::None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct OpenArtifact {
    id: ArtifactId,
    name: Option<String>,
    /// No last chunk has been seen yet.
    is_open: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// The task waits for something else before its run can begin, or can be resumed: the note to a run that is parked
    /// holds its question as well.
    Queue { note: Arc<Message> },
    /// A run takes up the task, with the messages that waited for it.
    Begin { input: Vec<Arc<Message>> },
    /// The run reports progress, in words or as a mere sign of life.
    Progress { message: Option<Arc<Message>>, metadata: Option<Json> },
    /// The run has made something.
    Make { artifact: Arc<Artifact>, append: bool, last: bool, metadata: Option<Json> },
    /// The run asks in the middle of its turn and stays alive.
    Ask { required: Required, question: Arc<Message> },
    /// The caller's answer to that question.
    Answer { message: Arc<Message> },
    /// The run no longer waits for the answer.
    WithdrawQuestion,
    /// The turn is over. Messages that nobody will take up any more go into the history.
    Finish { outcome: Outcome<Option<Arc<Message>>>, usage: Option<Usage>, unread: Vec<Arc<Message>> },
    /// The turn ended by asking, but a message waits already: another turn follows at once.
    AskBetweenTurns { required: Required, question: Option<Arc<Message>> },
    /// The task ends because its caller wants it to, and no run is alive that could say so.
    Cancel { unread: Vec<Arc<Message>> },
}

/// What a message to a task is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// It answers the question that the run has asked with this event.
    Answer(Seq),
    /// It starts a turn of its own, when its time comes.
    NextTurn,
}

/// Whether a run waits for an answer at this moment. Only its driver knows: a run may give up waiting without a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuestionState {
    /// The question that this event asked.
    Open(Seq),
    NotOpen,
}

impl QuestionState {
    fn event(self) -> Option<Seq> {
        match self {
            QuestionState::Open(event) => Some(event),
            QuestionState::NotOpen => None,
        }
    }
}

/// What a message is for that comes to a task which somebody works on.
///
/// # Errors
/// The task is finished, the message names a question that is not open, or it is only an approval and nothing has been
/// asked.
pub fn purpose(task: &Standing, message: &Message, question: QuestionState) -> Result<Purpose, Error> {
    match question {
        _ if task.state.is_terminal() => Err(Error::TaskFinished(task.task.clone())),
        _ if names_closed_question(&task.task, task.seq, message, question.event()) => closed(&task.task),
        QuestionState::Open(event) => Ok(Purpose::Answer(event)),
        QuestionState::NotOpen if message.is_only_approval() => Err(Error::invalid(
            "message.parts",
            "is only an approval, but the task has no open question; it is working on something else",
        )),
        QuestionState::NotOpen => Ok(Purpose::NextTurn),
    }
}

/// The same for a task that nobody works on: a message begins a turn, unless it names a question that is not open.
///
/// # Errors
/// The message names an earlier question of the task, or one of another task.
pub fn check_named_question(task: &Task, message: &Message) -> Result<(), Error> {
    let open = task.open_question().map(|id| id.event);
    if names_closed_question(&task.id, task.seq, message, open) { closed(&task.id) } else { Ok(()) }
}

/// Whether a message names another question than the open one, of this task or of another.
fn names_closed_question(task: &TaskId, last: Seq, message: &Message, open: Option<Seq>) -> bool {
    // Events that are still to come have asked nothing.
    let is_bound_to_another = |event: Seq| event <= last && Some(event) != open;
    let is_open = |named: &QuestionId| named.is_of(task) && Some(named.event) == open;
    message.answers.is_some_and(is_bound_to_another) || !message.named_questions().iter().all(is_open)
}

fn closed<T>(task: &TaskId) -> Result<T, Error> {
    Err(Error::QuestionClosed(task.clone()))
}

/// The events of a command. A finished task has no more of them, whoever still speaks.
pub fn decide(task: &Standing, command: Command, now: Timestamp) -> Vec<Event> {
    if task.state.is_terminal() {
        return Vec::new();
    }
    match command {
        Command::Queue { note } if task.state == State::Submitted || task.is_parked() => {
            vec![change(task.state, Some(note), now)]
        }
        // Later turns wait as well, but then their task is not queued any more.
        Command::Queue { .. } => Vec::new(),
        Command::Begin { input } => vec![begin(input, now)],
        Command::Progress { message, metadata } => task.progress(message, metadata, now),
        Command::Make { artifact, append, last, metadata } => vec![task.chunk(artifact, append, last, metadata)],
        Command::Ask { required, question } => {
            vec![change(required.state(), Some(task.with_id(question, task.seq + 1)), now)]
        }
        Command::Answer { message } => vec![working(None, now, vec![message])],
        Command::WithdrawQuestion if task.question.is_some() => vec![working(None, now, Vec::new())],
        Command::WithdrawQuestion => Vec::new(),
        Command::AskBetweenTurns { required, question } => {
            let question = question.map(|question| task.with_id(question, task.seq + 1));
            vec![change(required.state(), question, now)]
        }
        Command::Finish { outcome, usage, unread } => task.finish(outcome, usage, unread, now),
        Command::Cancel { unread } => task.finish(Outcome::Canceled(None), None, unread, now),
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
        let closes_question = !change.input.is_empty() || change.status.state.is_terminal();
        if closes_question && self.status.state.is_waiting() {
            // The question belongs to the conversation once it is answered or can be answered no more; progress
            // texts do not.
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

    /// Whether somebody works on it.
    pub fn run_state(&self) -> RunState {
        RunState::of(self.status.state, self.turn_over)
    }

    pub fn standing(&self) -> Standing {
        let question = self.status.message.clone().filter(|_| self.run_state() == RunState::Parked);
        let state = self.status.state;
        let open_question = self.open_question().map(|id| id.event);
        let mut standing = Standing { state, seq: self.seq, question, open_question, ..Standing::new(self.id.clone()) };
        for artifact in &self.artifacts {
            standing.know(artifact, true);
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
        let (artifacts, places) = (Vec::new(), HashMap::new());
        Self {
            task,
            state: State::Submitted,
            seq: 0,
            question: None,
            open_question: None,
            question_form: QuestionForm::WithData,
            approver: None,
            artifacts,
            places,
        }
    }

    /// A task of which nothing can be read but how far its log goes.
    pub fn unreadable(task: TaskId, seq: Seq) -> Self {
        Self { state: State::Working, seq, ..Self::new(task) }
    }

    /// The same task of an agent whose questions are shown like this.
    pub fn with_question_form(self, question_form: QuestionForm) -> Self {
        Self { question_form, ..self }
    }

    /// The same task of an agent whose questions for permission only callers with this scope may answer.
    pub fn with_approver(self, approver: Option<Arc<str>>) -> Self {
        Self { approver, ..self }
    }

    /// The event that asked what the task waits for.
    pub fn open_question(&self) -> Option<Seq> {
        self.open_question
    }

    fn know(&mut self, artifact: &Artifact, is_whole: bool) {
        self.places.insert(artifact.id.clone(), self.artifacts.len() as u32);
        self.artifacts.push(OpenArtifact { id: artifact.id.clone(), name: artifact.name.clone(), is_open: !is_whole });
    }

    /// Keeps up with an event, as `apply` does for the whole task.
    pub fn follow(&mut self, event: &Event) {
        self.seq += 1;
        match event {
            Event::Created(_) => {}
            Event::Status(change) => {
                self.state = change.status.state;
                let by_turn = (change.is_final && self.state.is_waiting()).then_some(self.seq);
                self.open_question = change.status.question_id(&self.task).map(|id| id.event).or(by_turn);
                let is_parked = RunState::of(self.state, change.is_final) == RunState::Parked;
                self.question = change.status.message.clone().filter(|_| is_parked);
            }
            Event::Artifact(chunk) => match self.artifacts.get_mut(chunk.index as usize) {
                Some(known) => {
                    known.is_open = !chunk.last;
                    if chunk.artifact.name.is_some() {
                        known.name.clone_from(&chunk.artifact.name);
                    }
                }
                None => self.know(&chunk.artifact, chunk.last),
            },
        }
    }

    /// The question that the run of the task waits to have answered, as it is shown.
    pub fn question(&self) -> Option<&Arc<Message>> {
        self.question.as_ref()
    }

    /// Whether the run of the task waits for the caller's answer.
    pub fn is_parked(&self) -> bool {
        self.question.is_some()
    }

    /// Progress in the middle of a question is shown, and then the question again: whoever reads only the last status
    /// must see that the task waits, and for what. A sign of life without words changes nothing then.
    fn progress(&self, message: Option<Arc<Message>>, metadata: Option<Json>, now: Timestamp) -> Vec<Event> {
        let is_silent = message.is_none() && metadata.is_none();
        match &self.question {
            Some(_) if is_silent => Vec::new(),
            Some(question) => {
                let again = change(self.state, Some(question.clone()), now);
                vec![with_metadata(working(message, now, Vec::new()), metadata), again]
            }
            None => vec![with_metadata(working(message, now, Vec::new()), metadata)],
        }
    }

    /// A question that this event asks, with its id.
    fn with_id(&self, question: Arc<Message>, event: Seq) -> Arc<Message> {
        // A question that somebody else must answer says so, whatever its agent wants to be shown.
        let needs_approval = self.approver.is_some() && question.question_type() == QuestionType::Permission;
        match self.question_form {
            QuestionForm::WordsOnly if !needs_approval => question.without_approver(),
            QuestionForm::WithData | QuestionForm::WordsOnly => {
                question.with_question_id(QuestionId::issue(&self.task, event), self.approver.as_deref())
            }
        }
    }

    fn chunk(&self, artifact: Arc<Artifact>, append: bool, last: bool, metadata: Option<Json>) -> Event {
        let known = self.places.get(&artifact.id).copied();
        let index = known.unwrap_or(self.artifacts.len() as u32);
        // There is nothing to append to before the first chunk.
        Event::Artifact(Chunk { index, artifact, append: append && known.is_some(), last, metadata })
    }

    fn finish(
        &self,
        outcome: Outcome<Option<Arc<Message>>>,
        usage: Option<Usage>,
        unread: Vec<Arc<Message>>,
        now: Timestamp,
    ) -> Vec<Event> {
        let state = outcome.state();
        let message = outcome.into_inner();
        // An agent that could not know its last chunk leaves the artifact open; an empty chunk closes it.
        let mut events: Vec<Event> = self
            .artifacts
            .iter()
            .enumerate()
            .filter(|(_, artifact)| artifact.is_open)
            .map(|(index, artifact)| {
                let mut closing = Artifact::new(artifact.id.clone(), vec![Part::text("")]);
                closing.name.clone_from(&artifact.name);
                let artifact = Arc::new(closing);
                Event::Artifact(Chunk { index: index as u32, artifact, append: true, last: true, metadata: None })
            })
            .collect();
        let event = self.seq + events.len() as Seq + 1;
        let message = message.map(|message| if state.is_waiting() { self.with_id(message, event) } else { message });
        let status = Status { state, message, time: now };
        events.push(Event::Status(StatusChange {
            status,
            is_final: true,
            input: unread,
            begins_turn: false,
            usage,
            metadata: None,
        }));
        events
    }
}

fn begin(input: Vec<Arc<Message>>, now: Timestamp) -> Event {
    let begins_turn = !input.is_empty();
    let status = Status { state: State::Working, message: None, time: now };
    Event::Status(StatusChange { status, is_final: false, input, begins_turn, usage: None, metadata: None })
}

fn working(message: Option<Arc<Message>>, now: Timestamp, input: Vec<Arc<Message>>) -> Event {
    let status = Status { state: State::Working, message, time: now };
    Event::Status(StatusChange { status, is_final: false, input, begins_turn: false, usage: None, metadata: None })
}

fn change(state: State, message: Option<Arc<Message>>, now: Timestamp) -> Event {
    let status = Status { state, message, time: now };
    Event::Status(StatusChange {
        status,
        is_final: false,
        input: Vec::new(),
        begins_turn: false,
        usage: None,
        metadata: None,
    })
}

fn with_metadata(mut event: Event, metadata: Option<Json>) -> Event {
    if let Event::Status(change) = &mut event {
        change.metadata = metadata;
    }
    event
}

#[cfg(test)]
mod tests;
