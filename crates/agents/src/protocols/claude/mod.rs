//! Claude Code's control protocol: prompts, permissions and interruptions as JSON lines. What it tells beside, it tells in
//! the lines of its one-shot output.

mod session_permissions;
mod state_machine;

pub use state_machine::ClaudeControl;
