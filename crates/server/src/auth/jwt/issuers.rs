//! All issuers of a server: which one a token is for.

use std::fmt;
use std::sync::Arc;

use super::claims::unverified_issuer;
use super::compact::{CompactToken, LARGEST_TOKEN};
use super::refusal::JwtRefusal;
use super::verified_cache::digest_of;
use super::verifier::{JwtVerifier, Verified};

/// The issuers whose tokens are accepted.
#[derive(Default)]
pub struct Issuers(Vec<JwtVerifier>);

impl fmt::Debug for Issuers {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.0.iter().map(JwtVerifier::issuer)).finish()
    }
}

impl Issuers {
    pub fn new(verifiers: Vec<JwtVerifier>) -> Self {
        Issuers(verifiers)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &JwtVerifier> {
        self.0.iter()
    }

    /// Begins to fetch all keys, so that the first callers need not wait. Needs a tokio runtime.
    pub fn prefetch(&self) {
        self.0.iter().for_each(JwtVerifier::prefetch);
    }

    /// Whether a bearer token has the form of a JWT; other ones need not be asked about here.
    pub fn looks_like_jwt(token: &str) -> bool {
        // The header is a JSON object, and `{` in base64 begins with an `e`.
        token.starts_with('e') && token.bytes().filter(|byte| *byte == b'.').count() == 2
    }

    /// A token that was verified before and still counts. Neither waits nor fetches.
    pub fn quick(&self, token: &str) -> Option<Arc<Verified>> {
        if token.len() > LARGEST_TOKEN || self.0.is_empty() {
            return None;
        }
        let digest = digest_of(token);
        self.0.iter().find_map(|verifier| verifier.cached(&digest))
    }

    /// Asks the issuer that the token names. That name is not trusted: the verifier checks it with everything else.
    pub async fn verify(&self, token: &str) -> Result<Arc<Verified>, JwtRefusal> {
        if let Some(verified) = self.quick(token) {
            return Ok(verified);
        }
        self.verifier_of(token)?.verify(token).await
    }

    fn verifier_of(&self, token: &str) -> Result<&JwtVerifier, JwtRefusal> {
        let issuer = unverified_issuer(&CompactToken::parse(token)?.claims)?;
        self.0.iter().find(|verifier| verifier.issuer() == issuer).ok_or(JwtRefusal::Issuer)
    }
}
