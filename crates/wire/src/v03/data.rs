//! Data parts of 0.3 hold objects only. Anything else travels as `{"value":...}`, with a flag in the part's
//! metadata by which both SDK bridges know it and take it out again.
//!
//! Metadata is carried JSON, so the flag goes in and out as text and the rest stays byte for byte.

use sabir_model::Json;
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::spelling::Carried;

const FLAG: &str = r#""data_part_compat""#;

#[derive(Debug)]
pub(crate) enum Data<'a> {
    Bare(Carried<'a>),
    /// Written as `{"value":...}`.
    Wrapped(Carried<'a>),
}

impl<'a> Data<'a> {
    /// How data is written, and the metadata that goes with it.
    pub(crate) fn spell(data: &'a Json, metadata: Option<&'a Json>) -> (Self, Option<Carried<'a>>) {
        if data.is_object() {
            return (Data::Bare(data.into()), metadata.map(Carried::from));
        }
        (Data::Wrapped(data.into()), Some(flagged(metadata).into()))
    }

    pub(crate) fn into_read(self) -> Carried<'a> {
        match self {
            Data::Bare(carried) | Data::Wrapped(carried) => carried,
        }
    }
}

impl Serialize for Data<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Data::Bare(carried) => carried.serialize(serializer),
            Data::Wrapped(carried) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("value", carried)?;
                map.end()
            }
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Data<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Carried::deserialize(deserializer).map(Data::Bare)
    }
}

