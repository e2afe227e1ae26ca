//! Checks that an agent accepts the media types of a message.

use sabir_model::{Content, Error, Json, Message, QUESTION_ID};

use crate::{About, Inputs};

pub(crate) fn check_media_types(about: &About, message: &Message) -> Result<(), Error> {
    if about.takes == Inputs::Anything {
        return Ok(());
    }
    let accepted = || about.input_modes.iter().chain(about.skills.iter().flat_map(|skill| &skill.input_modes));
    for part in &message.parts {
        let media_type = match (&part.media_type, &part.content) {
            (Some(media_type), _) => media_type.as_str(),
            (None, Content::Text(_)) => "text/plain",
            // Every agent that asks takes the answer.
            (None, Content::Data(data)) if names_question(data) => continue,
            (None, Content::Data(_)) => "application/json",
            (None, Content::Bytes(_) | Content::Url(_)) => continue,
        };
        if !accepted().any(|mode| matches(mode, media_type)) {
            return Err(Error::ContentType(media_type.to_owned()));
        }
    }
    Ok(())
}

/// Whether it is the data part of an answer.
fn names_question(data: &Json) -> bool {
    data.is_object() && data.text_of(QUESTION_ID).is_some()
}

/// Whether a mode of a card or of a request covers a media type; v0.1's words `text`, `data` and `file` do too.
pub(crate) fn matches(mode: &str, media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    match mode {
        "*/*" | "file" => true,
        "text" => essence.starts_with("text/"),
        "data" => essence.eq_ignore_ascii_case("application/json"),
        mode => match mode.strip_suffix("/*") {
            Some(family) => essence.split('/').next().is_some_and(|first| first.eq_ignore_ascii_case(family)),
            None => mode.eq_ignore_ascii_case(essence),
        },
    }
}

#[cfg(test)]
mod tests {
    use sabir_model::{MessageId, Part, Role};

    use super::*;

    #[test]
    fn the_data_part_of_an_answer_is_taken_by_every_agent() {
        let about = About::new("text", "takes text").listed_inputs_only();
        for (data, expected) in [
            (r#"{"questionId":"q1","approved":true}"#, true),
            (r#"{"approved":true}"#, false),
            (r#"{"questionId":7}"#, false),
        ] {
            let parts = vec![Part::data(Json::parse(data).unwrap())];
            let message = Message::new(MessageId::parse("m").unwrap(), Role::User, parts);
            assert_eq!(check_media_types(&about, &message).is_ok(), expected, "{data}");
        }
    }

    #[test]
    fn modes_cover_media_types() {
        for (mode, media_type, expected) in [
            ("text/plain", "text/plain", true),
            ("text/plain", "text/plain; charset=utf-8", true),
            ("text/plain", "TEXT/PLAIN", true),
            ("text/*", "text/markdown", true),
            ("*/*", "video/mp4", true),
            ("text", "text/markdown", true),
            ("data", "application/json", true),
            ("file", "video/mp4", true),
            ("text/plain", "video/mp4", false),
            ("image/*", "video/mp4", false),
        ] {
            assert_eq!(matches(mode, media_type), expected, "{mode} covers {media_type}");
        }
    }
}
