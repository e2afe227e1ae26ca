//! The doors in front of a real engine.

mod fuzzing;
mod mcp_fixture;
mod mcp_questions;
mod mcp_requests;
mod mcp_tasks;
mod mcp_tools;
mod openai_chat;
mod openai_fixture;
mod openai_questions;
mod openai_streams;
