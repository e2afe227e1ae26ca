//! The command line of `mcp`.

use clap::Args;

use super::RunningServer;

#[derive(Debug, Clone, Args)]
pub struct McpOptions {
    #[command(flatten)]
    pub server: RunningServer,
}

/// Below the flags of `mcp`.
pub const MCP_HELP: &str = "Examples:
  sabir mcp
  sabir mcp --url https://agents.example.com
  claude mcp add sabir -- sabir mcp

Programs that start their MCP servers themselves start this command. It carries messages between its standard input and output and
/mcp of the server that runs with the store of the configuration. Where none runs, it hosts the configured agents itself until its
standard input is closed; start a server with `sabir serve` first, and tasks go on when the program that asked is closed. Programs that
speak MCP over HTTP need no command: give them http://127.0.0.1:41242/mcp.";
