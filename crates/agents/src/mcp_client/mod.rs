//! A client for MCP servers: programs that speak on standard input and output, and servers over streamable HTTP.
//!
//! It knows what an agent needs to let its model use tools: `initialize`, `tools/list` and `tools/call`. A server that asks
//! for something itself (sampling, roots, elicitation) is told that there is no such method. Every wait has an end, so a
//! server that hangs or dies costs its caller an error and no more.

mod http;
mod messages;
mod server;
mod stdio;
mod tool_result;

pub use server::{ToolServerSettings, Transport};

pub(crate) use server::{Tool, ToolServer};
pub(crate) use tool_result::ToolResult;
