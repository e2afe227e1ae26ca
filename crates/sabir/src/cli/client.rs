//! The command lines of the commands that talk to an agent: `send`, `watch`, `get`, `list`, `cancel` and `answer`.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use sabir_model::{ContextId, Json, State, TaskId, Timestamp};

use super::parts::PartOptions;
use super::{ProtocolOptions, ServerName};
use crate::config::parse_duration;

/// The flags of `send`.
#[derive(Debug, Clone, Args)]
pub struct SendOptions {
    /// The server, if it is a URL, and the text; - reads the text from the standard input
    #[arg(value_name = "WORD")]
    pub words: Vec<String>,

    /// Continue this task: answer it, or give it its next message
    #[arg(long, value_name = "ID", value_parser = task_id)]
    pub task_id: Option<TaskId>,

    /// Start a task in this context
    #[arg(long, value_name = "ID", value_parser = context_id)]
    pub context_id: Option<ContextId>,

    /// Do not wait for the task: print its ids and exit
    #[arg(long = "async", visible_aliases = ["no-wait", "return-immediately"])]
    pub is_async: bool,

    /// Metadata of the request: a JSON object
    #[arg(long, value_name = "JSON", value_parser = metadata)]
    pub metadata: Option<Json>,

    #[command(flatten)]
    pub parts: PartOptions,
    #[command(flatten)]
    pub wait: WaitOptions,
    #[command(flatten)]
    pub show: ShowOptions,
    #[command(flatten)]
    pub server: ServerName,
    #[command(flatten)]
    pub protocol: ProtocolOptions,
}

/// The flags of `answer`.
#[derive(Debug, Clone, Args)]
pub struct AnswerOptions {
    /// The server, if it is a URL, then the task and the answer; - reads the answer from the standard input
    #[arg(value_name = "WORD", required = true)]
    pub words: Vec<String>,

    #[command(flatten)]
    pub parts: PartOptions,
    #[command(flatten)]
    pub wait: WaitOptions,
    #[command(flatten)]
    pub show: ShowOptions,
    #[command(flatten)]
    pub server: ServerName,
    #[command(flatten)]
    pub protocol: ProtocolOptions,
}

/// The flags of `watch`.
#[derive(Debug, Clone, Args)]
pub struct WatchOptions {
    /// The server, if it is a URL, and the task
    #[arg(value_name = "WORD", required = true, num_args = 1..=2)]
    pub words: Vec<String>,

    #[command(flatten)]
    pub wait: WaitOptions,
    #[command(flatten)]
    pub show: ShowOptions,
    #[command(flatten)]
    pub server: ServerName,
    #[command(flatten)]
    pub protocol: ProtocolOptions,
}

/// The flags of `get`.
#[derive(Debug, Clone, Args)]
pub struct GetOptions {
    /// The server, if it is a URL, and the task
    #[arg(value_name = "WORD", required = true, num_args = 1..=2)]
    pub words: Vec<String>,

    /// Give up after this time, such as 10s
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub timeout: Option<Duration>,

    #[command(flatten)]
    pub show: ShowOptions,
    #[command(flatten)]
    pub server: ServerName,
    #[command(flatten)]
    pub protocol: ProtocolOptions,
}

/// The flags of `cancel`.
#[derive(Debug, Clone, Args)]
pub struct CancelOptions {
    /// The server, if it is a URL, and the task
    #[arg(value_name = "WORD", required = true, num_args = 1..=2)]
    pub words: Vec<String>,

    /// Metadata of the request: a JSON object
    #[arg(long, value_name = "JSON", value_parser = metadata)]
    pub metadata: Option<Json>,

    /// Give up after this time, such as 10s
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub timeout: Option<Duration>,

    #[command(flatten)]
    pub format: FormatOptions,
    #[command(flatten)]
    pub server: ServerName,
    #[command(flatten)]
    pub protocol: ProtocolOptions,
}

/// The flags of `list`.
#[derive(Debug, Clone, Args)]
pub struct ListOptions {
    /// The server
    pub url: Option<String>,

    /// Only tasks of this context
    #[arg(long, value_name = "ID", value_parser = context_id)]
    pub context_id: Option<ContextId>,

    /// Only tasks in this state
    #[arg(long, value_name = "STATE", value_parser = PossibleValuesParser::new(State::ALL.map(State::name))
        .map(|name| State::ALL.into_iter().find(|state| state.name() == name).expect("each of them is a state")))]
    pub state: Option<State>,

    /// Only tasks whose status changed at or after this time, such as 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = |text: &str| Timestamp::parse(text).ok_or("not a time of RFC 3339"))]
    pub since: Option<Timestamp>,

    /// At most so many tasks, the newest first
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,

    /// At most so many messages of each task's history
    #[arg(long, value_name = "N")]
    pub history: Option<u32>,

    /// With the artifacts of each task
    #[arg(long)]
    pub artifacts: bool,

    /// Give up after this time, such as 10s
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub timeout: Option<Duration>,

    #[command(flatten)]
    pub format: FormatOptions,
    #[command(flatten)]
    pub server: ServerName,
    #[command(flatten)]
    pub protocol: ProtocolOptions,
}

/// How long a task is waited for.
#[derive(Debug, Clone, Default, Args)]
pub struct WaitOptions {
    /// Stop waiting after this time, such as 90s or 10m; the task continues
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub timeout: Option<Duration>,

    /// Where the agent cannot stream: ask for the task so often, such as 2s
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub poll_interval: Option<Duration>,
}

/// How a task is shown.
#[derive(Debug, Clone, Default, Args)]
pub struct ShowOptions {
    /// Save the files of the artifacts in this folder
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,

    /// At most so many messages of the task's history
    #[arg(long, value_name = "N")]
    pub history: Option<u32>,

    #[command(flatten)]
    pub format: FormatOptions,
}

#[derive(Debug, Clone, Default, Args)]
pub struct FormatOptions {
    /// For people or for programs, instead of what the standard output is: a terminal, or something else
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Format>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Text,
    Json,
}

fn task_id(text: &str) -> Result<TaskId, String> {
    TaskId::parse(text).map_err(|error| error.to_string())
}

fn context_id(text: &str) -> Result<ContextId, String> {
    ContextId::parse(text).map_err(|error| error.to_string())
}

fn metadata(text: &str) -> Result<Json, String> {
    match Json::parse(text.trim()) {
        Ok(json) if json.is_object() => Ok(json),
        Ok(_) => Err("not an object, such as {\"priority\": 1}".to_owned()),
        Err(error) => Err(format!("not JSON: {error}")),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let time = parse_duration(text).filter(|time| !time.is_zero());
    time.ok_or_else(|| "write it as 90s, 10m or 1h".to_owned())
}
