//! 0.3 over gRPC: the protobuf of `a2a.v1`.
//!
//! It says what the ProtoJSON of 0.3 says (`proto`), with the same members and the same violations by the same names;
//! where a request is read, the members go through the very same structs. Protobuf has no missing text, number or flag:
//! an empty one counts as missing.

mod call;
mod card;
mod dialect;
mod fields;
mod frame;
mod message;
mod names;
mod part;
mod push;
mod request;
mod security;
mod task;
mod unrepresentable;

#[cfg(test)]
mod tests;

pub use dialect::V03Protobuf;
