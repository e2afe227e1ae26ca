//! A public key of a key set, and which signatures it may verify.
//!
//! The key decides about the algorithm, not the signature: a P-256 key verifies ES256 and nothing else.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PSS_2048_8192_SHA256,
    RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};
use sabir_model::{Signature, base64url, from_base64url};
use serde::Deserialize;

use super::protected_header::{JwsAlgorithm, ProtectedHeader};

/// A key as it stands in a set; what it is good for is asked when a signature names it.
#[derive(Deserialize)]
pub struct Jwk {
    pub(super) kid: Option<String>,
    kty: Option<String>,
    crv: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    use_: Option<String>,
    key_ops: Option<Vec<String>>,
    x: Option<String>,
    y: Option<String>,
    n: Option<String>,
    e: Option<String>,
    d: Option<serde::de::IgnoredAny>,
}

impl Jwk {
    /// Whether the signature is one of this key over the payload. An error says why the key may not verify it.
    pub fn verifies(&self, header: &ProtectedHeader, signature: &Signature, payload: &str) -> Result<bool, String> {
        self.check_purpose(header.algorithm)?;
        let signed = format!("{}.{}", signature.protected, base64url(payload.as_bytes()));
        let Some(bytes) = from_base64url(&signature.signature) else {
            return Err("the signature is not base64url".to_owned());
        };
        let is_of = |algorithm: &'static dyn VerificationAlgorithm, key: Vec<u8>| {
            UnparsedPublicKey::new(algorithm, key).verify(signed.as_bytes(), &bytes).is_ok()
        };
        Ok(match header.algorithm {
            JwsAlgorithm::Es256 => is_of(&ECDSA_P256_SHA256_FIXED, self.point(32)?),
            JwsAlgorithm::Es384 => is_of(&ECDSA_P384_SHA384_FIXED, self.point(48)?),
            JwsAlgorithm::EdDsa => is_of(&ED25519, coordinate(&self.x, 32)?),
            JwsAlgorithm::Rs256 => self.rsa()?.verify(&RSA_PKCS1_2048_8192_SHA256, signed.as_bytes(), &bytes).is_ok(),
            JwsAlgorithm::Ps256 => self.rsa()?.verify(&RSA_PSS_2048_8192_SHA256, signed.as_bytes(), &bytes).is_ok(),
        })
    }

    fn check_purpose(&self, algorithm: JwsAlgorithm) -> Result<(), String> {
        let kind = match (self.kty.as_deref().unwrap_or("none"), self.crv.as_deref()) {
            ("oct", _) => return Err("the key is a shared secret, and that proves nothing about who signed".to_owned()),
            ("RSA", _) => "RSA".to_owned(),
            (kty, crv) => format!("{kty} {}", crv.unwrap_or("without a curve")),
        };
        let expected = match algorithm {
            JwsAlgorithm::Es256 => "EC P-256",
            JwsAlgorithm::Es384 => "EC P-384",
            JwsAlgorithm::EdDsa => "OKP Ed25519",
            JwsAlgorithm::Rs256 | JwsAlgorithm::Ps256 => "RSA",
        };
        let name = algorithm.name();
        if kind != expected {
            return Err(format!("the signature says {name}, but the key is of the kind {kind}"));
        }
        if self.d.is_some() {
            return Err("the key set shows the private half of the key, so anybody can sign with it".to_owned());
        }
        if let Some(alg) = self.alg.as_deref().filter(|alg| !algorithm.is_called(alg)) {
            return Err(format!("the signature says {name}, but the key is for {alg}"));
        }
        if let Some(purpose) = self.use_.as_deref().filter(|purpose| *purpose != "sig") {
            return Err(format!("the key is not for signatures (use: {purpose})"));
        }
        match &self.key_ops {
            Some(operations) if !operations.iter().any(|operation| operation == "verify") => {
                Err("the key is not for verifying (key_ops)".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// A point of a curve, uncompressed.
    fn point(&self, length: usize) -> Result<Vec<u8>, String> {
        Ok([vec![4], coordinate(&self.x, length)?, coordinate(&self.y, length)?].concat())
    }

    fn rsa(&self) -> Result<RsaPublicKeyComponents<Vec<u8>>, String> {
        let number = |text: &Option<String>| text.as_deref().and_then(from_base64url).ok_or_else(malformed);
        Ok(RsaPublicKeyComponents { n: number(&self.n)?, e: number(&self.e)? })
    }
}

fn coordinate(text: &Option<String>, length: usize) -> Result<Vec<u8>, String> {
    text.as_deref().and_then(from_base64url).filter(|bytes| bytes.len() == length).ok_or_else(malformed)
}

fn malformed() -> String {
    "the key is malformed".to_owned()
}
