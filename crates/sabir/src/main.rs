//! The program `sabir`: reads the command line and the environment, and hands over to the command.
//!
//! Nothing else reads the process environment. Errors are lines on stderr that begin with `sabir:`; the exit code
//! is 2 when the command line or the configuration is wrong and 1 for everything else.

mod about;
mod bench;
mod cli;
mod config;
mod serve;

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use sabir_agents::process;

use cli::{Cli, Command, Options};
use config::{Audience, Loaded, Problems};
use serve::Surroundings;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == process::GUARD) {
        // Sabir starts itself so, once for every program that it runs. Nothing may come before: it has to be small and quick.
        return process::guard(arguments);
    }
    let Err(error) = run(Cli::parse()) else {
        return ExitCode::SUCCESS;
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

fn run(cli: Cli) -> anyhow::Result<()> {
    match cli.command {
        Command::Serve(options) => {
            let loaded = load(&options)?;
            loaded.refuse_open_door()?;
            serve::run(loaded.config, surroundings())
        }
        Command::Config(options) => {
            let loaded = load(&options)?;
            if let Err(Problems(problems)) = loaded.refuse_open_door() {
                for problem in problems {
                    eprintln!("sabir: warning: serve would refuse this: {problem}");
                }
            }
            print_config(&loaded)
        }
        Command::Bench(options) => bench::run(&options),
    }
}

fn load(options: &Options) -> Result<Loaded, Problems> {
    let loaded = config::load(options, std::env::vars_os())?;
    for warning in &loaded.warnings {
        eprintln!("sabir: warning: {warning}");
    }
    Ok(loaded)
}

fn surroundings() -> Surroundings {
    let seconds = std::env::var("TCK_STREAMING_TIMEOUT").ok().and_then(|text| text.parse().ok());
    let streaming_timeout = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    Surroundings { streaming_timeout: streaming_timeout.unwrap_or(Duration::from_secs(2)) }
}

fn print_config(loaded: &Loaded) -> anyhow::Result<()> {
    let mut out = io::stdout();
    let audience = if out.is_terminal() { Audience::Person } else { Audience::Program };
    match out.write_all(config::show(loaded, audience).as_bytes()) {
        // The reader has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}
