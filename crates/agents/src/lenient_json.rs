//! Reads the JSON that programs print, leniently.
//!
//! Programs change their format from version to version, so a member of another type is treated as missing, and the rest of
//! the line still counts. Objects are parsed lazily, one level at a time, and values stay as they were written: the input of
//! a tool is passed on byte for byte.
//!
//! A program that splits its text into pieces may split a surrogate pair. Half a character must not make the whole line
//! unreadable, which may be the result that a turn waits for.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::fmt;

use sabir_model::{Json, MAX_DEPTH};
use serde::de::{DeserializeOwned, Error, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// One object and its members. A member that is `null` counts as absent, unless the method says otherwise.
#[derive(Clone, Default)]
pub(crate) struct Object<'line>(BTreeMap<Name, &'line RawValue>);

impl<'line> Object<'line> {
    /// `None`: the text is no JSON object.
    pub(crate) fn parse(text: &'line str) -> Option<Self> {
        serde_json::from_str(text).ok().map(Self)
    }

    /// The member `type`, which most formats use to distinguish lines; empty if there is none.
    pub(crate) fn kind(&self) -> String {
        self.text("type").unwrap_or_default()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.value(name).is_some()
    }

    /// Whether there is such a member, `null` or not.
    pub(crate) fn has_even_null(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(|Name(name)| name.as_str())
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        read(self.value(name)?)
    }

    /// A string, unless it is empty.
    pub(crate) fn non_empty_text(&self, name: &str) -> Option<String> {
        self.text(name).filter(|text| !text.is_empty())
    }

    /// An id as text. Some programs use numbers for ids of sessions and calls.
    pub(crate) fn id(&self, name: &str) -> Option<String> {
        self.non_empty_text(name).or_else(|| self.number(name).map(|number| number.to_string()))
    }

    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        self.value(name)?.get().parse().ok().filter(|number: &f64| number.is_finite())
    }

    /// A non-negative integer.
    pub(crate) fn integer(&self, name: &str) -> Option<u64> {
        self.value(name)?.get().parse().ok()
    }

    /// A number of tokens; 0 if it is missing.
    pub(crate) fn count(&self, name: &str) -> u64 {
        // The cast truncates fractions and saturates.
        self.number(name).unwrap_or_default() as u64
    }

    pub(crate) fn is_true(&self, name: &str) -> bool {
        self.value(name).is_some_and(|raw| raw.get() == "true")
    }

    pub(crate) fn is_false(&self, name: &str) -> bool {
        self.value(name).is_some_and(|raw| raw.get() == "false")
    }

    pub(crate) fn is_list(&self, name: &str) -> bool {
        self.value(name).is_some_and(|raw| raw.get().starts_with('['))
    }

    pub(crate) fn is_object(&self, name: &str) -> bool {
        self.value(name).is_some_and(|raw| raw.get().starts_with('{'))
    }

    /// The object under this name; an empty one if there is none.
    pub(crate) fn object(&self, name: &str) -> Object<'line> {
        self.value(name).and_then(|raw| Object::parse(raw.get())).unwrap_or_default()
    }

    /// The object at the end of a path of names, such as `_meta/codex`; an empty one if there is none.
    pub(crate) fn at(&self, path: &str) -> Object<'line> {
        path.split('/').filter(|name| !name.is_empty()).fold(self.clone(), |object, name| object.object(name))
    }

    pub(crate) fn objects(&self, name: &str) -> Vec<Object<'line>> {
        self.list(name).into_iter().filter_map(|raw| Object::parse(raw.get())).collect()
    }

    pub(crate) fn texts(&self, name: &str) -> Vec<String> {
        self.list(name).into_iter().filter_map(read).collect()
    }

    /// A value to be passed on unchanged. Too deep values count as missing; half of the depth is left for the JSON around
    /// it.
    pub(crate) fn json(&self, name: &str) -> Option<Json> {
        self.value(name).filter(|raw| depth(raw.get()) < MAX_DEPTH / 2).map(Json::from)
    }

    /// A value to be shown and compared: members are sorted. An empty object counts as missing.
    pub(crate) fn normalized(&self, name: &str) -> Option<Json> {
        normalized(&self.parsed(name)?)
    }

    /// A parsed value of any type.
    pub(crate) fn parsed(&self, name: &str) -> Option<Value> {
        read(self.value(name)?)
    }

    /// The parsed entries of a list.
    pub(crate) fn values(&self, name: &str) -> Vec<Value> {
        self.list(name).into_iter().filter_map(read).collect()
    }

    /// The text of a member that is a string or a list of text blocks.
    pub(crate) fn content(&self, name: &str) -> String {
        if let Some(text) = self.text(name) {
            return text;
        }
        let blocks = self.list(name).into_iter();
        let texts = blocks.filter_map(|raw| read(raw).or_else(|| Object::parse(raw.get())?.text("text")));
        texts.collect::<Vec<_>>().join("\n")
    }

    /// The entries of a list, of any type; empty if there is no list.
    pub(crate) fn list(&self, name: &str) -> Vec<&'line RawValue> {
        self.value(name).and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
    }

    fn value(&self, name: &str) -> Option<&'line RawValue> {
        self.0.get(name).copied().filter(|raw| raw.get() != "null")
    }
}

