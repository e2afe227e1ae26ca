//! The configuration as the rest of the program sees it: parsed, checked, every default filled in.
//!
//! One struct per section of `sabir.toml`, one field per key. `Default` holds the same values as the default
//! column of the settings table; a test keeps the two together.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use sabir_agents::program::settings::{Isolation, Kind, Mode, PromptBy, SharedWorkspace};
use sabir_agents::protocol::Approve;
use sabir_agents::routing::Profile;
use sabir_model::{Extension, Skill};

/// Everything `serve` needs to know.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Config {
    pub server: Server,
    pub store: Store,
    pub agents: Vec<Agent>,
    /// Agents that only `routing` reaches: they have neither address nor card.
    pub backstage: Vec<Agent>,
    pub routing: Routing,
    pub card: Card,
    pub compat: Compat,
    pub send: Send,
    pub push: Push,
    pub recovery: Recovery,
    pub retention: Retention,
    pub log: Log,
}

impl Config {
    /// How many programs can be there at the same time, those that wait for an answer included.
    pub fn program_runs(&self) -> usize {
        let programs =
            self.agents.iter().chain(&self.backstage).filter(|agent| matches!(agent.kind, AgentKind::Program(_)));
        programs.fold(0, |runs: usize, agent| runs.saturating_add(agent.max_concurrent + agent.max_parked))
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Server {
    pub listen: Vec<SocketAddr>,
    /// Absolute, without a slash at the end.
    pub public_url: Option<String>,
    pub body_limit: usize,
    pub memory: usize,
    /// `*` or `scheme://host[:port]`; empty means that no browser page of another origin may call.
    pub cors_origins: Vec<String>,
    /// `*` or host names, beside those that are always answered to.
    pub allowed_hosts: Vec<String>,
    pub allow_open: bool,
    pub grace: Duration,
    pub drain: Duration,
    pub keep_alive: Duration,
}

impl Default for Server {
    fn default() -> Self {
        Server {
            listen: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, DEFAULT_PORT))],
            public_url: None,
            body_limit: 16 * 1024 * 1024,
            memory: 256 * 1024 * 1024,
            cors_origins: Vec::new(),
            allowed_hosts: Vec::new(),
            allow_open: false,
            grace: Duration::from_secs(10),
            drain: Duration::ZERO,
            keep_alive: Duration::from_secs(15),
        }
    }
}

pub const DEFAULT_PORT: u16 = 41242;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Store {
    pub url: StoreUrl,
    pub durability: Durability,
}

#[derive(Debug, Clone, PartialEq)]
pub enum StoreUrl {
    /// A database file. Whoever opens it makes the directory.
    Sqlite(PathBuf),
    /// For trials: everything is gone when the server stops.
    Memory,
}

impl Default for StoreUrl {
    fn default() -> Self {
        StoreUrl::Sqlite(PathBuf::from("sabir.db"))
    }
}

/// What an acknowledged write survives.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Durability {
    #[default]
    PowerCut,
    Process,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Agent {
    pub id: String,
    pub kind: AgentKind,
    pub name: Option<String>,
    pub description: Option<String>,
    /// Empty: nothing is said, so the kind's own hold. The same for the modes.
    pub skills: Vec<Skill>,
    pub input_modes: Vec<String>,
    pub output_modes: Vec<String>,
    /// Beside the kind's own.
    pub extensions: Vec<Extension>,
    pub streaming: bool,
    pub default: bool,
    pub max_concurrent: usize,
    pub queue: usize,
    pub max_parked: usize,
    pub timeout: Option<Duration>,
    pub idle_timeout: Option<Duration>,
    /// For the demo agent; all others start so anyway.
    pub stored_first: bool,
    pub card: AgentCard,
    /// For programs; other kinds have no use for it.
    pub program: Program,
}

impl Agent {
    /// An agent of this kind with the defaults of its kind.
    pub fn new(id: &str, kind: AgentKind) -> Self {
        Agent {
            id: id.to_owned(),
            kind,
            name: None,
            description: None,
            skills: Vec::new(),
            input_modes: Vec::new(),
            output_modes: Vec::new(),
            extensions: Vec::new(),
            streaming: true,
            default: false,
            max_concurrent: 10_000,
            queue: 10_000,
            max_parked: 100,
            timeout: None,
            idle_timeout: None,
            stored_first: false,
            card: AgentCard::OfProgram,
            program: Program::default(),
        }
    }
}

/// What the card of a program says where the file says nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AgentCard {
    /// What is known of the program.
    OfProgram,
    /// That it does coding tasks, whatever it is: clients of the server whose names describe it expect that.
    OfCodingProgram,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AgentKind {
    Demo,
    Conformance,
    Program(Kind),
}

impl AgentKind {
    /// Its name in the file.
    pub fn name(self) -> &'static str {
        match self {
            AgentKind::Demo => "demo",
            AgentKind::Conformance => "conformance",
            AgentKind::Program(kind) => kind.known().name,
        }
    }
}

