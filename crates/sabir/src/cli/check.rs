//! The command line of `check`.

use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;

/// The flags of `check`.
#[derive(Debug, Clone, Args)]
pub struct CheckOptions {
    /// The server, such as https://agents.example.com, or its card
    #[arg(required_unless_present = "list")]
    pub url: Option<String>,

    /// The bearer token to show. Rather in the environment: others see command lines
    #[arg(long, value_name = "TOKEN", env = "SABIR_BEARER", hide_env_values = true)]
    pub bearer: Option<String>,

    /// A header of every request, such as an API key; may be repeated
    #[arg(long = "header", visible_alias = "svc-param", value_name = "NAME:VALUE")]
    pub headers: Vec<String>,

    /// Check only this version of the protocol, even if the card does not name it
    #[arg(long, value_name = "VERSION", value_parser = PossibleValuesParser::new(["1.0", "0.3", "0.2", "0.1"]))]
    pub a2a_version: Option<String>,

    /// Check only this binding
    #[arg(long, value_name = "BINDING", value_parser = PossibleValuesParser::new(["jsonrpc", "http+json", "grpc"]))]
    pub transport: Option<String>,

    /// What is sent to the agent
    #[arg(long, value_name = "TEXT", default_value = "hello")]
    pub message: String,

    /// A message on which the agent asks a question; without it, rules about questions are skipped
    #[arg(long, value_name = "TEXT")]
    pub ask: Option<String>,

    /// A message that keeps the agent busy for a few seconds; without it, rules about running tasks may be skipped
    #[arg(long, value_name = "TEXT")]
    pub slow: Option<String>,

    /// How long an answer may take
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = humantime::parse_duration)]
    pub timeout: Duration,

    /// How long the whole check may take
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = humantime::parse_duration)]
    pub max_time: Duration,

    /// Check at most so many interfaces, the first ones of the card
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_interfaces: u32,

    /// Report only this rule, such as stream.first, or the rules of this group, such as stream; may be repeated
    #[arg(long, value_name = "RULE")]
    pub only: Vec<String>,

    /// Print all rules with their sections of the specification, and check nothing
    #[arg(long)]
    pub list: bool,

    /// Print JSON on a terminal too
    #[arg(long)]
    pub json: bool,
}

/// Below the flags of `check`.
pub const CHECK_HELP: &str = "Examples:
  sabir check https://agents.example.com
  sabir check http://127.0.0.1:41242 --slow 'slow 3' --ask 'ask which?'
  sabir check https://agents.example.com --a2a-version 1.0 --transport jsonrpc --only stream
  sabir check https://agents.example.com | jq '.findings[] | select(.level == \"error\")'
  sabir check --list

URL is a server, or its card. Each interface that the card names is checked in its version and binding, up to --max-interfaces
of them and for --max-time at most; the report names what was not tried.
For each rule that is broken the report says what was tried, what the specification says and where, what came back, and how
to mend it. An error breaks a MUST; a warning breaks a SHOULD, or a MUST that the official SDKs break as well.

The check sends the agent the message of --message about a dozen times for each interface, and those of --slow and --ask
once; it cancels what it started and did not finish. Nothing else on the server is touched. What to write for --slow and
--ask depends on the agent: those above are words of the demo agent.

On a terminal it prints lines to read, in a pipe one JSON object.

Exit codes: 0 no errors, 1 errors were found, 2 the command line is wrong, 3 the server cannot be reached, or lets nobody in
without credentials, 5 no errors were found, but --max-time was over before everything was tried.";
