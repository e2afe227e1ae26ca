//! A message of a caller, as the model gets it.

use sabir_model::{Content, Message, Part};

use super::chat::{ChatContent, ChatPart, ImageUrl};

/// Media types of files that are text although their names do not begin with `text/`.
const TEXT_TYPES: [&str; 10] = [
    "application/json",
    "application/ld+json",
    "application/x-ndjson",
    "application/xml",
    "application/yaml",
    "application/x-yaml",
    "application/toml",
    "application/javascript",
    "application/sql",
    "application/x-sh",
];

/// What every model with eyes takes.
pub(super) const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/webp", "image/gif"];

/// The message for the model, or why it cannot have it.
pub(super) fn content(message: &Message) -> Result<ChatContent, String> {
    let mut parts: Vec<ChatPart> = Vec::new();
    for part in &message.parts {
        match read(part)? {
            ChatPart::Text { text } => match parts.last_mut() {
                Some(ChatPart::Text { text: before }) => {
                    before.push_str("\n\n");
                    before.push_str(&text);
                }
                _ => parts.push(ChatPart::Text { text }),
            },
            image => parts.push(image),
        }
    }
    match &mut parts[..] {
        [] => Err("the message is empty; send text, data or files".to_owned()),
        [ChatPart::Text { text }] => Ok(ChatContent::Text(std::mem::take(text))),
        _ => Ok(ChatContent::Parts(parts)),
    }
}

fn read(part: &Part) -> Result<ChatPart, String> {
    let media_type = part.media_type.as_deref().unwrap_or_default();
    let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let name = part.filename.as_deref().unwrap_or("a file");
    let text = match &part.content {
        Content::Text(text) => text.clone(),
        Content::Data(data) => fenced("json", data.as_str()),
        // Nobody here reads it; fetching an address that a caller chose is not for the server of the model either.
        Content::Url(url) => format!("{name}: {url}"),
        Content::Bytes(bytes) if IMAGE_TYPES.contains(&essence.as_str()) => {
            let url = format!("data:{essence};base64,{}", bytes.as_str());
            return Ok(ChatPart::ImageUrl { image_url: ImageUrl { url } });
        }
        Content::Bytes(bytes) => {
            let is_text = essence.is_empty() || essence.starts_with("text/") || TEXT_TYPES.contains(&essence.as_str());
            let text = is_text.then(|| String::from_utf8(bytes.decode()).ok()).flatten();
            let text = text.ok_or_else(|| match (is_text, essence.as_str()) {
                (true, _) => format!("{name} is not text in UTF-8; convert it, or send an image as {}", images()),
                (false, kind) => format!("{name} is {kind}, which this agent cannot read; send text or {}", images()),
            })?;
            format!("{name}:\n{}", fenced("", &text))
        }
    };
    Ok(ChatPart::Text { text })
}

fn images() -> String {
    let [first @ .., last] = IMAGE_TYPES;
    format!("{} or {last}", first.join(", "))
}

/// A block that nothing in the text can end.
fn fenced(language: &str, text: &str) -> String {
    let longest = text.split(|letter| letter != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat((longest + 1).max(3));
    format!("{fence}{language}\n{text}\n{fence}")
}

#[cfg(test)]
mod tests {
    use sabir_model::{Base64, Json, MessageId, Role};

    use super::*;

    fn say(parts: Vec<Part>) -> String {
        match content(&Message::new(MessageId::parse("m").unwrap(), Role::User, parts)) {
            Ok(content) => serde_json::to_string(&content).unwrap(),
            Err(why) => format!("refused: {why}"),
        }
    }

    fn file(name: &str, media_type: &str, bytes: &[u8]) -> Part {
        let mut part = Part::file(name, media_type, bytes);
        part.media_type = part.media_type.filter(|media_type| !media_type.is_empty());
        part
    }

    #[test]
    fn parts_become_what_a_model_reads() {
        let data = || Part::from(Content::Data(Json::parse(r#"{"n":1e3}"#).unwrap()));
        let link = || Part { filename: Some("x.png".into()), ..Part::from(Content::Url("https://a.b/x.png".into())) };
        for (parts, expected) in [
            (vec![Part::text("hi")], r#""hi""#),
            (vec![Part::text("a"), Part::text("b")], r#""a\n\nb""#),
            (vec![data()], r#""```json\n{\"n\":1e3}\n```""#),
            (vec![link()], r#""x.png: https://a.b/x.png""#),
            (vec![file("a.md", "text/markdown; charset=utf-8", b"```x```")], r#""a.md:\n````\n```x```\n````""#),
            (vec![file("a", "", b"plain")], r#""a:\n```\nplain\n```""#),
            (
                vec![Part::text("look"), file("p.png", "image/PNG", b"hi")],
                r#"[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}}]"#,
            ),
            (
                vec![file("a.pdf", "application/pdf", b"%PDF")],
                "refused: a.pdf is application/pdf, which this agent cannot read; send text or image/png, image/jpeg, \
                 image/webp or image/gif",
            ),
            (
                vec![file("a.txt", "text/plain", b"\xff")],
                "refused: a.txt is not text in UTF-8; convert it, or send an image as image/png, image/jpeg, image/webp \
                 or image/gif",
            ),
            (vec![], "refused: the message is empty; send text, data or files"),
        ] {
            assert_eq!(say(parts.clone()), expected, "{parts:?}");
        }
        let unnamed = Part::from(Content::Bytes(Base64::encode(b"x")));
        assert_eq!(say(vec![unnamed]), r#""a file:\n```\nx\n```""#);
    }
}
