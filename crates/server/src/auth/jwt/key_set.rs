//! The keys that an issuer publishes, and the choice of the one that a token was signed with.

use serde_json::value::RawValue;

use super::compact::CompactToken;
use super::json_object::JsonObject;
use super::signing_key::SigningKey;

/// A published set. One that replaces another has another generation if it has other keys.
#[derive(Default)]
pub(super) struct KeySet {
    pub(super) generation: u64,
    keys: Vec<SigningKey>,
}

/// What a set knows about a token's signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Check {
    Signed,
    /// By the key that the token names.
    NotSigned,
    /// The named key is for other algorithms.
    OtherAlgorithm,
    /// No key of this set signed it; a newer set may have the key.
    NoKey,
}

/// No issuer has more keys; a document that does is refused.
const MOST_KEYS: usize = 100;

/// How many signatures a token without `kid` may cost.
const MOST_TRIALS: usize = 8;

impl KeySet {
    /// Reads a JWKS document. Keys that are not usable here are left out, as RFC 7517, section 5, asks.
    pub(super) fn parse(document: &[u8]) -> Result<Self, &'static str> {
        let object = JsonObject::parse(document).ok_or("the key set is not a JSON object")?;
        let list = object.get("keys").ok_or("the key set has no `keys`")?;
        let list: Vec<&RawValue> = serde_json::from_str(list).map_err(|_| "`keys` of the key set is no list")?;
        if list.len() > MOST_KEYS {
            return Err("the key set has more than 100 keys");
        }
        let keys = list.into_iter().filter_map(|key| SigningKey::parse(key.get())).collect();
        Ok(KeySet { generation: 0, keys })
    }

    pub(super) fn check(&self, token: &CompactToken<'_>) -> Check {
        let fits = |key: &&SigningKey| key.allows(token.algorithm);
        if token.key_id.is_none() {
            let mut candidates = self.keys.iter().filter(fits).take(MOST_TRIALS);
            return if candidates.any(|key| key.has_signed(token)) { Check::Signed } else { Check::NoKey };
        }
        // Two keys may share an id, as long as their types differ.
        let named = || self.keys.iter().filter(|key| key.id == token.key_id);
        if named().next().is_none() {
            return Check::NoKey;
        }
        let candidates: Vec<&SigningKey> = named().filter(fits).take(MOST_TRIALS).collect();
        match candidates.iter().any(|key| key.has_signed(token)) {
            true => Check::Signed,
            false if candidates.is_empty() => Check::OtherAlgorithm,
            false => Check::NotSigned,
        }
    }

    pub(super) fn has_same_keys(&self, other: &KeySet) -> bool {
        let fingerprints = |set: &KeySet| {
            let mut all: Vec<[u8; 32]> = set.keys.iter().map(|key| key.fingerprint).collect();
            all.sort_unstable();
            all
        };
        fingerprints(self) == fingerprints(other)
    }
}
