//! Programs as agents.

pub mod settings;
