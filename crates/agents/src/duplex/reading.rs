//! Looking into JSON that others wrote: every member may be missing or of another type.

use sabir_model::Json;
use serde_json::Value;

/// A line of a program. One that cuts its text into pieces may cut a character in two; half a character must not cost the
/// line, which may be the answer that a turn waits for.
pub(super) fn parse(line: &str) -> Option<Value> {
    serde_json::from_str(line).or_else(|_| serde_json::from_str(&without_half_characters(line))).ok()
}

/// Escapes of half a surrogate pair replaced by the sign for a character that cannot be read.
fn without_half_characters(line: &str) -> String {
    let mut whole = String::with_capacity(line.len());
    let mut rest = line;
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
            // The escape and what it escapes, which is no beginning of another.
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

/// Which half of a pair this text begins with an escape of, if any.
fn surrogate(text: &str) -> Option<Surrogate> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    match u16::from_str_radix(digits, 16).ok()? {
        0xd800..0xdc00 => Some(Surrogate::High),
        0xdc00..0xe000 => Some(Surrogate::Low),
        _ => None,
    }
}

/// The text at a JSON pointer, if it is there and says something.
pub(super) fn text_at<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty())
}

pub(super) fn owned_text_at(value: &Value, pointer: &str) -> Option<String> {
    text_at(value, pointer).map(str::to_owned)
}

pub(super) fn count_at(value: &Value, pointer: &str) -> Option<u64> {
    value.pointer(pointer).and_then(Value::as_u64)
}

pub(super) fn list_at<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// JSON to be carried on. Nothing for `null` and for an object without members: they say nothing.
pub(super) fn carried(value: &Value) -> Option<Json> {
    let is_empty = value.is_null() || value.as_object().is_some_and(|members| members.is_empty());
    if is_empty { None } else { Json::of(value).ok() }
}

/// The words of an error object: its message, and what its details add.
pub(super) fn words_of_error(error: &Value) -> String {
    let message = text_at(error, "/message").map_or_else(|| "unknown error".to_owned(), plain_words);
    let details = ["/data/details", "/data/message", "/data"].iter().find_map(|pointer| text_at(error, pointer));
    match details.map(plain_words) {
        Some(details) if !message.contains(&details) => format!("{message}: {details}"),
        _ => message,
    }
}

/// A message that may be a JSON text around the message of somebody else.
pub(super) fn plain_words(message: &str) -> String {
    let Ok(value) = serde_json::from_str::<Value>(message) else { return message.trim().to_owned() };
    let inner = text_at(&value, "/error/message").or_else(|| text_at(&value, "/message"));
    inner.unwrap_or(message).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
            let line = format!(r#"{{"text":"{text}"}}"#);
            let parsed = parse(&line);
            assert_eq!(parsed.as_ref().and_then(|line| text_at(line, "/text")), expected, "{line}");
        }
        for cut in ["\\", "\"\\", "\"\\u", "\"\\ud83d\\u", "{\"\\ä"] {
            assert_eq!(parse(cut), None, "{cut}");
        }
    }

    #[test]
    fn an_error_in_words() {
        for (error, expected) in [
            (json!({"message": "no"}), "no"),
            (json!({"message": "Internal error", "data": {"details": "400 refused"}}), "Internal error: 400 refused"),
            (json!({"message": "Internal error: refused", "data": {"message": "refused"}}), "Internal error: refused"),
            (json!({"message": "no", "data": "why"}), "no: why"),
            (json!({"message": r#"{"error":{"code":400,"message":"refused"}}"#}), "refused"),
            (json!({"message": "", "data": {"errorKind": "unknown"}}), "unknown error"),
            (json!(null), "unknown error"),
        ] {
            assert_eq!(words_of_error(&error), expected, "{error}");
        }
    }
}
