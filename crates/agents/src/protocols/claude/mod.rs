//! Claude Code's control protocol: prompts, permissions and interruptions as JSON lines. Everything else comes in the format
//! of its one-shot output (`output_formats::claude`).

mod session_permissions;
mod state_machine;

pub use state_machine::ClaudeControl;
