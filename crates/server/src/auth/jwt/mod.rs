//! Bearer tokens of OpenID Connect and OAuth issuers: signed JWTs, checked with the issuer's published keys.
//!
//! ```text
//! token --compact--> header, claims --claims--> checked claims --signing_keys--> signature checked --> Verified
//!                                                                  ^
//!                    issuer --discovery--> jwks_uri --key_source---+   (fetched in the background, old keys kept)
//! ```
//!
//! `verified_cache` remembers verified tokens for a few minutes, so that a repeated token costs one digest and one
//! look-up. These are bearer tokens: whoever has one may use it until it expires, and a token that is seen twice is
//! nothing unusual. Nothing in here logs a token or a part of one, and no refusal repeats what a token says.

mod issuers;
mod verifier;

mod algorithm;
mod refusal;
mod settings;

mod claims;
mod compact;
mod json_object;
mod scopes;

mod discovery;
mod key_set;
mod key_source;
mod signing_key;

mod verified_cache;

pub use algorithm::JwtAlgorithm;
pub use discovery::IssuerMetadata;
pub use issuers::Issuers;
pub use key_source::DocumentFetcher;
pub use refusal::JwtRefusal;
pub use settings::{JwtSettings, OWN_SCOPES};
pub use verifier::{JwtVerifier, Verified};

#[cfg(test)]
mod tests;
