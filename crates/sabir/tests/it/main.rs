//! The real program, driven from outside.

mod agent_cards;
mod agents_check;
mod bench;
mod configuration;
mod crash_recovery;
mod dialect_matrix;
mod documents;
mod dropped_runs;
mod failure_messages;
mod fuzzing;
mod gateway;
mod generic_programs;
mod host_check;
mod http_surface;
mod in_process;
mod issuers;
mod library;
mod library_turns;
mod logging;
mod lost_questions;
mod many_connections;
mod peers;
mod process_guard;
mod program_fixture;
mod programs;
mod programs_at_work;
mod promises;
mod push_commands;
mod questions;
mod resuming;
mod routing;
mod scheduling;
mod server_fixture;
mod sessions;
mod shutdown;
mod signed_cards;
mod slow_readers;
mod startup;
mod tls;
mod uploads;
mod v0_1;
mod webhook_receiver;
mod webhooks;
mod worktrees;

/// The program under test.
const SABIR: &str = env!("CARGO_BIN_EXE_sabir");
