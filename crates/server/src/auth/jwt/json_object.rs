//! JSON objects of tokens, key sets and discovery documents, read so that no other reader can see something else.
//!
//! A member that stands twice is refused: of two readers, one takes the first and one the last. Nesting is bounded, and
//! nothing may follow the object.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;

use sabir_wire::json_depth;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// The members of an object, whose values are not read yet.
pub(super) struct JsonObject<'t>(HashMap<String, &'t RawValue>);

/// Claims and keys have two or three levels.
const DEEPEST: usize = 16;

impl<'t> JsonObject<'t> {
    pub(super) fn parse(bytes: &'t [u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        if json_depth(bytes) > DEEPEST {
            return None;
        }
        serde_json::from_str(text).ok()
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The JSON of a member; `null` counts as absent.
    pub(super) fn get(&self, name: &str) -> Option<&'t str> {
        self.0.get(name).map(|value| value.get()).filter(|json| *json != "null")
    }

    /// A member that is text. `Err` means that it is something else.
    pub(super) fn text(&self, name: &str) -> Result<Option<String>, ()> {
        self.get(name).map(serde_json::from_str).transpose().map_err(drop)
    }

    /// A member by name, or else by a path with dots, such as Keycloak's `realm_access.roles`. Names with dots are names
    /// first, since some issuers use URLs as names.
    pub(super) fn find(&self, path: &str) -> Option<&'t str> {
        if let Some(json) = self.get(path) {
            return Some(json);
        }
        let (outer, inner) = path.split_once('.')?;
        JsonObject::parse(self.get(outer)?.as_bytes())?.find(inner)
    }
}

impl<'de: 't, 't> Deserialize<'de> for JsonObject<'t> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = HashMap<String, &'de RawValue>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = HashMap::new();
                while let Some((name, value)) = map.next_entry::<String, &'de RawValue>()? {
                    match members.entry(name) {
                        Entry::Vacant(place) => place.insert(value),
                        Entry::Occupied(_) => return Err(A::Error::custom("a member stands twice")),
                    };
                }
                Ok(members)
            }
        }

        deserializer.deserialize_map(Members).map(JsonObject)
    }
}
