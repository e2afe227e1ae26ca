//! The field types of wire structs.
//!
//! One struct serves reading and writing: what is read borrows from the request, what is written borrows from the
//! model. Writing copies nothing, and reading copies only what the model keeps.

mod enum_value;
mod int32;
mod object;
mod ordered_map;
mod part_list;
mod raw_json;
mod rfc3339;
mod text;
mod violations;
mod wire_list;

pub(crate) use enum_value::EnumValue;
pub(crate) use int32::Int32;
pub(crate) use object::{Object, object, read_object};
pub(crate) use ordered_map::OrderedMap;
pub(crate) use part_list::PartList;
pub(crate) use raw_json::{RawJson, present, raw_json};
pub(crate) use rfc3339::Rfc3339;
pub(crate) use text::{Text, non_empty, non_empty_text};
pub(crate) use violations::Violations;
pub(crate) use wire_list::WireList;
