//! A2A 1.0 over gRPC: the messages of `lf.a2a.v1` as protobuf.
//!
//! The meaning is that of the JSON of 1.0. Requests are read into the structs of the JSON dialect and checked there, so
//! that a client gets the same error over every binding. Answers are converted straight between the generated messages and
//! the model, by functions: neither type belongs to this crate, so there can be no `From` between them.

mod call;
mod card;
mod card_security;
mod dialect;
mod frame;
mod list;
mod message;
mod names;
mod part;
mod push;
mod request;
mod task;
mod unrepresentable;

pub use dialect::V1Protobuf;

#[cfg(test)]
mod tests;
