//! Protocols of programs that read and write while they run, one JSON message per line.
//!
//! There are three: the Agent Client Protocol, which many programs speak, and those of Claude Code and of Codex. Each is an
//! `Adapter`: a state machine without input and output of its own.

mod acp;
mod attachment;
mod claude;
mod codex;
mod error_message;
pub(crate) mod jsonrpc;
mod question_series;

pub use acp::Acp;
pub use attachment::Attachment;
pub(crate) use attachment::all_of;
pub use claude::ClaudeControl;
pub use codex::CodexServer;
