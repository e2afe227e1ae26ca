//! A2A 0.1: clients name their tasks, and a part says its `type`.
//!
//! Messages have no ids here, artifacts are known by their index, and a stream is made of two kinds of events: there
//! is no frame for a whole task.

mod artifact;
mod dialect;
mod frame;
mod message;
mod part;
mod push;
mod send;
mod task;

pub use dialect::V01;
