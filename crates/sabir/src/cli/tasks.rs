//! The command line of `tasks`.

use clap::{Args, Subcommand};

use super::RunningServer;
use super::audit::{Since, since};

/// The flags of `tasks`, and the commands below it.
#[derive(Debug, Clone, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct TasksOptions {
    #[command(subcommand)]
    pub command: Option<TasksCommand>,

    #[command(flatten)]
    pub filter: TaskFilterOptions,

    /// How many to show, the newest first
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,

    #[command(flatten)]
    pub server: RunningServer,
}

#[derive(Debug, Clone, Subcommand)]
pub enum TasksCommand {
    /// Cancel every open task that the flags name
    #[command(after_help = "Examples:
  sabir tasks cancel --id 0197f3c2-7b1e-7c44-9a52-5f1b8e0d3c6a
  sabir tasks cancel --number 17
  sabir tasks cancel --agent coder --state stuck --idle 20m
  sabir tasks cancel --owner token:bob --yes
  sabir tasks cancel --all

A filter is required; --all cancels every open task. On a terminal the command shows what it would cancel and asks; it then
cancels those tasks and no others, not even tasks that match by now. Elsewhere it needs --yes. It waits until the runs have
stopped.")]
    Cancel(CancelTasksOptions),

    /// Give all tasks of an owner to another
    #[command(after_help = "Examples:
  sabir tasks assign --from anonymous --to token:alice
  sabir tasks assign --from token:bob --to https://idp.example.com#bob

Tasks from before there were credentials belong to anonymous: only admins see them until they are assigned. A subject is
qualified by who vouches for it: token:NAME, key:NAME, cert:URI, or the issuer, # and the subject. Tasks that are at work stay,
and so do those whose id the new owner has already. A server that asks for credentials wants a token with the scope admin
(SABIR_TOKEN).")]
    Assign(AssignOptions),
}

/// Which tasks.
#[derive(Debug, Clone, Args, Default)]
pub struct TaskFilterOptions {
    /// Only tasks in this state; may be repeated. open: all that are not finished; waiting: for an answer; stuck: at work, and
    /// silent for --idle
    #[arg(long = "state", value_name = "STATE", value_parser = STATES)]
    pub states: Vec<String>,

    /// With --state stuck: how long a task must be silent, such as 5m
    #[arg(long, value_name = "TIME", value_parser = whole_seconds)]
    pub idle: Option<u64>,

    /// Only tasks of this agent
    #[arg(long, value_name = "ID")]
    pub agent: Option<String>,

    /// Only tasks of this context
    #[arg(long, value_name = "ID")]
    pub context: Option<String>,

    /// Only tasks of this owner, such as token:alice or anonymous
    #[arg(long, value_name = "SUBJECT")]
    pub owner: Option<String>,

    /// The tenant of that owner
    #[arg(long, value_name = "NAME", requires = "owner")]
    pub tenant: Option<String>,

    /// Only tasks whose status changed since then: a duration such as 1h, or a time such as 2026-05-01T12:00:00Z
    #[arg(long, value_name = "WHEN", value_parser = since)]
    pub since: Option<Since>,

    /// Only tasks whose id begins so: at least 4 characters, or the whole id. To cancel, always the whole id
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,

    /// Only the task of this number, which no other task has: callers of A2A 0.1 choose ids, and two may choose the same
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub number: Option<u64>,
}

#[derive(Debug, Clone, Args)]
pub struct CancelTasksOptions {
    #[command(flatten)]
    pub filter: TaskFilterOptions,

    /// Every open task, instead of a filter
    #[arg(long)]
    pub all: bool,

    /// Do not ask
    #[arg(long, short)]
    pub yes: bool,

    #[command(flatten)]
    pub server: RunningServer,
}

const STATES: [&str; 12] = [
    "submitted",
    "working",
    "input-required",
    "auth-required",
    "completed",
    "failed",
    "canceled",
    "rejected",
    "open",
    "waiting",
    "stuck",
    "all",
];

fn whole_seconds(text: &str) -> Result<u64, String> {
    let duration = crate::config::parse_duration(text).filter(|duration| duration.as_secs() > 0);
    duration.map(|duration| duration.as_secs()).ok_or_else(|| "expected a duration such as 30s or 5m".to_owned())
}

/// Below the flags of `tasks`.
pub const TASKS_HELP: &str = "Examples:
  sabir tasks
  sabir tasks --state waiting
  sabir tasks --state stuck --idle 10m
  sabir tasks --state failed --since 24h --agent coder
  sabir tasks --id 0197f3c2
  sabir tasks cancel --agent coder --state stuck
  sabir tasks --state all | jq -r '.[] | [.id, .state, .owner] | @tsv'

Without --state it shows what is not finished. A task that works and has stored nothing for five minutes is marked as stuck.

The server is the one that runs with the store of this folder or of --config, whatever its address; --url names another. One
that asks for credentials wants a token with the scope admin (SABIR_TOKEN); others answer to programs on their own machine only.
On a terminal a table is printed, in a pipe a JSON array. If more tasks match than --limit allows, the command says so, in a
pipe on the standard error.";

#[derive(Debug, Clone, Args)]
pub struct AssignOptions {
    /// Whose tasks, such as token:bob or anonymous
    #[arg(long, value_name = "SUBJECT")]
    pub from: String,
    /// The tenant of that subject
    #[arg(long, value_name = "NAME")]
    pub from_tenant: Option<String>,
    /// Who gets them
    #[arg(long, value_name = "SUBJECT")]
    pub to: String,
    /// The tenant of that subject
    #[arg(long, value_name = "NAME")]
    pub to_tenant: Option<String>,
    #[command(flatten)]
    pub server: RunningServer,
}
