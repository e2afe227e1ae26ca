//! Security schemes of servers built on the js SDK.
//!
//! They write their objects as they lie in memory, so that what should be `{"httpAuthSecurityScheme":{...}}` is
//! `{"scheme":{"$case":"httpAuthSecurityScheme","value":{...}}}`. That is read, and never written.

use std::fmt;

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::security::Details;
use crate::wire_types::{Object, Text, object};

/// The HTTP scheme of 0.x, or the whole scheme of a js server.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Scheme<'a> {
    Name(Text<'a>),
    #[serde(skip)]
    Case(Box<Case<'a>>),
}

#[derive(Debug, Deserialize)]
#[serde(remote = "Self")]
pub(super) struct Case<'a> {
    #[serde(borrow, rename = "$case")]
    pub(super) case: Option<Text<'a>>,
    pub(super) value: Option<Details<'a>>,
}

object! { read Case<'a> }

impl<'de: 'a, 'a> Deserialize<'de> for Scheme<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SchemeVisitor)
    }
}

struct SchemeVisitor;

impl<'de> Visitor<'de> for SchemeVisitor {
    type Value = Scheme<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E: Error>(self, name: &'de str) -> Result<Scheme<'de>, E> {
        Ok(Scheme::Name(name.into()))
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Scheme<'de>, E> {
        Ok(Scheme::Name(name.to_owned().into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Scheme<'de>, A::Error> {
        Case::read_members(members).map(|case| Scheme::Case(Box::new(case)))
    }
}
