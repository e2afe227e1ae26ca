//! 0.3 over HTTP: ProtoJSON of `a2a.v1`.
//!
//! It is close to 1.0, but a message has `content`, files and data are nested, and `canceled` has two Ls. Its clients
//! refuse unknown members, so no others are written.

mod dialect;
mod message;
mod part;
mod push;
mod request;
mod state;
mod task_id;

pub use dialect::V03Proto;

pub(crate) use request::write_call as write_proto_call;
