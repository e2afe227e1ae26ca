//! One JSON object of a program's line, read with patience.
//!
//! Programs change their lines from version to version, so a member that is missing or of another type is just not
//! there, and the rest of the line still counts. Values are kept as they were written until somebody asks: what a tool
//! is called with is passed on byte for byte.

use std::collections::BTreeMap;
use std::fmt;

use sabir_model::{Json, MAX_DEPTH};
use serde::Deserializer as _;
use serde::de::{Error, Visitor};
use serde_json::value::RawValue;

#[derive(Default)]
pub(crate) struct Object<'line>(BTreeMap<String, &'line RawValue>);

impl<'line> Object<'line> {
    /// `None`: the text is no JSON object.
    pub(crate) fn parse(text: &'line str) -> Option<Self> {
        serde_json::from_str(text).ok().map(Self)
    }

    /// The member `type`, by which most lines are told apart; empty if there is none.
    pub(crate) fn kind(&self) -> String {
        self.text("type").unwrap_or_default()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.value(name).is_some()
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        text_of(self.value(name)?)
    }

    /// A text, unless it is empty.
    pub(crate) fn words(&self, name: &str) -> Option<String> {
        self.text(name).filter(|text| !text.is_empty())
    }

    /// Names of sessions and calls, which some programs count instead of spelling.
    pub(crate) fn id(&self, name: &str) -> Option<String> {
        self.words(name).or_else(|| self.number(name).map(|number| number.to_string()))
    }

    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        self.value(name)?.get().parse().ok().filter(|number: &f64| number.is_finite())
    }

    /// A number of tokens; 0 if it is missing.
    pub(crate) fn count(&self, name: &str) -> u64 {
        // The cast cuts off fractions and keeps to the limits of the type.
        self.number(name).unwrap_or_default() as u64
    }

    pub(crate) fn is_true(&self, name: &str) -> bool {
        self.value(name).is_some_and(|raw| raw.get() == "true")
    }

    pub(crate) fn is_false(&self, name: &str) -> bool {
        self.value(name).is_some_and(|raw| raw.get() == "false")
    }

    /// The object under this name; one without members if there is none.
    pub(crate) fn object(&self, name: &str) -> Object<'line> {
        self.value(name).and_then(|raw| Object::parse(raw.get())).unwrap_or_default()
    }

    pub(crate) fn objects(&self, name: &str) -> Vec<Object<'line>> {
        self.list(name).into_iter().filter_map(|raw| Object::parse(raw.get())).collect()
    }

    pub(crate) fn texts(&self, name: &str) -> Vec<String> {
        self.list(name).into_iter().filter_map(text_of).collect()
    }

    /// A value to be carried on as it is. What is nested too deep is not there; half is left for what it is wrapped in.
    pub(crate) fn json(&self, name: &str) -> Option<Json> {
        self.value(name).filter(|raw| depth(raw) < MAX_DEPTH / 2).map(Json::from)
    }

    /// A value to be looked into, whatever it is.
    pub(crate) fn parsed(&self, name: &str) -> Option<serde_json::Value> {
        self.value(name).and_then(|raw| serde_json::from_str(raw.get()).ok())
    }

    /// What stands in a member that is a text, or a list of text blocks.
    pub(crate) fn content(&self, name: &str) -> String {
        if let Some(text) = self.text(name) {
            return text;
        }
        let blocks = self.list(name).into_iter();
        let texts = blocks.filter_map(|raw| text_of(raw).or_else(|| Object::parse(raw.get())?.text("text")));
        texts.collect::<Vec<_>>().join("\n")
    }

    fn list(&self, name: &str) -> Vec<&'line RawValue> {
        self.value(name).and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
    }

    fn value(&self, name: &str) -> Option<&'line RawValue> {
        self.0.get(name).copied().filter(|raw| raw.get() != "null")
    }
}

/// How deep a value is nested. It is well-formed, so its brackets match and its quotes end.
fn depth(raw: &RawValue) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0_usize);
    let mut bytes = raw.get().bytes();
    let mut is_text = false;
    while let Some(byte) = bytes.next() {
        match byte {
            // Whatever is escaped is no end of the text.
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

fn text_of(raw: &RawValue) -> Option<String> {
    serde_json::Deserializer::from_str(raw.get()).deserialize_bytes(Text).ok()
}

/// Reads a text as bytes. A program that cuts its text into pieces may cut a character in two, and half a character
/// must not cost the piece.
struct Text;

impl Visitor<'_> for Text {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<String, E> {
        Ok(String::from_utf8_lossy(bytes).into_owned())
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
    fn half_a_character_does_not_cost_the_text() {
        let object = Object::parse(r#"{"text":"fine \ud83d"}"#).unwrap();
        assert!(object.text("text").unwrap().starts_with("fine \u{fffd}"));
    }

    #[test]
    fn what_is_carried_stays_as_it_was_written() {
        let object = Object::parse(r#"{"input":{"b":1e3,"a":12345678901234567890}}"#).unwrap();
        assert_eq!(object.json("input").unwrap().as_str(), r#"{"b":1e3,"a":12345678901234567890}"#);
    }
}
