//! Data parts of 0.3 hold objects only. Any other value is wrapped as `{"value":...}`, with a flag in the metadata of the
//! part by which the bridges of both SDKs unwrap it again.
//!
//! Metadata is kept byte for byte, so the flag is added and removed as text.

use std::ops::ControlFlow;

use sabir_model::Json;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::wire_types::RawJson;
use crate::{json, work};

const FLAG: &str = r#""data_part_compat""#;

#[derive(Debug)]
pub(crate) enum Data<'a> {
    Bare(RawJson<'a>),
    /// Written as `{"value":...}`.
    Wrapped(RawJson<'a>),
}

impl<'a> Data<'a> {
    /// How data is written, and the metadata that goes with it.
    pub(crate) fn from_model(data: &'a Json, metadata: Option<&'a Json>) -> (Self, Option<RawJson<'a>>) {
        if data.is_object() {
            return (Data::Bare(data.into()), metadata.map(RawJson::from));
        }
        (Data::Wrapped(data.into()), Some(flagged(metadata).into()))
    }

    pub(crate) fn into_wire(self) -> RawJson<'a> {
        match self {
            Data::Bare(raw) | Data::Wrapped(raw) => raw,
        }
    }
}

impl Serialize for Data<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Data::Bare(raw) => raw.serialize(serializer),
            Data::Wrapped(raw) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("value", raw)?;
                map.end()
            }
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Data<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        RawJson::deserialize(deserializer).map(Data::Bare)
    }
}

/// Unwraps a flagged `{"value":...}` and removes the flag from the metadata; other data stays as it is.
pub(crate) fn read_data(data: RawJson<'_>, metadata: &mut Option<Json>) -> Json {
    read_wrapped(&data, metadata).unwrap_or_else(|| data.into())
}

