//! Parts as 0.1 spells them: those of 0.3, with a `type` for their `kind`.
//!
//! The schema has objects as data, the text arrays too: both are read, and what is no object is written as in 0.3.

use sabir_model as model;
use sabir_model::Content;
use serde::{Deserialize, Serialize};

use crate::spelling::{Carried, Problems, Text, given, object};
use crate::v03::{self, Data, File, read_data};

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
    metadata: Option<Carried<'a>>,
}

object! { both Part<'a> }

impl<'a> From<&'a model::Part> for Part<'a> {
    fn from(part: &'a model::Part) -> Self {
        let v03::Part { kind, text, file, data, metadata, .. } = part.into();
        Part { type_: kind, text, file, data, metadata }
    }
}

impl TryFrom<Part<'_>> for model::Part {
    type Error = Problems;

    fn try_from(part: Part<'_>) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let mut metadata = problems.object("metadata", part.metadata);
        let (mut filename, mut media_type) = (None, None);
        let type_ = problems.required("type", part.type_);
        let content = match (type_.as_ref().map(Text::as_str), part.text, part.file, part.data) {
            (None, ..) => None,
            (Some("text"), Some(text), None, None) => Some(Content::Text(text.into_string())),
            (Some("file"), None, Some(mut file), None) => {
                (filename, media_type) = (given(file.name.take()), given(file.mime_type.take()));
                problems.keep("file", file.try_into())
            }
            (Some("data"), None, None, Some(data)) => {
                let data = data.into_read();
                if !data.is_object() && !data.as_str().starts_with('[') {
                    problems.add("data", "must be an object or an array");
                }
                Some(Content::Data(read_data(data, &mut metadata)))
            }
            _ => {
                problems.add("", "must hold one of text, file and data, the one its type names");
                None
            }
        };
        problems.or(content.map(|content| model::Part { content, filename, media_type, metadata }))
    }
}
