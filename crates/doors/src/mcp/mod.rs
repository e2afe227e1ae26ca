//! MCP: the agents of this server as tools for programs that speak the Model Context Protocol.
//!
//! A message comes in with its headers and an answer goes out; sockets are the server's, and
//! `sabir mcp` carries the lines of standard input there.
//! Nothing is kept between messages: see `client` for what a session is, and `elicitation` for how a question finds its task.
//!
//! The protocol is ours, not a library's: the official one keeps sessions in the memory of one process and reads bodies outside
//! our limits, and what is needed of it is three dozen shapes of JSON.

mod arguments;
mod client;
mod coding_agent;
mod door;
mod elicitation;
mod message;
mod resources;
mod result;
mod server_card;
mod tasks_extension;
mod tool_call;
mod tools;

pub use client::{McpHeaders, McpTransport};
pub use door::{McpCall, McpDoor, McpReply, McpSettings};
pub use server_card::McpPlace;
