//! JSON that is only carried: metadata, data parts.
//!
//! It is kept byte for byte, so `5` never becomes `5.0`, a 17-digit integer survives and members
//! keep their order. Nobody in the house looks inside unless an agent asks.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Deeper nesting is refused at the door, carried JSON included.
pub const MAX_DEPTH: usize = 128;

#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json(Box<RawValue>);

impl Json {
    /// Takes text that must be one JSON value; tests and agents use this, the wire has its own door.
    pub fn parse(text: impl Into<String>) -> Result<Self, serde_json::Error> {
        RawValue::from_string(text.into()).map(Self)
    }

    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(Self)
    }

    /// An object with one member more, which comes first; what is no object makes way for one.
    pub fn with_member(object: Option<&Json>, name: &str, value: &Json) -> Self {
        let rest = object.filter(|json| json.is_object()).map_or("}", |json| json.as_str()[1..].trim_start());
        let name = serde_json::to_string(name).expect("text is JSON");
        let comma = if rest.starts_with('}') { "" } else { "," };
        let text = format!("{{{name}:{}{comma}{rest}", value.as_str());
        RawValue::from_string(text).map(Self).expect("a member was put into an object")
    }

    /// The text of this member, if this is an object and the member is a text.
    pub fn text_of(&self, member: &str) -> Option<String> {
        let members: HashMap<Cow<'_, str>, &RawValue> = serde_json::from_str(self.as_str()).ok()?;
        serde_json::from_str(members.get(member)?.get()).ok()
    }

    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    pub fn as_raw(&self) -> &RawValue {
        &self.0
    }

    pub fn is_object(&self) -> bool {
        self.0.get().starts_with('{')
    }
}

impl From<&RawValue> for Json {
    fn from(raw: &RawValue) -> Self {
        Self(raw.to_owned())
    }
}

impl From<Box<RawValue>> for Json {
    fn from(raw: Box<RawValue>) -> Self {
        Self(raw)
    }
}

/// Equal means the same bytes: what is carried is not interpreted.
impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Json {}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_goes_in_before_the_others() {
        let value = Json::parse("5.0").unwrap();
        for (object, expected) in [
            (None, r#"{"a\"":5.0}"#),
            (Some("{}"), r#"{"a\"":5.0}"#),
            (Some("{ }"), r#"{"a\"":5.0}"#),
            (Some("[1]"), r#"{"a\"":5.0}"#),
            (Some(r#"{ "b":1e3}"#), r#"{"a\"":5.0,"b":1e3}"#),
        ] {
            let object = object.map(|text| Json::parse(text).unwrap());
            assert_eq!(Json::with_member(object.as_ref(), "a\"", &value).as_str(), expected);
        }
    }

    #[test]
    fn the_text_of_a_member() {
        for (text, expected) in [
            (r#"{"n":1,"profile":"a\"b"}"#, Some("a\"b")),
            (r#"{"prof\u0069le":"x"}"#, Some("x")),
            (r#"{"profile":5}"#, None),
            (r#"{"other":"x"}"#, None),
            (r#"["profile"]"#, None),
            ("null", None),
        ] {
            assert_eq!(Json::parse(text).unwrap().text_of("profile").as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn carried_json_stays_byte_exact() {
        for text in ["5", "5.0", "12345678901234567", r#"{"b":1,"a":1e3,"a":2}"#, "1e999", "null"] {
            let carried: Json = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&carried).unwrap(), text);
        }
    }
}
