//! The command line of `serve`, `config` and `agents`. They take the same flags, since the last two show what the first one
//! would do.

use std::path::PathBuf;

use clap::Args;

use super::RemoteOptions;

/// The flags of `serve`, `config` and `agents`.
#[derive(Debug, Clone, Default, Args)]
pub struct CliOptions {
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

    /// Keep tasks here: sqlite:PATH, postgres://USER@HOST/DATABASE, or memory: for trials (not durable)
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,

    /// Run one agent of this kind instead of those in the file: demo, conformance, or a program (claude-code, codex,
    /// gemini, opencode, goose, copilot, qwen, vibe, cursor), which works in the current folder
    #[arg(long, value_name = "KIND")]
    pub agent: Option<String>,

    /// Serve on addresses that other machines can reach although callers need no credentials
    #[arg(long)]
    pub allow_open: bool,

    /// The address under which clients reach this server, for its card
    #[arg(long, value_name = "URL")]
    pub public_url: Option<String>,

    /// Serve HTTPS with a certificate for this machine that sabir makes, for trials
    #[arg(long)]
    pub dev_tls: bool,

    /// How log lines look: text or json
    #[arg(long, value_name = "FORMAT")]
    pub log_format: Option<String>,

    /// What is logged: off, error, warn, info, debug or trace, also per module: info,sabir=debug
    #[arg(long, value_name = "LEVEL")]
    pub log_level: Option<String>,

    /// The agent of `sabir proxy`, instead of those in the file.
    #[arg(skip)]
    pub remote: Option<RemoteOptions>,
}

/// The flags of `config`.
#[derive(Debug, Clone, Args)]
pub struct ConfigOptions {
    #[command(flatten)]
    pub options: CliOptions,

    /// Print the JSON Schema of the configuration file, for editors
    #[arg(long)]
    pub schema: bool,
}

/// The flags of `agents`.
#[derive(Debug, Clone, Args)]
pub struct AgentsOptions {
    #[command(flatten)]
    pub options: CliOptions,

    /// Start each configured program, or the one of this agent, and ask it for a word
    #[arg(long, value_name = "ID", num_args = 0..=1)]
    pub check: Option<Option<String>>,
}

/// Below the flags of `serve`.
pub const SERVE_HELP: &str = "Examples:
  sabir serve
  sabir serve --agent claude-code
  sabir serve --port 7870 --store sqlite:tasks.db
  sabir serve --listen 127.0.0.1:41242 --listen '[::1]:41242'
  sabir serve --dev-tls
  sabir serve --listen 0.0.0.0:80 --allow-open --public-url https://agents.example.com

Without --config the file sabir.toml of the working directory is used, if there is one. Flags win over
the environment (SABIR_LISTEN, SABIR_STORE, ...), and the environment wins over the file.";

/// Below the flags of `config`.
pub const CONFIG_HELP: &str = "Examples:
  sabir config
  sabir config --config staging.toml
  SABIR_LISTEN=:7870 sabir config | jq -c '.[] | select(.source != \"default\")'
  sabir config --schema > sabir.schema.json

On a terminal it prints lines to read, in a pipe one JSON array. It takes the same flags as serve.

With --schema it prints the JSON Schema of sabir.toml instead. Editors complete and check a file whose first line
is `#:schema ./sabir.schema.json`.";

/// Below the flags of `agents`.
pub const AGENTS_HELP: &str = "Examples:
  sabir agents
  sabir agents --config staging.toml
  sabir agents --check
  sabir agents --check coder
  sabir agents | jq -r '.[] | select(.list == \"known\" and .ready) | .kind'

First come the agents that serve would run: id, kind, mode, program, workspace, and what happens when a program
wants permission to use a tool. Then come the programs that sabir knows by name, with path and version; each that is
found is run with --version, for at most 10 seconds. Nothing is asked of the network.

On a terminal it prints tables, in a pipe one JSON array; `list` is \"configured\" or \"known\", and `why` says what
is missing where `ready` is false. It takes the same flags as serve. The exit code is 0, ready or not.

With --check each configured program is started once, and asked for a word as a caller would ask it, with no
permission to use a tool. That takes up to a minute and costs what the word costs. What is wrong is told in plain
words, with the remedy; the exit code is 1 if any program does not answer.";
