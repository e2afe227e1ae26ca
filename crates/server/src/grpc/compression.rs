//! gzip, within limits: a few bytes can stand for gigabytes.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use sabir_model::Error;

/// The content, if it is not longer than `limit`.
pub(super) fn decompress(bytes: &[u8], limit: usize) -> Result<Vec<u8>, Error> {
    let mut content = Vec::new();
    // One byte more than allowed shows that there is more.
    let mut reader = MultiGzDecoder::new(bytes).take(limit as u64 + 1);
    match reader.read_to_end(&mut content) {
        Ok(length) if length > limit => Err(Error::TooLarge { limit }),
        Ok(_) => Ok(content),
        Err(error) => Err(Error::BrokenBody(format!("the message is not gzip: {error}"))),
    }
}

pub(super) fn compress(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 2), Compression::fast());
    encoder.write_all(bytes).expect("a Vec takes everything");
    encoder.finish().expect("a Vec takes everything")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_may_not_grow_beyond_the_limit() {
        let zeros = vec![0; 1 << 20];
        let packed = compress(&zeros);
        assert!(packed.len() < 8192);
        assert_eq!(decompress(&packed, zeros.len()).unwrap(), zeros);
        for limit in [0, 1, 1000, zeros.len() - 1] {
            assert!(matches!(decompress(&packed, limit), Err(Error::TooLarge { .. })), "{limit}");
        }
        for broken in [&b""[..], b"not gzip", &packed[..packed.len() / 2]] {
            assert!(matches!(decompress(broken, 1 << 21), Err(Error::BrokenBody(_))));
        }
    }
}