/// Takes the value out of a flagged `{"value":...}` and the flag out of the metadata; leaves all else as it is.
pub(crate) fn read_data(data: Carried<'_>, metadata: &mut Option<Json>) -> Json {
    let flagged = metadata.as_ref().filter(|metadata| metadata.as_str().contains(FLAG));
    if let Some(carried) = flagged
        && let Some(unflagged) = without_flag(carried.as_str())
        && let [Member { name: r#""value""#, value }] = members(data.as_str()).as_slice()
    {
        let inner = Json::from(*value);
        *metadata = unflagged;
        return inner;
    }
    data.into()
}

/// The inside of `{"data":...}`, which is how 0.3's ProtoJSON has it; anything else is taken as the data itself.
pub(crate) fn read_nested(data: Carried<'_>) -> Carried<'_> {
    match members(data.as_str()).as_slice() {
        [Member { name: r#""data""#, value }] => Carried::from((*value).to_owned()),
        _ => data,
    }
}

fn flagged(metadata: Option<&Json>) -> Box<RawValue> {
    let mut text = metadata.filter(|json| json.is_object()).map_or("{}", Json::as_str).to_owned();
    // A flag of the caller's own would be a second one.
    while let Some(cut) = cut_flag(&text) {
        text = cut;
    }
    let comma = if members(&text).is_empty() { "" } else { "," };
    text.insert_str(1, &format!("{FLAG}:true{comma}"));
    RawValue::from_string(text).expect("a member was put into an object")
}

/// The metadata without its flag, if the flag is set; `Some(None)` when nothing else was in it.
fn without_flag(metadata: &str) -> Option<Option<Json>> {
    let is_set = members(metadata).iter().any(|member| member.name == FLAG && member.value.get() == "true");
    let rest = cut_flag(metadata).filter(|_| is_set)?;
    if members(&rest).is_empty() {
        return Some(None);
    }
    Some(Some(Json::parse(rest).expect("a member was taken out of an object")))
}

/// The text without its first flag and the comma that belongs to it.
fn cut_flag(object: &str) -> Option<String> {
    let members = members(object);
    let place = members.iter().position(|member| member.name == FLAG)?;
    let offset = |part: &str| part.as_ptr() as usize - object.as_ptr() as usize;
    let end_of = |member: &Member<'_>| offset(member.value.get()) + member.value.get().len();
    let comma_after = |from: usize| from + object[from..].find(',').expect("members are parted by commas");
    let cut = match (place.checked_sub(1), members.get(place + 1)) {
        (_, Some(_)) => offset(members[place].name)..comma_after(end_of(&members[place])) + 1,
        (Some(before), None) => comma_after(end_of(&members[before]))..end_of(&members[place]),
        (None, None) => offset(members[place].name)..end_of(&members[place]),
    };
    Some([&object[..cut.start], &object[cut.end..]].concat())
}

/// A member as it stands in the text, the name with its quotes.
struct Member<'t> {
    name: &'t str,
    value: &'t RawValue,
}

/// None for what is no object.
fn members(text: &str) -> Vec<Member<'_>> {
    serde_json::from_str::<Members<'_>>(text).map(|members| members.0).unwrap_or_default()
}

struct Members<'t>(Vec<Member<'t>>);

impl<'de: 't, 't> Deserialize<'de> for Members<'t> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
        let mut members = Vec::new();
        while let Some((name, value)) = map.next_entry::<&RawValue, &RawValue>()? {
            members.push(Member { name: name.get(), value });
        }
        Ok(Members(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_goes_in_and_out_as_text() {
        for (metadata, expected) in [
            (None, r#"{"data_part_compat":true}"#),
            (Some("{}"), r#"{"data_part_compat":true}"#),
            (
                Some(r#"{ "b" : 1e3 , "a":12345678901234567 }"#),
                r#"{"data_part_compat":true, "b" : 1e3 , "a":12345678901234567 }"#,
            ),
            (Some(r#"{"a":1,"data_part_compat":false,"a":2}"#), r#"{"data_part_compat":true,"a":1,"a":2}"#),
        ] {
            let carried = metadata.map(|text| Json::parse(text).unwrap());
            let (data, flagged) = (Json::parse("[1, 2]").unwrap(), flagged(carried.as_ref()));
            assert_eq!(flagged.get(), expected);
            let (spelled, _) = Data::spell(&data, carried.as_ref());
            let wire = serde_json::to_string(&spelled).unwrap();
            assert_eq!(wire, r#"{"value":[1, 2]}"#);
            let mut metadata = Some(Json::from(flagged));
            let wire: Carried<'_> = serde_json::from_str(&wire).unwrap();
            assert_eq!(read_data(wire, &mut metadata), data);
        }
    }

    #[test]
    fn what_is_taken_out() {
        for (data, metadata, expected) in [
            (r#"{"value":5}"#, r#"{"data_part_compat":true}"#, "5 -"),
            (r#"{"value":null}"#, r#"{ "data_part_compat" : true }"#, "null -"),
            (r#"{"value":5}"#, r#"{"a":1,"data_part_compat":true}"#, r#"5 {"a":1}"#),
            (r#"{"value":5}"#, r#"{"data_part_compat":true, "a": 1}"#, r#"5 { "a": 1}"#),
            (r#"{"value":5}"#, r#"{"a":1 , "data_part_compat":true , "b":"," }"#, r#"5 {"a":1 ,  "b":"," }"#),
            (r#"{"value":5}"#, r#"{"data_part_compat":false}"#, r#"{"value":5} {"data_part_compat":false}"#),
            (r#"{"value":5}"#, r#"{"a":"data_part_compat"}"#, r#"{"value":5} {"a":"data_part_compat"}"#),
            (r#"{"value":5,"b":6}"#, r#"{"data_part_compat":true}"#, r#"{"value":5,"b":6} {"data_part_compat":true}"#),
            (r#"[5]"#, r#"{"data_part_compat":true}"#, r#"[5] {"data_part_compat":true}"#),
        ] {
            let mut carried = Some(Json::parse(metadata).unwrap());
            let read = read_data(serde_json::from_str(data).unwrap(), &mut carried);
            let said = format!("{read:?} {}", carried.as_ref().map_or("-", Json::as_str));
            assert_eq!(said, expected, "{data} {metadata}");
        }
    }
}
