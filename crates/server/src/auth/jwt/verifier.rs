//! Verifies the tokens of one issuer.

use std::sync::Arc;

use sabir_engine::{Clock, SystemClock};
use sabir_model::Timestamp;

use super::claims::Claims;
use super::compact::{CompactToken, LARGEST_TOKEN};
use super::discovery::{IssuerMetadata, openid_location};
use super::key_set::Check;
use super::key_source::{DocumentFetcher, KeySource, Refreshed};
use super::refusal::JwtRefusal;
use super::settings::JwtSettings;
use super::verified_cache::{TokenDigest, VerifiedCache, digest_of};

/// One issuer's tokens, keys and cache.
pub struct JwtVerifier {
    settings: JwtSettings,
    source: Arc<KeySource>,
    cache: VerifiedCache,
    clock: Arc<dyn Clock>,
}

/// What a token has proved.
#[derive(Debug, Clone, PartialEq)]
pub struct Verified {
    pub issuer: String,
    /// Unique within the issuer only.
    pub subject: String,
    pub tenant: Option<String>,
    /// Ours, in the order of the alphabet.
    pub scopes: Vec<String>,
    pub expires: Timestamp,
}

impl JwtVerifier {
    /// Fetches nothing yet.
    pub fn new(settings: JwtSettings, fetcher: Arc<dyn DocumentFetcher>) -> Self {
        Self::with_clock(settings, fetcher, Arc::new(SystemClock))
    }

    /// With a clock that tests can set.
    pub fn with_clock(settings: JwtSettings, fetcher: Arc<dyn DocumentFetcher>, clock: Arc<dyn Clock>) -> Self {
        let source = KeySource::new(settings.issuer.clone(), settings.jwks_url.clone(), fetcher);
        JwtVerifier { settings, source, cache: VerifiedCache::new(), clock }
    }

    pub fn issuer(&self) -> &str {
        &self.settings.issuer
    }

    /// What the issuer's discovery document says; `None` until it was fetched, and where `jwks_url` makes it unnecessary.
    pub fn metadata(&self) -> Option<Arc<IssuerMetadata>> {
        self.source.metadata()
    }

    /// What the issuer calls our scopes, and which ones they are.
    pub fn scope_names(&self) -> impl Iterator<Item = (&str, &str)> {
        let JwtSettings { scope_names, own_scopes, .. } = &self.settings;
        let own = own_scopes.iter().filter(|_| scope_names.is_empty()).map(|own| (own.as_str(), own.as_str()));
        scope_names.iter().map(|(name, ours)| (name.as_str(), ours.as_str())).chain(own)
    }

    /// Where clients find out how to get a token; `None` where the operator says himself where the keys are, since the
    /// issuer may have no such document then.
    pub fn discovery_url(&self) -> Option<String> {
        self.settings.jwks_url.is_none().then(|| openid_location(&self.settings.issuer))
    }

    /// Begins to fetch the keys, so that the first caller need not wait. Needs a tokio runtime.
    pub fn prefetch(&self) {
        self.source.refresh_if_stale();
    }

    /// A token that was verified before and still counts. Neither waits nor fetches.
    pub fn quick(&self, token: &str) -> Option<Arc<Verified>> {
        if token.len() > LARGEST_TOKEN {
            return None;
        }
        self.cached(&digest_of(token))
    }

    /// Checks everything. Waits for the issuer's keys where it must, for a few seconds at most.
    pub async fn verify(&self, token: &str) -> Result<Arc<Verified>, JwtRefusal> {
        if token.len() > LARGEST_TOKEN {
            return Err(JwtRefusal::TooLarge);
        }
        let digest = digest_of(token);
        if let Some(verified) = self.cached(&digest) {
            return Ok(verified);
        }
        let token = CompactToken::parse(token)?;
        if !self.settings.algorithms.contains(&token.algorithm) {
            return Err(JwtRefusal::Algorithm);
        }
        let now = self.clock.now().as_millis();
        let Claims { subject, tenant, scopes, expires } = Claims::check(&token.claims, &self.settings, now)?;
        let generation = self.check_signature(&token).await?;
        let (issuer, expires) = (self.settings.issuer.clone(), Timestamp::from_millis(expires));
        let verified = Arc::new(Verified { issuer, subject, tenant, scopes, expires });
        self.cache.insert(digest, verified.clone(), now, generation);
        Ok(verified)
    }

    pub(super) fn cached(&self, digest: &TokenDigest) -> Option<Arc<Verified>> {
        self.cache.get(digest, self.clock.now().as_millis(), self.source.generation())
    }

    /// Answers with the generation of the keys that say so.
    async fn check_signature(&self, token: &CompactToken<'_>) -> Result<u64, JwtRefusal> {
        self.source.refresh_if_stale();
        let mut keys = self.source.keys();
        let mut check = keys.check(token);
        let mut refreshed = Refreshed::Recent;
        if check == Check::NoKey {
            refreshed = self.source.refresh().await;
            let newer = self.source.keys();
            if newer.generation != keys.generation {
                keys = newer;
                check = keys.check(token);
            }
        }
        match (check, refreshed) {
            (Check::Signed, _) => Ok(keys.generation),
            (Check::NotSigned, _) => Err(JwtRefusal::Signature),
            (Check::OtherAlgorithm, _) => Err(JwtRefusal::Algorithm),
            (Check::NoKey, Refreshed::Unavailable { retry_after }) => Err(JwtRefusal::KeysUnavailable { retry_after }),
            (Check::NoKey, Refreshed::Recent) if token.key_id.is_none() => Err(JwtRefusal::Signature),
            (Check::NoKey, Refreshed::Recent) => Err(JwtRefusal::UnknownKey),
        }
    }

    #[cfg(test)]
    pub(super) fn cached_tokens(&self) -> usize {
        self.cache.len()
    }
}
