//! Output formats of programs that are started once per turn.
//!
//! Each such program prints JSON lines of its own format. A file here knows one program: its arguments and what its lines
//! mean. `one_shot` is the adapter that they share, and `by_kind` finds the format of a kind. `streamed_text`,
//! `tool_call_ids`, `error_text` and `arguments` are used by several of them. Nothing here runs anything.

mod by_kind;
pub(crate) mod one_shot;

pub mod claude;
pub mod codex;
pub mod copilot;
pub mod cursor;
pub mod gemini;
pub mod generic;
pub mod goose;
pub mod opencode;
pub mod plain;
pub mod qwen;
pub mod vibe;

mod approval;
mod arguments;
mod error_text;
mod streamed_text;
mod tool_call_ids;

pub use approval::Approval;
pub use by_kind::{configured, environment, one_shot};
