//! Reading and writing JSON text.
//!
//! `check_text` sees every body once, before anything reads it. `read` turns text into a wire struct; only when
//! that fails is the text read again, to learn the name of the field.
//!
//! All of wire reads and writes JSON through this file (the lint in `clippy.toml` sees to that), so that `work` sees
//! every byte that is visited.

use std::fmt;
use std::ops::ControlFlow;

use sabir_model::{Error, MAX_DEPTH};
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::error::Category;
use serde_json::value::RawValue;

use crate::excerpt::excerpt;
use crate::work;

/// Checks that the text is UTF-8 and nowhere nested deeper than 128 levels, raw JSON included.
pub fn check_text(bytes: &[u8]) -> Result<&str, Error> {
    work::visit(bytes.len());
    let text = std::str::from_utf8(bytes).map_err(|_| Error::NotJson("it is not UTF-8".to_owned()))?;
    // Most bodies have fewer brackets than levels are allowed, and counting brackets is cheaper than tracking the depth.
    let brackets = bytes.iter().filter(|byte| matches!(byte, b'[' | b'{')).count();
    if brackets > MAX_DEPTH && json_depth(bytes) > MAX_DEPTH {
        return Err(Error::InvalidRequest(format!("nested deeper than {MAX_DEPTH} levels")));
    }
    Ok(text)
}

