//! What this process was started with: its environment, its terminal, its folder and its own program.
//!
//! Nothing else reads the process environment. All others are handed what they need of it, so that tests can hand them
//! something else.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use sabir_agents::program::{GitLimits, Host, WarmPrograms, Workspaces, Worktrees};

use crate::cli::{CliOptions, RemoteOptions};
use crate::config::{self, AgentConfig, Audience, Config, LoadedConfig, Problems};
use crate::descriptors::Descriptors;
use crate::hosting::Surroundings;
use crate::machine::Machine;
use crate::serve::LogStyle;

/// Reads the configuration, and prints its warnings.
pub fn load(options: &CliOptions) -> Result<LoadedConfig, Problems> {
    let loaded = config::load(options, std::env::vars_os())?;
    for warning in &loaded.warnings {
        eprintln!("sabir: warning: {warning}");
    }
    Ok(loaded)
}

/// The same for a command that shows the warnings itself.
pub fn load_silently(options: &CliOptions) -> Result<LoadedConfig, Problems> {
    config::load(options, std::env::vars_os())
}

/// Reads the configuration of a server that runs. Its warnings were printed when the server started.
pub fn load_again(options: &CliOptions) -> Result<Config, Problems> {
    Ok(config::load(options, std::env::vars_os())?.config)
}

/// What the environment says about the servers that commands talk to. The names beside ours are those of the `a2a-cli`
/// specification.
#[derive(Debug, Clone, Default)]
pub struct ClientVariables {
    pub bearer: Option<String>,
    pub api_key: Option<String>,
    pub agent_card: Option<String>,
}

pub fn client_variables() -> ClientVariables {
    let value = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
    ClientVariables {
        bearer: value("SABIR_TOKEN").or_else(|| value("A2ACLI_BEARER")),
        api_key: value("A2ACLI_API_KEY"),
        agent_card: value("A2ACLI_AGENT_CARD"),
    }
}

/// Which standard streams lead to a person.
#[derive(Debug, Clone, Copy)]
pub struct Terminals {
    pub stdin: bool,
    pub stdout: bool,
    pub stderr: bool,
    /// Lines can be erased and drawn again.
    pub redraws: bool,
}

pub fn terminals() -> Terminals {
    Terminals {
        stdin: io::stdin().is_terminal(),
        stdout: io::stdout().is_terminal(),
        stderr: io::stderr().is_terminal(),
        redraws: std::env::var("TERM").is_ok_and(|name| !name.is_empty() && name != "dumb"),
    }
}

/// The remote agent that flags and environment describe.
pub fn remote_agent(options: &RemoteOptions) -> Result<AgentConfig, Problems> {
    config::remote_agent(options, std::env::vars_os())
}

/// Who reads the standard output.
pub fn audience() -> Audience {
    if io::stdout().is_terminal() { Audience::Person } else { Audience::Program }
}

pub fn log_style() -> LogStyle {
    LogStyle::choose(io::stderr().is_terminal(), std::env::var_os("NO_COLOR").as_deref())
}

pub fn machine() -> anyhow::Result<Machine> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| Machine::USUAL_PATH.into());
    let folder = std::env::current_dir().context("cannot tell in which folder sabir was started")?;
    Ok(Machine { path, folder })
}

pub fn surroundings(descriptors: Descriptors, config: &Config) -> anyhow::Result<Surroundings> {
    let seconds = std::env::var("TCK_STREAMING_TIMEOUT").ok().and_then(|text| text.parse().ok());
    let streaming_timeout = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let streaming_timeout = streaming_timeout.unwrap_or(Duration::from_secs(2));
    let host = host(descriptors.given, config.store.local_file())?;
    Ok(Surroundings { streaming_timeout, machine: machine()?, host, descriptors })
}

fn host(open_files: Option<u64>, local_file: Option<PathBuf>) -> anyhow::Result<Host> {
    // The running program, also when its file has been replaced since.
    let running = Path::new("/proc/self/exe");
    let guard = match running.exists() {
        true => running.to_owned(),
        false => std::env::current_exe().context("cannot tell where sabir itself is")?,
    };
    let database = local_file.map(|path| std::path::absolute(&path).unwrap_or(path));
    let worktrees = Worktrees::new(worktrees_folder(database.as_deref()));
    let variables = std::env::vars_os().collect();
    let (warm, git_limits) = (WarmPrograms::default(), GitLimits::default());
    let workspaces = Workspaces::default();
    let (agents_url, bridge) = (Arc::default(), std::env::current_exe().unwrap_or_else(|_| guard.clone()));
    Ok(Host { guard, variables, open_files, database, warm, worktrees, git_limits, workspaces, agents_url, bridge })
}

/// Worktrees lie beside the database: whoever opens that one finds what a server before it has left.
fn worktrees_folder(database: Option<&Path>) -> PathBuf {
    // Tasks in memory go with the server.
    let file =
        database.map_or_else(|| std::env::temp_dir().join(format!("sabir-{}", std::process::id())), Path::to_owned);
    let mut name = file.into_os_string();
    name.push("-worktrees");
    name.into()
}
