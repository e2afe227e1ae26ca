//! The client side of the Agent Client Protocol, version 1: JSON-RPC, one message per line.
//!
//! `state_machine` has the requests and their order. `initialized` reads what the program can do, `tool` its tool calls,
//! `permission` its requests for permission, `usage` tokens and cost. `model` and `mode` choose the model and the mode that
//! asks nothing, and `quirk` knows in what single programs differ.

mod initialized;
mod mode;
mod model;
mod permission;
mod quirk;
mod state_machine;
mod tool;
mod usage;

pub use state_machine::Acp;
