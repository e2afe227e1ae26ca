//! The commands: what each one loads, what it prints, and with which code it exits. The work itself is done in the module
//! of the command.
//!
//! `run` has one line for each command; a new command is a line there and a function below it.

use std::io::{self, ErrorKind, Read, Write};
use std::process::ExitCode;

use anyhow::Context;
use sabir_agents::process;

use crate::cli::{
    AgentsOptions, AuditOptions, BackupOptions, CardOptions, CheckOptions, CliCommand, CliOptions, ConfigOptions,
    DoctorOptions, Format, FormatOptions, ImportCardOptions, KeyCommand, ManOptions, MigrateOptions, PushCommand,
    RestoreOptions, StoreCheckOptions, StoreCommand, TasksCommand, TasksOptions, TokenCommand,
};
use crate::client_commands::{Failure, Surroundings, acp, answer, cancel, get, list, send, watch};
use crate::config::{self, Audience, LoadedConfig, Problems};
use crate::exit::Exit;
use crate::import_card::{self, Imported};
use crate::own_server::Companion;
use crate::process_environment::{
    audience, client_variables, load, load_again, load_silently, log_style, machine, remote_agent, surroundings,
    terminals,
};
use crate::transfer_progress::ProgressLine;
use crate::{
    agent_check, agents, audit, bench, card, client_commands, completions, conformance, descriptors, doctor, health,
    keys, man, mcp, nodes, proxy, push, serve, server_facts, store_backup, store_check, store_migrate, store_restore,
    tasks, tokens,
};

/// The exit code where a remote agent is not there.
const UNREACHABLE: u8 = 3;

/// A token has a few dozen bytes.
const MOST_INPUT: u64 = 64 * 1024;

pub fn run(command: CliCommand) -> anyhow::Result<ExitCode> {
    match command {
        CliCommand::Serve(options) => serve(options),
        CliCommand::Proxy(options) => serve_proxy(options.into_options()),
        CliCommand::ImportCard(options) => import_card(&options),
        CliCommand::Config(options) => show_config(&options),
        CliCommand::Agents(options) => show_agents(&options),
        CliCommand::Send(options) => client(&options.show.format, async |around| send(&options, around).await),
        CliCommand::Watch(options) => client(&options.show.format, async |around| watch(&options, around).await),
        CliCommand::Get(options) => client(&options.show.format, async |around| get(&options, around).await),
        CliCommand::List(options) => client(&options.format, async |around| list(&options, around).await),
        CliCommand::Cancel(options) => client(&options.format, async |around| cancel(&options, around).await),
        CliCommand::Answer(options) => client(&options.show.format, async |around| answer(&options, around).await),
        CliCommand::Push(command) => push(&command),
        CliCommand::Card(options) => client(&card_format(&options), async |around| show_card(&options, around).await),
        CliCommand::Check(options) => check_server(&options),
        CliCommand::Audit(options) => show_audit(&options),
        CliCommand::Doctor(options) => examine(&options),
        CliCommand::Nodes(options) => print(&nodes::run(&options, audience(), load)?),
        CliCommand::Mcp(options) => mcp::run(&options, load_silently, serve_beside).map(|()| ExitCode::SUCCESS),
        CliCommand::Acp(options) => {
            // The standard output is the editor's, and what goes wrong is for people.
            let format = FormatOptions { format: Some(Format::Text) };
            client(&format, async |around| acp(&options, around).await)
        }
        CliCommand::Health(options) => print(&health::run(&options, audience(), load_silently)?),
        CliCommand::Store(StoreCommand::Check(options)) => check_store(&options),
        CliCommand::Store(StoreCommand::Migrate(options)) => migrate_store(&options),
        CliCommand::Store(StoreCommand::Backup(options)) => back_up(&options),
        CliCommand::Store(StoreCommand::Restore(options)) => restore_store(&options),
        CliCommand::Tasks(options) => tasks(&options),
        CliCommand::Key(command) => make_key(&command),
        CliCommand::Token(command) => make_token(&command),
        CliCommand::Bench(options) => bench::run(&options).map(|()| ExitCode::SUCCESS),
        CliCommand::Completions(options) => print(&completions::script(options.shell)),
        CliCommand::Man(options) => manual(&options),
    }
}

fn serve(options: CliOptions) -> anyhow::Result<ExitCode> {
    let loaded = load(&options)?;
    check_start(&loaded)?;
    serve_loaded(loaded, options, None)
}

