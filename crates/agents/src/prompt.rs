//! What a turn of a program begins with: the caller's text, the session, and what the program may do.

use std::fmt;
use std::path::PathBuf;

/// The input of one turn. Some programs take it as arguments, others on standard input.
#[derive(Debug, Clone, Default)]
pub struct Prompt {
    /// A UUID that no other prompt has. The program uses it to say when it begins with this prompt.
    pub id: Option<String>,
    pub text: String,
    /// The working directory of the program.
    pub folder: PathBuf,
    /// The program's own session, to be resumed.
    pub session: Option<String>,
    /// The program was killed in the middle of a turn of that session. The turn resumes, and the text is not sent again.
    pub resumes_turn: bool,
    pub model: Option<String>,
    /// What the operator adds to the program's own instructions.
    pub instructions: Option<String>,
    /// Whether tools may be used without asking.
    pub approve: Approve,
    /// Files of the message, as they lie in the workspace.
    pub files: Vec<PathBuf>,
    /// The program runs as root. Some programs then refuse options that they accept from other users.
    pub as_root: bool,
    /// The text may be a command of the program, and may name files for it to read.
    pub trusts_prompts: bool,
    /// Whether the program obeys the settings of its workspace.
    pub workspace: Workspace,
    /// Where the program asks other agents. `None`: it may ask none.
    pub agents_door: Option<AgentsDoor>,
}

/// What the credential of an `AgentsDoor` is called in the environment of the program: other users of the machine see command lines.
pub const CREDENTIAL_VARIABLE: &str = "SABIR_DELEGATION_TOKEN";

/// What programs call the server, and what their tools begin with.
pub const DOOR_NAME: &str = "sabir";

/// Where a program asks other agents: the server's own MCP address.
#[derive(Clone, PartialEq, Eq)]
pub struct AgentsDoor {
    /// `http://127.0.0.1:41242/mcp`.
    pub url: String,
    /// Sabir itself, for programs that reach servers only by starting them: `sabir mcp --url`.
    pub bridge: PathBuf,
    /// Of this program, for the time of its turns.
    pub credential: String,
}

/// Without the credential.
impl fmt::Debug for AgentsDoor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "AgentsDoor({})", self.url)
    }
}

/// Which settings of the workspace the program obeys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Workspace {
    Trusted,
    /// Only what restricts the program, and instructions.
    Untrusted {
        rules: ProjectRules,
        instructions: Option<String>,
    },
}

impl Default for Workspace {
    fn default() -> Self {
        Workspace::Untrusted { rules: ProjectRules::default(), instructions: None }
    }
}

/// Rules about tools, in the program's own syntax.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProjectRules {
    pub deny: Vec<String>,
    pub ask: Vec<String>,
}

/// What happens when a program wants to use a tool that needs permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Approve {
    /// The caller is asked.
    #[default]
    Ask,
    /// Always yes.
    All,
    /// Always no.
    None,
}
