//! The command line. Values are taken as text here; the settings table says what they mean, so that a flag, a
//! variable and a file are judged by the same words.
//!
//! This file is the table of contents: a new command is a variant of `CliCommand`, a file with its flags, a line and a
//! function in `commands.rs`, and a row in `docs/reference/command-line.md`.

mod a2a_server;
mod acp;
mod audit;
mod bench;
mod card;
mod check;
mod client;
mod client_help;
mod doctor;
mod health;
mod manual;
mod mcp;
mod nodes;
mod parts;
mod proxy;
mod push;
mod running_server;
mod secrets;
mod serve;
mod store;
mod tasks;

use clap::{Parser, Subcommand};

pub use a2a_server::{ProtocolOptions, ServerName};
pub use acp::AcpOptions;
pub use audit::{AuditOptions, Since};
pub use bench::BenchOptions;
pub use card::CardOptions;
pub use check::CheckOptions;
pub use client::{
    AnswerOptions, CancelOptions, Format, FormatOptions, GetOptions, ListOptions, SendOptions, ShowOptions,
    WaitOptions, WatchOptions,
};
pub use doctor::DoctorOptions;
pub use health::HealthOptions;
pub use manual::{CompletionsOptions, ManOptions};
pub use mcp::McpOptions;
pub use nodes::NodesOptions;
pub use parts::{PartOption, PartOptions, PartSource};
pub use proxy::{ImportCardOptions, ProxyOptions, RemoteOptions};
pub use push::{DeliveryIds, PushCommand};
pub use running_server::RunningServer;
pub use secrets::{KeyCommand, TokenCommand};
pub use serve::{AgentsOptions, CliOptions, ConfigOptions};
pub use store::{BackupOptions, MigrateOptions, RestoreOptions, StoreCheckOptions, StoreCommand};
pub use tasks::{AssignOptions, CancelTasksOptions, TaskFilterOptions, TasksCommand, TasksOptions};

#[derive(Debug, Parser)]
#[command(
    name = "sabir",
    version,
    about = "Puts any agent on the A2A network, for clients of every protocol version",
    arg_required_else_help = true,
    subcommand_required = true,
    after_help = "Examples:
  sabir serve                        the demo agent on 127.0.0.1:41242
  sabir serve --agent claude-code    Claude Code, in the folder where you are
  sabir serve --config sabir.toml    the agents of a file
  sabir send hello                   a message to the server that runs here, and what becomes of it
  sabir watch TASK                   a task until it ends; get, list, cancel and answer do what they say
  sabir proxy https://example.com    a durable front for an agent that speaks A2A already, for clients of every version
  sabir agents                       what is configured, and what is installed here
  sabir agents --check               whether the configured programs really answer
  sabir config                       what would be used, and where it is set
  sabir push list                    webhooks that could not be delivered yet, or not at all
  sabir tasks                        what runs, waits or is stuck, of all callers; tasks cancel cancels by filter
  sabir audit                        who did what to which task, of the last day
  sabir doctor                       what is wrong here, and what to do about it
  sabir store check                  whether every task in the store is complete and readable
  sabir store migrate                copies all tasks from SQLite to Postgres, or back
  sabir store backup FILE            everything in the store, while the server runs; restore brings it back
  sabir nodes                        the servers that share a Postgres, and what they work on
  sabir acp --agent coder            an agent for editors that speak the Agent Client Protocol, which start this command
  sabir health                       whether the server that runs here can take work, as an exit code
  sabir key new                      a key that encrypts the secrets of webhooks
  sabir card https://example.com     what an A2A server says of itself, and with --verify who signed it
  sabir check https://example.com    whether an A2A server keeps the rules of the specification
  sabir bench http://127.0.0.1:41242 how fast a server is, and whether it is right
  sabir completions bash             a script by which the shell completes all of this
  sabir man                          the manual page; with a folder, one for each command

Exit codes: 0 all went well, 1 something failed, 2 the command line or the configuration is wrong."
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: CliCommand,
}

