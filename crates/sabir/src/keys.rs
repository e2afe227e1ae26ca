//! `sabir key new`: a random key, and what to do with it.

use sabir_outbound::jose::{CardKey, KeyAlgorithm, key_set};
use sabir_outbound::webhooks::{SealKey, SigningKey};
use serde_json::{Value, json};

use crate::config::Audience;

/// What a key is for.
#[derive(Debug, Clone, Copy)]
pub enum Purpose {
    /// It encrypts the secrets of webhooks.
    Store,
    /// It signs deliveries of webhooks.
    Signing,
    /// It signs cards.
    Card(KeyAlgorithm),
}

impl Purpose {
    /// `card` is the algorithm that was asked for.
    pub fn of(is_signing: bool, card: Option<&str>) -> Self {
        match card {
            Some("eddsa") => Purpose::Card(KeyAlgorithm::EdDsa),
            Some(_) => Purpose::Card(KeyAlgorithm::Es256),
            None if is_signing => Purpose::Signing,
            None => Purpose::Store,
        }
    }
}

pub struct NewKey {
    purpose: Purpose,
    setting: &'static str,
    variable: &'static str,
    text: String,
    /// The public half, which receivers verify signatures with.
    jwks: Option<Value>,
}

impl NewKey {
    pub fn make(purpose: Purpose) -> Self {
        let (text, jwk) = match purpose {
            Purpose::Store => (SealKey::generate().to_text(), None),
            Purpose::Signing => {
                let key = SigningKey::generate();
                (key.to_text(), Some(key.jwk()))
            }
            Purpose::Card(algorithm) => {
                let key = CardKey::generate(algorithm);
                (key.to_text(), Some(key.jwk()))
            }
        };
        let jwks = jwk.map(|jwk| serde_json::from_str(&key_set([jwk])).expect("a JWKS is JSON"));
        let (setting, variable) = match purpose {
            Purpose::Store => ("store.key", "SABIR_STORE_KEY"),
            Purpose::Signing => ("push.signing_key", "SABIR_PUSH_SIGNING_KEY"),
            Purpose::Card(_) => ("card.signing_key", "SABIR_CARD_SIGNING_KEY"),
        };
        NewKey { purpose, setting, variable, text, jwks }
    }

    pub fn plain(&self) -> String {
        format!("{}\n", self.text)
    }

    pub fn show(&self, audience: Audience) -> String {
        let NewKey { purpose, setting, variable, text, jwks } = self;
        match audience {
            Audience::Program => {
                let purpose = match purpose {
                    Purpose::Store => "store",
                    Purpose::Signing => "signing",
                    Purpose::Card(_) => "card",
                };
                let mut object = json!({"purpose": purpose, "setting": setting, "variable": variable, "key": text});
                if let Some(jwks) = jwks {
                    object["jwks"] = jwks.clone();
                }
                format!("{object}\n")
            }
            Audience::Person => {
                let advice = match purpose {
                    Purpose::Card(_) => {
                        "Cards are signed with it. Clients verify them with the public half, which the server shows at\n\
                         /.well-known/jwks.json; `sabir card URL --verify` does it too."
                    }
                    Purpose::Signing => {
                        "Deliveries of webhooks are signed with it. Receivers verify them with the public half,\n\
                         which the server shows at /.well-known/jwks.json."
                    }
                    Purpose::Store => {
                        "It encrypts the secrets of webhooks in the store. Keep a copy apart from the backups of\n\
                         the database: without it those secrets are lost, and their webhooks have to be set again."
                    }
                };
                format!("{text}\n\nGive it to the server as {variable}, or as {setting} in sabir.toml.\n{advice}\n")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_takes_the_keys_that_are_made() {
        let card = Purpose::Card(KeyAlgorithm::EdDsa);
        let (store, signing) = (NewKey::make(Purpose::Store), NewKey::make(Purpose::Signing));
        assert!(SealKey::parse(&store.plain()).is_ok() && SigningKey::parse(&signing.plain()).is_ok());
        let card = NewKey::make(card);
        assert!(CardKey::parse(&card.plain()).is_ok_and(|key| key.algorithm() == KeyAlgorithm::EdDsa));
        for (key, has_jwks) in [(store, false), (signing, true), (card, true)] {
            let object: Value = serde_json::from_str(&key.show(Audience::Program)).unwrap();
            assert_eq!((object["key"].as_str(), object.get("jwks").is_some()), (Some(key.text.as_str()), has_jwks));
            let text = key.show(Audience::Person);
            assert!(text.starts_with(&key.plain()) && text.contains(key.variable), "{text}");
        }
    }
}