/// Like `Object::normalized`, for a value. `null` counts as missing, too.
pub(crate) fn normalized(value: &Value) -> Option<Json> {
    let is_empty = value.is_null() || value.as_object().is_some_and(|members| members.is_empty());
    if is_empty { None } else { Json::of(value).ok() }
}

/// How deep a value is nested. It is well-formed, so its brackets match and its quotes end.
pub(crate) fn depth(json: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0_usize);
    let mut bytes = json.bytes();
    let mut is_text = false;
    while let Some(byte) = bytes.next() {
        match byte {
            // An escaped character does not end the string.
            b'\\' if is_text => drop(bytes.next()),
            b'"' => is_text = !is_text,
            b'{' | b'[' if !is_text => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !is_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

fn read<T: DeserializeOwned>(raw: &RawValue) -> Option<T> {
    match serde_json::from_str(raw.get()) {
        Ok(value) => Some(value),
        // The value is well-formed, so the error may be half a surrogate pair.
        Err(error) if error.is_syntax() => serde_json::from_str(&without_half_characters(raw.get())).ok(),
        Err(_) => None,
    }
}

/// Replaces escapes of half a surrogate pair by the replacement character.
fn without_half_characters(json: &str) -> String {
    let mut whole = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        whole.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = match (surrogate(rest), rest.get(6..).and_then(surrogate)) {
            (Some(Surrogate::High), Some(Surrogate::Low)) => 12,
            (Some(_), _) => {
                whole.push('\u{fffd}');
                rest = &rest[6..];
                continue;
            }
            // Skip the escape with its character, which may be a backslash itself.
            (None, _) => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
        };
        whole.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    whole.push_str(rest);
    whole
}

enum Surrogate {
    High,
    Low,
}

/// Which half of a surrogate pair the text begins with, if any.
fn surrogate(text: &str) -> Option<Surrogate> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    match u16::from_str_radix(digits, 16).ok()? {
        0xd800..0xdc00 => Some(Surrogate::High),
        0xdc00..0xe000 => Some(Surrogate::Low),
        _ => None,
    }
}

/// The name of a member, read as bytes, since it may hold half a surrogate pair.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Name(String);

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;

        impl Visitor<'_> for Bytes {
            type Value = Name;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Name, E> {
                Ok(Name(String::from_utf8_lossy(bytes).into_owned()))
            }
        }

        deserializer.deserialize_bytes(Bytes)
    }
}

