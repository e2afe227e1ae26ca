//! What the engine needs of an agent, and what it knows of one that it hosts.

use std::error::Error;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use sabir_model::{AgentId, Extension, Json, Message, Part, QuestionForm, Skill};

use crate::{Outcome, Turn};

/// A turn that is being worked on.
pub type AgentFuture<'a> = BoxFuture<'a, Result<Outcome, AgentError>>;
/// The folder of a turn, while it is looked for.
pub type WorkingTreeFuture<'a> = BoxFuture<'a, Option<PathBuf>>;
/// What an agent will say of itself next.
pub type AboutFuture<'a> = BoxFuture<'a, About>;

/// Anything that can work on a task. One call is one turn: a message in, updates out.
pub trait Agent: Send + Sync + 'static {
    /// What its card says. Asked once, when the server starts, so it must be cheap and cannot fail: an agent that has to
    /// fetch its card somewhere says here what it knows already, and the rest in [`Agent::next_about`].
    fn about(&self) -> About;

    /// Resolves when the card has something else to say. From then on cards show that and calls are checked against it, and
    /// this is called again for the next change. `None`: the card never changes.
    ///
    /// An agent that stands for a remote one fetches the remote card here, at its own pace.
    fn next_about(&self) -> Option<AboutFuture<'_>> {
        None
    }

    /// Works until the turn is over. Updates go out through `turn`; `turn.ask(...)` parks the task and
    /// returns the caller's answer; `turn.cancelled()` resolves when it must stop.
    fn run(&self, turn: Turn) -> AgentFuture<'_>;

    /// Whether the message makes a task or is answered at once. Asked before anything is written, so it must be cheap.
    /// What is known of the request is in `message.request`.
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

    /// Whether later turns of a context need the machine of the earlier ones, where several servers share a store.
    fn locality(&self) -> Locality {
        Locality::Anywhere
    }

    /// What of a run can still be used after its server has ended. Asked when the server stops, and at the next start.
    fn survives_restart(&self, _run: &InterruptedRun<'_>) -> Survives {
        Survives::Nothing
    }

    /// The task has ended while no turn of it ran: it was canceled, or has expired, while it waited for its caller. Whatever
    /// the agent has going elsewhere for it should end too; `task_memory` is what it remembers of the task
    /// ([`Turn::remember_in_task`]). Called after the end is stored, at most once; a crash of the server may prevent it.
    fn end_between_turns(&self, _task_memory: &str) -> Option<BoxFuture<'static, ()>> {
        None
    }

    /// How its questions are shown.
    fn question_form(&self) -> QuestionForm {
        QuestionForm::WithData
    }
}

/// What of an agent's run can be used after its server has ended. Each includes what is above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Survives {
    /// The task fails, or runs again from the beginning if the server is told to requeue.
    Nothing,
    /// An open question stays open, and its answer begins a turn that has the question too ([`Turn::interrupted_question`]). A run
    /// without an open question is lost.
    Questions,
    /// A run without an open question resumes as well: its turn begins again, and [`Turn::is_resumed`] says so. The agent
    /// finds what it had begun by what it remembers of the task ([`Turn::task_memory`]).
    ///
    /// A turn is started three times at most after crashes of the server; orderly stops do not count.
    Runs,
}

/// A run that has ended, or ends, with its server.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct InterruptedRun<'a> {
    /// What the agent remembers of the context ([`Turn::remember`]).
    pub memory: Option<&'a str>,
    /// What it remembers of the task ([`Turn::remember_in_task`]).
    pub task_memory: Option<&'a str>,
    /// The question that was open. `None`: the agent was at work.
    pub question: Option<&'a Message>,
}

/// Where what an agent does can be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effects {
    /// It starts programs, writes files or calls others, so it starts only after its message is stored.
    Anywhere,
    /// Every effect goes through its turn, so nothing of it is seen before it is stored. It may start at once.
    ThroughTurn,
}

