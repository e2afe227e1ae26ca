//! What the engine needs of an agent, and what it knows of one that it hosts.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use sabir_model::{AgentId, Extension, Message, Part, QuestionForm, Skill};

use crate::{Outcome, Turn};

pub type AgentFuture<'a> = BoxFuture<'a, Result<Outcome, AgentError>>;

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

    /// Whether a run of this context that waited for an answer when the server ended can continue with the answer.
    /// `memory` is what the agent remembers of the context (`Turn::remember`).
    fn resumes(&self, _memory: Option<&str>) -> bool {
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

/// What an agent says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    pub name: String,
    pub description: String,
    pub version: String,
    pub skills: Vec<Skill>,
    pub input_modes: Vec<String>,
    pub output_modes: Vec<String>,
    pub extensions: Vec<Extension>,
    pub takes: Inputs,
    pub streaming: Streaming,
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
    pub concurrent: usize,
    pub queue: usize,
    /// The longest turn.
    pub timeout: Option<Duration>,
    /// The longest silence in a turn.
    pub idle_timeout: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { concurrent: 10_000, queue: 10_000, timeout: None, idle_timeout: None }
    }
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
    pub is_default: bool,
}

impl Hosted {
    pub fn new(id: AgentId, agent: Arc<dyn Agent>) -> Self {
        Self { about: agent.about(), id, agent, limits: Limits::default(), is_default: false }
    }
}
