//! About how much memory a message takes when it is decoded.
//!
//! Two bytes can be an empty part, which takes a hundred in memory, and a body may have millions of them. So whoever decodes
//! counts first: the bytes are walked along the fields that hold messages, and nothing is made.

use std::collections::HashMap;
use std::sync::OnceLock;

use sabir_proto::prost::Message;
use sabir_proto::prost_types::field_descriptor_proto::Type;
use sabir_proto::prost_types::{DescriptorProto, FileDescriptorSet};

use crate::work;

/// What one message takes beside its text: the largest struct that comes in crowds, and its place in a list.
const PER_MESSAGE: usize = 160;
/// Decoders stop there.
const MAX_DEPTH: usize = 100;

/// `name` is the full name of the message, `lf.a2a.v1.Task`.
pub(crate) fn weight(name: &str, bytes: &[u8]) -> usize {
    let schema = schema();
    let Some(message) = schema.names.get(name) else { return bytes.len() };
    work::visit(bytes.len());
    bytes.len() + schema.messages_in(*message, bytes, 0) * PER_MESSAGE
}

struct Schema {
    names: HashMap<String, usize>,
    /// For each message, the numbers of the fields that hold messages, and which.
    nested: Vec<Vec<(u64, usize)>>,
}

fn schema() -> &'static Schema {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let set = FileDescriptorSet::decode(sabir_proto::DESCRIPTORS).expect("the generator made it");
        let mut all = Vec::new();
        for file in &set.file {
            for message in &file.message_type {
                collect(file.package(), message, &mut all);
            }
        }
        let names: HashMap<String, usize> =
            all.iter().enumerate().map(|(place, (name, _))| (name.clone(), place)).collect();
        let nested = all.iter().map(|(_, message)| {
            let fields = message.field.iter().filter(|field| field.r#type() == Type::Message);
            let target = |name: &str| names.get(name.trim_start_matches('.')).copied();
            fields.filter_map(|field| Some((u64::try_from(field.number()).ok()?, target(field.type_name())?))).collect()
        });
        Schema { nested: nested.collect(), names }
    })
}

fn collect<'d>(scope: &str, message: &'d DescriptorProto, all: &mut Vec<(String, &'d DescriptorProto)>) {
    let name = format!("{scope}.{}", message.name());
    for nested in &message.nested_type {
        collect(&name, nested, all);
    }
    all.push((name, message));
}

impl Schema {
    /// How many messages are in this one. What is no protobuf ends the count; the decoder will say so.
    fn messages_in(&self, message: usize, mut bytes: &[u8], depth: usize) -> usize {
        let mut count = 0;
        while let Some(key) = varint(&mut bytes) {
            let (field, kind) = (key >> 3, key & 7);
            let skipped = match kind {
                0 => match varint(&mut bytes) {
                    Some(_) => 0,
                    None => return count,
                },
                1 => 8,
                5 => 4,
                2 => {
                    let Some(length) = varint(&mut bytes).and_then(|length| usize::try_from(length).ok()) else {
                        return count;
                    };
                    let Some(content) = bytes.get(..length) else { return count };
                    let nested = self.nested[message].iter().find(|(number, _)| *number == field);
                    if let Some((_, nested)) = nested {
                        count += 1;
                        if depth < MAX_DEPTH {
                            count += self.messages_in(*nested, content, depth + 1);
                        }
                    }
                    length
                }
                _ => return count,
            };
            match bytes.get(skipped..) {
                Some(rest) => bytes = rest,
                None => return count,
            }
        }
        count
    }
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in 0..10 {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << (7 * shift).min(63);
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sabir_proto::{v1, v03};

    use super::*;

    #[test]
    fn small_messages_that_become_large_are_seen_before() {
        let parts = vec![v1::Part::default(); 1000];
        let message = v1::Message { parts, ..v1::Message::default() };
        let request = v1::SendMessageRequest { message: Some(message), ..v1::SendMessageRequest::default() };
        let bytes = request.encode_to_vec();
        assert!(bytes.len() < 2100);
        // The message, and its parts.
        assert_eq!(weight("lf.a2a.v1.SendMessageRequest", &bytes), bytes.len() + 1001 * PER_MESSAGE);
        let text = v03::Message { message_id: "x".repeat(5000), ..v03::Message::default() };
        let request = v03::SendMessageRequest { request: Some(text), ..v03::SendMessageRequest::default() };
        let bytes = request.encode_to_vec();
        assert_eq!(weight("a2a.v1.SendMessageRequest", &bytes), bytes.len() + PER_MESSAGE);
        assert_eq!(weight("no.such.Message", &bytes), bytes.len());
    }

    proptest! {
        #[test]
        fn any_bytes_have_a_weight(bytes: Vec<u8>) {
            for name in ["lf.a2a.v1.Task", "a2a.v1.Task", "google.protobuf.Value"] {
                prop_assert!(weight(name, &bytes) >= bytes.len());
            }
        }
    }
}
