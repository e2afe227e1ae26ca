//! A JWKS document.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::jwk::Jwk;

/// A set has a few keys; a stranger's must not keep us busy.
const MOST_KEYS: usize = 100;

/// Public keys by their id.
pub struct KeySet(Vec<Jwk>);

/// The document that publishes these keys, each a JSON object.
pub fn key_set(keys: impl IntoIterator<Item = String>) -> String {
    format!(r#"{{"keys":[{}]}}"#, keys.into_iter().collect::<Vec<_>>().join(","))
}

impl KeySet {
    /// An error says what is wrong, after "the key set".
    pub fn parse(document: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Document<'a> {
            #[serde(borrow)]
            keys: Vec<&'a RawValue>,
        }
        let document: Document<'_> =
            serde_json::from_slice(document).map_err(|_| "is not JSON with a list of keys".to_owned())?;
        if document.keys.len() > MOST_KEYS {
            return Err(format!("has more than {MOST_KEYS} keys"));
        }
        // A key that cannot be read is for somebody else. Serde would take a list for a key whose names are left out.
        let keys = document.keys.iter().filter(|key| key.get().starts_with('{'));
        Ok(Self(keys.filter_map(|key| serde_json::from_str(key.get()).ok()).collect()))
    }

    /// The keys with this id. There may be several, of different kinds.
    pub fn find(&self, kid: &str) -> impl Iterator<Item = &Jwk> {
        self.0.iter().filter(move |key| key.kid.as_deref() == Some(kid))
    }
}