/// A server in the process of another command.
fn serve_beside(loaded: LoadedConfig, options: CliOptions, companion: Companion) -> anyhow::Result<()> {
    for warning in &loaded.warnings {
        eprintln!("sabir: warning: {warning}");
    }
    check_start(&loaded)?;
    serve_loaded(loaded, options, Some(companion)).map(|_| ())
}

fn serve_proxy(options: CliOptions) -> anyhow::Result<ExitCode> {
    let loaded = load(&options)?;
    check_start(&loaded)?;
    // A program that reads the output waits for one line, and not for the remote agent; the log has the rest.
    if let (Audience::Person, Some(agent)) = (audience(), loaded.config.agents.first()) {
        let found = proxy::look(&agent.remote, &machine()?)?;
        print(&found.text)?;
        for warning in &found.warnings {
            eprintln!("sabir: warning: {warning}");
        }
    }
    serve_loaded(loaded, options, None)
}

fn check_start(loaded: &LoadedConfig) -> anyhow::Result<()> {
    loaded.check_exposure()?;
    loaded.check_tls()?;
    loaded.check_store()?;
    loaded.check_requirements(&machine()?)?;
    Ok(())
}

fn serve_loaded(loaded: LoadedConfig, options: CliOptions, companion: Option<Companion>) -> anyhow::Result<ExitCode> {
    let surroundings = surroundings(descriptors::raise(), &loaded.config)?;
    process::adopt_orphans();
    let settings = server_facts::settings(&loaded);
    let load = Box::new(move || load_again(&options));
    serve::run(loaded.config, settings, surroundings, log_style(), load, companion)?;
    Ok(ExitCode::SUCCESS)
}

fn import_card(options: &ImportCardOptions) -> anyhow::Result<ExitCode> {
    let agent = remote_agent(&options.remote)?;
    match import_card::run(&agent.remote, options.id.as_deref(), &machine()?)? {
        Imported::Table { text, notes } => {
            for note in &notes {
                eprintln!("sabir: note: {note}");
            }
            print(&text)
        }
        Imported::Unreachable(why) => {
            eprintln!("sabir: {why}");
            Ok(ExitCode::from(UNREACHABLE))
        }
    }
}

fn show_config(options: &ConfigOptions) -> anyhow::Result<ExitCode> {
    if options.schema {
        return print(&config::schema());
    }
    let loaded = load(&options.options)?;
    let refusals =
        [loaded.check_exposure(), loaded.check_tls(), loaded.check_store(), loaded.check_requirements(&machine()?)];
    for refused in refusals {
        for problem in refused.err().into_iter().flat_map(|Problems(problems)| problems) {
            eprintln!("sabir: warning: serve would refuse this: {problem}");
        }
    }
    print(&config::show(&loaded, audience()))
}

