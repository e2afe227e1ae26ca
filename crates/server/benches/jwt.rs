//! What a bearer token costs: `cargo bench -p sabir-server`.
//!
//! A token that was verified before is one digest and one look-up; it must take at most 3 µs.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use divan::{Bencher, black_box};
use futures_util::future::BoxFuture;
use sabir_engine::{Clock, SystemClock};
use sabir_model::Caller;
use sabir_server::jwt::{DocumentFetcher, Issuers, JwtSettings, JwtVerifier};
use sabir_server::{Digest, random_secret};
use sabir_testkit::oidc_keys::IssuerKey;
use sabir_testkit::oidc_provider::{AUDIENCE, OidcProvider};
use serde_json::json;

fn main() {
    divan::main();
}

/// A token that the configuration lists: its digest, and a look-up among a hundred. It must take at most 1 µs.
#[divan::bench]
fn a_listed_token(bencher: Bencher<'_, '_>) {
    let secrets: Vec<String> = (0..100).map(|_| random_secret()).collect();
    let caller = |number: usize| Caller::new("", &format!("token:{number}")).with_scopes(["run", "read"]);
    let callers: HashMap<Digest, Caller> =
        secrets.iter().enumerate().map(|(number, secret)| (Digest::of(secret.as_bytes()), caller(number))).collect();
    bencher.bench(|| callers.get(&Digest::of(black_box(secrets[17].as_bytes()))).cloned());
}

/// With one issuer and with several, a token of about 800 bytes and one of about 4 KB.
#[divan::bench(args = [(1, 100), (4, 100), (1, 2500)])]
fn a_cached_token(bencher: Bencher<'_, '_>, (issuers, padding): (usize, usize)) {
    let (issuers, token) = verified("RS256", issuers, padding);
    bencher.bench(|| issuers.quick(black_box(&token)).expect("it was verified before"));
}

/// The same from several connections at once.
#[divan::bench(threads = [2, 4])]
fn a_cached_token_from_threads(bencher: Bencher<'_, '_>) {
    let (issuers, token) = verified("RS256", 1, 100);
    bencher.bench(|| issuers.quick(black_box(&token)).expect("it was verified before"));
}

/// All checks, by algorithm: a token with another `jti` each time.
#[divan::bench(args = ["RS256", "PS256", "ES256", "ES384", "EdDSA"], sample_count = 20, sample_size = 20)]
fn a_new_token(bencher: Bencher<'_, '_>, algorithm: &'static str) {
    let (provider, issuers) = set_up(algorithm, 1);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let mut number = 0;
    let token = || {
        number += 1;
        provider.key().token(&claims(&provider, number, 100))
    };
    runtime.block_on(issuers.verify(&provider.key().token(&claims(&provider, 0, 100)))).unwrap();
    bencher.with_inputs(token).bench_local_values(|token| runtime.block_on(issuers.verify(&token)).unwrap());
}

fn verified(algorithm: &'static str, issuers: usize, padding: usize) -> (Issuers, String) {
    let (provider, issuers) = set_up(algorithm, issuers);
    let token = provider.key().token(&claims(&provider, 0, padding));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(issuers.verify(&token)).unwrap();
    (issuers, token)
}

/// The provider whose tokens are used is the last of the issuers.
fn set_up(algorithm: &'static str, issuers: usize) -> (Arc<OidcProvider>, Issuers) {
    let providers: Vec<Arc<OidcProvider>> =
        (0..issuers).map(|number| Arc::new(OidcProvider::new(&format!("https://{number}.example.com")))).collect();
    let last = providers[issuers - 1].clone();
    last.add_key(IssuerKey::generate("bench", algorithm));
    let verifier = |provider: Arc<OidcProvider>| {
        let settings = JwtSettings::new(provider.issuer.clone(), AUDIENCE);
        JwtVerifier::new(settings, Arc::new(InProcess(provider)))
    };
    (last, Issuers::new(providers.into_iter().map(verifier).collect()))
}

fn claims(provider: &OidcProvider, number: u64, padding: usize) -> serde_json::Value {
    let mut claims = provider.claims("alice", SystemClock.now().as_millis() / 1000);
    claims["jti"] = json!(number.to_string());
    claims["scope"] = json!("run read openid profile email");
    claims["padding"] = json!("x".repeat(padding));
    claims
}

struct InProcess(Arc<OidcProvider>);

impl DocumentFetcher for InProcess {
    fn fetch<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<Bytes, String>> {
        let document = match url.ends_with("/keys") {
            true => self.0.key_set(),
            false => self.0.discovery(),
        };
        Box::pin(std::future::ready(Ok(document.to_string().into())))
    }
}
