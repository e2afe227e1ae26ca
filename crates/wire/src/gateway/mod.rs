//! The gateway: a plain REST API to submit, read and cancel runs of any agent. It is a dialect and a binding in one,
//! since there is no other binding for it.
//!
//! It never streams and never waits: a submission is answered with 202 as soon as it is stored.

mod agents;
mod path;
mod route;
mod send;
mod task;

use sabir_model::Birth;

pub use agents::{message_send_path, write_agent_list};
pub(crate) use path::{AgentResource, GatewayPath, match_path};
pub use route::GatewayRoute;
pub(crate) use route::{GatewayOperation, write_answer};

/// The dialect as a task stores it that is created here.
pub(crate) const BIRTH: Birth = Birth(20);

/// All paths of the gateway are below this one.
pub const BASE: &str = "/v1/a2a/agents";

#[cfg(test)]
mod tests;
