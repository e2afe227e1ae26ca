//! One public key of an issuer, and the algorithms that it may be used with.
//!
//! The key decides about the algorithm, not the token: an elliptic curve has one, and an RSA key has the one that its
//! `alg` names or, without that, those of RSA. Keys for other purposes, private keys that were published by accident, and
//! keys that are too short are not usable.

use aws_lc_rs::digest::{SHA256, digest};
use jsonwebtoken::DecodingKey;
use jsonwebtoken::crypto::aws_lc::DEFAULT_PROVIDER;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::algorithm::JwtAlgorithm;
use super::compact::{CompactToken, decode};

pub(super) struct SigningKey {
    pub(super) id: Option<String>,
    algorithms: Vec<JwtAlgorithm>,
    key: DecodingKey,
    /// Equal for equal keys.
    pub(super) fingerprint: [u8; 32],
}

/// As RFC 7517 and 7518 spell it.
#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    key_ops: Option<Vec<String>>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
    d: Option<IgnoredAny>,
}

/// Bits of an RSA modulus: shorter ones are weak, longer ones take long.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;

impl SigningKey {
    /// `None` if the key cannot verify tokens.
    pub(super) fn parse(json: &str) -> Option<Self> {
        let jwk: Jwk = serde_json::from_str(json).ok()?;
        let is_for_signatures = jwk.purpose.as_deref().is_none_or(|purpose| purpose == "sig");
        let is_for_verifying = jwk.key_ops.as_ref().is_none_or(|uses| uses.iter().any(|name| name == "verify"));
        if !is_for_signatures || !is_for_verifying || jwk.d.is_some() {
            return None;
        }
        let bytes = |text: &Option<String>| decode(text.as_deref()?);
        let (fitting, key, material): (&[JwtAlgorithm], _, _) = match (jwk.kty.as_str(), jwk.crv.as_deref()) {
            ("RSA", _) => {
                let (modulus, exponent) = (bytes(&jwk.n)?, bytes(&jwk.e)?);
                if !RSA_BITS.contains(&bit_length(&modulus)) {
                    return None;
                }
                let key = DecodingKey::from_rsa_raw_components(&modulus, &exponent);
                (&JwtAlgorithm::RSA, key, [modulus, exponent].concat())
            }
            ("EC", Some(curve @ ("P-256" | "P-384"))) => {
                let (size, algorithm): (_, &[JwtAlgorithm]) = match curve {
                    "P-256" => (32, &[JwtAlgorithm::Es256]),
                    _ => (48, &[JwtAlgorithm::Es384]),
                };
                let (x, y) = (bytes(&jwk.x)?, bytes(&jwk.y)?);
                if x.len() != size || y.len() != size {
                    return None;
                }
                // An uncompressed point, SEC 1, section 2.3.3.
                let point = [&[4], x.as_slice(), &y].concat();
                (algorithm, DecodingKey::from_ec_der(&point), point)
            }
            ("OKP", Some("Ed25519")) => {
                let point = bytes(&jwk.x).filter(|point| point.len() == 32)?;
                (&[JwtAlgorithm::EdDsa], DecodingKey::from_ed_der(&point), point)
            }
            _ => return None,
        };
        let algorithms = match &jwk.alg {
            None => fitting.to_vec(),
            Some(name) => vec![JwtAlgorithm::parse(name).filter(|algorithm| fitting.contains(algorithm))?],
        };
        let identity = format!("{} {:?} {:?} {algorithms:?} {material:?}", jwk.kty, jwk.crv, jwk.kid);
        let fingerprint = digest(&SHA256, identity.as_bytes()).as_ref().try_into().expect("SHA-256 has 32 bytes");
        Some(SigningKey { id: jwk.kid, algorithms, key, fingerprint })
    }

    pub(super) fn allows(&self, algorithm: JwtAlgorithm) -> bool {
        self.algorithms.contains(&algorithm)
    }

    pub(super) fn has_signed(&self, token: &CompactToken<'_>) -> bool {
        debug_assert!(self.allows(token.algorithm));
        // Not `jsonwebtoken::crypto::verify`: that asks for a provider of the whole process, and panics in a program
        // which uses the other one of that crate too.
        let verifier = (DEFAULT_PROVIDER.verifier_factory)(&token.algorithm.of_library(), &self.key);
        verifier.is_ok_and(|verifier| verifier.verify(token.message, &token.signature).is_ok())
    }
}

fn bit_length(number: &[u8]) -> usize {
    let digits = number.iter().position(|byte| *byte != 0).map_or(&[][..], |first| &number[first..]);
    digits.first().map_or(0, |first| digits.len() * 8 - first.leading_zeros() as usize)
}
