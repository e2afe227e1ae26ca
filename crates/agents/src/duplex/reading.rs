//! Looking into JSON that others wrote: every member may be missing or of another type.

use sabir_model::Json;
use serde_json::Value;

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
