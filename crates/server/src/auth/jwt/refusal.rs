//! Why a token is refused, in sentences for its caller.

use std::time::Duration;

/// The sentences say what is wrong and never what the token or the configuration contains.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JwtRefusal {
    #[error("the token is malformed: {0}")]
    Malformed(&'static str),
    #[error("the token is larger than 16 KiB")]
    TooLarge,
    #[error("the signature algorithm of the token is not accepted")]
    Algorithm,
    #[error("the token is of a type that is no access token")]
    TokenType,
    #[error("the token demands header extensions that are not supported")]
    CriticalHeader,
    #[error("the token is bound to a key of its sender, which is not supported")]
    SenderConstrained,
    #[error("the token has no claim `{0}`")]
    MissingClaim(&'static str),
    #[error("the claim `{0}` of the token is not usable")]
    UnusableClaim(&'static str),
    #[error("the token has no usable subject")]
    Subject,
    #[error("the token has no usable tenant")]
    Tenant,
    #[error("the issuer of the token is not trusted")]
    Issuer,
    #[error("the token is meant for another audience")]
    Audience,
    #[error("the token has expired")]
    Expired,
    #[error("the token is not valid yet")]
    NotYetValid,
    #[error("the token is signed with a key that its issuer does not publish")]
    UnknownKey,
    #[error("the signature of the token is wrong")]
    Signature,
    /// Says nothing about the token. Over HTTP: 503 with `Retry-After`.
    #[error("the keys of the token's issuer cannot be fetched now; try again later")]
    KeysUnavailable { retry_after: Duration },
}

impl JwtRefusal {
    /// When the same token may be accepted, if the refusal is not about the token.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            JwtRefusal::KeysUnavailable { retry_after } => Some(*retry_after),
            _ => None,
        }
    }
}
