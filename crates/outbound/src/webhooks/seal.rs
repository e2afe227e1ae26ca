//! Secrets of webhooks at rest: encrypted where a key is configured.
//!
//! A sealed secret is bound to its URL: whoever can write the database cannot have it sent elsewhere.
//! Format: `0` and the secret, or `1`, four bytes that name the key, the nonce, and the ciphertext with its tag.

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::digest::{SHA256, digest};

use super::key_text::{self, KEY_BYTES};

const PLAIN: u8 = 0;
const SEALED: u8 = 1;
const NAME_BYTES: usize = 4;
const PREFIX: &str = "sabir-key-";

/// A key that secrets in the database are encrypted with.
#[derive(Clone)]
pub struct SealKey([u8; KEY_BYTES]);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a key; `sabir key new` makes one")]
pub struct InvalidKey;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum UnsealError {
    #[error("the secrets of this webhook are encrypted, and no key is configured")]
    NoKey,
    #[error("the secrets of this webhook are encrypted with another key than the configured one")]
    OtherKey,
    #[error("the secrets of this webhook cannot be read")]
    Damaged,
}

impl SealKey {
    /// A new random key.
    pub fn generate() -> Self {
        Self(key_text::random())
    }

    /// The key as it is written into a configuration.
    pub fn to_text(&self) -> String {
        key_text::write(PREFIX, &self.0)
    }

    pub fn parse(text: &str) -> Result<Self, InvalidKey> {
        key_text::read(PREFIX, text).map(Self).ok_or(InvalidKey)
    }

    fn name(&self) -> [u8; NAME_BYTES] {
        let hash = digest(&SHA256, &self.0);
        hash.as_ref()[..NAME_BYTES].try_into().expect("a hash is longer")
    }

    fn cipher(&self) -> RandomizedNonceKey {
        RandomizedNonceKey::new(&AES_256_GCM, &self.0).expect("the key has the right length")
    }
}

impl std::fmt::Debug for SealKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SealKey")
    }
}

pub(super) fn seal(key: Option<&SealKey>, url: &str, secret: Vec<u8>) -> Vec<u8> {
    let Some(key) = key else { return [&[PLAIN], secret.as_slice()].concat() };
    let mut sealed = secret;
    let nonce = key.cipher().seal_in_place_append_tag(Aad::from(url.as_bytes()), &mut sealed);
    let nonce = nonce.expect("a secret is short enough");
    [&[SEALED], key.name().as_slice(), nonce.as_ref(), &sealed].concat()
}

pub(super) fn unseal(key: Option<&SealKey>, url: &str, stored: &[u8]) -> Result<Vec<u8>, UnsealError> {
    let (name, rest) = match stored.split_first() {
        Some((&PLAIN, secret)) => return Ok(secret.to_vec()),
        Some((&SEALED, rest)) => rest.split_at_checked(NAME_BYTES).ok_or(UnsealError::Damaged)?,
        _ => return Err(UnsealError::Damaged),
    };
    let key = key.ok_or(UnsealError::NoKey)?;
    if name != key.name() {
        return Err(UnsealError::OtherKey);
    }
    let (nonce, ciphertext) = rest.split_at_checked(NONCE_LEN).ok_or(UnsealError::Damaged)?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| UnsealError::Damaged)?;
    let mut secret = ciphertext.to_vec();
    let opened = key.cipher().open_in_place(nonce, Aad::from(url.as_bytes()), &mut secret);
    let length = opened.map_err(|_| UnsealError::Damaged)?.len();
    secret.truncate(length);
    Ok(secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_can_be_unsealed_with_its_key_and_url_only() {
        let (key, other) = (SealKey::generate(), SealKey::generate());
        let sealed = seal(Some(&key), "https://a/", b"secret".to_vec());
        assert!(!sealed.windows(6).any(|bytes| bytes == b"secret"));
        assert_ne!(sealed, seal(Some(&key), "https://a/", b"secret".to_vec()));
        assert_eq!(unseal(Some(&key), "https://a/", &sealed).unwrap(), b"secret");
        assert_eq!(unseal(Some(&key), "https://b/", &sealed), Err(UnsealError::Damaged));
        assert_eq!(unseal(Some(&other), "https://a/", &sealed), Err(UnsealError::OtherKey));
        assert_eq!(unseal(None, "https://a/", &sealed), Err(UnsealError::NoKey));
        for length in 0..sealed.len() {
            assert!(unseal(Some(&key), "https://a/", &sealed[..length]).is_err());
        }
        // What was stored before there was a key can still be read.
        let plain = seal(None, "https://a/", b"secret".to_vec());
        assert_eq!(unseal(Some(&key), "https://a/", &plain).unwrap(), b"secret");
    }

    #[test]
    fn keys_as_text() {
        let key = SealKey::generate();
        assert_eq!(SealKey::parse(&format!(" {}\n", key.to_text())).unwrap().0, key.0);
        for text in ["", "sabir-key-", "sabir-key-00"] {
            assert_eq!(SealKey::parse(text).err(), Some(InvalidKey), "{text}");
        }
    }
}
