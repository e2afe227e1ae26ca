//! Error messages of programs, from JSON-RPC error objects.

use crate::lenient_json::Object;

/// The message of an error object, with its details.
pub(super) fn of_object(error: &Object) -> String {
    let message = error.non_empty_text("message").map_or_else(|| "unknown error".to_owned(), |message| inner(&message));
    let data = error.object("data");
    let details = data
        .non_empty_text("details")
        .or_else(|| data.non_empty_text("message"))
        .or_else(|| error.non_empty_text("data"));
    match details.map(|details| inner(&details)) {
        Some(details) if !message.contains(&details) => format!("{message}: {details}"),
        _ => message,
    }
}

/// The inner message, if the message is JSON around another one.
pub(super) fn inner(message: &str) -> String {
    let object = Object::parse(message).unwrap_or_default();
    let inner = object.object("error").non_empty_text("message").or_else(|| object.non_empty_text("message"));
    inner.as_deref().unwrap_or(message).trim().to_owned()
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
            assert_eq!(of_object(&Object::of(&error)), expected, "{error}");
        }
    }
}