fn show_agents(options: &AgentsOptions) -> anyhow::Result<ExitCode> {
    let loaded = load(&options.options)?;
    let Some(only) = &options.check else {
        return print(&agents::show(&loaded.config, &machine()?, audience()));
    };
    let surroundings = surroundings(descriptors::raise(), &loaded.config)?;
    let checked = agent_check::check(&loaded, &surroundings, only.as_deref())?;
    print(&agent_check::show(&checked, audience()))?;
    Ok(match checked.iter().all(agent_check::Checked::is_well) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// A command that talks to an agent. Why it failed is told there.
fn client(
    format: &FormatOptions,
    command: impl AsyncFnOnce(&Surroundings) -> Result<Exit, Failure>,
) -> anyhow::Result<ExitCode> {
    let around = Surroundings { variables: client_variables(), terminals: terminals(), load };
    Ok(client_commands::run(&around, format, command))
}

fn push(command: &PushCommand) -> anyhow::Result<ExitCode> {
    let (text, failures) = push::run(command, audience(), load)?;
    print(&text)?;
    fail_with(failures.iter().map(String::as_str))
}

fn card_format(options: &CardOptions) -> FormatOptions {
    FormatOptions { format: options.json.then_some(Format::Json) }
}

async fn show_card(options: &CardOptions, around: &Surroundings) -> Result<Exit, Failure> {
    let audience = if options.json { Audience::Program } else { audience() };
    let report = card::ask(options, audience, around).await?;
    io::stdout().write_all(report.text.as_bytes()).map_err(|error| Failure::of_output(&error))?;
    for warning in &report.warnings {
        eprintln!("sabir: warning: {warning}");
    }
    match report.failure {
        Some(why) => {
            eprintln!("sabir: {why}");
            Ok(Exit::Failed)
        }
        None => Ok(Exit::Done),
    }
}

fn check_server(options: &CheckOptions) -> anyhow::Result<ExitCode> {
    let audience = if options.json { Audience::Program } else { audience() };
    let outcome = match conformance::run(options, audience) {
        Ok(outcome) => outcome,
        // A server cannot make the command fail; what is left is the command line.
        Err(error) => {
            eprintln!("sabir: {error:#}");
            return Ok(ExitCode::from(2));
        }
    };
    print(&outcome.text)?;
    Ok(ExitCode::from(outcome.exit_code))
}

fn show_audit(options: &AuditOptions) -> anyhow::Result<ExitCode> {
    audit::run(options, audience(), load, &mut io::stdout())?;
    Ok(ExitCode::SUCCESS)
}

fn examine(options: &DoctorOptions) -> anyhow::Result<ExitCode> {
    let prepare = |loaded: &LoadedConfig| surroundings(descriptors::raise(), &loaded.config);
    let report = doctor::run(options, load_silently(&options.options), prepare)?;
    print(&report.show(audience()))?;
    Ok(if report.is_well() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn check_store(options: &StoreCheckOptions) -> anyhow::Result<ExitCode> {
    let options = CliOptions { config: options.config.clone(), store: options.store.clone(), ..CliOptions::default() };
    let report = store_check::run(&load(&options)?.config.store.url, ProgressLine::on(&terminals()))?;
    print(&report.show(audience()))?;
    Ok(if report.is_well() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn migrate_store(options: &MigrateOptions) -> anyhow::Result<ExitCode> {
    let report = store_migrate::run(options, ProgressLine::on(&terminals()))?;
    print(&report.show(audience()))
}

fn back_up(options: &BackupOptions) -> anyhow::Result<ExitCode> {
    let report = store_backup::run(options, &terminals(), load, ProgressLine::on(&terminals()))?;
    match report.is_on_stdout() {
        true => {
            eprint!("{}", report.show(Audience::Person));
            Ok(ExitCode::SUCCESS)
        }
        false => print(&report.show(audience())),
    }
}

fn restore_store(options: &RestoreOptions) -> anyhow::Result<ExitCode> {
    print(&store_restore::run(options, load, ProgressLine::on(&terminals()))?.show(audience()))
}

fn tasks(options: &TasksOptions) -> anyhow::Result<ExitCode> {
    match &options.command {
        None => print(&tasks::list(options, audience(), load)?),
        Some(TasksCommand::Assign(options)) => print(&tasks::assign(options, audience(), load)?),
        Some(TasksCommand::Cancel(options)) => {
            let terminals = terminals();
            let ask = match terminals.stdin && terminals.stderr {
                true => tasks::Asking::Possible,
                false => tasks::Asking::Impossible,
            };
            let (text, failures) = tasks::cancel(options, ask, audience(), load)?;
            print(&text)?;
            fail_with(failures.iter().map(String::as_str))
        }
    }
}

fn make_key(KeyCommand::New { signing, card, alg, plain }: &KeyCommand) -> anyhow::Result<ExitCode> {
    let key = keys::NewKey::make(keys::Purpose::of(*signing, card.then_some(alg.as_str())));
    print(&if *plain { key.plain() } else { key.show(audience()) })
}

fn make_token(command: &TokenCommand) -> anyhow::Result<ExitCode> {
    match command {
        TokenCommand::New { subject, tenant, scopes, api_key } => {
            config::check_credential(subject, scopes)?;
            let request = tokens::TokenRequest { subject, tenant: tenant.as_deref(), scopes, is_api_key: *api_key };
            print(&tokens::new(&request, audience()))
        }
        TokenCommand::Hash => {
            let mut secret = String::new();
            io::stdin().take(MOST_INPUT).read_to_string(&mut secret).context("cannot read the token")?;
            print(&tokens::hash(&secret)?)
        }
    }
}

fn manual(options: &ManOptions) -> anyhow::Result<ExitCode> {
    match &options.folder {
        Some(folder) => man::write_pages(folder).map(|()| ExitCode::SUCCESS),
        None => print(&man::page_of_sabir().text),
    }
}

fn print(text: &str) -> anyhow::Result<ExitCode> {
    match io::stdout().write_all(text.as_bytes()) {
        // The reader has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
        written => written?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints each failure; the command has failed if there is one.
fn fail_with<'a>(failures: impl Iterator<Item = &'a str>) -> anyhow::Result<ExitCode> {
    let mut code = ExitCode::SUCCESS;
    for failure in failures {
        eprintln!("sabir: {failure}");
        code = ExitCode::FAILURE;
    }
    Ok(code)
}
