//! The messages in the body of a gRPC answer, each behind its prefix.

use bytes::{Buf, Bytes, BytesMut};
use sabir_wire::grpc::{MessagePrefix, PREFIX_LENGTH};

#[derive(Debug)]
pub struct GrpcMessages {
    limit: usize,
    pending: BytesMut,
}

impl GrpcMessages {
    /// `limit` is the most bytes of one message.
    pub fn new(limit: usize) -> Self {
        GrpcMessages { limit, pending: BytesMut::new() }
    }

    pub fn feed(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    /// The next message that is complete. An error says what is wrong with its prefix.
    pub fn next(&mut self) -> Result<Option<Bytes>, String> {
        let Some(bytes) = self.pending.first_chunk::<PREFIX_LENGTH>() else { return Ok(None) };
        let Some(prefix) = MessagePrefix::read(*bytes) else {
            return Err(format!("a message begins with the byte {}, which gRPC does not know", bytes[0]));
        };
        if prefix.is_compressed {
            return Err("a message is compressed, and the request did not offer that".to_owned());
        }
        if prefix.length > self.limit {
            return Err(format!("a message has {} bytes; this check reads up to {}", prefix.length, self.limit));
        }
        if self.pending.len() < PREFIX_LENGTH + prefix.length {
            return Ok(None);
        }
        self.pending.advance(PREFIX_LENGTH);
        Ok(Some(self.pending.split_to(prefix.length).freeze()))
    }

    /// Whether a message has arrived in part.
    pub fn is_cut_off(&self) -> bool {
        !self.pending.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_wherever_they_are_cut() {
        for (bytes, expected) in [
            (&b"\0\0\0\0\x02ab\0\0\0\0\0"[..], "ab,,"),
            (b"\0\0\0\0\x02a", "cut off"),
            (b"\0\0", "cut off"),
            (b"\0\0\0\0\x09", "a message has 9 bytes; this check reads up to 8"),
            (b"\x01\0\0\0\0", "a message is compressed, and the request did not offer that"),
            (b"<html", "a message begins with the byte 60, which gRPC does not know"),
        ] {
            for cut in [1, 3, 100] {
                assert_eq!(say(bytes, cut), expected, "by {cut}");
            }
        }
    }

    fn say(bytes: &[u8], cut: usize) -> String {
        let mut messages = GrpcMessages::new(8);
        let mut all = String::new();
        for piece in bytes.chunks(cut) {
            messages.feed(piece);
            loop {
                match messages.next() {
                    Ok(Some(message)) => all += &format!("{},", String::from_utf8_lossy(&message)),
                    Ok(None) => break,
                    Err(why) => return why,
                }
            }
        }
        if messages.is_cut_off() { "cut off".to_owned() } else { all }
    }
}
