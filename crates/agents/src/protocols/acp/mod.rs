//! The Agent Client Protocol, version 1, as its client: JSON-RPC lines with a program that many editors know.
//!
//! `machine` leads the conversation; `initialized` reads what the program can do, `tool` and `permission` what it does and
//! wants to do, `spent` what it has used, `model` and `mode` which of its models is used and which of its modes asks
//! nothing, `quirk` what single programs do in their own way.

mod initialized;
mod mode;
mod model;
mod permission;
mod quirk;
mod state_machine;
mod tool;
mod usage;

pub use state_machine::Acp;
