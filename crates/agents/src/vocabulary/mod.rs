//! The words of programs that are run once per turn.
//!
//! Each such program prints JSON lines of its own making. A file here knows one program: how it is called and what its
//! lines mean. `one_shot` is what they have in common, `choose` finds the one that is needed; `streamed`, `calls`
//! and `complaint` are what several of them need. Nothing here runs anything.

mod choose;
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
mod calls;
mod complaint;
mod opening;
mod streamed;

pub use approval::Approval;
pub use choose::{configured, environment, one_shot};