/// The value of a flagged `{"value":...}`, if that is what the data is.
pub(crate) fn read_wrapped(data: &RawJson<'_>, metadata: &mut Option<Json>) -> Option<Json> {
    // Most metadata has no flag; then the data is not parsed.
    let raw = metadata.as_ref().filter(|metadata| mentions_flag(metadata))?;
    let value = data.only_member(r#""value""#)?;
    let Unflagged { is_flagged: true, members } = Unflagged::of(raw.as_str()) else { return None };
    *metadata = (!members.is_empty()).then(|| json::raw(format!("{{{members}}}")).into());
    Some(value.into())
}

fn mentions_flag(metadata: &Json) -> bool {
    work::visit(metadata.as_str().len());
    metadata.is_object() && metadata.as_str().contains(FLAG)
}

/// The value of `data` in `{"data":...}`, the form of 0.3's ProtoJSON; anything else is the data itself.
pub(crate) fn read_nested(data: RawJson<'_>) -> RawJson<'_> {
    match data.only_member(r#""data""#) {
        Some(inner) => inner.to_owned().into(),
        None => data,
    }
}

/// The metadata of a part whose data is wrapped.
pub(super) fn flagged(metadata: Option<&Json>) -> Box<RawValue> {
    // A flag that the caller wrote is removed, so that there is one flag.
    let members = metadata.filter(|json| json.is_object()).map(|json| Unflagged::of(json.as_str()).members);
    let members = members.unwrap_or_default();
    let comma = if members.is_empty() { "" } else { "," };
    json::raw(format!("{{{FLAG}:true{comma}{members}}}"))
}

/// Metadata without its flags.
struct Unflagged {
    /// One of the flags is set.
    is_flagged: bool,
    /// The text between the brackets, each member with the blanks around it.
    members: String,
}

impl Unflagged {
    /// `object` is valid JSON; it is read once.
    fn of(object: &str) -> Self {
        let mut rest = Unflagged { is_flagged: false, members: String::with_capacity(object.len() + FLAG.len()) };
        let mut start = 1;
        json::each_member(object, |member| {
            let value = member.value.get();
            let value_end = value.as_ptr() as usize - object.as_ptr() as usize + value.len();
            // Only blanks are between a value and the comma or bracket after it.
            let blanks = object[value_end..].find([',', '}']).unwrap_or_default();
            let text = &object[start..value_end + blanks];
            start = value_end + blanks + 1;
            if member.name == FLAG {
                rest.is_flagged |= value == "true";
                return ControlFlow::Continue(());
            }
            if !rest.members.is_empty() {
                rest.members.push(',');
            }
            rest.members.push_str(text);
            ControlFlow::Continue(())
        });
        rest
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    /// A member with blanks around every token.
    fn member() -> impl Strategy<Value = String> {
        let name = select(vec![FLAG, r#""a""#, r#""a\"b,}""#, r#""\u0064ata_part_compat""#, r#""""#]);
        let value = select(vec!["true", "1e3", r#""},{""#, "[ , ]", r#"{"data_part_compat":true, "x":[{}]}"#, "null"]);
        let value = value.prop_map(|text| text.replace(" , ", "1 , 2"));
        let blanks = || select(vec!["", " ", "\n\t", "  "]);
        (blanks(), name, blanks(), blanks(), value, blanks())
            .prop_map(|(a, name, b, c, value, d)| format!("{a}{name}{b}:{c}{value}{d}"))
    }

    proptest! {
        #[test]
        fn metadata_without_the_flag_stays_byte_for_byte(members in prop::collection::vec(member(), 0..8)) {
            let raw = Json::parse(format!("{{{}}}", members.join(","))).unwrap();
            let is_flag = |member: &&String| member.trim_start().starts_with(FLAG);
            let rest: Vec<&str> = members.iter().filter(|member| !is_flag(member)).map(String::as_str).collect();
            let mut metadata = Some(Json::from(flagged(Some(&raw))));
            let flags = [format!("{FLAG}:true")];
            let all: Vec<&str> = flags.iter().map(String::as_str).chain(rest.iter().copied()).collect();
            prop_assert_eq!(metadata.as_ref().unwrap().as_str(), format!("{{{}}}", all.join(",")));
            let data: RawJson<'_> = serde_json::from_str(r#"{"value":5}"#).unwrap();
            prop_assert_eq!(read_data(data, &mut metadata), Json::parse("5").unwrap());
            let expected = (!rest.is_empty()).then(|| format!("{{{}}}", rest.join(",")));
            prop_assert_eq!(metadata.map(|metadata| metadata.as_str().to_owned()), expected);
        }
    }

    #[test]
    fn the_flag_is_added_and_removed_as_text() {
        for (metadata, expected) in [
            (None, r#"{"data_part_compat":true}"#),
            (Some("{}"), r#"{"data_part_compat":true}"#),
            (
                Some(r#"{ "b" : 1e3 , "a":12345678901234567 }"#),
                r#"{"data_part_compat":true, "b" : 1e3 , "a":12345678901234567 }"#,
            ),
            (Some(r#"{"a":1,"data_part_compat":false,"a":2}"#), r#"{"data_part_compat":true,"a":1,"a":2}"#),
            (Some("{ \n}"), r#"{"data_part_compat":true}"#),
            (
                Some(r#"{"data_part_compat":1,"data_part_compat":[2] , "a":"}," ,"data_part_compat":{}}"#),
                r#"{"data_part_compat":true, "a":"}," }"#,
            ),
        ] {
            let raw = metadata.map(|text| Json::parse(text).unwrap());
            let (data, flagged) = (Json::parse("[1, 2]").unwrap(), flagged(raw.as_ref()));
            assert_eq!(flagged.get(), expected);
            let (written, _) = Data::from_model(&data, raw.as_ref());
            let wire = serde_json::to_string(&written).unwrap();
            assert_eq!(wire, r#"{"value":[1, 2]}"#);
            let mut metadata = Some(Json::from(flagged));
            let wire: RawJson<'_> = serde_json::from_str(&wire).unwrap();
            assert_eq!(read_data(wire, &mut metadata), data);
        }
    }

    #[test]
    fn only_flagged_wrapped_data_is_unwrapped() {
        for (data, metadata, expected) in [
            (r#"{"value":5}"#, r#"{"data_part_compat":true}"#, "5 -"),
            (r#"{"value":null}"#, r#"{ "data_part_compat" : true }"#, "null -"),
            (r#"{"value":5}"#, r#"{"a":1,"data_part_compat":true}"#, r#"5 {"a":1}"#),
            (r#"{"value":5}"#, r#"{"data_part_compat":true, "a": 1}"#, r#"5 { "a": 1}"#),
            (r#"{"value":5}"#, r#"{"a":1 , "data_part_compat":true , "b":"," }"#, r#"5 {"a":1 , "b":"," }"#),
            (
                r#"{"value":5}"#,
                r#"{"data_part_compat":false,"a":{"data_part_compat":1} ,"data_part_compat":true,"b":2,"data_part_compat":3}"#,
                r#"5 {"a":{"data_part_compat":1} ,"b":2}"#,
            ),
            (r#"{"value":5}"#, r#"{"data_part_compat":false}"#, r#"{"value":5} {"data_part_compat":false}"#),
            (r#"{"value":5}"#, r#"{"a":"data_part_compat"}"#, r#"{"value":5} {"a":"data_part_compat"}"#),
            (r#"{"value":5,"b":6}"#, r#"{"data_part_compat":true}"#, r#"{"value":5,"b":6} {"data_part_compat":true}"#),
            (r#"[5]"#, r#"{"data_part_compat":true}"#, r#"[5] {"data_part_compat":true}"#),
        ] {
            let mut raw = Some(Json::parse(metadata).unwrap());
            let read = read_data(serde_json::from_str(data).unwrap(), &mut raw);
            let actual = format!("{read:?} {}", raw.as_ref().map_or("-", Json::as_str));
            assert_eq!(actual, expected, "{data} {metadata}");
        }
    }
}
