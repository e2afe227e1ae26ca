//! JSON that is only carried: metadata, data parts.
//!
//! It is kept byte for byte, so `5` never becomes `5.0`, a 17-digit integer survives and members
//! keep their order. Nobody in the house looks inside unless an agent asks.

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
    fn carried_json_stays_byte_exact() {
        for text in ["5", "5.0", "12345678901234567", r#"{"b":1,"a":1e3,"a":2}"#, "1e999", "null"] {
            let carried: Json = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&carried).unwrap(), text);
        }
    }
}
