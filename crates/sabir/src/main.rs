//! The program `sabir`: reads the command line and the environment, and hands over to the command.
//!
//! Nothing else reads the process environment. Errors are lines on stderr that begin with `sabir:`; the exit code
//! is 2 when the command line or the configuration is wrong and 1 for everything else.

mod about;
mod admin_client;
mod agents;
mod audit;
mod bench;
mod card;
mod card_signer;
mod check;
mod cli;
mod config;
mod descriptors;
mod dev_tls;
mod diagnosis;
mod hosting;
mod identity_documents;
mod keys;
mod machine;
mod push;
mod serve;
mod signals;
mod tasks;
mod terminal_text;
mod tokens;
mod webhooks;

use std::io::{self, ErrorKind, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::Parser;
use sabir_agents::process;
use sabir_agents::program::{GitLimits, Host, WarmPrograms, Workspaces, Worktrees};

use cli::{AgentsOptions, Cli, CliCommand, CliOptions, ConfigOptions, KeyCommand, TasksCommand, TokenCommand};
use config::{Audience, Config, LoadedConfig, Problems, StoreUrl};
use descriptors::Descriptors;
use hosting::Surroundings;
use machine::Machine;
use serve::LogStyle;

/// It gives memory back to the system when a crowd of readers has gone, which the C library's hardly does.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == process::GUARD) {
        // Sabir starts itself so, once for every program that it runs. Nothing may come before: it has to be small and quick.
        return process::guard(arguments);
    }
    let error = match run(Cli::parse()) {
        Ok(code) => return code,
        Err(error) => error,
    };
    if let Some(Problems(problems)) = error.downcast_ref() {
        for problem in problems {
            eprintln!("sabir: {problem}");
        }
        return ExitCode::from(2);
    }
    eprintln!("sabir: {error:#}");
    ExitCode::from(1)
}

fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    match cli.command {
        CliCommand::Serve(options) => {
            let loaded = load(&options)?;
            loaded.check_exposure()?;
            loaded.check_tls()?;
            let descriptors = descriptors::raise();
            let surroundings = surroundings(descriptors, &loaded.config)?;
            loaded.check_requirements(&surroundings.machine)?;
            process::adopt_orphans();
            let style = LogStyle::choose(io::stderr().is_terminal(), std::env::var_os("NO_COLOR").as_deref());
            let again = move || Ok(config::load(&options, std::env::vars_os())?.config);
            serve::run(loaded.config, surroundings, style, Box::new(again))?;
        }
        CliCommand::Config(ConfigOptions { schema: true, .. }) => print(&config::schema())?,
        CliCommand::Config(ConfigOptions { options, schema: false }) => {
            let loaded = load(&options)?;
            for refused in [loaded.check_exposure(), loaded.check_tls(), loaded.check_requirements(&machine()?)] {
                for problem in refused.err().into_iter().flat_map(|Problems(problems)| problems) {
                    eprintln!("sabir: warning: serve would refuse this: {problem}");
                }
            }
            print(&config::show(&loaded, audience()))?;
        }
        CliCommand::Agents(AgentsOptions { options, check: None }) => {
            let loaded = load(&options)?;
            print(&agents::show(&loaded.config, &machine()?, audience()))?;
        }
        CliCommand::Agents(AgentsOptions { options, check: Some(only) }) => {
            let loaded = load(&options)?;
            let surroundings = surroundings(descriptors::raise(), &loaded.config)?;
            let checked = check::check(&loaded, &surroundings, only.as_deref())?;
            print(&check::show(&checked, audience()))?;
            if !checked.iter().all(check::Checked::is_well) {
                return Ok(ExitCode::from(1));
            }
        }
        CliCommand::Audit(options) => audit::run(&options, audience(), load, &mut io::stdout())?,
        CliCommand::Tasks(TasksCommand::Assign(options)) => print(&tasks::assign(&options, audience(), load)?)?,
        CliCommand::Push(command) => {
            let (text, failures) = push::run(&command, audience(), load)?;
            print(&text)?;
            for failure in &failures {
                eprintln!("sabir: {failure}");
            }
            if !failures.is_empty() {
                return Ok(ExitCode::from(1));
            }
        }
        CliCommand::Card(options) => {
            let audience = if options.json { Audience::Program } else { audience() };
            let report = card::run(&options, audience)?;
            print(&report.text)?;
            for warning in &report.warnings {
                eprintln!("sabir: warning: {warning}");
            }
            if let Some(failure) = report.failure {
                eprintln!("sabir: {failure}");
                return Ok(ExitCode::from(1));
            }
        }
        CliCommand::Key(KeyCommand::New { signing, card, alg, plain }) => {
            let key = keys::NewKey::make(keys::Purpose::of(signing, card.then_some(alg.as_str())));
            print(&if plain { key.plain() } else { key.show(audience()) })?;
        }
        CliCommand::Token(TokenCommand::New { subject, tenant, scopes, api_key }) => {
            config::check_credential(&subject, &scopes)?;
            let request = tokens::TokenRequest {
                subject: &subject,
                tenant: tenant.as_deref(),
                scopes: &scopes,
                is_api_key: api_key,
            };
            print(&tokens::new(&request, audience()))?;
        }
        CliCommand::Token(TokenCommand::Hash) => {
            let mut secret = String::new();
            io::stdin().take(MOST_INPUT).read_to_string(&mut secret).context("cannot read the token")?;
            print(&tokens::hash(&secret)?)?;
        }
        CliCommand::Bench(options) => bench::run(&options)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A token has a few dozen bytes.
const MOST_INPUT: u64 = 64 * 1024;

fn load(options: &CliOptions) -> Result<LoadedConfig, Problems> {
    let loaded = config::load(options, std::env::vars_os())?;
    for warning in &loaded.warnings {
        eprintln!("sabir: warning: {warning}");
    }
    Ok(loaded)
}

fn surroundings(descriptors: Descriptors, config: &Config) -> anyhow::Result<Surroundings> {
    let seconds = std::env::var("TCK_STREAMING_TIMEOUT").ok().and_then(|text| text.parse().ok());
    let streaming_timeout = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let streaming_timeout = streaming_timeout.unwrap_or(Duration::from_secs(2));
    let host = host(descriptors.given, &config.store.url)?;
    Ok(Surroundings { streaming_timeout, machine: machine()?, host, descriptors })
}

fn host(open_files: Option<u64>, store: &StoreUrl) -> anyhow::Result<Host> {
    // The running program, also when its file has been replaced since.
    let running = Path::new("/proc/self/exe");
    let guard = match running.exists() {
        true => running.to_owned(),
        false => std::env::current_exe().context("cannot tell where sabir itself is")?,
    };
    let database = match store {
        StoreUrl::Sqlite(path) => Some(std::path::absolute(path).unwrap_or_else(|_| path.clone())),
        StoreUrl::Memory => None,
    };
    let worktrees = Worktrees::new(worktrees_folder(database.as_deref()));
    let variables = std::env::vars_os().collect();
    let (warm, git_limits) = (WarmPrograms::default(), GitLimits::default());
    let workspaces = Workspaces::default();
    Ok(Host { guard, variables, open_files, database, warm, worktrees, git_limits, workspaces })
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

fn machine() -> anyhow::Result<Machine> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| Machine::USUAL_PATH.into());
    let folder = std::env::current_dir().context("cannot tell in which folder sabir was started")?;
    Ok(Machine { path, folder })
}

fn audience() -> Audience {
    if io::stdout().is_terminal() { Audience::Person } else { Audience::Program }
}

fn print(text: &str) -> anyhow::Result<()> {
    match io::stdout().write_all(text.as_bytes()) {
        // The reader has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}
