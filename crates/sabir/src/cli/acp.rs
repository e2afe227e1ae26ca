//! The command line of `acp`.

use clap::Args;

use super::{ProtocolOptions, ServerName};

#[derive(Debug, Clone, Args)]
pub struct AcpOptions {
    /// The server, such as https://agents.example.com, instead of the one that runs here
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,

    /// Ask the agent to work in the folder that the editor has open. Its server must allow that (workspace_roots)
    #[arg(long)]
    pub workspace: bool,

    #[command(flatten)]
    pub server: ServerName,
    #[command(flatten)]
    pub protocol: ProtocolOptions,
}

/// Below the flags of `acp`.
pub const ACP_HELP: &str = "Examples:
  sabir acp
  sabir acp --agent coder --workspace
  sabir acp --url https://agents.example.com --agent coder

Editors that speak the Agent Client Protocol (Zed, JetBrains, Neovim) start this command, and show an agent of the server that runs
here, or of another A2A server. A session is a context, and a prompt a task in it, so work goes on when the editor is closed, and a
session can be loaded again. Start a server with `sabir serve` first. What goes wrong is told to the editor, and to its log.";
