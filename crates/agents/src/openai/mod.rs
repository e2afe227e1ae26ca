//! An agent without a program of its own: a model behind any server that has `/chat/completions`.
//!
//! A turn sends the conversation of its context to the server, streams the answer into an artifact, and lets the model use
//! tools of MCP servers. What a context remembers is the conversation itself, so it survives restarts and may continue on
//! any server. A turn that fails or is canceled leaves it as it was.

mod agent;
mod chat;
mod completion;
mod completion_reader;
mod failure;
mod history;
mod input;
mod settings;
mod toolbox;
mod turn;

pub use agent::OpenAiAgent;
pub use settings::{HistoryLimits, OpenAiSettings};
