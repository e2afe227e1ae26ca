//! The settings of a program: which one, its mode, where it works, what it may do.

use std::path::PathBuf;
use std::time::Duration;

use sabir_model::AgentId;

use crate::prompt::Approve;

/// A program that we know by name, or one that the operator describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    ClaudeCode,
    Codex,
    Gemini,
    Opencode,
    Goose,
    Copilot,
    Qwen,
    Vibe,
    Cursor,
    /// Any program that speaks the Agent Client Protocol.
    Acp,
    /// Any program that prints JSON lines in the simple format (`assistant`, `tool_use`, `result`, ...).
    Generic,
    /// Any program: its output is the answer, its exit status the outcome.
    Command,
}

/// How Sabir communicates with a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Agent Client Protocol on standard input and output.
    Acp,
    /// The program's own protocol in both directions: Claude Code's control protocol, Codex's app-server.
    Duplex,
    /// One process per turn: the prompt as an argument or on standard input, JSON lines or text as output.
    #[default]
    OneShot,
}

/// A program that never asks again would block its task for ever.
pub const ASKS_AGAIN_WITHIN: Duration = Duration::from_secs(60);

/// How one agent runs its program.
#[derive(Debug, Clone)]
pub struct Settings {
    pub kind: Kind,
    pub mode: Mode,
    /// The program and its first arguments, instead of those of the kind.
    pub command: Option<Vec<String>>,
    /// More arguments, after those of the mode.
    pub arguments: Vec<String>,
    pub model: Option<String>,
    pub instructions: Option<String>,
    pub workspace: PathBuf,
    /// Folders below which a caller may choose another workspace. Empty: none.
    pub roots: Vec<PathBuf>,
    pub isolation: Isolation,
    pub shared_workspace: SharedWorkspace,
    pub approve: Approve,
    /// A question without an answer after this time is answered with no.
    pub approval_timeout: Option<Duration>,
    /// A program whose question is open for this long is ended, and resumed when it is answered.
    pub hibernate_after: Option<Duration>,
    /// How long a resumed program may say nothing before it has asked its question again.
    pub asks_again_within: Duration,
    /// Variables of the program's environment, besides those that are passed on.
    pub environment: Vec<(String, String)>,
    /// Names of variables that are passed on, besides those that every program needs. `PREFIX_*` passes on many.
    pub pass: Vec<String>,
    /// Whether callers see the end of a failed program's standard error. The log always has it.
    pub tell_stderr: bool,
    /// Whether the files of a message stay in the workspace when its task is over.
    pub keep_files: bool,
    pub prompt_by: PromptBy,
    /// Lines that ask for permission, in programs that ask in plain text.
    pub approval_pattern: Option<String>,
    /// What such a program reads for yes.
    pub approval_response: String,
    /// A caller's text may be a command of the program, and may name files for it to read.
    pub trusts_prompts: bool,
    /// The program obeys the workspace's settings: hooks, permissions and servers.
    pub trusts_workspace: bool,
    /// Longer lines are dropped.
    pub max_line: usize,
    /// What a program may print in one turn, in bytes.
    pub max_output: u64,
    /// How long it may take to end after SIGTERM.
    pub stop_grace: Duration,
    /// How long a program waits for the next message of its context, if it can. `None`: it ends with its turn.
    pub keep_warm: Option<Duration>,
    /// Sessions can be resumed on other machines too, because they share the files that the program keeps.
    pub portable: bool,
    /// Which other agents the program may ask in the name of its task. `None`: none.
    pub delegate: Option<Delegate>,
}

/// The agents that a program may ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delegate {
    /// All that its caller may run.
    All,
    Agents(Vec<AgentId>),
}

impl Delegate {
    /// Whether Sabir knows how such a program is told where it finds the agents.
    pub fn is_known_for(kind: Kind, mode: Mode) -> bool {
        mode == Mode::Acp || matches!(kind, Kind::ClaudeCode | Kind::Codex)
    }

    pub(super) fn agents(&self) -> Option<Vec<AgentId>> {
        match self {
            Delegate::All => None,
            Delegate::Agents(agents) => Some(agents.clone()),
        }
    }
}

/// How a `generic` program gets the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PromptBy {
    /// As its last argument, which other users of the machine can see.
    #[default]
    Argument,
    /// On its standard input.
    Stdin,
}

/// Whether tasks share the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Isolation {
    #[default]
    Shared,
    /// Each task has a git worktree of its own, and hands over its diff.
    Worktree,
}

/// Whether turns that work in the same folder wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SharedWorkspace {
    /// One after the other, over all agents that say so.
    Queue,
    /// At the same time.
    #[default]
    Parallel,
}
