//! The agents: what executes tasks.
//!
//! `demo` is the agent that a new user meets first and that tests drive; `conformance` is the demo plus what the A2A
//! project's own test kits expect of a system under test. The other modules run programs:
//!
//! - `kinds`: the table of known programs and how each is started.
//! - `adapter`: the interface between Sabir and one kind of program, with `prompt` going in and `update` coming out.
//! - `output_formats`: adapters for programs that are started once per turn and print what they do.
//! - `protocols`: adapters for programs that take prompts and answers while they run.
//! - `lenient_json`: how both read JSON that a program wrote.
//! - `process`: starts, watches and ends child processes.
//! - `program`: the agent that puts these together: one turn from its message to its result.
//!
//! `openai` gives its messages to a model behind any server with `/chat/completions`, with tools of MCP servers (`mcp_client`).
//! `remote` stands for an agent of another server, and `routing` chooses among agents.

mod about;
mod conformance;
mod demo;
mod demo_command;
mod lenient_json;
mod mcp_client;

pub mod adapter;
pub mod kinds;
pub mod openai;
pub mod output_formats;
pub mod process;
pub mod program;
pub mod prompt;
pub mod protocols;
pub mod remote;
pub mod routing;
pub mod update;

pub use about::{about, coding_program};
pub use conformance::ConformanceAgent;
pub use demo::DemoAgent;
pub use mcp_client::{ToolServerSettings, Transport};
pub use openai::OpenAiAgent;
pub use program::ProgramAgent;
pub use remote::RemoteAgent;
