//! How an error is written: one table each for codes, statuses and details, one body per binding.
//!
//! A new kind of error does not compile until it has a row in each table. `message` on the wire is the fixed title of
//! the code; our own sentence is one of the details.

mod bodies;
mod code;
mod details;
mod status;

pub(crate) use bodies::{GatewayError, GatewayText, GoogleStatus, ProblemDetails, RpcError};
pub(crate) use status::{gateway_status, http_status, retry_after, rpc_status};

#[cfg(test)]
mod tests;
