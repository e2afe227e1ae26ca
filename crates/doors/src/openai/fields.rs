//! Fields of a request, read one by one so that an error can name the one that is wrong.
//!
//! An object is read into its members first, without copying, and each member when somebody asks for it. What nobody asks for is
//! ignored: programs send many settings of models that mean nothing to an agent.

use std::borrow::Cow;
use std::fmt;

use sabir_model::{JsonMembers, MAX_DEPTH};
use serde::Deserializer;
use serde::de::{DeserializeOwned, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::refusal::Refusal;
use crate::nesting::is_too_deep;

/// The members of an object.
pub(crate) struct Fields<'a> {
    /// Where the object is, as `messages[2].content[0]`; empty: it is the body.
    path: String,
    members: Vec<(Cow<'a, str>, &'a RawValue)>,
}

impl<'a> Fields<'a> {
    pub(crate) fn of_body(body: &'a [u8]) -> Result<Self, Refusal> {
        let not_json = |why: String| Refusal::new(400, "invalid_json", format!("the body is not JSON: {why}"));
        let text = std::str::from_utf8(body).map_err(|error| not_json(error.to_string()))?;
        if is_too_deep(text) {
            return Err(not_json(format!("it is nested deeper than {MAX_DEPTH}")));
        }
        let raw: &RawValue = serde_json::from_str(text).map_err(|error| not_json(error.to_string()))?;
        Self::of(String::new(), raw).ok_or_else(|| Refusal::new(400, "invalid_json", "the body must be an object"))
    }

    /// `None`: it is no object.
    pub(crate) fn of(path: String, raw: &'a RawValue) -> Option<Self> {
        let JsonMembers(members) = serde_json::from_str(raw.get()).ok()?;
        Some(Self { path, members })
    }

    /// The path of a member.
    pub(crate) fn path(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// A member as it was written; `null` counts as none.
    pub(crate) fn raw(&self, name: &str) -> Result<Option<&'a RawValue>, Refusal> {
        let mut named = self.members.iter().filter(|(known, _)| known == name).map(|(_, value)| *value);
        match (named.next(), named.next()) {
            (Some(_), Some(_)) => Err(Refusal::field(self.path(name), "is there twice")),
            (value, _) => Ok(value.filter(|value| value.get() != "null")),
        }
    }

    /// A member of this type, `what` in words.
    pub(crate) fn optional<T: DeserializeOwned>(&self, name: &str, what: &str) -> Result<Option<T>, Refusal> {
        let Some(raw) = self.raw(name)? else { return Ok(None) };
        let read = serde_json::from_str(raw.get());
        read.map(Some).map_err(|_| Refusal::field(self.path(name), format!("must be {what}")))
    }

    pub(crate) fn text(&self, name: &str) -> Result<Option<String>, Refusal> {
        self.optional(name, "a text")
    }

    pub(crate) fn required_text(&self, name: &str) -> Result<String, Refusal> {
        self.text(name)?.ok_or_else(|| self.missing(name))
    }

    pub(crate) fn missing(&self, name: &str) -> Refusal {
        Refusal::field(self.path(name), "is missing")
    }

    /// A member that is an object.
    pub(crate) fn object(&self, name: &str) -> Result<Option<Fields<'a>>, Refusal> {
        let Some(raw) = self.raw(name)? else { return Ok(None) };
        let path = self.path(name);
        match Fields::of(path.clone(), raw) {
            Some(fields) => Ok(Some(fields)),
            None => Err(Refusal::field(path, "must be an object")),
        }
    }

    pub(crate) fn required_object(&self, name: &str) -> Result<Fields<'a>, Refusal> {
        self.object(name)?.ok_or_else(|| self.missing(name))
    }
}

/// The items of a list, as they were written. One item takes sixteen bytes here and as few as two in the body, so their number
/// is limited.
pub(crate) fn items<'a>(path: &str, raw: &'a RawValue, most: usize) -> Result<Vec<&'a RawValue>, Refusal> {
    if !raw.get().starts_with('[') {
        return Err(Refusal::field(path, "must be a list"));
    }
    let mut items = Items { items: Vec::new(), most };
    let read = serde_json::Deserializer::from_str(raw.get()).deserialize_seq(&mut items);
    match read {
        Ok(()) => Ok(items.items),
        Err(_) => Err(Refusal::field(path, format!("has more than {most} items"))),
    }
}

struct Items<'a> {
    items: Vec<&'a RawValue>,
    most: usize,
}

impl<'de> Visitor<'de> for &mut Items<'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(item) = list.next_element()? {
            if self.items.len() >= self.most {
                return Err(serde::de::Error::custom("too many"));
            }
            self.items.push(item);
        }
        Ok(())
    }
}
