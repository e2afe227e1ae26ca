//! Parts of messages and artifacts as a person reads them. What strangers wrote cannot steer the terminal.

use sabir_model::{Content, Part, pretty_json};

use crate::terminal_text::{visible, visible_lines};

/// How a part is shown.
#[derive(Debug, PartialEq, Eq)]
pub enum PartText {
    /// Goes on where the text before it ended.
    Flowing(String),
    /// Stands on lines of its own.
    Block(String),
}

pub fn part_text(part: &Part) -> PartText {
    match &part.content {
        Content::Text(text) if part.filename.is_none() => PartText::Flowing(visible_lines(text)),
        Content::Text(text) => PartText::Block(file_line(part, Some(text.len()))),
        Content::Bytes(bytes) => PartText::Block(file_line(part, Some(size_of(bytes.as_str())))),
        Content::Url(url) => PartText::Block(format!("{} at {}", file_line(part, None), visible(url))),
        Content::Data(data) => PartText::Block(visible_lines(&pretty_json(data.as_str()))),
    }
}

/// All parts, for a message that is shown as a whole.
pub fn parts_text(parts: &[Part]) -> String {
    let mut text = String::new();
    for part in parts {
        let (PartText::Flowing(shown) | PartText::Block(shown)) = part_text(part);
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text += &shown;
    }
    text.trim_end().to_owned()
}

/// `file report.pdf (application/pdf, 12.3 KB)`.
fn file_line(part: &Part, size: Option<usize>) -> String {
    let name = part.filename.as_deref().map_or("without a name".to_owned(), visible);
    let details: Vec<String> =
        part.media_type.as_deref().map(visible).into_iter().chain(size.map(spell_size)).collect();
    match details.is_empty() {
        true => format!("file {name}"),
        false => format!("file {name} ({})", details.join(", ")),
    }
}

/// How many bytes a text of base64 stands for.
fn size_of(base64: &str) -> usize {
    base64.trim_end_matches('=').len() * 3 / 4
}

fn spell_size(bytes: usize) -> String {
    let units = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1000, "KB")];
    match units.into_iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", bytes as f64 / unit as f64),
        None if bytes == 1 => "1 byte".to_owned(),
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use sabir_model::Json;

    use super::*;

    #[test]
    fn each_kind_of_part_is_shown() {
        let file = Part::file("a\u{1b}.pdf", "application/pdf", &[0; 12_345]);
        let link = Part { filename: Some("b".into()), ..Part::url("https://x/\u{202e}") };
        for (part, expected) in [
            (Part::text("a\u{1b}[2J\nb"), PartText::Flowing("a\u{fffd}[2J\nb".into())),
            (file, PartText::Block("file a\u{fffd}.pdf (application/pdf, 12.3 KB)".into())),
            (
                Part { filename: None, media_type: None, ..Part::file("", "", b"x") },
                PartText::Block("file without a name (1 byte)".into()),
            ),
            (link, PartText::Block("file b at https://x/\u{fffd}".into())),
            (
                Part { filename: Some("n.md".into()), ..Part::text("abc") },
                PartText::Block("file n.md (3 bytes)".into()),
            ),
            (Part::data(Json::parse(r#"{"a":1e3}"#).unwrap()), PartText::Block("{\n  \"a\": 1e3\n}".into())),
        ] {
            assert_eq!(part_text(&part), expected);
        }
        assert_eq!(parts_text(&[Part::text("a"), Part::text("b\n"), Part::url("u")]), "a\nb\nfile without a name at u");
    }
}
