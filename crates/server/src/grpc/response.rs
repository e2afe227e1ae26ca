//! The response as this client wants it: compressed if its own message was, and for gRPC-Web with the trailers in the body.

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Response, header};
use sabir_wire::grpc::{GRPC, MessagePrefix, PREFIX_LENGTH};

use super::compression::compress;
use super::head::{Compression, GrpcFormat, GrpcHead};
use super::trailers::GRPC_STATUS;
use crate::body::Body;
use crate::pieces::PIECE;

/// Longer messages are not worth the time, shorter ones not the header of gzip.
const COMPRESSED: std::ops::RangeInclusive<usize> = 256..=PIECE;
/// What begins the trailers in a body of gRPC-Web.
const WEB_TRAILERS: u8 = 0x80;

impl GrpcHead {
    pub(crate) fn finish(&self, response: Response<Body>) -> Response<Body> {
        let is_grpc = response.headers().get(header::CONTENT_TYPE).is_some_and(|value| value == GRPC);
        if !is_grpc {
            return response;
        }
        let (mut head, mut body) = response.into_parts();
        if self.compression == Compression::Unknown {
            head.headers.insert("grpc-accept-encoding", HeaderValue::from_static("identity,gzip"));
        }
        if self.answers == Compression::Gzip {
            head.headers.insert("grpc-encoding", HeaderValue::from_static("gzip"));
            body = body.compressed(Compressor::default());
        }
        if self.format == GrpcFormat::Web {
            head.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc-web+proto"));
            // A page sees no trailers. A status among the headers it can read.
            if !head.headers.contains_key(GRPC_STATUS) {
                body = body.with_trailers_inside(web_trailers);
            }
        }
        Response::from_parts(head, body)
    }
}

/// The trailers as the last part of a body.
fn web_trailers(trailers: &HeaderMap) -> Bytes {
    let mut block = Vec::new();
    for (name, value) in trailers {
        block.extend_from_slice(name.as_str().as_bytes());
        block.extend_from_slice(b": ");
        block.extend_from_slice(value.as_bytes());
        block.extend_from_slice(b"\r\n");
    }
    let mut prefix = MessagePrefix::plain(block.len()).write();
    prefix[0] = WEB_TRAILERS;
    [&prefix[..], &block].concat().into()
}

/// Compresses messages on their way, however they are cut. Long ones pass as they are, so that nothing large is held.
#[derive(Default)]
pub(crate) struct Compressor {
    /// A message, or a prefix, that is not complete yet.
    pending: BytesMut,
    /// So much is still to come of a message that is not compressed.
    passing: usize,
}

impl Compressor {
    pub(crate) fn feed(&mut self, bytes: Bytes) -> Bytes {
        let mut out = BytesMut::new();
        self.pending.extend_from_slice(&bytes);
        loop {
            if self.passing > 0 {
                let passed = self.pending.split_to(self.passing.min(self.pending.len()));
                self.passing -= passed.len();
                out.extend_from_slice(&passed);
            }
            let Some(prefix) = self.pending.first_chunk::<PREFIX_LENGTH>() else { break };
            let length = MessagePrefix::read(*prefix).map_or(0, |prefix| prefix.length);
            if !COMPRESSED.contains(&length) {
                self.passing = PREFIX_LENGTH + length;
                continue;
            }
            if self.pending.len() < PREFIX_LENGTH + length {
                break;
            }
            let message = self.pending.split_to(PREFIX_LENGTH + length);
            let packed = compress(&message[PREFIX_LENGTH..]);
            out.extend_from_slice(&MessagePrefix { is_compressed: true, length: packed.len() }.write());
            out.extend_from_slice(&packed);
        }
        out.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::super::compression::decompress;
    use super::*;

    /// Reads messages of both kinds.
    fn messages(mut bytes: &[u8]) -> (Vec<Vec<u8>>, usize) {
        let (mut all, mut compressed) = (Vec::new(), 0);
        while let Some((prefix, rest)) = bytes.split_first_chunk::<PREFIX_LENGTH>() {
            let prefix = MessagePrefix::read(*prefix).unwrap();
            let (message, rest) = rest.split_at(prefix.length);
            compressed += usize::from(prefix.is_compressed);
            all.push(if prefix.is_compressed { decompress(message, 1 << 20).unwrap() } else { message.to_vec() });
            bytes = rest;
        }
        assert!(bytes.is_empty());
        (all, compressed)
    }

    #[test]
    fn messages_are_compressed_wherever_they_are_cut() {
        let lengths = [0, 10, 256, 5000, 32 * 1024, 32 * 1024 + 1, 200_000, 300];
        let all: Vec<Vec<u8>> = lengths.iter().map(|length| vec![b'x'; *length]).collect();
        let mut stream = Vec::new();
        for message in &all {
            stream.extend_from_slice(&MessagePrefix::plain(message.len()).write());
            stream.extend_from_slice(message);
        }
        for cut in [1, 7, 1000, 40_000, usize::MAX] {
            let mut compressor = Compressor::default();
            let mut out = Vec::new();
            for piece in stream.chunks(cut.min(stream.len())) {
                out.extend_from_slice(&compressor.feed(Bytes::copy_from_slice(piece)));
                assert!(compressor.pending.len() <= 32 * 1024 + PREFIX_LENGTH, "{}", compressor.pending.len());
            }
            assert_eq!(messages(&out), (all.clone(), 4), "by {cut}");
        }
    }
}