/// How deep JSON is nested. Brackets in strings do not count. Whether they match is for the parser to say.
pub fn json_depth(bytes: &[u8]) -> usize {
    work::visit(bytes.len());
    let (mut depth, mut deepest) = (0usize, 0usize);
    let mut rest = bytes.iter();
    while let Some(byte) = rest.next() {
        match byte {
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'"' => {
                while let Some(byte) = rest.next() {
                    match byte {
                        b'"' => break,
                        b'\\' => drop(rest.next()),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    deepest
}

pub fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Error> {
    match parse(text) {
        Ok(value) => Ok(value),
        Err(error) => Err(explain::<T>(text, &error)),
    }
}

/// The same for callers that make their own error.
#[allow(clippy::disallowed_methods, reason = "here is where it is counted")]
pub(crate) fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, serde_json::Error> {
    work::visit(text.len());
    serde_json::from_str(text)
}

/// A member as it stands in the text, the name with its quotes.
pub(crate) struct Member<'t> {
    pub(crate) name: &'t str,
    pub(crate) value: &'t RawValue,
}

/// Calls `see` with each member of an object, until it breaks. A text that is no object has no members.
pub(crate) fn each_member<'t>(text: &'t str, see: impl FnMut(Member<'t>) -> ControlFlow<()>) {
    struct Each<F>(F);

    impl<'t, F: FnMut(Member<'t>) -> ControlFlow<()>> Visitor<'t> for Each<F> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'t>>(mut self, mut map: A) -> Result<(), A::Error> {
            while let Some((name, value)) = map.next_entry::<&RawValue, &RawValue>()? {
                work::visit(name.get().len() + value.get().len());
                if (self.0)(Member { name: name.get(), value }).is_break() {
                    return Err(A::Error::custom("enough was seen"));
                }
            }
            Ok(())
        }
    }

    if text.starts_with('{') {
        // The text was read before and is JSON, so an error only means that `see` broke off.
        let _ = serde_json::Deserializer::from_str(text).deserialize_map(Each(see));
    }
}

/// Raw JSON from text that was put together of JSON and is known to be JSON.
#[allow(clippy::disallowed_methods, reason = "here is where it is counted")]
pub(crate) fn raw(text: String) -> Box<RawValue> {
    work::visit(text.len());
    RawValue::from_string(text).expect("it was made of JSON")
}

#[allow(clippy::disallowed_methods, reason = "here is where it is counted")]
pub fn write<T: Serialize>(value: &T, out: &mut Vec<u8>) {
    let start = out.len();
    serde_json::to_writer(&mut *out, value).expect("a wire struct has text for names, and memory takes it all");
    work::visit(out.len() - start);
}

/// Reads the text again, slowly, to name the field with the mistake.
#[cold]
fn explain<'a, T: Deserialize<'a>>(text: &'a str, error: &serde_json::Error) -> Error {
    let mut message = message(error);
    if error.classify() != Category::Data {
        if parse::<&RawValue>(text).is_err() {
            return Error::NotJson(excerpt(&message).to_owned());
        }
        // JSON may escape half of a surrogate pair; text cannot hold it.
        if message.contains("hex escape") {
            message = "must not hold half of a surrogate pair".to_owned();
        }
    }
    work::visit(text.len());
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let path = match serde_path_to_error::deserialize::<_, T>(&mut deserializer) {
        Ok(_) => String::new(),
        Err(error) => error.path().to_string(),
    };
    // Where a name cannot be read, the object that has it is at fault.
    let path = path.trim_end_matches('?').trim_end_matches('.');
    if let Some(twice) = quoted(&message, "duplicate field `") {
        // Serde reports the path of the member or of the object that holds it.
        let is_named = path.rsplit('.').next() == Some(twice);
        let field = match path {
            "" => twice.to_owned(),
            path if is_named => path.to_owned(),
            path => format!("{path}.{twice}"),
        };
        return Error::invalid(excerpt(&field), "is given twice");
    }
    let field = if path.is_empty() { "params" } else { path };
    Error::invalid(excerpt(field), excerpt(&plain(&message)))
}

/// Serde's sentence without the place in the text, which means nothing to a caller.
fn message(error: &serde_json::Error) -> String {
    let message = error.to_string();
    match message.rfind(" at line ") {
        Some(end) => message[..end].to_owned(),
        None => message,
    }
}

/// `invalid type: integer 5, expected a string` becomes `expected a string, found a number`.
fn plain(message: &str) -> String {
    let Some((found, expected)) =
        message.strip_prefix("invalid type: ").and_then(|rest| rest.rsplit_once(", expected "))
    else {
        return message.to_owned();
    };
    let found = match found.split([' ', '`']).next() {
        Some("integer" | "floating" | "number") => "a number",
        Some("string") => "a string",
        Some("boolean") => "a boolean",
        Some("sequence") => "an array",
        Some("map") => "an object",
        _ => "null",
    };
    let expected = if expected == "a sequence" { "an array" } else { expected };
    format!("expected {expected}, found {found}")
}

fn quoted<'a>(message: &'a str, before: &str) -> Option<&'a str> {
    message.strip_prefix(before)?.strip_suffix('`')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire_types::{Int32, Text, WireList, object};

    #[derive(Deserialize)]
    #[serde(remote = "Self", rename_all = "camelCase")]
    struct Outer<'a> {
        #[serde(borrow)]
        text: Option<Text<'a>>,
        #[serde(default)]
        parts: WireList<'a, Inner<'a>, ()>,
        #[serde(alias = "page_size")]
        page_size: Option<Int32>,
        flag: Option<bool>,
    }

    #[derive(Deserialize)]
    #[serde(remote = "Self")]
    struct Inner<'a> {
        #[serde(borrow)]
        text: Option<Text<'a>>,
    }

    object! { read Outer<'a>; read Inner<'a> }

    fn say(text: &str) -> String {
        match check_text(text.as_bytes()).and_then(read::<Outer>) {
            Ok(outer) => {
                let parts: Vec<_> =
                    outer.parts.into_wire().into_iter().map(|part| part.text.map(Text::into_string)).collect();
                format!("{:?} {parts:?} {:?} {:?}", outer.text.map(Text::into_string), outer.page_size, outer.flag)
            }
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_read_error_names_the_field() {
        for (text, expected) in [
            (
                r#"{"text":"x","parts":[{"text":"y"}],"page_size":"5","flag":true,"more":{}}"#,
                r#"Some("x") [Some("y")] Some(Int32(5)) Some(true)"#,
            ),
            (r#"{"text":null,"parts":null,"pageSize":null,"flag":null}"#, "None [] None None"),
            (r#"{}"#, "None [] None None"),
            (r#"{"text":5}"#, "invalid parameters: text expected a string, found a number"),
            (r#"{"text":{}}"#, "invalid parameters: text expected a string, found an object"),
            (r#"{"parts":{}}"#, "invalid parameters: parts expected an array, found an object"),
            (r#"{"parts":[null]}"#, "invalid parameters: parts[0] expected an object, found null"),
            (r#"{"parts":[["hi"]]}"#, "invalid parameters: parts[0] expected an object, found an array"),
            (
                r#"{"parts":[{"text":"a"},{"text":[]}]}"#,
                "invalid parameters: parts[1].text expected a string, found an array",
            ),
            (r#"{"page_size":5.5}"#, "invalid parameters: page_size must be a whole number"),
            (r#"{"flag":"true"}"#, "invalid parameters: flag expected a boolean, found a string"),
            (r#"{"text":"a","text":"b"}"#, "invalid parameters: text is given twice"),
            (r#"{"parts":[{"text":"a","text":"b"}]}"#, "invalid parameters: parts[0].text is given twice"),
            (r#"{"pageSize":1,"page_size":1}"#, "invalid parameters: pageSize is given twice"),
            (r#"["x"]"#, "invalid parameters: params expected an object, found an array"),
            ("5", "invalid parameters: params expected an object, found a number"),
            ("null", "invalid parameters: params expected an object, found null"),
            (r#"{"text":"#, "the body is not JSON: EOF while parsing a value"),
            ("", "the body is not JSON: EOF while parsing a value"),
            ("{} x", "the body is not JSON: trailing characters"),
            (r#"{"text":"\ud800"}"#, "invalid parameters: text must not hold half of a surrogate pair"),
            (r#"{"text":"\ud800 "}"#, "invalid parameters: text must not hold half of a surrogate pair"),
            (r#"{"text":"\ud800\n"}"#, "invalid parameters: text must not hold half of a surrogate pair"),
            (r#"{"text":"\ud800\ud800"}"#, "invalid parameters: text must not hold half of a surrogate pair"),
            (r#"{"text":"a\udc00"}"#, "invalid parameters: text must not hold half of a surrogate pair"),
            (
                r#"{"parts":[{"text":"a"},{"text":"\udfff"}]}"#,
                "invalid parameters: parts[1].text must not hold half of a surrogate pair",
            ),
            (
                r#"{"text":"\ud83d\ude00","\uD800":{}}"#,
                "invalid parameters: params must not hold half of a surrogate pair",
            ),
            (r#"{"more":"\ud800"}"#, "None [] None None"),
            (r#"{"text":"\ud800""#, "the body is not JSON: unexpected end of hex escape"),
            (r#"{"text":"\ud8"}"#, "the body is not JSON: invalid escape"),
        ] {
            assert_eq!(say(text), expected, "{text}");
        }
    }

    #[test]
    fn depth_is_counted_outside_strings() {
        let nested = |levels: usize| format!("{{\"more\":{}{}}}", "[".repeat(levels - 1), "]".repeat(levels - 1));
        assert_eq!(say(&nested(128)), "None [] None None");
        assert_eq!(say(&nested(129)), "nested deeper than 128 levels");
        assert_eq!(say(&format!(r#"{{"text":"{}"}}"#, "[".repeat(500))).len(), 500 + "Some(\"\") [] None None".len());
        assert_eq!(say(&format!(r#"{{"more":"\"{}"}}"#, "[".repeat(500))), "None [] None None");
        assert_eq!(say(&format!(r#"{{"more":[{}0]}}"#, "[],".repeat(500))), "None [] None None");
        assert!(matches!(check_text(b"\"\xff\""), Err(Error::NotJson(_))));
    }
}
