//! The command lines of `proxy` and `import-card`: where a remote agent is, and what it is shown.

use clap::Args;

use super::CliOptions;

/// A remote agent, and how it is spoken to. What the values mean is said by the settings of agents of kind `a2a`.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Remote agent")]
pub struct RemoteOptions {
    /// The remote agent: its server, such as https://agents.example.com, or its card
    #[arg(help_heading = None)]
    pub url: String,

    /// The bearer token to show it. Rather in the environment, since others see command lines [env: SABIR_UPSTREAM_TOKEN]
    #[arg(long, value_name = "TOKEN")]
    pub bearer: Option<String>,

    /// The API key to show it in a header, such as X-API-Key:abc
    #[arg(long, value_name = "NAME:VALUE")]
    pub api_key: Option<String>,

    /// A header that every request to it has; may be repeated
    #[arg(long, value_name = "NAME:VALUE")]
    pub header: Vec<String>,

    /// Where its card is, if it is not at a well-known path below URL
    #[arg(long, value_name = "URL")]
    pub card_url: Option<String>,

    /// Where calls go, instead of where its card says
    #[arg(long, value_name = "URL")]
    pub endpoint: Option<String>,

    /// Speak this protocol version to it, instead of the newest that its card names: 1.0, 0.3, 0.2 or 0.1
    #[arg(long, value_name = "VERSION")]
    pub a2a_version: Option<String>,

    /// Prefer this binding: jsonrpc or http+json; may be repeated, the best first
    #[arg(long, value_name = "BINDING")]
    pub transport: Vec<String>,
}

/// The flags of `proxy`.
#[derive(Debug, Clone, Args)]
#[command(mut_arg("agent", |flag| flag.hide(true).conflicts_with("url")))]
pub struct ProxyOptions {
    #[command(flatten)]
    pub options: CliOptions,

    #[command(flatten)]
    pub remote: RemoteOptions,
}

impl ProxyOptions {
    /// As `serve` takes them.
    pub fn into_options(self) -> CliOptions {
        CliOptions { remote: Some(self.remote), ..self.options }
    }
}

/// The flags of `import-card`.
#[derive(Debug, Clone, Args)]
pub struct ImportCardOptions {
    #[command(flatten)]
    pub remote: RemoteOptions,

    /// The id of the agent in the file, instead of one that is made from its name
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
}

/// Below the flags of `proxy`.
pub const PROXY_HELP: &str = "Examples:
  sabir proxy https://agents.example.com
  sabir proxy http://localhost:9999 --port 7870
  SABIR_UPSTREAM_TOKEN=$(cat token) sabir proxy https://agents.example.com
  sabir proxy https://agents.example.com --api-key X-API-Key:abc --header X-Team:ships
  sabir proxy https://agents.example.com --endpoint https://agents.example.com/rpc --a2a-version 0.3

It is `sabir serve` with one agent, whose id is `remote` and which stands for the agent at URL: clients of every protocol
version can call it, its tasks are stored, streams resume, and webhooks are tried until they arrive. Callers' own credentials
are never passed on.

On a terminal it looks at the card first and says what it found. An agent that cannot be reached yet is tried again while
the server runs. All flags, variables and files of `serve` count, but for the agents of the file; what else can be said
of a remote agent (OAuth, certificates, limits) needs a file: `sabir import-card URL` writes its table.

Tasks are kept in a database for this URL in your data directory, not in that of `serve`, unless --store, SABIR_STORE or
a file names one. Commands that ask a running server need --url.";

/// Below the flags of `import-card`.
pub const IMPORT_CARD_HELP: &str = "Examples:
  sabir import-card https://agents.example.com >> sabir.toml
  sabir import-card http://localhost:9999 --id old-friend >> sabir.toml
  sabir import-card https://agents.example.com --bearer \"$TOKEN\"

It fetches the card of a remote agent and prints the [[agent]] table by which `sabir serve` stands in front of it: TOML, on a
terminal and in a pipe. Lines for the credentials that the card asks for are commented out; no secret is printed. What was
found odd about the card is said on stderr. Nothing but the card is asked for.

Exit codes: 0 the table is printed, 3 the agent cannot be reached or has no card, 2 the command line is wrong, 1 anything
else.";
