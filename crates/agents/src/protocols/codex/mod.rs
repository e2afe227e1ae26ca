//! Codex's app-server: JSON-RPC lines without the version, with threads, turns and items.
//!
//! `state_machine` has the requests and their order, `item` reads what happens in a turn, `approval` what Codex asks for.

mod approval;
mod item;
mod state_machine;

pub use state_machine::CodexServer;
