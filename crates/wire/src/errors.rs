//! How an error is told: one table each for codes, statuses and facts, one shape per surface.
//!
//! A new kind of error does not compile until it has a row in each table. `message` on the wire is the fixed
//! title of the code; our own sentence goes beside it.

mod code;
mod fact;
mod shape;
mod status;

pub(crate) use shape::{GatewayError, GatewayText, Problem, RpcError, Status};
pub(crate) use status::{gateway_status, http_status, retry_after, rpc_status};

#[cfg(test)]
mod tests;
