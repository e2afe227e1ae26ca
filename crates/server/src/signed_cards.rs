//! Signatures of the server's own cards.
//!
//! A card is signed when it is asked for and has changed since, once per format, so requests do not pay for it. Only a card
//! whose address is known beforehand is signed: one that is made for the Host of a request would let its caller choose what
//! the server vouches for.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use sabir_model::{AgentId, Card, Signature};
use sabir_wire::{CardFormat, payloads_to_sign, write_card};

use crate::operations::JWKS_PATH;

/// Signs the payload of a card. `jku` is where clients find the public key.
pub trait CardSigner: fmt::Debug + Send + Sync {
    fn sign(&self, payload: &str, jku: &str) -> Signature;
}

pub(crate) struct SignedCards {
    signer: Arc<dyn CardSigner>,
    jku: String,
    /// As many as there are cards and formats.
    latest: Mutex<HashMap<(Option<AgentId>, CardFormat), SignedCard>>,
}

struct SignedCard {
    unsigned: Vec<u8>,
    signed: Vec<u8>,
}

impl SignedCards {
    /// `base` is where clients reach this server.
    pub(crate) fn new(signer: Arc<dyn CardSigner>, base: &str) -> Self {
        SignedCards { signer, jku: format!("{base}{JWKS_PATH}"), latest: Mutex::default() }
    }

    /// The card of an agent, or of the server, with its signatures.
    pub(crate) fn write(&self, card: Card, format: CardFormat, agent: Option<&AgentId>) -> Vec<u8> {
        let mut unsigned = Vec::with_capacity(2048);
        write_card(&card, format, &mut unsigned);
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let known = latest.get(&(agent.cloned(), format)).filter(|known| known.unsigned == unsigned);
        if let Some(SignedCard { signed, .. }) = known {
            return signed.clone();
        }
        let signed = self.sign(card, format, &unsigned);
        latest.insert((agent.cloned(), format), SignedCard { unsigned, signed: signed.clone() });
        signed
    }

    fn sign(&self, mut card: Card, format: CardFormat, unsigned: &[u8]) -> Vec<u8> {
        match payloads_to_sign(unsigned, format) {
            Ok(payloads) => {
                card.signatures.extend(payloads.iter().map(|payload| self.signer.sign(&payload.text, &self.jku)));
            }
            // An extension of an agent may have parameters that no two parsers read alike.
            Err(error) => tracing::warn!(%error, "the card cannot be signed"),
        }
        let mut signed = Vec::with_capacity(unsigned.len() + 1024);
        write_card(&card, format, &mut signed);
        signed
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use sabir_model::{Extension, Interface, Json};

    use super::*;

    #[derive(Debug, Default)]
    struct CountingSigner(AtomicUsize);

    impl CardSigner for CountingSigner {
        fn sign(&self, payload: &str, jku: &str) -> Signature {
            let count = self.0.fetch_add(1, Ordering::SeqCst);
            assert!(payload.contains("\"name\":"), "{payload}");
            Signature { protected: jku.to_owned(), signature: format!("s{count}"), header: None }
        }
    }

    fn card(name: &str) -> Card {
        let interface = |version: &str| Interface {
            url: "u".into(),
            binding: "JSONRPC".into(),
            version: version.into(),
            tenant: None,
        };
        Card { name: name.into(), interfaces: vec![interface("1.0"), interface("0.3")], ..Card::default() }
    }

    #[test]
    fn a_card_is_signed_once_per_format_and_again_when_it_changes() {
        let signer = Arc::new(CountingSigner::default());
        let cards = SignedCards::new(signer.clone(), "https://a.example/base");
        let agent = AgentId::parse("coder").unwrap();
        for (name, format, agent, expected) in [
            ("a", CardFormat::V1, None, 1),
            ("a", CardFormat::V1, None, 1),
            ("a", CardFormat::Hybrid, None, 3),
            ("a", CardFormat::V0_3, None, 4),
            ("a", CardFormat::V0_1, None, 4),
            ("a", CardFormat::V1, Some(&agent), 5),
            ("b", CardFormat::V1, None, 6),
            ("a", CardFormat::V1, Some(&agent), 6),
            ("b", CardFormat::V1, None, 6),
            ("a", CardFormat::Hybrid, None, 6),
        ] {
            let text = String::from_utf8(cards.write(card(name), format, agent)).unwrap();
            assert_eq!(signer.0.load(Ordering::SeqCst), expected, "{name} {format:?} {agent:?}");
            let jku = "\"protected\":\"https://a.example/base/.well-known/jwks.json\"";
            assert_eq!(text.contains(jku), format != CardFormat::V0_1, "{text}");
        }
    }

    #[test]
    fn a_card_without_a_canonical_form_is_shown_unsigned() {
        let cards = SignedCards::new(Arc::new(CountingSigner::default()), "https://a.example");
        let mut card = card("a");
        let params = Some(Json::parse(r#"{"x":1,"x":2}"#).unwrap());
        card.capabilities.extensions = vec![Extension { params, ..Extension::new("e") }];
        let text = String::from_utf8(cards.write(card, CardFormat::V1, None)).unwrap();
        assert!(text.contains("\"x\":2") && !text.contains("signatures"), "{text}");
    }
}
