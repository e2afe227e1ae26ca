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
//! # Where to start
//!
//! | You want to | Look at |
//! |---|---|
//! | answer, stream, ask, hand over files | [`Turn`], which an agent gets for each message |
//! | say what the card shows | [`About`], and [`FunctionAgent::about`] for closures |
//! | keep state, choose who is admitted, survive a restart | [`Agent`], the trait behind the closure |
//! | set limits, a store, hosts, CORS | [`Server`] and [`Limits`] |
//! | choose who may be sent webhooks, sign them, encrypt their secrets | [`Server::webhook_hosts`] and what follows it |
//! | mount the server in axum or any other `tower` stack | [`Server::service`] |
//! | call agents of this process without HTTP | [`calls`] |
//! | test an agent, or a program that calls agents | [`testing`] |
//!
//! # An agent with a type of its own
//!
//! ```
//! use sabir::{About, Agent, AgentError, AgentFuture, Skill, Turn};
//!
//! struct Librarian;
//!
//! impl Agent for Librarian {
//!     fn about(&self) -> About {
//!         About::new("Librarian", "Finds books").skill(Skill::new("find", "Find", "Finds a book by its title"))
//!     }
//!
//!     fn run(&self, turn: Turn) -> AgentFuture<'_> {
//!         Box::pin(async move {
//!             let title = turn.message().text();
//!             if title.is_empty() {
//!                 // The caller reads this. Any other error goes to the log, and the caller reads only that it failed.
//!                 return Err(AgentError::for_caller("name a title"));
//!             }
//!             turn.progress("looking").await;
//!             turn.reply(format!("{title} is on the second shelf")).await
//!         })
//!     }
//! }
//! ```
//!
//! # What is known of a request
//!
//! [`Turn::caller`], [`Turn::extensions`], [`Turn::accepted_output`] and [`Turn::trace`] tell of the request that brought the
//! message. They are stored with it, so a turn that waits in the queue or runs after a restart has them too. A
//! server of this library asks nobody for credentials: every caller is anonymous, unless the program that mounts the server
//! says who calls, by putting a [`Caller`] into the extensions of the HTTP request:
//!
//! ```
//! use axum::{extract::Request, middleware::Next, response::Response};
//! use sabir::Caller;
//!
//! async fn authenticate(mut request: Request, next: Next) -> Response {
//!     request.extensions_mut().insert(Caller::new("acme", "alice").with_scopes(["run"]));
//!     next.run(request).await
//! }
//! ```
//!
//! # Compatibility
//!
//! Types that may grow are `#[non_exhaustive]` and are made by functions. [`Message`], [`Part`], [`Artifact`], [`Task`],
//! [`Skill`] and [`Extension`] follow the protocol, which may add fields: make them by `new`, `text`, `file`, `url` and
//! `data`, and change their fields, rather than by naming all fields.
//!
//! The program `sabir` is built from the same parts. It is behind the feature `cli`, which is on by default:
//! `sabir = { version = "0.1", default-features = false }` leaves it out.
#![warn(missing_docs)]

pub mod calls;
mod card_signer;
mod function_agent;
mod library_server;
pub mod testing;
mod webhooks;

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
