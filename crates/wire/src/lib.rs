//! Every spelling of A2A, as pure functions.
//!
//! A dialect says how a noun is spelled; a binding says how a call is carried. Each dialect maps straight
//! to the model. Nothing here knows tokio, a socket or a store.

#![cfg_attr(test, allow(clippy::disallowed_methods))]

mod dialect;
mod head;

mod excerpt;
pub mod json;
mod work;

mod asked;
mod heard;
mod spelling;

mod card;
mod lenient;
mod v01;
mod v03;
mod v1;

mod compat;
mod percent;
mod surface;
mod version;

mod beside;
mod decoded;
pub mod gateway;
mod http_json;
mod jsonrpc;

mod errors;
mod responder;

#[cfg(test)]
mod fixture;

pub use card::{CardFormat, read_card, write_card};
pub use compat::{CancelTerminal, Compat, TerminalMessage};
pub use decoded::Decoded;
pub use dialect::{Dialect, Operation, Reading, Shown};
pub use excerpt::excerpt;
pub use head::Head;
pub use heard::Heard;
pub use responder::{EVENT_STREAM, KEEP_ALIVE, Reply, Responder, SplitTaskReply, TaskEncoder, TaskShape, Wrapper};
pub use surface::{Endpoint, KnownAgents, Refused, Surface, locate};
pub use v01::V01;
pub use v1::V1;
pub use v03::{V03, V03Proto};
pub use version::ProtocolVersion;
