//! Keys and shared secrets. They are never shown: neither by `sabir config` nor in the words about one that does not fit.

use sabir_model::Base64;
use sabir_outbound::jose::CardKey;
use sabir_outbound::webhooks::{SealKey, SigningKey};
use serde_json::{Value, json};

use super::raw::{Raw, RawEntry};
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

/// A token, a key or a secret that somebody else made.
pub fn given_secret() -> ValueKind<Secret> {
    secret("a text that is not empty", |text| !text.is_empty())
}

/// To the letter, and it may be empty.
pub fn password() -> ValueKind<Secret> {
    ValueKind::new(json!({"type": "string"}), |raw| match raw {
        Raw::Text(text) | Raw::Untyped(text) => Ok((Secret::new(text), json!("(not shown)"))),
        _ => Err("does not fit; expected a text".to_owned()),
    })
}

/// A table of texts, whose names alone are shown.
pub fn secret_table() -> ValueKind<Vec<(String, Secret)>> {
    let schema = json!({"type": "object", "additionalProperties": {"type": "string"}});
    ValueKind::new(schema, |raw| {
        let expected = "does not fit; expected a table of texts, such as { X-Team = \"a\" }";
        let Raw::Table(table) = raw else { return Err(expected.to_owned()) };
        let mut values = Vec::new();
        for RawEntry { key: name, value, .. } in &table.entries {
            let Some(text) = value.as_text() else {
                return Err(format!("holds {}, which is no text; put its value in quotes", Raw::Text(name.clone())));
            };
            values.push((name.clone(), Secret::new(text)));
        }
        let shown: Value = values.iter().map(|(name, _)| (name.clone(), json!("(not shown)"))).collect();
        Ok((values, shown))
    })
}

fn secret(expected: &str, fits: fn(&str) -> bool) -> ValueKind<Secret> {
    let words = format!("does not fit; expected {expected}");
    ValueKind::new(json!({"type": "string"}), move |raw| {
        let text = raw.as_text().filter(|text| fits(text)).ok_or_else(|| words.clone())?;
        Ok((Secret::new(text), json!("(not shown)")))
    })
}
