//! Parts as 0.1 spells them: those of 0.3, with a `type` for their `kind`.
//!
//! The schema has objects as data, the text arrays too: both are read, and what is no object is written as in 0.3.

use sabir_model as model;
use sabir_model::Content;
use serde::{Deserialize, Serialize};

use crate::v03::{self, Data, File, read_data};
use crate::wire_types::{RawJson, Text, Violations, non_empty, object};

#[derive(Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct Part<'a> {
    #[serde(borrow, rename = "type", skip_serializing_if = "Option::is_none")]
    type_: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<File<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Data<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<RawJson<'a>>,
}

object! { both Part<'a> }

impl<'a> From<&'a model::Part> for Part<'a> {
    fn from(part: &'a model::Part) -> Self {
        let v03::Part { kind, text, file, data, metadata, .. } = part.into();
        Part { type_: kind, text, file, data, metadata }
    }
}

impl TryFrom<Part<'_>> for model::Part {
    type Error = Violations;

    fn try_from(part: Part<'_>) -> Result<Self, Violations> {
        let mut violations = Violations::default();
        let mut metadata = violations.object("metadata", part.metadata);
        let (mut filename, mut media_type) = (None, None);
        let type_ = violations.required("type", part.type_);
        let content = match (type_.as_ref().map(Text::as_str), part.text, part.file, part.data) {
            (None, ..) => None,
            (Some("text"), Some(text), None, None) => Some(Content::Text(text.into_string())),
            (Some("file"), None, Some(mut file), None) => {
                (filename, media_type) = (non_empty(file.name.take()), non_empty(file.mime_type.take()));
                violations.check("file", file.try_into())
            }
            (Some("data"), None, None, Some(data)) => {
                let data = data.into_wire();
                if !data.is_object() && !data.as_str().starts_with('[') {
                    violations.add("data", "must be an object or an array");
                }
                Some(Content::Data(read_data(data, &mut metadata)))
            }
            _ => {
                violations.add("", "must hold one of text, file and data, the one its type names");
                None
            }
        };
        violations.finish(content.map(|content| model::Part { content, filename, media_type, metadata }))
    }
}