/// What becomes of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Admission {
    /// It makes a task.
    Task,
    /// A direct message with these parts; there is no task.
    Reply(Vec<Part>),
}

/// Why an agent could not do its turn.
///
/// `?` makes an `Internal` of any error, and of a text, so the caller reads only what the agent chooses to tell:
/// `return Err(AgentError::for_caller("no such document"))`.
#[derive(Debug)]
#[non_exhaustive]
pub enum AgentError {
    /// The caller reads it, word for word: something that the caller can act on.
    ForCaller(String),
    /// Ours: it goes to the log, and the caller reads only that the agent failed.
    Internal(Box<dyn Error + Send + Sync>),
}

impl AgentError {
    /// An error whose text the caller reads.
    pub fn for_caller(text: impl Into<String>) -> Self {
        AgentError::ForCaller(text.into())
    }
}

/// As the log has it.
impl fmt::Display for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AgentError::ForCaller(text) => f.write_str(text),
            AgentError::Internal(error) => error.fmt(f),
        }
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
    /// Empty: the server shows the agent's id.
    pub name: String,
    /// What it does, for people and for other agents.
    pub description: String,
    /// Of the agent, not of the protocol.
    pub version: String,
    /// What it can do, one by one.
    pub skills: Vec<Skill>,
    /// Media types that the card lists for messages.
    pub input_modes: Vec<String>,
    /// Media types that the card lists for artifacts.
    pub output_modes: Vec<String>,
    /// Protocol extensions that it knows.
    pub extensions: Vec<Extension>,
    /// Which media types it really takes.
    pub takes: Inputs,
    /// Whether its tasks can be watched.
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

    /// The version of the agent, instead of 1.0.0.
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

    /// Refuses messages with parts of other media types than the card and its skills list.
    pub fn listed_inputs_only(mut self) -> Self {
        self.takes = Inputs::Listed;
        self
    }

    /// Refuses streaming calls, and says so on the card.
    pub fn without_streaming(mut self) -> Self {
        self.streaming = Streaming::Refused;
        self
    }
}

/// Whether callers may watch an agent's tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Streaming {
    /// Everybody who may see a task may watch it.
    Offered,
    /// Streaming calls are refused, and the card says so.
    Refused,
}

/// Which media types an agent really takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Inputs {
    /// Every media type.
    Anything,
    /// What its card and its skills list.
    Listed,
}

/// Where the turns of a context may run, if several servers share a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Locality {
    /// On any server.
    #[default]
    Anywhere,
    /// On the server that ran the earlier ones; if that is gone, on any other.
    PrefersHome,
    /// Only on the server that ran the earlier ones, since what they left is on its disk. If that is gone, tasks of the
    /// context fail.
    NeedsHome,
}

/// How much an agent may do at once: `Limits::default().concurrent(4)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Turns that run at the same time.
    pub concurrent: usize,
    /// Turns that run at the same time on all servers that share the store.
    pub concurrent_total: Option<u32>,
    /// Tasks that wait for their turn; further ones are refused.
    pub queue: usize,
    /// How many runs that wait for their callers' answers give their slots back.
    pub max_parked: usize,
    /// The longest turn.
    pub timeout: Option<Duration>,
    /// The longest silence in a turn.
    pub idle_timeout: Option<Duration>,
    /// Tasks of one caller that are queued or work at the same time; further ones are refused.
    pub tasks_per_caller: Option<usize>,
    /// The largest message: its text, data, files and metadata.
    pub message_bytes: Option<usize>,
    /// The most parts of one message.
    pub message_parts: Option<usize>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            concurrent: 10_000,
            concurrent_total: None,
            queue: 10_000,
            max_parked: 100,
            timeout: None,
            idle_timeout: None,
            tasks_per_caller: None,
            message_bytes: None,
            message_parts: None,
        }
    }
}

impl Limits {
    /// Turns that run at the same time, instead of 10,000.
    pub fn concurrent(mut self, turns: usize) -> Self {
        self.concurrent = turns;
        self
    }

