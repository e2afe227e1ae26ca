//! What the protobuf of both versions shares: carried JSON as `google.protobuf.Value`, times, and decoding itself.

mod carried_json;
mod time;
mod weight;

pub(crate) use carried_json::{UNREPRESENTABLE, read_struct, read_value, unrepresentable, write_struct, write_value};
pub(crate) use time::{read_time, write_known_time, write_time};
pub(crate) use weight::{request_weight, response_weight};

use sabir_model::Error;
use sabir_proto::prost::Message;

use crate::work;

/// Reads a message. What the message says is checked by its dialect; that it is protobuf at all, here.
pub(crate) fn read_message<M: Message + Default>(bytes: &[u8]) -> Result<M, Error> {
    work::visit(bytes.len());
    M::decode(bytes).map_err(|error| Error::InvalidRequest(format!("the message cannot be read: {error}")))
}

/// Appends a message. Messages of one type that follow each other are read as one.
pub(crate) fn write_message<M: Message>(message: &M, out: &mut Vec<u8>) {
    let start = out.len();
    message.encode(out).expect("memory takes it all");
    work::visit(out.len() - start);
}
