//! Which server a command asks: flags of all commands that talk to a running one.

use std::path::PathBuf;

use clap::Args;

/// Which server is asked.
#[derive(Debug, Clone, Args)]
pub struct RunningServer {
    /// The server, such as http://127.0.0.1:41242, instead of the one that runs here
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,

    /// The bearer token to show, if the server asks for credentials. Rather in the environment: others see command lines
    #[arg(long, value_name = "TOKEN", env = "SABIR_TOKEN", hide_env_values = true)]
    pub token: Option<String>,

    /// Without --url: the configuration of the server, instead of ./sabir.toml
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}
