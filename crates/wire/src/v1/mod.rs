//! A2A 1.0: ProtoJSON of `lf.a2a.v1`, and below `protobuf` the same messages as gRPC has them.
//!
//! A member's name says what it holds; there is no `kind`. Enum values have their full names. Empty and unset members
//! are not written, except where the reference implementation needs them.

mod dialect;
mod frame;
mod list;
mod message;
mod names;
mod part;
mod protobuf;
mod push;
mod request;
mod send;
mod task;
mod task_id;

pub use dialect::V1;
pub use names::state_name;
pub use protobuf::V1Protobuf;

pub(crate) use dialect::BIRTH;

pub(crate) use frame::{FinalFlag, Frame};
pub(crate) use names::{StateName, read_role, read_state, role_name};
pub(crate) use part::read_base64;
pub(crate) use request::write_call;
pub(crate) use task::{Artifact, Status, Task};
pub(crate) use task_id::TaskParams;
