//! The content of a message: a text, or a list of parts of several kinds.

use sabir_model::{Base64, Content, Part};
use serde_json::value::RawValue;

use super::fields::{Fields, items};
use super::refusal::Refusal;

/// More parts are no message of a person.
const MOST_PARTS: usize = 10_000;

/// Reads the content at this path.
pub(crate) fn read(path: &str, raw: &RawValue) -> Result<Vec<Part>, Refusal> {
    if raw.get().starts_with('"') {
        let text: String =
            serde_json::from_str(raw.get()).map_err(|_| Refusal::field(path, "must be a text or a list of parts"))?;
        return Ok(if text.is_empty() { Vec::new() } else { vec![Part::text(text)] });
    }
    if !raw.get().starts_with('[') {
        return Err(Refusal::field(path, "must be a text or a list of parts"));
    }
    let mut parts = Vec::new();
    for (place, item) in items(path, raw, MOST_PARTS)?.into_iter().enumerate() {
        let path = format!("{path}[{place}]");
        let Some(fields) = Fields::of(path.clone(), item) else {
            return Err(Refusal::field(path, "must be an object"));
        };
        parts.extend(part(&fields)?);
    }
    Ok(parts)
}

/// `None`: an empty text, which says nothing.
fn part(fields: &Fields<'_>) -> Result<Option<Part>, Refusal> {
    let kind = fields.required_text("type")?;
    Ok(Some(match kind.as_str() {
        "text" | "refusal" => {
            let text = fields.required_text(&kind)?;
            return Ok((!text.is_empty()).then(|| Part::text(text)));
        }
        "image_url" => image(fields)?,
        "input_audio" => audio(&fields.required_object("input_audio")?)?,
        "file" => file(&fields.required_object("file")?)?,
        kind => {
            let kind: String = kind.chars().take(100).collect();
            let why = format!("is \"{kind}\"; parts are text, image_url, input_audio or file");
            return Err(Refusal::field(fields.path("type"), why));
        }
    }))
}

fn image(fields: &Fields<'_>) -> Result<Part, Refusal> {
    // Some clients send the URL itself.
    let is_text = fields.raw("image_url")?.is_some_and(|raw| raw.get().starts_with('"'));
    let (path, url) = if is_text {
        (fields.path("image_url"), fields.required_text("image_url")?)
    } else {
        let image = fields.required_object("image_url")?;
        (image.path("url"), image.required_text("url")?)
    };
    if is_data_url(&url) {
        return data_url(&url).ok_or_else(|| Refusal::field(path, "is a data: URL that cannot be read"));
    }
    let is_web = ["http://", "https://"].iter().any(|scheme| {
        url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)) && url.len() > scheme.len()
    });
    if !is_web {
        return Err(Refusal::field(path, "must be a data:, http: or https: URL"));
    }
    Ok(Part::url(url))
}

fn audio(fields: &Fields<'_>) -> Result<Part, Refusal> {
    let data = fields.required_text("data")?;
    let media_type = match fields.required_text("format")?.as_str() {
        "wav" => "audio/wav",
        "mp3" => "audio/mpeg",
        "flac" => "audio/flac",
        "opus" | "ogg" => "audio/ogg",
        "aac" => "audio/aac",
        _ => return Err(Refusal::field(fields.path("format"), "must be wav, mp3, flac, opus, ogg or aac")),
    };
    let bytes = Base64::parse(data).ok_or_else(|| Refusal::field(fields.path("data"), "is not base64"))?;
    Ok(Part { media_type: Some(media_type.to_owned()), ..Part::from(Content::Bytes(bytes)) })
}

fn file(fields: &Fields<'_>) -> Result<Part, Refusal> {
    let filename = fields.text("filename")?;
    let Some(data) = fields.text("file_data")? else {
        return Err(match fields.raw("file_id")? {
            Some(_) => Refusal::field(
                fields.path("file_id"),
                "names an uploaded file, but no files are kept here; send file_data",
            ),
            None => fields.missing("file_data"),
        });
    };
    let read = if is_data_url(&data) {
        data_url(&data)
    } else {
        Base64::parse(data).map(|bytes| Content::Bytes(bytes).into())
    };
    let part = read.ok_or_else(|| Refusal::field(fields.path("file_data"), "must be base64 or a data: URL"))?;
    Ok(Part { filename, ..part })
}

fn is_data_url(url: &str) -> bool {
    url.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:"))
}

/// The file in a `data:` URL (RFC 2397).
fn data_url(url: &str) -> Option<Part> {
    let (head, data) = url.get(5..)?.split_once(',')?;
    let (media_type, is_base64) = match head.rsplit_once(';') {
        Some((media_type, last)) if last.trim().eq_ignore_ascii_case("base64") => (media_type, true),
        _ => (head, false),
    };
    let bytes = if is_base64 { Base64::parse(data)? } else { Base64::encode(&percent_decoded(data)?) };
    let media_type = if media_type.is_empty() { "text/plain" } else { media_type };
    Some(Part { media_type: Some(media_type.to_owned()), ..Part::from(Content::Bytes(bytes)) })
}

