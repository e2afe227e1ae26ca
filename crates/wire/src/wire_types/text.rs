//! A string of the wire, borrowed wherever it has no escapes.
//!
//! Serde's own `Cow` borrows only as a bare field, not inside an `Option` or a list.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};

use sabir_model::{ArtifactId, ContextId, MessageId, PushConfigId, TaskId};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::work;

#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub(crate) struct Text<'a>(Cow<'a, str>);

impl PartialEq for Text<'_> {
    fn eq(&self, other: &Self) -> bool {
        work::visit(if self.0.len() == other.0.len() { self.0.len() } else { 1 });
        self.0 == other.0
    }
}

impl Eq for Text<'_> {}

impl Hash for Text<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        work::visit(self.0.len());
        self.0.hash(state);
    }
}

impl Text<'_> {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn into_string(self) -> String {
        self.0.into_owned()
    }
}

/// An optional text that is read: an empty one counts as missing.
pub(crate) fn non_empty(text: Option<Text<'_>>) -> Option<String> {
    text.filter(|text| !text.0.is_empty()).map(Text::into_string)
}

/// An optional text that is written: an empty one is left out.
pub(crate) fn non_empty_text(text: &Option<String>) -> Option<Text<'_>> {
    text.as_deref().filter(|text| !text.is_empty()).map(Text::from)
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self(Cow::Borrowed(text))
    }
}

impl<'a> From<&'a String> for Text<'a> {
    fn from(text: &'a String) -> Self {
        Self(Cow::Borrowed(text))
    }
}

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Self(Cow::Owned(text))
    }
}

macro_rules! from_ids {
    ($($id:ident),+) => {$(
        impl<'a> From<&'a $id> for Text<'a> {
            fn from(id: &'a $id) -> Self {
                Self(Cow::Borrowed(id.as_str()))
            }
        }
    )+};
}

from_ids!(TaskId, ContextId, MessageId, ArtifactId, PushConfigId);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(text.to_owned())))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(text)))
    }
}
