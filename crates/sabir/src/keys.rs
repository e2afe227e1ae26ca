//! `sabir key new`: a random key, and what to do with it.

use sabir_outbound::webhooks::{SealKey, SigningKey};
use serde_json::{Value, json};

use crate::config::Audience;

pub struct NewKey {
    /// What it is for: `store` or `signing`.
    purpose: &'static str,
    setting: &'static str,
    variable: &'static str,
    text: String,
    /// The public half, which receivers verify signatures with.
    jwks: Option<Value>,
}

impl NewKey {
    pub fn make(is_signing: bool) -> Self {
        if is_signing {
            let key = SigningKey::generate();
            let jwks = serde_json::from_str(&key.jwks()).expect("a JWKS is JSON");
            let (purpose, setting, variable) = ("signing", "push.signing_key", "SABIR_PUSH_SIGNING_KEY");
            NewKey { purpose, setting, variable, text: key.to_text(), jwks: Some(jwks) }
        } else {
            let (purpose, setting, variable) = ("store", "store.key", "SABIR_STORE_KEY");
            NewKey { purpose, setting, variable, text: SealKey::generate().to_text(), jwks: None }
        }
    }

    pub fn plain(&self) -> String {
        format!("{}\n", self.text)
    }

    pub fn show(&self, audience: Audience) -> String {
        let NewKey { purpose, setting, variable, text, jwks } = self;
        match audience {
            Audience::Program => {
                let mut object = json!({"purpose": purpose, "setting": setting, "variable": variable, "key": text});
                if let Some(jwks) = jwks {
                    object["jwks"] = jwks.clone();
                }
                format!("{object}\n")
            }
            Audience::Person => {
                let advice = match jwks {
                    Some(_) => {
                        "Deliveries of webhooks are signed with it. Receivers verify them with the public half,\n\
                         which the server shows at /.well-known/jwks.json."
                    }
                    None => {
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
        let (store, signing) = (NewKey::make(false), NewKey::make(true));
        assert!(SealKey::parse(&store.plain()).is_ok() && SigningKey::parse(&signing.plain()).is_ok());
        for (key, has_jwks) in [(store, false), (signing, true)] {
            let object: Value = serde_json::from_str(&key.show(Audience::Program)).unwrap();
            assert_eq!((object["key"].as_str(), object.get("jwks").is_some()), (Some(key.text.as_str()), has_jwks));
            let text = key.show(Audience::Person);
            assert!(text.starts_with(&key.plain()) && text.contains(key.variable), "{text}");
        }
    }
}
