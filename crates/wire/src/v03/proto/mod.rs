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

pub(super) use dialect::limit;
pub(super) use push::{CreateParams, PushParams, TaskPushConfig, config_name};
pub(crate) use request::write_call as write_proto_call;
pub(super) use task_id::TaskParams;
