//! Parts. The model keeps files as base64, protobuf has their bytes.

use sabir_model as model;
use sabir_model::Base64;
use sabir_proto::v1 as proto;
use sabir_proto::v1::part::Content;

use crate::protobuf::{read_struct, read_value, write_struct, write_value};
use crate::wire_types::{Violations, non_empty};

pub(super) fn write_part(part: &model::Part) -> proto::Part {
    let content = match &part.content {
        model::Content::Text(text) => Content::Text(text.clone()),
        model::Content::Bytes(bytes) => Content::Raw(bytes.decode().into()),
        model::Content::Url(url) => Content::Url(url.clone()),
        model::Content::Data(data) => Content::Data(write_value(data)),
    };
    proto::Part {
        content: Some(content),
        filename: part.filename.clone().unwrap_or_default(),
        media_type: part.media_type.clone().unwrap_or_default(),
        metadata: part.metadata.as_ref().map(write_struct),
    }
}

/// Protobuf cannot say that a part has two contents; of several, readers keep the last.
pub(super) fn read_part(part: proto::Part) -> Result<model::Part, Violations> {
    let mut violations = Violations::default();
    let content = match part.content {
        Some(Content::Text(text)) => Some(model::Content::Text(text)),
        Some(Content::Raw(bytes)) => Some(model::Content::Bytes(Base64::encode(&bytes))),
        Some(Content::Url(url)) => Some(model::Content::Url(url)),
        Some(Content::Data(data)) => violations.check("data", read_value(data)).map(model::Content::Data),
        None => {
            violations.add("", "one of text, raw, url and data is required");
            None
        }
    };
    let metadata = part.metadata.and_then(|object| violations.check("metadata", read_struct(object)));
    violations.finish(content.map(|content| model::Part {
        content,
        filename: non_empty(Some(part.filename.into())),
        media_type: non_empty(Some(part.media_type.into())),
        metadata,
    }))
}
