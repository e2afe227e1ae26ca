//! An A2A server for agents that are written in Rust.
//!
//! [A2A](https://a2a-protocol.org) is an open protocol that lets AI agents call each other. Implement [`Agent`], or write a
//! closure, and [`Server`] does the rest: every version of the protocol on one port, a durable log of every task, streams
//! that resume where they broke, questions to the caller, and cancelling.
//!
//! ```no_run
//! # async fn example() -> Result<(), sabir::ServerError> {
//! sabir::Server::new()
//!     .agent("greeter", sabir::agent("Greets people", |turn| async move { turn.reply("hello").await }))
//!     .store("sqlite:greeter.db")
//!     .serve("127.0.0.1:41242")
//!     .await
//! # }
//! ```
//!
//! - [`Turn`] is what an agent is given: the message, and how to answer, stream, ask, and hand over files.
//! - [`Server::service`] mounts the same server in axum or any other `tower` stack.
//! - [`testing`] starts a server on a free port and plays agents by a script.
//!
//! The program `sabir` is built from the same parts. It is behind the feature `cli`, which is on by default:
//! `sabir = { version = "0.1", default-features = false }` leaves it out.
#![warn(missing_docs)]

mod function_agent;
mod library_server;
pub mod testing;

pub use function_agent::{FunctionAgent, agent};
pub use library_server::{Server, ServerError, StartedServer};

pub use sabir_engine::{
    About, AboutFuture, Admission, Agent, AgentError, AgentFuture, ArtifactUpdate, Effects, Engine, Inputs,
    InterruptedRun, Limits, Outcome, ReplyStream, StopCause, Streaming, Survives, Turn, TurnHold, WorkingTreeFuture,
};
pub use sabir_model::{
    AgentId, Artifact, ArtifactId, Base64, Caller, Content, ContextId, Extension, Json, Message, Part, QuestionForm,
    RequestContext, Required, Role, Skill, Task, TaskId, ToolCall, ToolPhase, TraceContext, Usage,
};
pub use sabir_server::Service;
