//! The one message of a request: its prefix is read and checked, and it is decompressed.

use bytes::Bytes;
use sabir_model::Error;
use sabir_wire::grpc::{MessagePrefix, PREFIX_LENGTH};

use super::compression::decompress;
use super::head::{Compression, GrpcHead};

impl GrpcHead {
    /// The message in a body that is complete. All methods of A2A take exactly one.
    pub(crate) fn message(&self, body: &Bytes, limit: usize) -> Result<Bytes, Error> {
        let broken = |why: &str| Err(Error::BrokenBody(why.to_owned()));
        let Some((prefix, message)) = body.split_first_chunk::<PREFIX_LENGTH>() else {
            return broken("the body holds no message: it is shorter than the prefix of one");
        };
        let Some(prefix) = MessagePrefix::read(*prefix) else {
            return broken("the first byte of the body is not 0 or 1, as the prefix of a message wants it");
        };
        match message.len() {
            length if length < prefix.length => return broken("the body ends in the middle of its message"),
            length if length > prefix.length => return broken("the body holds more than one message"),
            _ => {}
        }
        match (prefix.is_compressed, self.compression) {
            (false, _) => Ok(body.slice(PREFIX_LENGTH..)),
            (true, Compression::Gzip) => decompress(message, limit).map(Bytes::from),
            (true, Compression::None) => broken("the message is compressed, and grpc-encoding does not say how"),
            (true, Compression::Unknown) => {
                let why = "grpc-encoding names a compression that this server does not have; it has gzip and identity";
                Err(Error::UnsupportedCompression(why.to_owned()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::compression::compress;
    use super::super::head::GrpcFormat;
    use super::*;

    fn head(compression: Compression) -> GrpcHead {
        GrpcHead { format: GrpcFormat::Http2, compression, answers: Compression::None }
    }

    fn framed(flag: u8, length: u32, message: &[u8]) -> Bytes {
        [&[flag][..], &length.to_be_bytes(), message].concat().into()
    }

    #[test]
    fn lengths_that_lie_are_refused() {
        let gzip = compress(b"hello");
        let bomb = compress(&vec![0; 100_000]);
        for (body, compression, expected) in [
            (framed(0, 5, b"hello"), Compression::None, "hello"),
            (framed(0, 0, b""), Compression::None, ""),
            (framed(1, gzip.len() as u32, &gzip), Compression::Gzip, "hello"),
            (framed(0, 5, b"hello"), Compression::Gzip, "hello"),
            (framed(0, 5, b"hello"), Compression::Unknown, "hello"),
            (Bytes::new(), Compression::None, "no message"),
            (Bytes::from_static(b"\0\0\0\0"), Compression::None, "no message"),
            (framed(0, 6, b"hello"), Compression::None, "in the middle"),
            (framed(0, u32::MAX, b"hello"), Compression::None, "in the middle"),
            (framed(0, 4, b"hello"), Compression::None, "more than one"),
            (framed(7, 5, b"hello"), Compression::None, "first byte"),
            (framed(1, 5, b"hello"), Compression::None, "does not say how"),
            (framed(1, 5, b"hello"), Compression::Gzip, "not gzip"),
            (framed(1, 5, b"hello"), Compression::Unknown, "does not have"),
            (framed(1, bomb.len() as u32, &bomb), Compression::Gzip, "larger than 1000 bytes"),
        ] {
            match head(compression).message(&body, 1000) {
                Ok(message) => assert_eq!(message, expected, "{body:?}"),
                Err(error) => assert!(error.to_string().contains(expected), "{error}, not {expected}"),
            }
        }
    }

    proptest! {
        #[test]
        fn any_body_is_read_or_refused(body: Vec<u8>, gzip: bool) {
            let compression = if gzip { Compression::Gzip } else { Compression::None };
            let _ = head(compression).message(&body.into(), 100);
        }
    }
}
