//! The signature algorithms that are accepted: those with a public key.
//!
//! `none` and the HMAC family have no variant, so no setting, key or token can ask for them. With HMAC, whoever knows a
//! public key could sign with it.

/// An algorithm of RFC 7518, section 3.1, or RFC 8037.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JwtAlgorithm {
    Rs256,
    Rs384,
    Rs512,
    Ps256,
    Ps384,
    Ps512,
    Es256,
    Es384,
    EdDsa,
}

impl JwtAlgorithm {
    pub const ALL: [JwtAlgorithm; 9] = [
        JwtAlgorithm::Rs256,
        JwtAlgorithm::Rs384,
        JwtAlgorithm::Rs512,
        JwtAlgorithm::Ps256,
        JwtAlgorithm::Ps384,
        JwtAlgorithm::Ps512,
        JwtAlgorithm::Es256,
        JwtAlgorithm::Es384,
        JwtAlgorithm::EdDsa,
    ];

    /// What an RSA key may be used with when its `alg` does not say.
    pub(super) const RSA: [JwtAlgorithm; 6] = [
        JwtAlgorithm::Rs256,
        JwtAlgorithm::Rs384,
        JwtAlgorithm::Rs512,
        JwtAlgorithm::Ps256,
        JwtAlgorithm::Ps384,
        JwtAlgorithm::Ps512,
    ];

    /// The value of `alg`.
    pub fn name(self) -> &'static str {
        match self {
            JwtAlgorithm::Rs256 => "RS256",
            JwtAlgorithm::Rs384 => "RS384",
            JwtAlgorithm::Rs512 => "RS512",
            JwtAlgorithm::Ps256 => "PS256",
            JwtAlgorithm::Ps384 => "PS384",
            JwtAlgorithm::Ps512 => "PS512",
            JwtAlgorithm::Es256 => "ES256",
            JwtAlgorithm::Es384 => "ES384",
            JwtAlgorithm::EdDsa => "EdDSA",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        match name {
            // RFC 9864 names the curve; here EdDSA has only that one.
            "Ed25519" => Some(JwtAlgorithm::EdDsa),
            name => Self::ALL.into_iter().find(|algorithm| algorithm.name() == name),
        }
    }
}
