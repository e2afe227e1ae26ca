//! What stands before each message of gRPC: one byte that says whether it is compressed, four that say how long it is.

use sabir_proto::prost::Message;

/// Of every prefix.
pub const PREFIX_LENGTH: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessagePrefix {
    pub is_compressed: bool,
    /// Of the message behind it.
    pub length: usize,
}

impl MessagePrefix {
    /// Before a message that is not compressed.
    pub fn plain(length: usize) -> Self {
        Self { is_compressed: false, length }
    }

    /// `None`: the first byte is none that gRPC knows.
    pub fn read(bytes: [u8; PREFIX_LENGTH]) -> Option<Self> {
        let [flag, length @ ..] = bytes;
        let length = u32::from_be_bytes(length) as usize;
        (flag <= 1).then_some(Self { is_compressed: flag == 1, length })
    }

    /// A message of 4 GiB cannot be sent; nothing that is stored is that large.
    pub fn write(self) -> [u8; PREFIX_LENGTH] {
        let [a, b, c, d] = u32::try_from(self.length).unwrap_or(u32::MAX).to_be_bytes();
        [u8::from(self.is_compressed), a, b, c, d]
    }
}

/// Makes room for the prefix of a message that is written next.
pub(crate) fn begin(out: &mut Vec<u8>) {
    out.extend_from_slice(&[0; PREFIX_LENGTH]);
}

/// The message that began at `start` is complete.
pub(crate) fn end(start: usize, out: &mut [u8]) {
    let length = out.len() - start - PREFIX_LENGTH;
    out[start..start + PREFIX_LENGTH].copy_from_slice(&MessagePrefix::plain(length).write());
}

/// A message of its own, with its prefix.
pub(super) fn framed(message: &impl Message) -> Vec<u8> {
    let mut out = Vec::new();
    begin(&mut out);
    message.encode(&mut out).expect("a Vec takes everything");
    end(0, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_says_how_long_its_message_is() {
        for (bytes, expected) in [
            ([0, 0, 0, 0, 0], Some((false, 0))),
            ([1, 0, 0, 1, 2], Some((true, 258))),
            ([0, 255, 255, 255, 255], Some((false, u32::MAX as usize))),
            ([2, 0, 0, 0, 0], None),
            ([0x80, 0, 0, 0, 0], None),
        ] {
            let prefix = MessagePrefix::read(bytes);
            assert_eq!(prefix.map(|prefix| (prefix.is_compressed, prefix.length)), expected);
            assert!(prefix.is_none_or(|prefix| prefix.write() == bytes));
        }
        let mut out = b"before".to_vec();
        begin(&mut out);
        out.extend_from_slice(b"message");
        end(6, &mut out);
        assert_eq!(out, b"before\0\0\0\0\x07message");
    }
}
