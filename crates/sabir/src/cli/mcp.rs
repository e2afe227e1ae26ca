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
/mcp of a running server, so tasks outlive the program that asked. Start a server with `sabir serve` first. Programs that speak MCP
over HTTP need no command: give them http://127.0.0.1:41242/mcp.";
