//! Parts in 0.3's ProtoJSON: one of `text`, `file` and `data`, the last two nested.
//!
//! Text and data parts have no member for a filename or a media type, so these are lost.

use sabir_model as model;
use sabir_model::Content;
use serde::{Deserialize, Serialize};

use super::super::data::{Data, read_data};
use crate::v1::read_base64;
use crate::wire_types::{RawJson, Text, Violations, non_empty, non_empty_text, object};

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct Part<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    text: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<File<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<DataPart<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<RawJson<'a>>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
struct File<'a> {
    #[serde(borrow, alias = "file_with_uri", skip_serializing_if = "Option::is_none")]
    file_with_uri: Option<Text<'a>>,
    #[serde(alias = "file_with_bytes", skip_serializing_if = "Option::is_none")]
    file_with_bytes: Option<Text<'a>>,
    #[serde(alias = "mime_type", skip_serializing_if = "Option::is_none")]
    mime_type: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Text<'a>>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
struct DataPart<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    data: Option<Data<'a>>,
}

object! { both Part<'a>; both File<'a>; both DataPart<'a> }

impl<'a> From<&'a model::Part> for Part<'a> {
    fn from(part: &'a model::Part) -> Self {
        let file = File {
            mime_type: non_empty_text(&part.media_type),
            name: non_empty_text(&part.filename),
            ..File::default()
        };
        let metadata = part.metadata.as_ref().map(RawJson::from);
        match &part.content {
            Content::Text(text) => Part { text: Some(text.into()), metadata, ..Part::default() },
            Content::Bytes(bytes) => {
                let file = File { file_with_bytes: Some(bytes.as_str().into()), ..file };
                Part { file: Some(file), metadata, ..Part::default() }
            }
            Content::Url(url) => {
                let file = File { file_with_uri: Some(url.into()), ..file };
                Part { file: Some(file), metadata, ..Part::default() }
            }
            Content::Data(data) => {
                let (data, metadata) = Data::from_model(data, part.metadata.as_ref());
                Part { data: Some(DataPart { data: Some(data) }), metadata, ..Part::default() }
            }
        }
    }
}

impl TryFrom<Part<'_>> for model::Part {
    type Error = Violations;

    fn try_from(part: Part<'_>) -> Result<Self, Violations> {
        let mut violations = Violations::default();
        let mut metadata = violations.object("metadata", part.metadata);
        let (mut filename, mut media_type) = (None, None);
        let content = match (part.text, part.file, part.data) {
            (Some(text), None, None) => Some(Content::Text(text.into_string())),
            (None, Some(mut file), None) => {
                (filename, media_type) = (non_empty(file.name.take()), non_empty(file.mime_type.take()));
                violations.check("file", file.try_into())
            }
            (None, None, Some(part)) => {
                let data = violations.required("data.data", part.data).map(Data::into_wire);
                if data.as_ref().is_some_and(|data| !data.is_object()) {
                    violations.add("data.data", "must be an object");
                }
                data.map(|data| Content::Data(read_data(data, &mut metadata)))
            }
            _ => {
                violations.add("", "must hold one of text, file and data");
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
        let content = match (file.file_with_bytes, file.file_with_uri) {
            (Some(bytes), None) => violations.check("fileWithBytes", read_base64(bytes)),
            (None, Some(uri)) => Some(Content::Url(uri.into_string())),
            _ => {
                violations.add("", "must hold one of fileWithBytes and fileWithUri");
                None
            }
        };
        violations.finish(content)
    }
}
