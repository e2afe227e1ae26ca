//! The digest by which documents and messages are told apart.

use aws_lc_rs::digest::{SHA256, digest};

pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    digest(&SHA256, bytes).as_ref().try_into().expect("SHA-256 has 32 bytes")
}
