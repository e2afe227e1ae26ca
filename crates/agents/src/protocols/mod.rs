//! Programs that are talked to in both directions while they work, one JSON value per line.
//!
//! Three protocols: the Agent Client Protocol, which many programs speak, and the own ones of Claude Code and of Codex.
//! Each is a machine without hands (see `protocol`), and one process serves one turn.

mod acp;
mod attachment;
mod claude;
mod codex;
mod error_message;
mod jsonrpc;
mod question_series;

pub use acp::Acp;
pub use attachment::Attachment;
pub(crate) use attachment::all_of;
pub use claude::ClaudeControl;
pub use codex::CodexServer;
