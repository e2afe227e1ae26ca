//! The keys of a server, in the roles that the HTTP side has for them.

use std::sync::Arc;

use sabir_model::Signature;
use sabir_outbound::jose::{CardKey, key_set};
use sabir_outbound::webhooks::SigningKey;
use sabir_server::CardSigner;

/// Signs cards with a private key.
#[derive(Debug)]
struct KeySigner(CardKey);

impl CardSigner for KeySigner {
    fn sign(&self, payload: &str, jku: &str) -> Signature {
        self.0.sign(payload, jku)
    }
}

pub fn card_signer(key: CardKey) -> Arc<dyn CardSigner> {
    Arc::new(KeySigner(key))
}

/// The document that publishes the public halves; `None`: there are none.
pub fn jwks(webhooks: Option<&SigningKey>, cards: Option<&CardKey>) -> Option<String> {
    let keys: Vec<String> = webhooks.map(SigningKey::jwk).into_iter().chain(cards.map(CardKey::jwk)).collect();
    (!keys.is_empty()).then(|| key_set(keys))
}
