//! What a program says went wrong, in words for people.

use crate::lenient_json::Object;

/// Programs pass on what the model's provider answered, which is often JSON inside of the text. Its message takes its
/// place.
pub(super) fn plainly(text: &str) -> String {
    let (Some(start), Some(end)) = (text.find('{'), text.rfind('}')) else {
        return text.to_owned();
    };
    let Some(object) = text.get(start..=end).and_then(Object::parse) else {
        return text.to_owned();
    };
    match object.object("error").words("message").or_else(|| object.words("message")) {
        Some(message) => format!("{}{message}{}", &text[..start], &text[end + 1..]),
        None => text.to_owned(),
    }
}

/// The message of a line about an error, wherever the program puts it.
pub(super) fn complaint(line: &Object) -> Option<String> {
    let error = line.object("error");
    let message = error.words("message").or_else(|| line.words("error")).or_else(|| line.words("message"));
    message.map(|message| plainly(&message))
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
            assert_eq!(plainly(text), expected);
        }
    }
}
