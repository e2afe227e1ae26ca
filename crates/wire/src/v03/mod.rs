//! A2A 0.3 has three dialects: JSON objects with a `kind` over JSON-RPC, the ProtoJSON of its HTTP binding (`proto`), and
//! the protobuf of gRPC (`protobuf`), which has the same messages as the ProtoJSON.

mod data;
mod dialect;
mod frame;
mod message;
mod names;
mod part;
mod proto;
mod protobuf;
mod push;
mod request;
mod send;
mod task;

pub use dialect::V03;
pub use proto::V03Proto;
pub use protobuf::V03Protobuf;

pub(crate) use dialect::BIRTH;

pub(crate) use data::{Data, read_data, read_nested, read_wrapped};
pub(crate) use names::{read_role, read_state, role_name, state_name};
pub(crate) use part::{File, Part};
pub(crate) use proto::write_proto_call;
pub(crate) use push::PushConfig;
pub(crate) use request::{PushConfig as OutgoingPushConfig, write_call};