#[derive(Debug, Subcommand)]
pub enum CliCommand {
    /// Run the server until it gets SIGTERM or Ctrl-C
    #[command(after_help = serve::SERVE_HELP)]
    Serve(CliOptions),
    /// Run a server in front of an agent that speaks A2A already
    #[command(after_help = proxy::PROXY_HELP)]
    Proxy(ProxyOptions),
    /// Print the table of a remote agent for sabir.toml
    #[command(after_help = proxy::IMPORT_CARD_HELP)]
    ImportCard(ImportCardOptions),
    /// Print the settings that serve would use, and where each comes from
    #[command(after_help = serve::CONFIG_HELP)]
    Config(ConfigOptions),
    /// List the agents that are configured and the programs that are installed
    #[command(after_help = serve::AGENTS_HELP)]
    Agents(AgentsOptions),
    /// Send a message to an agent, and show what becomes of it
    #[command(override_usage = "sabir send [OPTIONS] [URL] TEXT...", after_help = client_help::send_help())]
    Send(Box<SendOptions>),
    /// Follow a task until it ends or asks
    #[command(override_usage = "sabir watch [OPTIONS] [URL] TASK", after_help = client_help::watch_help())]
    Watch(Box<WatchOptions>),
    /// Show a task as it is now
    #[command(override_usage = "sabir get [OPTIONS] [URL] TASK", after_help = client_help::get_help())]
    Get(Box<GetOptions>),
    /// List the tasks of a server
    #[command(after_help = client_help::list_help())]
    List(Box<ListOptions>),
    /// Cancel a task
    #[command(override_usage = "sabir cancel [OPTIONS] [URL] TASK", after_help = client_help::cancel_help())]
    Cancel(Box<CancelOptions>),
    /// Answer the question of a task that waits
    #[command(override_usage = "sabir answer [OPTIONS] [URL] TASK TEXT...", after_help = client_help::answer_help())]
    Answer(Box<AnswerOptions>),
    /// See, retry and drop deliveries of webhooks at a running server
    #[command(subcommand, after_help = push::PUSH_HELP)]
    Push(PushCommand),
    /// Show the card of an A2A server, and verify its signatures
    #[command(after_help = card::card_help())]
    Card(CardOptions),
    /// Check whether an A2A server keeps the rules of the specification
    #[command(after_help = check::CHECK_HELP)]
    Check(CheckOptions),
    /// Show who did what to which task, at a running server
    #[command(after_help = audit::AUDIT_HELP)]
    Audit(AuditOptions),
    /// Show the servers that share a Postgres, at a running one
    #[command(after_help = nodes::NODES_HELP)]
    Nodes(NodesOptions),
    /// Speak MCP on standard input and output, for programs that start their MCP servers
    #[command(after_help = mcp::MCP_HELP)]
    Mcp(McpOptions),
    /// Be an agent of the Agent Client Protocol on standard input and output, for editors
    #[command(after_help = acp::ACP_HELP)]
    Acp(Box<AcpOptions>),
    /// Check whether a running server can take work
    #[command(after_help = health::HEALTH_HELP)]
    Health(HealthOptions),
    /// Look for what is wrong here: configuration, store, agents, ports, clock, limits, certificates
    #[command(after_help = doctor::DOCTOR_HELP)]
    Doctor(Box<DoctorOptions>),
    /// Check a store, back it up, restore it, or copy it to another one
    #[command(subcommand)]
    Store(StoreCommand),
    /// Show the tasks of all callers at a running server, cancel some, or give them to another owner
    #[command(after_help = tasks::TASKS_HELP)]
    Tasks(TasksOptions),
    /// Make keys
    #[command(subcommand)]
    Key(KeyCommand),
    /// Make tokens for callers
    #[command(subcommand)]
    Token(TokenCommand),
    /// Measure an A2A server, and check every reply of it
    #[command(after_help = bench::BENCH_HELP)]
    Bench(BenchOptions),
    /// Print a script that completes this command line in a shell
    #[command(after_help = manual::COMPLETIONS_HELP)]
    Completions(CompletionsOptions),
    /// Print the manual page of sabir, or write those of all commands
    #[command(after_help = manual::MAN_HELP)]
    Man(ManOptions),
}
