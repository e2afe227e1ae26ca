//! A part in any spelling. Its members say what it holds; a `kind` or `type` must not contradict them.

use sabir_model as model;
use sabir_model::Content;
use serde::Deserialize;

use crate::v1::read_base64;
use crate::v03::{File, read_data, read_nested, read_wrapped};
use crate::wire_types::{RawJson, Text, Violations, non_empty, object, present};

/// How the dialect of the request encodes data. The part itself does not say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DataEncoding {
    /// Any JSON (1.0).
    Any,
    /// An object; other values are wrapped in one (0.3).
    Object,
    /// The same, inside `{"data":...}` (0.3's ProtoJSON).
    Nested,
}

#[derive(Debug, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(crate) struct Part<'a> {
    #[serde(borrow)]
    kind: Option<Text<'a>>,
    #[serde(rename = "type")]
    type_: Option<Text<'a>>,
    #[serde(alias = "content")]
    text: Option<Text<'a>>,
    file: Option<File<'a>>,
    raw: Option<Text<'a>>,
    url: Option<Text<'a>>,
    #[serde(default, deserialize_with = "present")]
    data: Option<RawJson<'a>>,
    #[serde(alias = "name")]
    filename: Option<Text<'a>>,
    #[serde(alias = "media_type", alias = "mimeType", alias = "mime_type")]
    media_type: Option<Text<'a>>,
    metadata: Option<RawJson<'a>>,
}

object! { read Part<'a> }

impl DataEncoding {
    /// Unwraps the data of a part.
    pub(crate) fn apply(self, part: &mut model::Part) {
        let Content::Data(data) = &part.content else { return };
        let raw = RawJson::from(data);
        let inner = match self {
            DataEncoding::Any => return,
            DataEncoding::Object => read_wrapped(&raw, &mut part.metadata),
            DataEncoding::Nested => {
                let nested = read_nested(raw);
                Some(read_data(nested, &mut part.metadata))
            }
        };
        if let Some(inner) = inner {
            part.content = Content::Data(inner);
        }
    }
}

/// Data is not unwrapped here; `DataEncoding` does that.
impl TryFrom<Part<'_>> for model::Part {
    type Error = Violations;

    fn try_from(part: Part<'_>) -> Result<Self, Violations> {
        let mut violations = Violations::default();
        let metadata = violations.object("metadata", part.metadata);
        let (mut filename, mut media_type) = (non_empty(part.filename), non_empty(part.media_type));
        let is_other = part.text.is_some() || part.file.is_some() || part.raw.is_some() || part.url.is_some();
        // Some clients write every member and leave the unused ones null.
        let data = part.data.filter(|data| !(data.is_null() && is_other));
        let content = match (part.text, part.file, part.raw, part.url, data) {
            (Some(text), None, None, None, None) => Some(Content::Text(text.into_string())),
            (None, Some(mut file), None, None, None) => {
                filename = non_empty(file.name.take()).or(filename);
                media_type = non_empty(file.mime_type.take()).or(media_type);
                violations.check("file", file.try_into())
            }
            (None, None, Some(raw), None, None) => violations.check("raw", read_base64(raw)),
            (None, None, None, Some(url), None) => Some(Content::Url(url.into_string())),
            (None, None, None, None, Some(data)) => Some(Content::Data(data.into())),
            (None, None, None, None, None) => {
                violations.add("", "text, a file or data is required");
                None
            }
            _ => {
                violations.add("", "only one of text, a file and data is allowed");
                None
            }
        };
        for (member, named) in [("kind", part.kind), ("type", part.type_)] {
            let fits = matches!(
                (named.as_ref().map(Text::as_str), &content),
                (None | Some(""), _)
                    | (_, None)
                    | (Some("text"), Some(Content::Text(_)))
                    | (Some("file"), Some(Content::Bytes(_) | Content::Url(_)))
                    | (Some("data"), Some(Content::Data(_)))
            );
            if !fits {
                violations.add(member, "does not name what the part holds");
            }
        }
        violations.finish(content.map(|content| model::Part { content, filename, media_type, metadata }))
    }
}
