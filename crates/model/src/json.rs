//! JSON that is only carried: metadata, data parts.
//!
//! It is kept byte for byte, so `5` never becomes `5.0`, a 17-digit integer survives and members
//! keep their order. Nobody in the house looks inside unless an agent asks.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

/// Deeper nesting is refused at the door, carried JSON included.
pub const MAX_DEPTH: usize = 128;

/// JSON that is carried as it is, byte for byte.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json(Box<RawValue>);

impl Json {
    /// Takes text that must be one JSON value; tests and agents use this, the wire has its own door.
    pub fn parse(text: impl Into<String>) -> Result<Self, serde_json::Error> {
        RawValue::from_string(text.into()).map(Self)
    }

    /// The JSON of a value.
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

    /// The object without the members of this name; what is no object stays as it is.
    pub fn without_member(&self, name: &str) -> Self {
        let Ok(JsonMembers(members)) = serde_json::from_str::<JsonMembers<'_>>(self.as_str()) else {
            return self.clone();
        };
        if members.iter().all(|(known, _)| known != name) {
            return self.clone();
        }
        let kept = members.iter().filter(|(known, _)| known != name).map(|(known, value)| {
            let known = serde_json::to_string(known).expect("text is JSON");
            format!("{known}:{}", value.get())
        });
        let text = format!("{{{}}}", kept.collect::<Vec<_>>().join(","));
        RawValue::from_string(text).map(Self).expect("members of an object are an object")
    }

    /// This member, if this is an object that has it.
    pub fn member(&self, name: &str) -> Option<Self> {
        let members: HashMap<Cow<'_, str>, &RawValue> = serde_json::from_str(self.as_str()).ok()?;
        members.get(name).map(|value| Self::from(*value))
    }

    /// The text, if this is a text.
    pub fn text(&self) -> Option<String> {
        serde_json::from_str(self.as_str()).ok()
    }

    /// The text of this member, if this is an object and the member is a text.
    pub fn text_of(&self, member: &str) -> Option<String> {
        self.member(member)?.text()
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// For serde.
    pub fn as_raw(&self) -> &RawValue {
        &self.0
    }

    /// Whether it is an object.
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

/// The members of an object in their order, also those that are there twice.
pub struct JsonMembers<'a>(pub Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for JsonMembers<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct All;

        impl<'de> Visitor<'de> for All {
            type Value = JsonMembers<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(JsonMembers(members))
            }
        }

        deserializer.deserialize_map(All)
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
    fn a_member_is_taken_out_wherever_it_stands() {
        for (object, expected) in [
            (r#"{"a":1,"b":2,"a":3}"#, r#"{"b":2}"#),
            (r#"{"\u0061":1e3,"b\"":2}"#, r#"{"b\"":2}"#),
            (r#"{ "b": [1, 2] }"#, r#"{ "b": [1, 2] }"#),
            (r#"["a"]"#, r#"["a"]"#),
        ] {
            assert_eq!(Json::parse(object).unwrap().without_member("a").as_str(), expected);
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