    /// Turns that run at the same time on all servers that share the store, instead of any number.
    pub fn concurrent_total(mut self, turns: impl Into<Option<u32>>) -> Self {
        self.concurrent_total = turns.into();
        self
    }

    /// Tasks that wait for their turn, instead of 10,000; further ones are refused.
    pub fn queue(mut self, tasks: usize) -> Self {
        self.queue = tasks;
        self
    }

    /// How many runs that wait for their callers' answers give their slots back, instead of 100.
    pub fn max_parked(mut self, runs: usize) -> Self {
        self.max_parked = runs;
        self
    }

    /// The longest turn, instead of any.
    pub fn timeout(mut self, time: impl Into<Option<Duration>>) -> Self {
        self.timeout = time.into();
        self
    }

    /// The longest silence in a turn, instead of any.
    pub fn idle_timeout(mut self, time: impl Into<Option<Duration>>) -> Self {
        self.idle_timeout = time.into();
        self
    }

    /// Tasks of one caller that are queued or work at the same time, instead of any number; further ones are refused. A task
    /// that waits for its caller's answer does not count.
    pub fn tasks_per_caller(mut self, tasks: impl Into<Option<usize>>) -> Self {
        self.tasks_per_caller = tasks.into();
        self
    }

    /// The bytes of the largest message (its text, data, files and metadata), instead of any number.
    pub fn message_bytes(mut self, bytes: impl Into<Option<usize>>) -> Self {
        self.message_bytes = bytes.into();
        self
    }

    /// The most parts of one message, instead of any number.
    pub fn message_parts(mut self, parts: impl Into<Option<usize>>) -> Self {
        self.message_parts = parts.into();
        self
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
    /// The agent that executes it.
    pub agent: AgentId,
    /// Instead of the agent's own.
    pub model: Option<String>,
}

/// An agent of this server.
#[derive(Clone)]
pub struct Hosted {
    /// Its name in addresses.
    pub id: AgentId,
    /// What does the work.
    pub agent: Arc<dyn Agent>,
    /// How much it may do at once.
    pub limits: Limits,
    /// Chooses who executes its tasks; `None`: the agent itself.
    pub router: Option<Arc<dyn Router>>,
    /// Messages that name no agent are for this one.
    pub is_default: bool,
    /// Whether everybody may know of it. An agent that is not listed exists only for callers who have a right for it.
    pub is_listed: bool,
    /// The scope without which nobody may answer its questions of the type `permission`. `None`: the owner of the task
    /// answers them.
    pub approver: Option<Arc<str>>,
    describe: Arc<dyn Fn(About) -> About + Send + Sync>,
    about: Arc<RwLock<Arc<About>>>,
}

impl Hosted {
    /// An agent with default limits, which is described as it says itself.
    pub fn new(id: AgentId, agent: Arc<dyn Agent>) -> Self {
        Self {
            about: Arc::new(RwLock::new(Arc::new(agent.about()))),
            describe: Arc::new(std::convert::identity),
            id,
            agent,
            limits: Limits::default(),
            router: None,
            is_default: false,
            is_listed: true,
            approver: None,
        }
    }

    /// Whoever hosts the agent says something else of it than the agent does, now and when the agent's card changes.
    pub fn described_by(mut self, describe: impl Fn(About) -> About + Send + Sync + 'static) -> Self {
        self.describe = Arc::new(describe);
        let about = Arc::new((self.describe)(self.agent.about()));
        self.about = Arc::new(RwLock::new(about));
        self
    }

    /// What the agent says of itself now, and what whoever hosts it says instead. Cards and checks both come from it, so
    /// the card cannot promise what a call is refused.
    pub fn about(&self) -> Arc<About> {
        self.about.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_about(&self, about: About) {
        let about = Arc::new((self.describe)(about));
        *self.about.write().unwrap_or_else(PoisonError::into_inner) = about;
    }
}
