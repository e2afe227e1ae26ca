//! JSON signatures (RFC 7515) and the keys that belong to them (RFC 7517): what Sabir signs its cards with, and what it
//! verifies those of others with.

mod card_key;
mod jwk;
mod key_set;
mod protected_header;

pub use card_key::{CardKey, InvalidCardKey, KeyAlgorithm};
pub use jwk::Jwk;
pub use key_set::{KeySet, key_set};
pub use protected_header::{JwsAlgorithm, ProtectedHeader};
