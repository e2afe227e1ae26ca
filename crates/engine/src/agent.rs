//! What the engine needs of an agent, and what it knows of one that it hosts.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use sabir_model::{AgentId, Extension, Json, Message, Part, QuestionForm, Skill};

use crate::{Outcome, Turn};

pub type AgentFuture<'a> = BoxFuture<'a, Result<Outcome, AgentError>>;
pub type WorkingTreeFuture<'a> = BoxFuture<'a, Option<PathBuf>>;

/// Anything that can work on a task. One call is one turn: a message in, updates out.
pub trait Agent: Send + Sync + 'static {
    /// What its card says.
    fn about(&self) -> About;

    /// Works until the turn is over. Updates go out through `turn`; `turn.ask(...)` parks the task and
    /// returns the caller's answer; `turn.cancelled()` resolves when it must stop.
    fn run(&self, turn: Turn) -> AgentFuture<'_>;

    /// Whether the message makes a task or is answered at once. Asked before anything is written, so
    /// it must be cheap.
    fn admit(&self, _message: &Message) -> Admission {
        Admission::Task
    }

    /// Where what the agent does can be seen. Decides whether it may start before its message is stored.
    fn effects(&self) -> Effects {
        Effects::Anywhere
    }

    /// The folder that a turn must have for itself, without links in its path. Asked before the turn begins, while its task
    /// is still queued. Turns whose folders are the same, or of which one contains the other, run one after the other,
    /// whichever agents execute them. `None`: the turn minds nobody.
    fn working_tree<'a>(&'a self, _turn: &'a Turn) -> WorkingTreeFuture<'a> {
        Box::pin(std::future::ready(None))
    }

    /// Whether the answer to this question can still be used after the run that asked it has ended with its server.
    /// `memory` is what the agent remembers of the context (`Turn::remember`). If so, the task stays open, and its answer
    /// begins a turn that has the question too (`Turn::lost_question`). Otherwise the task fails.
    fn resumes(&self, _memory: Option<&str>, _question: &Message) -> bool {
        false
    }

    /// How its questions are shown.
    fn question_form(&self) -> QuestionForm {
        QuestionForm::WithData
    }
}

/// Where what an agent does can be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effects {
    /// It starts programs, writes files or calls others, so it starts only after its message is stored.
    Anywhere,
    /// Every effect goes through its turn, so nothing of it is seen before it is stored. It may start at once.
    ThroughTurn,
}

pub enum Admission {
    Task,
    /// A direct message with these parts; there is no task.
    Reply(Vec<Part>),
}

/// Why an agent could not do its turn.
///
/// `?` makes an `Internal` of any error, and of a text, so an agent tells its caller only what it chooses to tell:
/// `return Err(AgentError::told("no such document"))`.
#[derive(Debug)]
pub enum AgentError {
    /// For the caller, word for word.
    Told(String),
    /// For the log. The caller is told only that the agent failed.
    Internal(Box<dyn Error + Send + Sync>),
}

impl AgentError {
    /// An error whose text the caller reads.
    pub fn told(text: impl Into<String>) -> Self {
        AgentError::Told(text.into())
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for AgentError {
    fn from(error: E) -> Self {
        AgentError::Internal(error.into())
    }
}

/// What an agent says of itself. `About::new` fills in what most agents say; change the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct About {
    pub name: String,
    pub description: String,
    /// Of the agent, not of the protocol.
    pub version: String,
    pub skills: Vec<Skill>,
    /// Media types that the card lists.
    pub input_modes: Vec<String>,
    pub output_modes: Vec<String>,
    pub extensions: Vec<Extension>,
    pub takes: Inputs,
    pub streaming: Streaming,
}

impl About {
    /// An agent that takes and gives text, and streams.
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        let text = || vec!["text/plain".to_owned()];
        Self {
            name: name.into(),
            description: description.into(),
            version: "1.0.0".into(),
            skills: Vec::new(),
            input_modes: text(),
            output_modes: text(),
            extensions: Vec::new(),
            takes: Inputs::Anything,
            streaming: Streaming::Offered,
        }
    }

    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = version.into();
        self
    }

    /// Adds a skill to the card.
    pub fn skill(mut self, skill: Skill) -> Self {
        self.skills.push(skill);
        self
    }

    /// The media types that the card lists, instead of `text/plain`.
    pub fn modes<const I: usize, const O: usize>(mut self, input: [&str; I], output: [&str; O]) -> Self {
        self.input_modes = input.map(str::to_owned).to_vec();
        self.output_modes = output.map(str::to_owned).to_vec();
        self
    }

    /// Adds a protocol extension to the card.
    pub fn extension(mut self, extension: Extension) -> Self {
        self.extensions.push(extension);
        self
    }
}

/// Whether callers may watch an agent's tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streaming {
    Offered,
    /// Streaming calls are refused, and the card says so.
    Refused,
}

/// Which media types an agent really takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inputs {
    Anything,
    /// What its card and its skills list.
    Listed,
}

/// How much an agent may do at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Turns that run at the same time.
    pub concurrent: usize,
    /// Tasks that wait for their turn; further ones are refused.
    pub queue: usize,
    /// How many runs that wait for their callers' answers give their slots back.
    pub max_parked: usize,
    /// The longest turn.
    pub timeout: Option<Duration>,
    /// The longest silence in a turn.
    pub idle_timeout: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { concurrent: 10_000, queue: 10_000, max_parked: 100, timeout: None, idle_timeout: None }
    }
}

/// Chooses which agent executes the tasks that are addressed to one. The task stays the addressed agent's: its card, its
/// address and its contexts. Limits and program are those of the agent that executes it.
///
/// Asked again for each turn and after a restart, so the answer must depend on what it is given alone.
pub trait Router: Send + Sync + 'static {
    /// By the message that began the task, and the metadata of the request that brought it. `None`: the addressed agent
    /// itself.
    fn route(&self, opening: &Message, metadata: Option<&Json>) -> Option<Route>;
}

/// Where a router sends a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    pub agent: AgentId,
    /// Instead of the agent's own.
    pub model: Option<String>,
}

/// An agent of this server.
#[derive(Clone)]
pub struct Hosted {
    pub id: AgentId,
    pub agent: Arc<dyn Agent>,
    /// What the agent says of itself, and what whoever hosts it says instead. Cards and checks both come from it, so
    /// the card cannot promise what a call is refused.
    pub about: About,
    pub limits: Limits,
    pub router: Option<Arc<dyn Router>>,
    pub is_default: bool,
}

impl Hosted {
    pub fn new(id: AgentId, agent: Arc<dyn Agent>) -> Self {
        Self { about: agent.about(), id, agent, limits: Limits::default(), router: None, is_default: false }
    }
}
