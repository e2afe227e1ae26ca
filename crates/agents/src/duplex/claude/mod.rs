//! Claude Code's control protocol: prompts, permissions and interruptions as JSON lines.
//!
//! `machine` leads the conversation; `reader` turns the lines that its one-shot output has too into updates.

mod machine;
mod reader;

pub use machine::ClaudeControl;
