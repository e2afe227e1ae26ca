//! Ids, parsed once at the door.
//!
//! An id is 1 to 1,024 bytes of text without control characters. There is no way to make one but
//! through its parser, so inside the house an id is never empty and never wrong.

use std::fmt;
use std::sync::Arc;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

const MAX_LENGTH: usize = 1024;

/// Why a text is no id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidId {
    /// There is nothing.
    #[error("must not be empty")]
    Empty,
    /// It is longer than 1,024 bytes.
    #[error("must not be longer than 1024 bytes")]
    TooLong,
    /// There is a control character in it.
    #[error("must not contain control characters")]
    ControlCharacter,
}

fn check(text: &str) -> Result<(), InvalidId> {
    if text.is_empty() {
        return Err(InvalidId::Empty);
    }
    if text.len() > MAX_LENGTH {
        return Err(InvalidId::TooLong);
    }
    // Bytes are quicker to look at than characters, and nearly every id is made of them.
    let has_control = match text.is_ascii() {
        // Without a branch for each byte, many are looked at with one instruction.
        true => text.bytes().fold(false, |found, byte| found | byte.is_ascii_control()),
        false => text.chars().any(char::is_control),
    };
    if has_control {
        return Err(InvalidId::ControlCharacter);
    }
    Ok(())
}

macro_rules! text_id {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks a text and makes an id of it.
            pub fn parse(text: impl AsRef<str> + Into<Arc<str>>) -> Result<Self, InvalidId> {
                check(text.as_ref())?;
                Ok(Self(text.into()))
            }

            /// As it was given.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;
                impl Visitor<'_> for Text {
                    type Value = $name;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("an id")
                    }

                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$name, E> {
                        $name::parse(text).map_err(E::custom)
                    }
                }
                deserializer.deserialize_str(Text)
            }
        }
    )+};
}

text_id! {
    /// Names a task; unique for one owner and agent.
    TaskId,
    /// Groups the tasks of one conversation.
    ContextId,
    /// Made by the sender of a message.
    MessageId,
    /// Unique within its task.
    ArtifactId,
    /// Names an agent of this server; what A2A 1.0 calls a tenant.
    AgentId,
    /// Names one webhook of a task.
    PushConfigId,
    /// The caller's name for a send that may be repeated.
    IdempotencyKey,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_an_id() {
        for (text, expected) in [
            ("t", Ok(())),
            ("9b1f2c34-0d5e", Ok(())),
            ("naïve id with spaces", Ok(())),
            ("", Err(InvalidId::Empty)),
            ("a\nb", Err(InvalidId::ControlCharacter)),
            ("\u{0}", Err(InvalidId::ControlCharacter)),
            ("\u{85}", Err(InvalidId::ControlCharacter)),
        ] {
            assert_eq!(TaskId::parse(text).map(|_| ()), expected, "{text:?}");
        }
        assert!(TaskId::parse("x".repeat(1024)).is_ok());
        assert_eq!(TaskId::parse("x".repeat(1025)), Err(InvalidId::TooLong));
    }
}
