//! Error messages of programs, as text for people.

use crate::lenient_json::Object;

/// Replaces JSON inside of an error text by its message: programs pass on the response of the model's provider.
pub(super) fn without_provider_json(text: &str) -> String {
    let (Some(start), Some(end)) = (text.find('{'), text.rfind('}')) else {
        return text.to_owned();
    };
    let Some(object) = text.get(start..=end).and_then(Object::parse) else {
        return text.to_owned();
    };
    match object.object("error").non_empty_text("message").or_else(|| object.non_empty_text("message")) {
        Some(message) => format!("{}{message}{}", &text[..start], &text[end + 1..]),
        None => text.to_owned(),
    }
}

/// The message of a line about an error, wherever the program puts it.
pub(super) fn error_text(line: &Object) -> Option<String> {
    let error = line.object("error");
    let message = error
        .non_empty_text("message")
        .or_else(|| line.non_empty_text("error"))
        .or_else(|| line.non_empty_text("message"));
    message.map(|message| without_provider_json(&message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inner_message_takes_the_place_of_the_json() {
        for (text, expected) in [
            ("plain", "plain"),
            (r#"{"error": {"message": "no", "code": 1}}"#, "no"),
            (r#"[API Error: {"error":{"message":"no"}}]"#, "[API Error: no]"),
            (r#"{"message":"no"} again"#, "no again"),
            ("} odd {", "} odd {"),
            ("{not json}", "{not json}"),
            ("{}", "{}"),
        ] {
            assert_eq!(without_provider_json(text), expected);
        }
    }
}
