//! The command line. Values are taken as text here; the settings table says what they mean, so that a flag, a
//! variable and a file are judged by the same words.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(
    name = "sabir",
    version,
    about = "Puts any agent on the A2A network, for clients of every protocol version",
    arg_required_else_help = true,
    subcommand_required = true,
    after_help = "Examples:
  sabir serve                        the demo agent on 127.0.0.1:41242
  sabir serve --config sabir.toml    the agents of a file
  sabir config                       what would be used, and where it is set

Exit codes: 0 all went well, 1 something failed, 2 the command line or the configuration is wrong."
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the server until it gets SIGTERM or Ctrl-C
    #[command(after_help = "Examples:
  sabir serve
  sabir serve --port 7870 --store sqlite:tasks.db
  sabir serve --listen 127.0.0.1:41242 --listen '[::1]:41242'
  sabir serve --listen 0.0.0.0:80 --allow-open --public-url https://agents.example.com

Without --config the file sabir.toml of the working directory is used, if there is one. Flags win over
the environment (SABIR_LISTEN, SABIR_STORE, ...), and the environment wins over the file.")]
    Serve(Options),
    /// Print the settings that serve would use, and where each comes from
    #[command(after_help = "Examples:
  sabir config
  sabir config --config staging.toml
  SABIR_LISTEN=:7870 sabir config | jq -c '.[] | select(.source != \"default\")'

On a terminal it prints lines to read, in a pipe one JSON array. It takes the same flags as serve.")]
    Config(Options),
}

/// The flags of `serve` and `config`.
#[derive(Debug, Clone, Default, Args)]
pub struct Options {
    /// Read this file instead of ./sabir.toml
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Serve on this address, such as 127.0.0.1:41242 or [::1]:41242; may be repeated. A port alone
    /// (7870 or :7870) means loopback
    #[arg(long, value_name = "ADDR", value_delimiter = ',')]
    pub listen: Vec<String>,

    /// Serve on this port of 127.0.0.1
    #[arg(long, value_name = "N")]
    pub port: Option<u16>,

    /// Keep tasks here: sqlite:PATH, or memory: for trials (not durable)
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,

    /// Run one agent of this kind instead of those in the file: demo or conformance
    #[arg(long, value_name = "KIND")]
    pub agent: Option<String>,

    /// Serve on addresses that other machines can reach although callers need no credentials
    #[arg(long)]
    pub allow_open: bool,

    /// The address under which clients reach this server, for its card
    #[arg(long, value_name = "URL")]
    pub public_url: Option<String>,

    /// How log lines look: text or json
    #[arg(long, value_name = "FORMAT")]
    pub log_format: Option<String>,

    /// What is logged: off, error, warn, info, debug or trace, also per module: info,sabir=debug
    #[arg(long, value_name = "LEVEL")]
    pub log_level: Option<String>,
}