/// How an agent runs its program.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    pub mode: Mode,
    /// The program and its first arguments. Empty: the program of the kind.
    pub command: Vec<String>,
    pub arguments: Vec<String>,
    pub model: Option<String>,
    pub instructions: Option<String>,
    pub workspace: PathBuf,
    pub workspace_roots: Vec<PathBuf>,
    pub isolation: Isolation,
    pub shared_workspace: SharedWorkspace,
    pub approve: Approve,
    pub approval_timeout: Option<Duration>,
    pub prompt_by: PromptBy,
    pub hibernate_after: Option<Duration>,
    pub keep_warm: Duration,
    pub approval_pattern: Option<String>,
    pub approval_response: String,
    pub trust_prompts: bool,
    pub trust_workspace: bool,
    pub environment: Vec<(String, String)>,
    pub pass_environment: Vec<String>,
    /// Whether callers are told the end of a failed program's standard error. `None` only until all layers are read.
    pub tell_stderr: Option<bool>,
    pub keep_files: bool,
    pub max_output: usize,
}

impl Default for Program {
    fn default() -> Self {
        Program {
            mode: Mode::OneShot,
            command: Vec::new(),
            arguments: Vec::new(),
            model: None,
            instructions: None,
            workspace: PathBuf::from("."),
            workspace_roots: Vec::new(),
            isolation: Isolation::Shared,
            shared_workspace: SharedWorkspace::Queue,
            approve: Approve::None,
            approval_timeout: Some(Duration::from_secs(24 * 60 * 60)),
            prompt_by: PromptBy::Argument,
            hibernate_after: Some(Duration::from_secs(30 * 60)),
            keep_warm: Duration::from_secs(5 * 60),
            approval_pattern: None,
            approval_response: "y".to_owned(),
            trust_prompts: false,
            trust_workspace: false,
            environment: Vec::new(),
            pass_environment: Vec::new(),
            tell_stderr: None,
            keep_files: false,
            max_output: 64 * 1024 * 1024,
        }
    }
}

/// Where messages to the default agent go.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Routing {
    pub complex: Option<Route>,
    pub mid: Option<Route>,
    pub routine: Option<Route>,
}

impl Routing {
    pub fn of(&self, profile: Profile) -> Option<&Route> {
        match profile {
            Profile::Complex => self.complex.as_ref(),
            Profile::Mid => self.mid.as_ref(),
            Profile::Routine => self.routine.as_ref(),
        }
    }

    pub fn forget(&mut self, profile: Profile) {
        match profile {
            Profile::Complex => self.complex = None,
            Profile::Mid => self.mid = None,
            Profile::Routine => self.routine = None,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Route {
    /// The id of an agent.
    pub agent: String,
    /// Instead of the agent's own.
    pub model: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Card {
    pub name: Option<String>,
    pub description: Option<String>,
    pub organization: Option<String>,
    pub organization_url: Option<String>,
    pub version: Option<String>,
    pub documentation_url: Option<String>,
    pub icon_url: Option<String>,
    pub profile: CardProfile,
    /// One protocol version's keys only, not those of all.
    pub pure: bool,
    pub max_age: Duration,
}

impl Default for Card {
    fn default() -> Self {
        Card {
            name: None,
            description: None,
            organization: None,
            organization_url: None,
            version: None,
            documentation_url: None,
            icon_url: None,
            profile: CardProfile::A2a,
            pure: false,
            max_age: Duration::from_secs(30),
        }
    }
}

/// Whose clients find their way by the card's `url`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum CardProfile {
    #[default]
    A2a,
    Gateway,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Compat {
    pub strict: bool,
    pub cancel_terminal: CancelTerminal,
    pub terminal_message: TerminalMessage,
}

/// The answer to a cancel of a finished task.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum CancelTerminal {
    /// What the mount and the spelling of the request promise.
    #[default]
    Auto,
    Error,
    Noop,
}

/// What a message to a finished task does.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum TerminalMessage {
    #[default]
    Error,
    NewTask,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Send {
    pub max_wait: Option<Duration>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Push {
    pub enabled: bool,
}

impl Default for Push {
    fn default() -> Self {
        Push { enabled: true }
    }
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Recovery {
    pub running: RunningTasks,
}

/// What becomes of tasks that were running when the server stopped.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum RunningTasks {
    #[default]
    Fail,
    Requeue,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Retention {
    pub max_age: Option<Duration>,
    pub max_tasks: Option<u64>,
    pub waiting: Option<Duration>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Log {
    /// `info`, or directives such as `info,sabir=debug`.
    pub level: String,
    pub format: LogFormat,
}

impl Default for Log {
    fn default() -> Self {
        Log { level: "info".to_owned(), format: LogFormat::Text }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum LogFormat {
    #[default]
    Text,
    Json,
}
