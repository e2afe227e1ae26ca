//! The command line of `nodes`.

use clap::Args;

use super::RunningServer;

#[derive(Debug, Clone, Args)]
pub struct NodesOptions {
    /// The server to ask, instead of the one that runs here
    #[arg(value_name = "URL", conflicts_with = "url")]
    pub server_url: Option<String>,
    #[command(flatten)]
    pub server: RunningServer,
}

/// Below the flags of `nodes`.
pub const NODES_HELP: &str = "Examples:
  sabir nodes
  sabir nodes http://127.0.0.1:41242
  sabir nodes | jq -r '.nodes[] | select(.state == \"dead\") | .name'

Each server that shares a Postgres is a node; any of them can be asked. `up` and `last beat` are by the clock of the database.
A node is dead when its last beat is longer ago than its grace time; the others take over its tasks. `notifications` is
`polling` where a pooler is between it and the database: then it looks for changes four times per second.

The server is the one that runs as the node of this folder or of --config; a URL names another. One that asks for credentials wants
a token with the scope admin (SABIR_TOKEN); others answer to programs on their own machine only.
On a terminal a table is printed, in a pipe JSON.";
