//! Tokens of a provider that signs with real keys, and of people who are not that provider.

mod arbitrary;
mod attacks;
mod cached_tokens;
mod claim_rules;
mod issuer_documents;
mod key_refresh;
mod log_lines;

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use sabir_testkit::clock::ManualClock;
use sabir_testkit::oidc_keys::IssuerKey;
use sabir_testkit::oidc_provider::{AUDIENCE, OidcProvider, ProviderAnswer};
use serde_json::{Value, json};

use super::*;

const ISSUER: &str = "https://login.example.com";

/// In seconds since 1970.
const NOW: i64 = 1_800_000_000;

/// A provider and its verifier, without a network.
struct Fixture {
    provider: Arc<OidcProvider>,
    verifier: JwtVerifier,
    clock: Arc<ManualClock>,
}

impl Fixture {
    fn new() -> Self {
        Self::with(|settings| settings)
    }

    fn with(change: impl FnOnce(JwtSettings) -> JwtSettings) -> Self {
        let provider = Arc::new(OidcProvider::new(ISSUER));
        let clock = Arc::new(ManualClock::at(NOW * 1000));
        let settings = change(JwtSettings::new(ISSUER, AUDIENCE));
        let verifier = JwtVerifier::with_clock(settings, Arc::new(InProcess(provider.clone())), clock.clone());
        Fixture { provider, verifier, clock }
    }

    /// A good token of `alice`, signed with the newest key.
    fn token(&self) -> String {
        self.provider.key().token(&self.claims())
    }

    fn claims(&self) -> Value {
        self.provider.claims("alice", NOW)
    }

    /// A token whose claims differ from good ones in these members; `null` takes one out.
    fn token_with(&self, members: Value) -> String {
        self.provider.key().token(&changed(self.claims(), &members))
    }

    async fn say(&self, token: &str) -> String {
        say(self.verifier.verify(token).await)
    }
}

fn changed(mut object: Value, members: &Value) -> Value {
    for (name, value) in members.as_object().unwrap() {
        match value {
            Value::Null => drop(object.as_object_mut().unwrap().remove(name)),
            value => object[name] = value.clone(),
        }
    }
    object
}

fn say(outcome: Result<Arc<Verified>, JwtRefusal>) -> String {
    match outcome {
        Ok(verified) => {
            let tenant = verified.tenant.as_ref().map_or(String::new(), |tenant| format!(" of {tenant}"));
            format!("{}{tenant}: {}", verified.subject, verified.scopes.join(" "))
        }
        Err(JwtRefusal::KeysUnavailable { retry_after }) => format!("no keys, {} s", retry_after.as_secs()),
        Err(refusal) => refusal.to_string(),
    }
}

/// What good tokens without scopes give.
const ALICE: &str = "alice: read run";

/// Asks a provider of the same process.
struct InProcess(Arc<OidcProvider>);

impl DocumentFetcher for InProcess {
    fn fetch<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<Bytes, String>> {
        Box::pin(async move {
            let path = url.strip_prefix(&self.0.issuer).ok_or("another host")?;
            let answer = self.0.answer(path);
            // As with a real fetch, others run before the answer is here.
            tokio::task::yield_now().await;
            match answer {
                ProviderAnswer::Document(text) => Ok(text.into()),
                ProviderAnswer::Status(status) => Err(format!("status {status}")),
                ProviderAnswer::Redirect(_) => Err("a redirect".to_owned()),
                ProviderAnswer::Hang => std::future::pending().await,
            }
        })
    }
}

fn key(id: &str, algorithm: &'static str) -> IssuerKey {
    IssuerKey::generate(id, algorithm)
}
