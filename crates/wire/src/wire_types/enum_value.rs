//! A value of a protobuf enum: written as its name, read as its name or its number.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::{Int32, Text};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(crate) enum EnumValue<'a> {
    Text(Text<'a>),
    Number(Int32),
}

impl<'a> From<&'a str> for EnumValue<'a> {
    fn from(name: &'a str) -> Self {
        Self::Text(name.into())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for EnumValue<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(EnumValueVisitor)
    }
}

struct EnumValueVisitor;

impl<'de> Visitor<'de> for EnumValueVisitor {
    type Value = EnumValue<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_borrowed_str<E: Error>(self, name: &'de str) -> Result<EnumValue<'de>, E> {
        Ok(EnumValue::Text(name.into()))
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<EnumValue<'de>, E> {
        Ok(EnumValue::Text(name.to_owned().into()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<EnumValue<'de>, E> {
        i32::try_from(number)
            .map(|number| EnumValue::Number(Int32(number)))
            .map_err(|_| E::custom("is no known number"))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<EnumValue<'de>, E> {
        i32::try_from(number)
            .map(|number| EnumValue::Number(Int32(number)))
            .map_err(|_| E::custom("is no known number"))
    }
}
