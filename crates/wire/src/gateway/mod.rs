//! The gateway: runs are submitted, asked for and cancelled by plain REST, whatever version of A2A the agents behind
//! it speak. It is a dialect and a binding in one, since nobody speaks it over anything else.
//!
//! It never streams and never waits: a submission is answered with 202 as soon as it is stored.

mod agents;
mod path;
mod route;
mod send;
mod task;

use sabir_model::Birth;

pub use agents::{message_send_path, write_agent_list};
pub(crate) use path::{Named, Thing, find};
pub use route::Route;
pub(crate) use route::{Asked, write_answer};

/// What a task remembers when it is born here.
pub(crate) const BIRTH: Birth = Birth(20);

/// Everything of the gateway is below this.
pub const BASE: &str = "/v1/a2a/agents";

#[cfg(test)]
mod tests;
