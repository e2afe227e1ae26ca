//! How an error is written: one table each for codes, statuses and details, one body per binding.
//!
//! A new kind of error does not compile until it has a row in each table. `message` on the wire is the fixed title of
//! the code; our own sentence is one of the details.

mod bodies;
mod code;
mod details;
mod status;
mod text;

pub(crate) use bodies::{DOMAIN, GatewayError, GatewayText, GoogleStatus, ProblemDetails, RpcError};
pub(crate) use code::name_0_3;
pub(crate) use status::{gateway_status, grpc_name, http_status, retry_after, rpc_status};
pub(crate) use text::ErrorText;

#[cfg(test)]
mod tests;
