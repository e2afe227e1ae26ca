//! JSON that is kept as text: metadata and data parts are read and written byte for byte.

use std::borrow::Cow;
use std::ops::ControlFlow;

use sabir_model::Json;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::json;

#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub(crate) struct RawJson<'a>(Cow<'a, RawValue>);

impl RawJson<'_> {
    pub(crate) fn as_str(&self) -> &str {
        self.0.get()
    }

    pub(crate) fn is_object(&self) -> bool {
        self.as_str().starts_with('{')
    }

    /// The value of this member, its name with quotes, if it is all that the object has.
    pub(crate) fn only_member(&self, name: &str) -> Option<&RawValue> {
        let mut only = None;
        json::each_member(self.as_str(), |member| {
            let is_first = only.is_none() && member.name == name;
            only = is_first.then_some(member.value);
            if is_first { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        only
    }

    pub(crate) fn is_null(&self) -> bool {
        self.as_str() == "null"
    }
}

/// For a member whose `null` is a value like any other: 1.0 has data parts that hold just that.
pub(crate) fn present<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<RawJson<'a>>, D::Error> {
    RawJson::deserialize(deserializer).map(Some)
}

pub(crate) fn raw_json(json: &Option<Json>) -> Option<RawJson<'_>> {
    json.as_ref().map(RawJson::from)
}

impl<'a> From<&'a Json> for RawJson<'a> {
    fn from(json: &'a Json) -> Self {
        Self(Cow::Borrowed(json.as_raw()))
    }
}

impl<'a> From<&'a RawValue> for RawJson<'a> {
    fn from(raw: &'a RawValue) -> Self {
        Self(Cow::Borrowed(raw))
    }
}

impl From<Box<RawValue>> for RawJson<'_> {
    fn from(raw: Box<RawValue>) -> Self {
        Self(Cow::Owned(raw))
    }
}

impl From<Json> for RawJson<'_> {
    fn from(json: Json) -> Self {
        Self(Cow::Owned(json.as_raw().to_owned()))
    }
}

impl From<RawJson<'_>> for Json {
    fn from(raw: RawJson<'_>) -> Self {
        Json::from(raw.0.into_owned())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for RawJson<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(deserializer).map(|raw| Self(Cow::Borrowed(raw)))
    }
}
