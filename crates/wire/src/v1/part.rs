//! Parts as 1.0 spells them: one of `text`, `raw`, `url` and `data`.

use sabir_model as model;
use sabir_model::{Base64, Content};
use serde::{Deserialize, Serialize};

use crate::wire_types::{RawJson, Text, Violations, non_empty, non_empty_text, object, present};

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(crate) struct Part<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    text: Option<Text<'a>>,
    /// Base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    raw: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<Text<'a>>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    data: Option<RawJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    filename: Option<Text<'a>>,
    #[serde(alias = "media_type", skip_serializing_if = "Option::is_none")]
    media_type: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<RawJson<'a>>,
}

object! { both Part<'a> }

impl<'a> From<&'a model::Part> for Part<'a> {
    fn from(part: &'a model::Part) -> Self {
        let mut written = Part {
            filename: non_empty_text(&part.filename),
            media_type: non_empty_text(&part.media_type),
            metadata: part.metadata.as_ref().map(RawJson::from),
            ..Part::default()
        };
        match &part.content {
            Content::Text(text) => written.text = Some(text.into()),
            Content::Bytes(bytes) => written.raw = Some(bytes.as_str().into()),
            Content::Url(url) => written.url = Some(url.into()),
            Content::Data(data) => written.data = Some(data.into()),
        }
        written
    }
}

impl TryFrom<Part<'_>> for model::Part {
    type Error = Violations;

    fn try_from(part: Part<'_>) -> Result<Self, Violations> {
        let mut violations = Violations::default();
        let content = match (part.text, part.raw, part.url, part.data) {
            (Some(text), None, None, None) => Some(Content::Text(text.into_string())),
            (None, Some(raw), None, None) => violations.check("raw", read_base64(raw)),
            (None, None, Some(url), None) => Some(Content::Url(url.into_string())),
            (None, None, None, Some(data)) => Some(Content::Data(data.into())),
            (None, None, None, None) => {
                violations.add("", "one of text, raw, url and data is required");
                None
            }
            _ => {
                violations.add("", "only one of text, raw, url and data is allowed");
                None
            }
        };
        let metadata = violations.object("metadata", part.metadata);
        violations.finish(content.map(|content| model::Part {
            content,
            filename: non_empty(part.filename),
            media_type: non_empty(part.media_type),
            metadata,
        }))
    }
}

pub(crate) fn read_base64(text: Text<'_>) -> Result<Content, Violations> {
    Base64::parse(text.into_string()).map(Content::Bytes).ok_or_else(|| Violations::single("", "must be base64"))
}
