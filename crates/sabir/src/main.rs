//! The program `sabir`: reads the command line, and hands over to the command.
//!
//! Errors are lines on stderr that begin with `sabir:`; the exit code is 2 when the command line or the configuration is
//! wrong and 1 for everything else.

mod about;
mod address_file;
mod admin_client;
mod agent_check;
mod agents;
mod audit;
mod bench;
mod card;
mod card_signer;
mod cli;
mod client_commands;
mod commands;
mod completions;
mod config;
mod conformance;
mod descriptors;
mod dev_tls;
mod diagnosis;
mod doctor;
mod exit;
mod health;
mod hosting;
mod identity_documents;
mod import_card;
mod keys;
mod local_server;
mod machine;
mod man;
mod mcp;
mod metrics;
mod node_lock;
mod nodes;
mod own_server;
mod process_environment;
mod proxy;
mod push;
mod serve;
mod server_facts;
mod signals;
mod store_backup;
mod store_check;
mod store_migrate;
mod store_restore;
mod store_source;
mod tasks;
mod telemetry;
mod terminal_text;
mod tokens;
mod toml_text;
mod transfer_progress;
mod upstream;
mod webhooks;

use std::process::ExitCode;

use clap::Parser;
use sabir_agents::process;

use cli::Cli;
use config::Problems;

/// It gives memory back to the system when a crowd of readers has gone, which the C library's hardly does.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == process::GUARD) {
        // Sabir starts itself so, once for every program that it runs. Nothing may come before: it has to be small and quick.
        return process::guard(arguments);
    }
    let error = match commands::run(Cli::parse().command) {
        Ok(code) => return code,
        Err(error) => error,
    };
    if let Some(Problems(problems)) = error.downcast_ref() {
        for problem in problems {
            eprintln!("sabir: {problem}");
        }
        return ExitCode::from(2);
    }
    // A server or a file may have had a say in it.
    eprintln!("sabir: {}", terminal_text::visible_lines(&format!("{error:#}")));
    ExitCode::from(1)
}
