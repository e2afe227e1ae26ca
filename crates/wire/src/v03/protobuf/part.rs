//! Parts: one of text, file and data.
//!
//! Data is a Struct, so what is no object is wrapped with a flag in the metadata, as in the JSON of 0.3 (`v03::data`). Text
//! and data parts have no field for a filename or a media type, so these are lost.

use std::borrow::Cow;
use std::collections::BTreeMap;

use sabir_model as model;
use sabir_model::{Base64, Content, Json};
use sabir_proto::prost_types::Struct;
use sabir_proto::v03;
use sabir_proto::v03::file_part::File;
use sabir_proto::v03::part::Part;

use super::super::data::{flagged, read_wrapped};
use super::fields::{present, read_metadata};
use crate::protobuf::{read_struct, write_struct, write_value};
use crate::wire_types::{RawJson, Violations, non_empty};

pub(super) fn write_part(part: &model::Part) -> v03::Part {
    let file = |file| {
        Part::File(v03::FilePart {
            file: Some(file),
            mime_type: part.media_type.clone().unwrap_or_default(),
            name: part.filename.clone().unwrap_or_default(),
        })
    };
    let content = match &part.content {
        Content::Text(text) => Part::Text(text.clone()),
        Content::Bytes(bytes) => file(File::FileWithBytes(bytes.decode().into())),
        Content::Url(url) => file(File::FileWithUri(url.clone())),
        Content::Data(data) => Part::Data(v03::DataPart { data: Some(write_data(data)) }),
    };
    v03::Part { part: Some(content), metadata: written_metadata(part).map(|metadata| write_struct(&metadata)) }
}

fn write_data(data: &Json) -> Struct {
    match data.is_object() {
        true => write_struct(data),
        false => Struct { fields: BTreeMap::from([("value".to_owned(), write_value(data))]) },
    }
}

/// The metadata of the part, with the flag if its data is wrapped.
pub(super) fn written_metadata(part: &model::Part) -> Option<Cow<'_, Json>> {
    match &part.content {
        Content::Data(data) if !data.is_object() => Some(Cow::Owned(flagged(part.metadata.as_ref()).into())),
        _ => part.metadata.as_ref().map(Cow::Borrowed),
    }
}

pub(super) fn read_part(part: v03::Part) -> Result<model::Part, Violations> {
    let mut violations = Violations::default();
    let mut metadata = read_metadata(part.metadata, &mut violations);
    let (mut filename, mut media_type) = (None, None);
    let content = match part.part {
        Some(Part::Text(text)) => Some(Content::Text(text)),
        Some(Part::File(file)) => {
            (filename, media_type) = (non_empty(present(file.name)), non_empty(present(file.mime_type)));
            violations.check("file", read_file(file.file))
        }
        Some(Part::Data(part)) => {
            let data = violations.required("data.data", part.data);
            let data = data.and_then(|data| violations.check("data.data", read_struct(data)));
            data.map(|data| Content::Data(read_wrapped(&RawJson::from(&data), &mut metadata).unwrap_or(data)))
        }
        None => {
            violations.add("", "must hold one of text, file and data");
            None
        }
    };
    violations.finish(content.map(|content| model::Part { content, filename, media_type, metadata }))
}

fn read_file(file: Option<File>) -> Result<Content, Violations> {
    match file {
        Some(File::FileWithBytes(bytes)) => Ok(Content::Bytes(Base64::encode(&bytes))),
        Some(File::FileWithUri(uri)) => Ok(Content::Url(uri)),
        None => Err(Violations::single("", "must hold one of fileWithBytes and fileWithUri")),
    }
}
