//! Protobuf as far as a load generator needs it: tags, varints, texts and messages within messages.
//!
//! Written by hand, so that what is sent and expected does not come from the code that is measured.

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const BYTES: u64 = 2;
const FIXED32: u64 = 5;

/// A message that is being written.
#[derive(Debug, Default)]
pub struct Message(Vec<u8>);

impl Message {
    /// An empty text is not written, as proto3 wants it.
    pub fn text(self, field: u64, text: &str) -> Self {
        if text.is_empty() { self } else { self.bytes(field, text.as_bytes()) }
    }

    pub fn number(mut self, field: u64, number: u64) -> Self {
        self.varint(field << 3 | VARINT);
        self.varint(number);
        self
    }

    pub fn message(self, field: u64, message: Message) -> Self {
        self.bytes(field, &message.0)
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn bytes(mut self, field: u64, bytes: &[u8]) -> Self {
        self.varint(field << 3 | BYTES);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// Numbers of a fixed length, which A2A has only in `metadata` and data parts.
    Fixed,
}

/// What the first field at the end of this path holds; each step but the last leads into a message.
pub fn at<'a>(message: &'a [u8], path: &[u64]) -> Option<Value<'a>> {
    let (step, rest) = path.split_first()?;
    match (first(message, *step)?, rest) {
        (value, []) => Some(value),
        (Value::Bytes(inner), rest) => at(inner, rest),
        _ => None,
    }
}

pub fn number(message: &[u8], path: &[u64]) -> Option<u64> {
    match at(message, path)? {
        Value::Number(number) => Some(number),
        _ => None,
    }
}

pub fn bytes<'a>(message: &'a [u8], path: &[u64]) -> Option<&'a [u8]> {
    match at(message, path)? {
        Value::Bytes(bytes) => Some(bytes),
        _ => None,
    }
}

fn first(mut message: &[u8], wanted: u64) -> Option<Value<'_>> {
    while !message.is_empty() {
        let tag = varint(&mut message)?;
        let value = match tag & 7 {
            VARINT => Value::Number(varint(&mut message)?),
            BYTES => {
                let length = usize::try_from(varint(&mut message)?).ok()?;
                Value::Bytes(message.split_off(..length)?)
            }
            FIXED64 => message.split_off(..8).map(|_| Value::Fixed)?,
            FIXED32 => message.split_off(..4).map(|_| Value::Fixed)?,
            _ => return None,
        };
        if tag >> 3 == wanted {
            return Some(value);
        }
    }
    None
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.split_off_first()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_written_as_the_format_has_it() {
        // The examples of the encoding guide: field 1 is 150, field 2 is "testing", field 3 is a message with the first.
        let inner = || Message::default().number(1, 150);
        for (message, expected) in [
            (inner(), &b"\x08\x96\x01"[..]),
            (Message::default().text(2, "testing"), b"\x12\x07testing"),
            (Message::default().message(3, inner()), b"\x1a\x03\x08\x96\x01"),
            (Message::default().text(2, ""), b""),
            (Message::default().text(16, "x"), b"\x82\x01\x01x"),
            (Message::default().number(1, u64::MAX), b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        ] {
            assert_eq!(message.into_bytes(), expected);
        }
        let long = Message::default().text(1, &"x".repeat(300)).into_bytes();
        assert_eq!((&long[..3], long.len()), (&b"\x0a\xac\x02"[..], 303));
    }

    #[test]
    fn fields_are_found_by_their_path() {
        let inner = Message::default().text(1, "a").number(2, 7).text(1, "b");
        let message = Message::default().number(9, 1).message(3, inner).number(4, 300).into_bytes();
        let fixed = [&b"\x09\0\0\0\0\0\0\0\0\x15\0\0\0\0"[..], &message].concat();
        for bytes in [&message, &fixed] {
            for (path, expected) in [
                (&[4][..], Some(Value::Number(300))),
                (&[3, 1], Some(Value::Bytes(b"a"))),
                (&[3, 2], Some(Value::Number(7))),
                (&[3, 3], None),
                (&[4, 1], None),
                (&[5], None),
                (&[], None),
            ] {
                assert_eq!(at(bytes, path), expected, "{path:?}");
            }
        }
        assert_eq!(at(&fixed, &[1]), Some(Value::Fixed));
        assert_eq!((number(&message, &[3, 1]), bytes(&message, &[4])), (None, None));
    }

    #[test]
    fn broken_bytes_hold_nothing() {
        for bytes in
            [&b"\x0a"[..], b"\x0a\x05abc", b"\x0b", b"\x80", b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"]
        {
            assert_eq!(at(bytes, &[1]), None, "{bytes:?}");
        }
        let message = Message::default().message(1, Message::default().text(1, "abc")).into_bytes();
        for cut in 0..message.len() {
            assert_eq!(at(&message[..cut], &[1, 1]), None, "{cut}");
        }
    }
}
