//! A2A 0.3: objects that carry their `kind`, and beside them the ProtoJSON of its HTTP binding.

mod data;
mod dialect;
mod frame;
mod message;
mod names;
mod part;
mod proto;
mod push;
mod send;
mod task;

pub use dialect::V03;
pub use proto::V03Proto;

pub(crate) use data::{read_data, read_nested};
pub(crate) use part::File;
