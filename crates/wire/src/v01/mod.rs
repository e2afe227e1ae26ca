//! A2A 0.1: clients choose the ids of their tasks, and a part has a `type`.
//!
//! Messages have no ids, artifacts are identified by their index, and a stream has two kinds of events: there is no
//! frame for a whole task.

mod artifact;
mod dialect;
mod frame;
mod message;
mod part;
mod push;
mod request;
mod send;
mod task;

pub use dialect::V01;

pub(crate) use dialect::BIRTH;
pub(crate) use request::write_call;
