//! The command line of `health`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Clone, Args)]
pub struct HealthOptions {
    /// The server to ask, instead of the one that runs here
    #[arg(value_name = "URL")]
    pub url: Option<String>,

    /// Without a URL: the configuration of the server, instead of ./sabir.toml
    #[arg(long, value_name = "FILE", conflicts_with = "url")]
    pub config: Option<PathBuf>,
}

/// Below the flags of `health`.
pub const HEALTH_HELP: &str = "Examples:
  sabir health
  sabir health https://agents.example.com
  sabir health --config /etc/sabir/sabir.toml && echo it works

The command asks for /readyz and needs no credentials, so it fits where a container or a supervisor wants a command that checks
the server. It waits 5 seconds at most. A server that stops, or whose database cannot be used, is not ready.

Exit codes: 0 the server can take work, 1 it cannot or does not answer, 2 the command line or the configuration is wrong.";
