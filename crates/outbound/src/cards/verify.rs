//! Verifies the signatures of a card.
//!
//! A signature is as good as the reason to trust its key. The operator's key set (`KeySource::Given`) is the best one. Without
//! it the key set that the signature names (`jku`) is used, but only if it is on the very server that the operator asked:
//! whoever forges a card can also name a key set of his own.

use std::collections::HashMap;

use sabir_model::Signature;
use sabir_wire::{CardMembers, SigningPayload, payloads_to_verify};

use super::fetch::{CardClient, FetchedCard};
use crate::guard::{Scheme, Target};
use crate::jose::{KeySet, ProtectedHeader};

/// A card has one or two; a stranger's must not keep us busy.
const MOST_SIGNATURES: usize = 32;
const MOST_KEY_SETS: usize = 4;

/// Where keys come from.
pub enum KeySource {
    /// The operator's key set; what signatures name is not asked.
    Given { keys: KeySet, name: String },
    /// The key sets that the signatures name.
    NamedByCard,
}

/// What is known of one signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignatureCheck {
    pub kid: Option<String>,
    pub alg: Option<&'static str>,
    pub verdict: Verdict,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Valid {
        covers: CardMembers,
        /// Where the key came from.
        key: String,
        trust: Trust,
    },
    Invalid(String),
    /// There is no key that could tell.
    UnknownKey(String),
}

/// What a valid signature is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// The operator named the key set.
    Given,
    /// The key came from the card's own server, and TLS proves which that is.
    SameServer,
    /// The key came from the card's own server over plain HTTP: whoever can change the one can change the other.
    Nothing,
}

impl FetchedCard {
    /// Checks each signature. An error says why there is nothing to check.
    pub async fn verify(&self, client: &CardClient, source: &KeySource) -> Result<Vec<SignatureCheck>, String> {
        let signatures = &self.card.signatures;
        // A signature that cannot be read was left out with other faults; the card must not look unsigned for that.
        if let Some(fault) = self.faults.iter().find(|fault| fault.field.starts_with("signatures")) {
            return Err(format!("its signatures cannot be read: {} {}", fault.field, fault.description));
        }
        if signatures.is_empty() {
            return Err("the card has no signature".to_owned());
        }
        if signatures.len() > MOST_SIGNATURES {
            return Err(format!("the card has more than {MOST_SIGNATURES} signatures"));
        }
        let payloads = payloads_to_verify(self.text.as_bytes())
            .map_err(|error| format!("the card has no canonical form: {error}"))?;
        let mut fetched = HashMap::new();
        let mut checks = Vec::new();
        for signature in signatures {
            let header = match ProtectedHeader::read(signature) {
                Ok(header) => header,
                Err(why) => {
                    checks.push(SignatureCheck { kid: None, alg: None, verdict: Verdict::Invalid(why) });
                    continue;
                }
            };
            let verdict = match source {
                KeySource::Given { keys, name } => check(signature, &header, &payloads, keys, name, Trust::Given),
                KeySource::NamedByCard => match named_key_set(client.target(), &header, &fetched) {
                    Err(why) => Verdict::UnknownKey(why),
                    Ok(url) => {
                        if !fetched.contains_key(&url) {
                            fetched.insert(url.clone(), client.key_set(&url).await);
                        }
                        let trust = match client.target().scheme {
                            Scheme::Https => Trust::SameServer,
                            Scheme::Http => Trust::Nothing,
                        };
                        match &fetched[&url] {
                            Ok(keys) => check(signature, &header, &payloads, keys, &url, trust),
                            Err(why) => Verdict::UnknownKey(why.clone()),
                        }
                    }
                },
            };
            let alg = Some(header.algorithm.name());
            checks.push(SignatureCheck { kid: Some(header.kid), alg, verdict });
        }
        Ok(checks)
    }
}

/// The key set that a signature names, if it may be asked.
fn named_key_set(
    server: &Target,
    header: &ProtectedHeader,
    fetched: &HashMap<String, Result<KeySet, String>>,
) -> Result<String, String> {
    let Some(url) = &header.jku else {
        return Err("the signature names no key set (jku); name one that you trust with --jwks".to_owned());
    };
    let target = Target::parse(url).map_err(|refusal| format!("its key set (jku) cannot be used: {refusal}"))?;
    if target.origin() != server.origin() {
        return Err(format!(
            "its key set {url} is on another server than the card, and anybody can name one; \
             if you trust that server, repeat with --jwks {url}"
        ));
    }
    if fetched.len() >= MOST_KEY_SETS && !fetched.contains_key(url) {
        return Err(format!("the signatures name more than {MOST_KEY_SETS} key sets"));
    }
    Ok(url.clone())
}

fn check(
    signature: &Signature,
    header: &ProtectedHeader,
    payloads: &[SigningPayload],
    keys: &KeySet,
    source: &str,
    trust: Trust,
) -> Verdict {
    let mut unfit = None;
    let mut is_known = false;
    for key in keys.find(&header.kid) {
        is_known = true;
        for SigningPayload { covers, text } in payloads {
            match key.verifies(header, signature, text) {
                Ok(true) => return Verdict::Valid { covers: *covers, key: source.to_owned(), trust },
                Ok(false) => {}
                Err(why) => unfit = Some(why),
            }
        }
    }
    match (is_known, unfit) {
        (false, _) => Verdict::UnknownKey(format!("{source} has no key with this id")),
        (true, Some(why)) => Verdict::Invalid(why),
        (true, None) => Verdict::Invalid("it does not fit the card: one of them was changed".to_owned()),
    }
}
