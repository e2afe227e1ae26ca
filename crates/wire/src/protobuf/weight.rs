//! About how much memory a message takes when it is decoded.
//!
//! Two bytes can be an empty part, which takes a hundred in memory, and a body may have millions of them. So whoever decodes
//! counts first: the bytes are walked along the fields that hold messages, and nothing is made. Texts in lists count too.

use std::collections::HashMap;
use std::sync::OnceLock;

use sabir_proto::prost::Message;
use sabir_proto::prost_types::field_descriptor_proto::Type;
use sabir_proto::prost_types::{DescriptorProto, FileDescriptorSet};

use crate::work;

/// What one message takes beside its text: the largest struct that comes in crowds, and its place in a list.
const PER_MESSAGE: usize = 160;
/// The same for a text in a list.
const PER_TEXT: usize = 64;
/// Decoders stop there.
const MAX_DEPTH: usize = 100;

/// Of the request of a method, `a2a.v1.A2AService.GetTask`. What is not known weighs what it is long.
pub(crate) fn request_weight(method: &str, bytes: &[u8]) -> usize {
    weight(schema().methods.get(method).map(|(input, _)| *input), bytes)
}

/// Of the response of a method, or of one of the messages that it streams.
pub(crate) fn response_weight(method: &str, bytes: &[u8]) -> usize {
    weight(schema().methods.get(method).map(|(_, output)| *output), bytes)
}

fn weight(message: Option<usize>, bytes: &[u8]) -> usize {
    let Some(message) = message else { return bytes.len() };
    work::visit(bytes.len());
    bytes.len().saturating_add(schema().weight_inside(message, bytes, 0))
}

struct Schema {
    /// For each method, what it takes and what it gives.
    methods: HashMap<String, (usize, usize)>,
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
        let nested = nested.collect();
        let mut methods = HashMap::new();
        for file in &set.file {
            for service in &file.service {
                for method in &service.method {
                    let target = |name: &str| names.get(name.trim_start_matches('.')).copied();
                    if let Some(types) = target(method.input_type()).zip(target(method.output_type())) {
                        let name = format!("{}.{}.{}", file.package(), service.name(), method.name());
                        methods.insert(name, types);
                    }
                }
            }
        }
        Schema { nested, methods }
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
    /// What is in this message, beside its bytes. What is no protobuf ends the count; the decoder will say so.
    fn weight_inside(&self, message: usize, mut bytes: &[u8], depth: usize) -> usize {
        let mut weight = 0;
        while let Some(key) = varint(&mut bytes) {
            let (field, kind) = (key >> 3, key & 7);
            let skipped = match kind {
                0 => match varint(&mut bytes) {
                    Some(_) => 0,
                    None => return weight,
                },
                1 => 8,
                5 => 4,
                2 => {
                    let Some(length) = varint(&mut bytes).and_then(|length| usize::try_from(length).ok()) else {
                        return weight;
                    };
                    let Some(content) = bytes.get(..length) else { return weight };
                    let nested = self.nested[message].iter().find(|(number, _)| *number == field);
                    weight += match nested {
                        Some((_, nested)) if depth < MAX_DEPTH => {
                            PER_MESSAGE + self.weight_inside(*nested, content, depth + 1)
                        }
                        Some(_) => PER_MESSAGE,
                        // A text, or a member that nobody knows.
                        None => PER_TEXT,
                    };
                    length
                }
                // Groups, which nobody uses and decoders skip: whatever follows may be a crowd.
                _ => return weight.saturating_add(bytes.len().saturating_mul(PER_MESSAGE / 2)),
            };
            match bytes.get(skipped..) {
                Some(rest) => bytes = rest,
                None => return weight,
            }
        }
        weight
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
        let expected = bytes.len() + 1001 * PER_MESSAGE;
        assert_eq!(request_weight("lf.a2a.v1.A2AService.SendMessage", &bytes), expected);
        let texts = v03::Message { extensions: vec![String::new(); 1000], ..v03::Message::default() };
        let request = v03::SendMessageRequest { request: Some(texts), ..v03::SendMessageRequest::default() };
        let bytes = request.encode_to_vec();
        let expected = bytes.len() + PER_MESSAGE + 1000 * PER_TEXT;
        assert_eq!(request_weight("a2a.v1.A2AService.SendMessage", &bytes), expected);
        let task = v1::Task { history: vec![v1::Message::default(); 10], ..v1::Task::default() }.encode_to_vec();
        assert_eq!(response_weight("lf.a2a.v1.A2AService.GetTask", &task), task.len() + 10 * PER_MESSAGE);
        assert_eq!(request_weight("no.such.Method", &bytes), bytes.len());
        // An empty group of a field that nobody knows, and a crowd behind it.
        let parts = b"\x2a\x00".repeat(1000);
        let inner = [&[0xa3, 0x06, 0xa4, 0x06][..], &parts].concat();
        let bytes = [&[0x12, 0xd4, 0x0f][..], &inner].concat();
        assert_eq!(inner.len(), 0x54 + (0x0f << 7));
        assert!(v1::SendMessageRequest::decode(bytes.as_slice()).unwrap().message.unwrap().parts.len() == 1000);
        assert!(request_weight("lf.a2a.v1.A2AService.SendMessage", &bytes) > 1000 * PER_MESSAGE);
    }

    proptest! {
        #[test]
        fn any_bytes_have_a_weight(bytes: Vec<u8>) {
            for method in schema().methods.keys() {
                prop_assert!(request_weight(method, &bytes) >= bytes.len());
                prop_assert!(response_weight(method, &bytes) >= bytes.len());
            }
        }
    }
}
