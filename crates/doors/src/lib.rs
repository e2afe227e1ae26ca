//! Doors: protocols beside A2A by which programs reach the agents of a server.
//!
//! Each door turns what its protocol says into calls of the engine, and the events of a task into what its protocol shows. So
//! whatever A2A clients are promised holds behind every door: tasks are durable, owners and limits are the caller's, and a host
//! that disconnects changes nothing for its task. A door knows nothing of sockets; `sabir-server` and `sabir` carry its messages.
#![warn(missing_docs)]

mod follow;
mod nesting;
mod question;
mod words;

pub mod mcp;
pub mod openai;