#[cfg(test)]
impl Object<'static> {
    /// For tests, which write `json!` for a line of a program.
    pub(crate) fn of(value: &Value) -> Self {
        Self::parse(Box::leak(value.to_string().into_boxed_str())).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_of_another_type_is_not_there() {
        let line = r#"{"n":1.9,"s":"a","o":{"b":[1,{"text":"x"},"y"]},"z":null,"minus":-3,"big":1e999}"#;
        let object = Object::parse(line).unwrap();
        assert_eq!(object.text("n"), None);
        assert_eq!(object.count("n"), 1);
        assert_eq!((object.count("s"), object.count("minus"), object.count("big"), object.count("none")), (0, 0, 0, 0));
        assert_eq!(object.object("s").text("b"), None);
        assert_eq!(object.object("o").content("b"), "x\ny");
        assert_eq!((object.has("z"), object.json("z")), (false, None));
        assert_eq!(object.id("n").as_deref(), Some("1.9"));
        assert_eq!((object.integer("n"), object.integer("minus"), object.integer("s")), (None, None, None));
        assert_eq!((object.has_even_null("z"), object.has_even_null("none")), (true, false));
        assert_eq!(
            (object.at("o").names().count(), object.at("o/b").names().count(), object.at("").count("n")),
            (1, 0, 1)
        );
    }

    #[test]
    fn what_is_nested_too_deep_is_not_carried() {
        let nested = |depth: usize| format!(r#"{{"input":{}"[[\"[["{}}}"#, "[".repeat(depth), "]".repeat(depth));
        for (depth, is_carried) in [(0, true), (63, true), (64, false), (100_000, false)] {
            let line = nested(depth);
            let object = Object::parse(&line).unwrap();
            assert_eq!(object.json("input").is_some(), is_carried, "{depth}");
            assert_eq!(object.content("input").is_empty(), depth != 0 && depth != 1, "{depth}");
        }
    }

    #[test]
    fn half_a_character_does_not_cost_the_line() {
        for (text, expected) in [
            (r"plain \n\\", Some("plain \n\\")),
            (r"\ud83d\ude00", Some("\u{1f600}")),
            (r"a\ud83d", Some("a\u{fffd}")),
            (r"\ude00b", Some("\u{fffd}b")),
            (r"\ud83d\ud83d\ude00", Some("\u{fffd}\u{1f600}")),
            (r"\ud83d\u0041", Some("\u{fffd}A")),
            (r"\\ud83d \ud83d", Some("\\ud83d \u{fffd}")),
            (r"\ud83dä", Some("\u{fffd}ä")),
            (r"\ud8", None),
            (r"\q", None),
        ] {
            let line = format!(r#"{{"text":"{text}","\ud83d":{{"text":"{text}"}}}}"#);
            let object = Object::parse(&line);
            assert_eq!(object.as_ref().and_then(|line| line.text("text")).as_deref(), expected, "{line}");
            let value = object.and_then(|line| line.0.last_key_value().and_then(|(_, value)| read::<Value>(value)));
            assert_eq!(value.as_ref().and_then(|value| value["text"].as_str()), expected, "{line}");
        }
        for cut in ["\\", "\"\\", "\"\\u", "\"\\ud83d\\u", "{\"\\ä"] {
            assert!(Object::parse(cut).is_none(), "{cut}");
        }
    }

    #[test]
    fn what_is_compared_has_one_spelling() {
        for (written, expected) in [
            (r#"{ "b" : 1, "a":"\u0041" }"#, Some(r#"{"a":"A","b":1}"#)),
            (r#"[ ]"#, Some("[]")),
            (r#""\ud83d""#, Some("\"\u{fffd}\"")),
            ("{ }", None),
            ("null", None),
        ] {
            let line = format!(r#"{{"input":{written}}}"#);
            let input = Object::parse(&line).unwrap().normalized("input");
            assert_eq!(input.as_ref().map(Json::as_str), expected, "{written}");
        }
    }

    #[test]
    fn what_is_carried_stays_as_it_was_written() {
        let object = Object::parse(r#"{"input":{"b":1e3,"a":12345678901234567890}}"#).unwrap();
        assert_eq!(object.json("input").unwrap().as_str(), r#"{"b":1e3,"a":12345678901234567890}"#);
    }
}
