//! Programs as agents: one process for each turn, or for several turns of a context.
//!
//! An adapter says what the program's lines mean, `process` runs the program, and this module connects both with the task:
//! it reports updates, asks the caller, and stops the program on a cancel. `turn` is the entry point, `run` drives a running
//! program.

pub(crate) mod approval;
mod blocking;
mod files;
mod folder_name;
mod git;
mod invocation;
mod kept_refs;
mod leftover_trees;
mod lost_question;
mod memory;
mod notes;
mod produced;
mod project;
pub(crate) mod publisher;
mod regular_file;
mod remove_folder;
mod reuse_key;
mod run;
mod sanitize_prompt;
mod secrets;
pub mod settings;
mod tidying;
mod turn;
mod uploads;
mod warm;
mod workspace;
pub mod worktree;
pub mod worktrees;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use sabir_engine::{About, Agent, AgentFuture, InterruptedRun, Locality, Survives, Turn, WorkingTreeFuture};

use memory::{Memories, MemoryKey};

pub use git::{GitError, GitLimits};
pub use settings::{Delegate, Isolation, Kind, Mode, PromptBy, Settings, SharedWorkspace};
pub use tidying::{Workspaces, keep_tidy, tidy};
pub use warm::WarmPrograms;
pub use worktrees::Worktrees;

pub struct ProgramAgent {
    id: String,
    settings: Settings,
    about: About,
    host: Host,
}

/// What the server provides for its programs.
#[derive(Debug, Clone)]
pub struct Host {
    /// The executable that becomes the guard of a program: the server's own.
    pub guard: PathBuf,
    /// The server's environment, of which a program gets what it needs.
    pub variables: Arc<[(OsString, OsString)]>,
    /// How many files a program may open; `None`: as many as the server.
    pub open_files: Option<u64>,
    /// The database file of the server's tasks, as an absolute path. `None`: tasks are in memory and end with the server.
    pub database: Option<PathBuf>,
    /// Programs of all agents that wait for their next turn.
    pub warm: WarmPrograms,
    /// Where the worktrees of tasks are.
    pub worktrees: Worktrees,
    /// How long the git commands of worktrees may take.
    pub git_limits: GitLimits,
    /// Where programs work.
    pub workspaces: Workspaces,
    /// Where programs ask other agents: `http://127.0.0.1:41242/mcp`. Set when the server listens; without it they ask nobody.
    pub agents_url: Arc<OnceLock<String>>,
    /// The executable of the server, for programs that start their MCP servers themselves.
    pub bridge: PathBuf,
}

impl ProgramAgent {
    /// `id` is the agent's own id in the configuration, even if messages are routed to it from another agent.
    pub fn new(id: impl Into<String>, settings: Settings, about: About, host: Host) -> Self {
        host.workspaces.note(&settings.workspace, settings.isolation);
        Self { id: id.into(), settings, about, host }
    }

    fn memory_key(&self) -> MemoryKey<'_> {
        MemoryKey { agent: &self.id, program: self.settings.info().name }
    }
}

impl Agent for ProgramAgent {
    fn about(&self) -> About {
        self.about.clone()
    }

    fn run(&self, turn: Turn) -> AgentFuture<'_> {
        let model = turn.model().map(str::to_owned).or_else(|| self.settings.model.clone());
        Box::pin(async move { turn::work(self.memory_key(), &self.settings, &self.host, &turn, model).await })
    }

    fn working_tree<'a>(&'a self, turn: &'a Turn) -> WorkingTreeFuture<'a> {
        Box::pin(turn::working_tree(self.memory_key(), &self.settings, turn))
    }

    /// A context has a home as soon as a session of it is remembered.
    fn locality(&self) -> Locality {
        if self.settings.portable { Locality::PrefersHome } else { Locality::NeedsHome }
    }

    fn survives_restart(&self, run: &InterruptedRun<'_>) -> Survives {
        let memories = Memories::parse(run.memory);
        let can_be_answered =
            |question| lost_question::can_be_answered(&self.settings, memories.of(self.memory_key()), question);
        if run.question.is_some_and(can_be_answered) { Survives::Questions } else { Survives::Nothing }
    }
}
