//! The real program, driven from outside.

mod bench;
mod checking;
mod configuration;
mod crashing;
mod crowding;
mod describing;
mod desk;
mod documents;
mod dropped_runs;
mod fuzzing;
mod gateway;
mod generic_programs;
mod hosts;
mod library;
mod logging;
mod lost_questions;
mod matrix;
mod programs;
mod programs_at_work;
mod promises;
mod questions;
mod reading_slowly;
mod routing;
mod script;
mod serving;
mod sessions;
mod starting;
mod stopping;
mod supervising;
mod taking_turns;
mod telling_failures;
mod uploads;
mod v0_1;
mod waking;
mod worktrees;

/// The program under test.
const SABIR: &str = env!("CARGO_BIN_EXE_sabir");
