//! One public key of an issuer, and the algorithms that it may be used with.
//!
//! The key decides about the algorithm, not the token: an elliptic curve has one, and an RSA key has the one that its
//! `alg` names or, without that, those of RSA. Keys for other purposes, private keys that were published by accident, and
//! keys that are too short are not usable.

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384,
    RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512,
    RsaPublicKeyComponents, UnparsedPublicKey,
};
use sabir_model::from_base64url;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::algorithm::JwtAlgorithm;
use super::compact::CompactToken;

pub(super) struct SigningKey {
    pub(super) id: Option<String>,
    algorithms: Vec<JwtAlgorithm>,
    material: Material,
    /// Equal for equal keys.
    pub(super) fingerprint: [u8; 32],
}

/// The public key itself.
#[derive(Debug)]
enum Material {
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    /// As the curve spells a point.
    Point(Vec<u8>),
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
        let bytes = |text: &Option<String>| from_base64url(text.as_deref()?);
        let (fitting, material): (&[JwtAlgorithm], _) = match (jwk.kty.as_str(), jwk.crv.as_deref()) {
            ("RSA", _) => {
                let (modulus, exponent) = (bytes(&jwk.n)?, bytes(&jwk.e)?);
                if !RSA_BITS.contains(&bit_length(&modulus)) {
                    return None;
                }
                (&JwtAlgorithm::RSA, Material::Rsa { modulus, exponent })
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
                (algorithm, Material::Point([&[4], x.as_slice(), &y].concat()))
            }
            ("OKP", Some("Ed25519")) => {
                let point = bytes(&jwk.x).filter(|point| point.len() == 32)?;
                (&[JwtAlgorithm::EdDsa], Material::Point(point))
            }
            _ => return None,
        };
        let algorithms = match &jwk.alg {
            None => fitting.to_vec(),
            Some(name) => vec![JwtAlgorithm::parse(name).filter(|algorithm| fitting.contains(algorithm))?],
        };
        let identity = format!("{} {:?} {:?} {algorithms:?} {material:?}", jwk.kty, jwk.crv, jwk.kid);
        let fingerprint = digest(&SHA256, identity.as_bytes()).as_ref().try_into().expect("SHA-256 has 32 bytes");
        Some(SigningKey { id: jwk.kid, algorithms, material, fingerprint })
    }

    pub(super) fn allows(&self, algorithm: JwtAlgorithm) -> bool {
        self.algorithms.contains(&algorithm)
    }

    /// Whether the key allows the token's algorithm and made its signature.
    pub(super) fn has_signed(&self, token: &CompactToken<'_>) -> bool {
        if !self.allows(token.algorithm) {
            return false;
        }
        let (message, signature) = (token.message, token.signature.as_slice());
        match &self.material {
            Material::Rsa { modulus, exponent } => {
                let key = RsaPublicKeyComponents { n: modulus, e: exponent };
                let parameters = match token.algorithm {
                    JwtAlgorithm::Rs256 => &RSA_PKCS1_2048_8192_SHA256,
                    JwtAlgorithm::Rs384 => &RSA_PKCS1_2048_8192_SHA384,
                    JwtAlgorithm::Rs512 => &RSA_PKCS1_2048_8192_SHA512,
                    JwtAlgorithm::Ps256 => &RSA_PSS_2048_8192_SHA256,
                    JwtAlgorithm::Ps384 => &RSA_PSS_2048_8192_SHA384,
                    JwtAlgorithm::Ps512 => &RSA_PSS_2048_8192_SHA512,
                    JwtAlgorithm::Es256 | JwtAlgorithm::Es384 | JwtAlgorithm::EdDsa => return false,
                };
                key.verify(parameters, message, signature).is_ok()
            }
            Material::Point(point) => match token.algorithm {
                JwtAlgorithm::Es256 => {
                    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature)
                }
                JwtAlgorithm::Es384 => {
                    UnparsedPublicKey::new(&ECDSA_P384_SHA384_FIXED, point).verify(message, signature)
                }
                JwtAlgorithm::EdDsa => UnparsedPublicKey::new(&ED25519, point).verify(message, signature),
                _ => return false,
            }
            .is_ok(),
        }
    }
}

fn bit_length(number: &[u8]) -> usize {
    let digits = number.iter().position(|byte| *byte != 0).map_or(&[][..], |first| &number[first..]);
    digits.first().map_or(0, |first| digits.len() * 8 - first.leading_zeros() as usize)
}
