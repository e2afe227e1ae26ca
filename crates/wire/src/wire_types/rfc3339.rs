//! A timestamp in RFC 3339: written in UTC, read with any offset.

use std::fmt;

use sabir_model::Timestamp;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rfc3339(pub(crate) Timestamp);

impl Serialize for Rfc3339 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Rfc3339 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Rfc3339Visitor)
    }
}

struct Rfc3339Visitor;

impl Visitor<'_> for Rfc3339Visitor {
    type Value = Rfc3339;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Rfc3339, E> {
        Timestamp::parse(text).map(Rfc3339).ok_or_else(|| E::custom("must be an RFC 3339 time with a zone"))
    }
}
