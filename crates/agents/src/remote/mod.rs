//! A remote A2A agent as an agent of this server.
//!
//! The remote one is spoken to in its own version; callers here get every version, durable tasks, replay and webhooks.
//! Its answers are stored like those of any agent, so callers lose nothing when it drops a stream or is restarted, and
//! a run that ends with this server resumes with the remote task.

mod about;
mod agent;
mod artifact_names;
mod end;
mod failure;
mod memory;
mod outgoing;
mod turn;

pub use agent::{RemoteAgent, RemoteAgentSettings};