fn percent_decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                (digit()? * 16 + digit()?) as u8
            }
            byte => byte,
        });
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn say(content: &str) -> String {
        let raw: &RawValue = serde_json::from_str(content).unwrap();
        match read("messages[2].content", raw) {
            Err(refusal) => String::from_utf8(refusal.body()).unwrap(),
            Ok(parts) => {
                let each = parts.iter().map(|part| {
                    let kind = match &part.content {
                        Content::Text(text) => format!("text {text}"),
                        Content::Url(url) => format!("url {url}"),
                        Content::Bytes(bytes) => format!("bytes {}", String::from_utf8_lossy(&bytes.decode())),
                        Content::Data(_) => "data".to_owned(),
                    };
                    let more = [part.media_type.as_deref(), part.filename.as_deref()];
                    more.into_iter().flatten().fold(kind, |all, more| format!("{all} {more}"))
                });
                each.collect::<Vec<_>>().join(" | ")
            }
        }
    }

    #[test]
    fn every_kind_of_part_is_read() {
        for (content, expected) in [
            (r#""hello""#, "text hello"),
            (r#""""#, ""),
            (r#"[{"type":"text","text":"a"},{"type":"text","text":""},{"type":"text","text":"b"}]"#, "text a | text b"),
            (
                r#"[{"type":"image_url","image_url":{"url":"data:image/png;base64,UE5H","detail":"low"}}]"#,
                "bytes PNG image/png",
            ),
            (r#"[{"type":"image_url","image_url":"DATA:,a%20b"}]"#, "bytes a b text/plain"),
            (
                r#"[{"type":"image_url","image_url":{"url":"https://example.org/a.png"}}]"#,
                "url https://example.org/a.png",
            ),
            (r#"[{"type":"input_audio","input_audio":{"data":"V0FW","format":"wav"}}]"#, "bytes WAV audio/wav"),
            (
                r#"[{"type":"file","file":{"file_data":"data:application/pdf;base64,UERG","filename":"a.pdf"}}]"#,
                "bytes PDF application/pdf a.pdf",
            ),
            (r#"[{"type":"file","file":{"file_data":"UERG","filename":"a.pdf"}}]"#, "bytes PDF a.pdf"),
        ] {
            assert_eq!(say(content), expected, "{content}");
        }
    }

    #[test]
    fn an_unusable_part_is_refused_by_its_path() {
        for (content, param) in [
            ("7", "messages[2].content"),
            ("{}", "messages[2].content"),
            ("[7]", "messages[2].content[0]"),
            ("[{}]", "messages[2].content[0].type"),
            (r#"[{"type":7}]"#, "messages[2].content[0].type"),
            (r#"[{"type":"text","text":"a"},{"type":"video_url"}]"#, "messages[2].content[1].type"),
            (r#"[{"type":"text"}]"#, "messages[2].content[0].text"),
            (r#"[{"type":"text","text":"a","text":"b"}]"#, "messages[2].content[0].text"),
            (r#"[{"type":"image_url"}]"#, "messages[2].content[0].image_url"),
            (r#"[{"type":"image_url","image_url":{}}]"#, "messages[2].content[0].image_url.url"),
            (
                r#"[{"type":"image_url","image_url":{"url":"file:///etc/passwd"}}]"#,
                "messages[2].content[0].image_url.url",
            ),
            (
                r#"[{"type":"image_url","image_url":{"url":"data:image/png;base64,?"}}]"#,
                "messages[2].content[0].image_url.url",
            ),
            (r#"[{"type":"image_url","image_url":"data:;base64"}]"#, "messages[2].content[0].image_url"),
            (r#"[{"type":"image_url","image_url":"data:,%4"}]"#, "messages[2].content[0].image_url"),
            (
                r#"[{"type":"input_audio","input_audio":{"data":"?","format":"wav"}}]"#,
                "messages[2].content[0].input_audio.data",
            ),
            (
                r#"[{"type":"input_audio","input_audio":{"data":"","format":"x"}}]"#,
                "messages[2].content[0].input_audio.format",
            ),
            (r#"[{"type":"file","file":{"file_id":"file-1"}}]"#, "messages[2].content[0].file.file_id"),
            (r#"[{"type":"file","file":{}}]"#, "messages[2].content[0].file.file_data"),
        ] {
            let said = say(content);
            assert!(said.contains(&format!("\"param\":\"{param}\"")), "{content}: {said}");
        }
    }

    #[test]
    fn the_number_of_parts_is_limited() {
        let parts = vec!["{}"; MOST_PARTS + 1].join(",");
        assert!(say(&format!("[{parts}]")).contains("has more than 10000 items"));
    }
}
