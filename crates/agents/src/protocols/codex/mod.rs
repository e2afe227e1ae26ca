//! Codex's app-server: JSON-RPC lines without the version, with threads, turns and items.
//!
//! `machine` leads the conversation, `item` reads what happens in a turn, `approval` what is asked for.

mod approval;
mod item;
mod state_machine;

pub use state_machine::CodexServer;
