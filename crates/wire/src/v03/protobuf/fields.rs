//! Fields that many messages have: text that may be missing, and metadata.

use sabir_model::Json;
use sabir_proto::prost_types::Struct;

use crate::protobuf::{read_struct, write_struct};
use crate::wire_types::{Text, Violations, WireList};

/// Protobuf has no missing text; an empty one is what a writer leaves out.
pub(super) fn present(text: String) -> Option<Text<'static>> {
    (!text.is_empty()).then(|| text.into())
}

pub(super) fn texts(list: Vec<String>) -> WireList<'static, Text<'static>, String> {
    WireList::Wire(list.into_iter().map(Text::from).collect())
}

pub(super) fn read_metadata(metadata: Option<Struct>, violations: &mut Violations) -> Option<Json> {
    read_object("metadata", metadata, violations)
}

pub(super) fn read_object(member: &str, object: Option<Struct>, violations: &mut Violations) -> Option<Json> {
    violations.check(member, read_struct(object?))
}

pub(super) fn write_metadata(metadata: &Option<Json>) -> Option<Struct> {
    metadata.as_ref().map(write_struct)
}
