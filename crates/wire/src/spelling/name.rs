//! A value of a protobuf enum: its name or, on the way in, its number.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::{Int, Text};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(crate) enum Name<'a> {
    Text(Text<'a>),
    Number(Int),
}

impl<'a> From<&'a str> for Name<'a> {
    fn from(name: &'a str) -> Self {
        Self::Text(name.into())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Name<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NameVisitor)
    }
}

struct NameVisitor;

impl<'de> Visitor<'de> for NameVisitor {
    type Value = Name<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_borrowed_str<E: Error>(self, name: &'de str) -> Result<Name<'de>, E> {
        Ok(Name::Text(name.into()))
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Name<'de>, E> {
        Ok(Name::Text(name.to_owned().into()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Name<'de>, E> {
        i32::try_from(number).map(|number| Name::Number(Int(number))).map_err(|_| E::custom("is no known number"))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Name<'de>, E> {
        i32::try_from(number).map(|number| Name::Number(Int(number))).map_err(|_| E::custom("is no known number"))
    }
}
