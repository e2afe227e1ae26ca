//! Signatures by which a receiver knows that a delivery is ours and unchanged. Both are optional.
//!
//! - `webhook-signature`: HMAC-SHA-256 of `id.timestamp.body` with a shared secret, as the Standard Webhooks
//!   specification has it (`v1,BASE64`);
//! - `sabir-signature`: a detached JWS (RFC 7515, appendix F) over the same bytes, with an Ed25519 key whose public half
//!   the server publishes as a JWKS.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use http::header::HeaderName;
use sabir_model::{Base64, base64url};

use super::key_text::{self, KEY_BYTES};

const PREFIX: &str = "sabir-signing-key-";

/// What deliveries are signed with.
#[derive(Clone, Default)]
pub struct Signer {
    pub hmac_secret: Option<Arc<str>>,
    pub key: Option<SigningKey>,
}

/// An Ed25519 key.
#[derive(Clone)]
pub struct SigningKey {
    seed: [u8; KEY_BYTES],
    pair: Arc<Ed25519KeyPair>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a signing key; `sabir key new --signing` makes one")]
pub struct InvalidSigningKey;

impl Signer {
    /// The headers that sign a delivery.
    pub(super) fn sign(&self, id: &str, timestamp: i64, body: &[u8]) -> Vec<(HeaderName, String)> {
        if self.hmac_secret.is_none() && self.key.is_none() {
            return Vec::new();
        }
        let signed = [format!("{id}.{timestamp}.").as_bytes(), body].concat();
        let mut headers = Vec::new();
        if let Some(secret) = &self.hmac_secret {
            let key = hmac::Key::new(hmac::HMAC_SHA256, &hmac_key(secret));
            let tag = Base64::encode(hmac::sign(&key, &signed).as_ref());
            headers.push((HeaderName::from_static("webhook-signature"), format!("v1,{}", tag.as_str())));
        }
        if let Some(key) = &self.key {
            headers.push((HeaderName::from_static("sabir-signature"), key.detached_jws(&signed)));
        }
        headers
    }
}

/// The bytes of a shared secret: of `whsec_BASE64` those that are encoded, as libraries for Standard Webhooks take it, of
/// any other text its own.
fn hmac_key(secret: &str) -> Vec<u8> {
    let encoded = secret.strip_prefix("whsec_").and_then(Base64::parse);
    encoded.map_or_else(|| secret.as_bytes().to_vec(), |encoded| encoded.decode())
}

impl SigningKey {
    /// A new random key.
    pub fn generate() -> Self {
        Self::from_seed(key_text::random())
    }

    /// The key as it is written into a configuration.
    pub fn to_text(&self) -> String {
        key_text::write(PREFIX, &self.seed)
    }

    pub fn parse(text: &str) -> Result<Self, InvalidSigningKey> {
        key_text::read(PREFIX, text).map(Self::from_seed).ok_or(InvalidSigningKey)
    }

    fn from_seed(seed: [u8; KEY_BYTES]) -> Self {
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).expect("every seed is a key");
        Self { seed, pair: Arc::new(pair) }
    }

    /// The public half as a JSON object, for a key set.
    pub fn jwk(&self) -> String {
        let (x, kid) = (base64url(self.pair.public_key().as_ref()), self.kid());
        format!(r#"{{"kty":"OKP","crv":"Ed25519","alg":"EdDSA","use":"sig","kid":"{kid}","x":"{x}"}}"#)
    }

    /// The thumbprint of the public key (RFC 7638).
    fn kid(&self) -> String {
        let x = base64url(self.pair.public_key().as_ref());
        let members = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#);
        base64url(digest(&SHA256, members.as_bytes()).as_ref())
    }

    fn detached_jws(&self, payload: &[u8]) -> String {
        let head = base64url(format!(r#"{{"alg":"EdDSA","kid":"{}"}}"#, self.kid()).as_bytes());
        let signed = format!("{head}.{}", base64url(payload));
        format!("{head}..{}", base64url(self.pair.sign(signed.as_bytes()).as_ref()))
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.kid())
    }
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};

    use super::*;
    use crate::jose::key_set;

    #[test]
    fn the_hmac_is_that_of_the_specification() {
        // The example of the Standard Webhooks specification.
        let signer = Signer { hmac_secret: Some("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".into()), key: None };
        let headers = signer.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(headers[0].1, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert_eq!(hmac_key("a plain secret"), b"a plain secret");
    }

    #[test]
    fn a_receiver_can_verify_the_jws_with_the_published_key() {
        let signer = Signer { hmac_secret: Some("secret".into()), key: Some(SigningKey::generate()) };
        let headers = signer.sign("msg_1", 7, b"body");
        let names: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["webhook-signature", "sabir-signature"]);
        let (head, signature) = headers[1].1.split_once("..").unwrap();
        let key = signer.key.as_ref().unwrap();
        let jwks: serde_json::Value = serde_json::from_str(&key_set([key.jwk()])).unwrap();
        let bytes = |text: &str| {
            let padded = format!("{text}{}", "=".repeat((4 - text.len() % 4) % 4));
            Base64::parse(padded.replace('-', "+").replace('_', "/")).unwrap().decode()
        };
        let public = UnparsedPublicKey::new(&ED25519, bytes(jwks["keys"][0]["x"].as_str().unwrap()));
        let signed = format!("{head}.{}", base64url(b"msg_1.7.body"));
        public.verify(signed.as_bytes(), &bytes(signature)).unwrap();
        assert!(public.verify(b"other", &bytes(signature)).is_err());
        let head: serde_json::Value = serde_json::from_slice(&bytes(head)).unwrap();
        assert_eq!(head["kid"], jwks["keys"][0]["kid"]);
        assert_eq!(SigningKey::parse(&key.to_text()).unwrap().jwk(), key.jwk());
        assert!(SigningKey::parse("sabir-key-00").is_err());
    }
}
