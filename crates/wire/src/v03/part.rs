//! Parts as 0.3 spells them: a `kind`, files nested under `file`.
//!
//! The kind is always written. It may be missing when a part is read, since the examples of the specification leave it
//! out. A `type`, the name of 0.1 for it, is read in its place. Text and data parts have no member for a filename or a
//! media type, so these are lost.

use sabir_model as model;
use sabir_model::Content;
use serde::{Deserialize, Serialize};

use super::data::{Data, read_data};
use crate::v1::read_base64;
use crate::wire_types::{RawJson, Text, Violations, non_empty, non_empty_text, object};

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(crate) struct Part<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<Text<'a>>,
    #[serde(rename = "type", skip_serializing)]
    pub(crate) type_: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<File<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<Data<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) metadata: Option<RawJson<'a>>,
}

/// One of `bytes` and `uri`. The names that ProtoJSON has for them are also found in kind-JSON, so they are read.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(crate) struct File<'a> {
    #[serde(borrow, alias = "filename", skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<Text<'a>>,
    #[serde(alias = "mime_type", alias = "mediaType", alias = "media_type", skip_serializing_if = "Option::is_none")]
    pub(crate) mime_type: Option<Text<'a>>,
    #[serde(alias = "fileWithBytes", alias = "file_with_bytes", skip_serializing_if = "Option::is_none")]
    bytes: Option<Text<'a>>,
    #[serde(alias = "fileWithUri", alias = "file_with_uri", skip_serializing_if = "Option::is_none")]
    uri: Option<Text<'a>>,
}

object! { both Part<'a>; both File<'a> }

impl<'a> From<&'a model::Part> for Part<'a> {
    fn from(part: &'a model::Part) -> Self {
        let file = |bytes, uri| File {
            name: non_empty_text(&part.filename),
            mime_type: non_empty_text(&part.media_type),
            bytes,
            uri,
        };
        let metadata = part.metadata.as_ref().map(RawJson::from);
        let (kind, part) = match &part.content {
            Content::Text(text) => ("text", Part { text: Some(text.into()), metadata, ..Part::default() }),
            Content::Bytes(bytes) => {
                let file = file(Some(bytes.as_str().into()), None);
                ("file", Part { file: Some(file), metadata, ..Part::default() })
            }
            Content::Url(url) => {
                let file = file(None, Some(url.into()));
                ("file", Part { file: Some(file), metadata, ..Part::default() })
            }
            Content::Data(data) => {
                let (data, metadata) = Data::from_model(data, part.metadata.as_ref());
                ("data", Part { data: Some(data), metadata, ..Part::default() })
            }
        };
        Part { kind: Some(kind.into()), ..part }
    }
}

impl TryFrom<Part<'_>> for model::Part {
    type Error = Violations;

    fn try_from(part: Part<'_>) -> Result<Self, Violations> {
        let mut violations = Violations::default();
        let mut metadata = violations.object("metadata", part.metadata);
        let (mut filename, mut media_type) = (None, None);
        let kind = part.kind.as_ref().or(part.type_.as_ref()).map(Text::as_str);
        let content = match (kind, part.text, part.file, part.data) {
            (None | Some("text"), Some(text), None, None) => Some(Content::Text(text.into_string())),
            (None | Some("file"), None, Some(mut file), None) => {
                (filename, media_type) = (non_empty(file.name.take()), non_empty(file.mime_type.take()));
                violations.check("file", file.try_into())
            }
            (None | Some("data"), None, None, Some(data)) => {
                let data = data.into_wire();
                if !data.is_object() {
                    violations.add("data", "must be an object");
                }
                Some(Content::Data(read_data(data, &mut metadata)))
            }
            _ => {
                violations.add("", "must hold one of text, file and data, the one its kind names");
                None
            }
        };
        violations.finish(content.map(|content| model::Part { content, filename, media_type, metadata }))
    }
}

impl TryFrom<File<'_>> for Content {
    type Error = Violations;

    fn try_from(file: File<'_>) -> Result<Self, Violations> {
        let mut violations = Violations::default();
        let content = match (file.bytes, file.uri) {
            (Some(bytes), None) => violations.check("bytes", read_base64(bytes)),
            (None, Some(uri)) => Some(Content::Url(uri.into_string())),
            _ => {
                violations.add("", "must hold one of bytes and uri");
                None
            }
        };
        violations.finish(content)
    }
}
