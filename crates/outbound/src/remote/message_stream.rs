//! The messages of a gRPC response, however the bytes are cut.

use bytes::{Buf, Bytes, BytesMut};
use sabir_wire::grpc::{MessagePrefix, PREFIX_LENGTH};

use super::event_stream::EventTooLarge;

#[derive(Debug)]
pub(super) struct MessageParser {
    limit: usize,
    pending: BytesMut,
}

/// What is wrong with a stream of messages.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BrokenStream {
    TooLarge(EventTooLarge),
    /// Nobody asked the server to compress, and some other first byte nobody knows.
    UnknownPrefix,
}

impl MessageParser {
    /// `limit` is the most bytes of one message.
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, pending: BytesMut::new() }
    }

    pub(super) fn feed(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    /// The next message that is complete.
    pub(super) fn next(&mut self) -> Result<Option<Bytes>, BrokenStream> {
        let Some(prefix) = self.pending.first_chunk::<PREFIX_LENGTH>() else { return Ok(None) };
        let prefix = MessagePrefix::read(*prefix).filter(|prefix| !prefix.is_compressed);
        let length = prefix.ok_or(BrokenStream::UnknownPrefix)?.length;
        if length > self.limit {
            return Err(BrokenStream::TooLarge(EventTooLarge { limit: self.limit }));
        }
        if self.pending.len() < PREFIX_LENGTH + length {
            return Ok(None);
        }
        self.pending.advance(PREFIX_LENGTH);
        Ok(Some(self.pending.split_to(length).freeze()))
    }

    /// Whether a message has arrived in part.
    pub(super) fn is_in_message(&self) -> bool {
        !self.pending.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(stream: &[u8], cut: usize, limit: usize) -> (Vec<Bytes>, Option<BrokenStream>) {
        let mut parser = MessageParser::new(limit);
        let mut messages = Vec::new();
        for piece in stream.chunks(cut.max(1)) {
            parser.feed(piece);
            loop {
                match parser.next() {
                    Ok(Some(message)) => messages.push(message),
                    Ok(None) => break,
                    Err(broken) => return (messages, Some(broken)),
                }
            }
        }
        (messages, None)
    }

    fn framed(messages: &[&[u8]]) -> Vec<u8> {
        messages
            .iter()
            .flat_map(|message| [&MessagePrefix::plain(message.len()).write()[..], message].concat())
            .collect()
    }

    #[test]
    fn messages_are_read_wherever_they_are_cut() {
        let stream = framed(&[b"one", b"", b"three"]);
        for cut in [1, 2, 5, 6, 100] {
            assert_eq!(read(&stream, cut, 10), (vec!["one".into(), "".into(), "three".into()], None), "by {cut}");
        }
        let too_large = Some(BrokenStream::TooLarge(EventTooLarge { limit: 4 }));
        assert_eq!(read(&stream, 3, 4), (vec!["one".into(), "".into()], too_large));
        assert_eq!(read(b"\x01\0\0\0\0", 1, 4), (vec![], Some(BrokenStream::UnknownPrefix)));
        assert_eq!(read(b"HTTP/1.1", 1, 4), (vec![], Some(BrokenStream::UnknownPrefix)));
    }

    proptest! {
        #[test]
        fn where_the_bytes_are_cut_changes_nothing(stream: Vec<u8>, cut in 1usize..20) {
            prop_assert_eq!(read(&stream, cut, 64), read(&stream, usize::MAX, 64));
        }
    }
}
