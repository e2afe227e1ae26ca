//! Keys and shared secrets. They are never shown: neither by `sabir config` nor in the words about one that does not fit.

use sabir_model::Base64;
use sabir_outbound::jose::CardKey;
use sabir_outbound::webhooks::{SealKey, SigningKey};
use serde_json::json;

use super::sections::Secret;
use super::values::ValueKind;

/// What `sabir key new` makes.
pub fn store_key() -> ValueKind<Secret> {
    secret("a key; `sabir key new` makes one", |text| SealKey::parse(text).is_ok())
}

/// What `sabir key new --signing` makes.
pub fn signing_key() -> ValueKind<Secret> {
    secret("a signing key; `sabir key new --signing` makes one", |text| SigningKey::parse(text).is_ok())
}

/// What `sabir key new --card` makes, or PEM.
pub fn card_key() -> ValueKind<Secret> {
    ValueKind::new(json!({"type": "string"}), |raw| {
        let expected = "does not fit; expected a private key, also as PEM; `sabir key new --card` makes one";
        let text = raw.as_text().ok_or(expected)?;
        CardKey::parse(text).map_err(|why| format!("{expected}; {why}"))?;
        Ok((Secret::new(text), json!("(not shown)")))
    })
}

/// Any text; in the spelling of Standard Webhooks, base64 follows `whsec_`.
pub fn hmac_secret() -> ValueKind<Secret> {
    let expected = format!("at least {SHORTEST} bytes, also as \"whsec_\" and base64");
    secret(&expected, |text| match text.strip_prefix("whsec_") {
        Some(base64) => Base64::parse(base64).is_some_and(|base64| base64.decode().len() >= SHORTEST),
        None => text.len() >= SHORTEST,
    })
}

/// A shorter secret can be guessed from one delivery.
const SHORTEST: usize = 16;

fn secret(expected: &str, fits: fn(&str) -> bool) -> ValueKind<Secret> {
    let words = format!("does not fit; expected {expected}");
    ValueKind::new(json!({"type": "string"}), move |raw| {
        let text = raw.as_text().filter(|text| fits(text)).ok_or_else(|| words.clone())?;
        Ok((Secret::new(text), json!("(not shown)")))
    })
}
