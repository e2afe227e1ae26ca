//! `cargo xtask`: the checks and suites of the workspace, with everything they need set up on the way.
//!
//! A fresh machine with a Rust toolchain is enough. The exit code is 0 when all is well, 1 when something failed
//! and 2 when the command line makes no sense.

mod builds_ahead;
mod identity_provider;
mod jobs;
mod publishing;
mod run;
mod tally;

mod arrows;
mod bench;
mod compatibility;
mod dependencies;
mod dist;
mod generated;
mod lints;
mod workspace_tests;

mod acp;
mod agents;
mod client;
mod clients;
mod console;
mod documents;
mod leftovers;
mod mcp;
mod needs;
mod nodes;
mod observability;
mod openai;
mod packages;
mod postgres;
mod programs;
mod sdk_server;
mod sdk_server_suite;
mod sdk_servers;
mod secured_server;
mod server;
mod soak;
mod suite_output;

mod setup;
mod setup_node;
mod setup_program;
mod setup_python;

mod apt;
mod command;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;

use crate::jobs::TestJob;

const HELP: &str = "\
The checks and suites of Sabir.

  cargo xtask check           format, lints, who may know whom, foreign crates, publishing, generated code, and the promises
  cargo xtask generate        write the Rust code of the .proto files again
  cargo xtask compatibility   write docs/internals/promises.md from the tests
  cargo xtask test            every suite against real parts; sets up what is missing; then looks for what is left behind
  cargo xtask test NAME...    only the suites whose name contains one of the words, such as `clients`, `nodes`,
                              `servers` or `agents`
  cargo xtask test --quick    what every push can run: under two minutes, nothing is downloaded
  cargo xtask screenshots     take the pictures of the console in docs/images again
  cargo xtask soak            mixed traffic in every dialect, with restarts by kill -9; then every promise is checked;
                              --minutes N (1 by default), --seed N to have the same choices again;
                              --store postgres --nodes N: through a balancer, with one node at a time restarted
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let jobs = match words.as_slice() {
        [] | ["help" | "--help" | "-h"] => {
            println!("{}", help());
            return ExitCode::SUCCESS;
        }
        ["generate"] => {
            return done(workspace::Workspace::load().and_then(|workspace| generated::write(&workspace)));
        }
        ["compatibility"] => {
            return done(workspace::Workspace::load().and_then(|workspace| compatibility::write(&workspace)));
        }
        ["screenshots"] => {
            let made = workspace::Workspace::load().and_then(|workspace| console::screenshots(&workspace));
            return done(made);
        }
        ["soak", words @ ..] => {
            let soaked = workspace::Workspace::load().and_then(|workspace| soak::run(&workspace, words));
            return soaked.unwrap_or_else(|error| done(Err(error)));
        }
        ["bench", words @ ..] => {
            return done(workspace::Workspace::load().and_then(|workspace| bench::run(&workspace, words)));
        }
        ["dist", words @ ..] => {
            let made = workspace::Workspace::load()
                .and_then(|workspace| dist::run(&workspace, &dist::DistOptions::parse(&workspace, words)?));
            return done(made);
        }
        ["check"] => jobs::check(),
        ["test", "--quick"] => jobs::quick(),
        ["test", names @ ..] => jobs::named(jobs::test(), names),
        _ => vec![],
    };
    if jobs.is_empty() {
        eprintln!("`cargo xtask {}` names nothing that could run\n\n{}", words.join(" "), help());
        return ExitCode::from(2);
    }
    match all(&jobs) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            println!("0 passed, 1 failed");
            ExitCode::FAILURE
        }
    }
}

fn all(jobs: &[TestJob]) -> Result<ExitCode> {
    let workspace = workspace::Workspace::load()?;
    needs::Needs::of(&workspace, jobs).announce()?;
    let total = run::all(&workspace, jobs);
    println!("{total}");
    Ok(if total.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn done(result: Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn help() -> String {
    let names: Vec<String> = jobs::test().iter().map(TestJob::name).collect();
    format!("{HELP}{}{}\nSuites: {}", dist::HELP, bench::HELP, names.join(", "))
}
