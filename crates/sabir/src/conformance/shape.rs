//! The shape that an object must have: its members, which of them are required, and of what kind they are.
//!
//! Shapes are tables, one file for each version. `check` compares JSON with a shape and names every place where the two
//! differ. Members that a shape does not name are ignored, as the specification wants it.

use serde_json::{Map, Value};

pub struct Shape {
    pub members: &'static [Member],
    /// Exactly one of these must be there.
    pub one_of: &'static [&'static str],
    /// Members that are null count as missing, and that is how it is written in this version.
    pub nulls: Nulls,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nulls {
    /// Absent members are left out.
    Odd,
    Usual,
}

pub struct Member {
    pub name: &'static str,
    pub need: Need,
    pub kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    Required,
    Optional,
}

pub enum Kind {
    Text,
    /// A text that is not empty.
    Id,
    Flag,
    Integer,
    Object,
    Any,
    /// RFC 3339 in UTC, which ends in Z.
    Time,
    /// A time with any zone, or without one.
    LooseTime,
    Base64,
    /// One of these words.
    Word(&'static [&'static str]),
    /// The member that says what the object is.
    Tag(&'static str),
    Nested(&'static Shape),
    List(&'static Kind),
    /// A list that is not empty.
    Some(&'static Kind),
    Map(&'static Kind),
    /// The shape is chosen by the value. `None`: it is none of them.
    Choice(fn(&Value) -> Option<&'static Shape>),
}

/// A place where an object differs from its shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    pub fault: Fault,
    /// What is wrong, with the place: `status.state is missing`.
    pub words: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// A required member is not there, or empty.
    Missing,
    /// A value is of another type.
    Type,
    /// A member is null that should have been left out.
    Null,
    /// A word that this version does not have.
    Word,
    /// The member that tells objects apart.
    Tag,
    /// No time, or without a zone.
    Time,
    /// A zone other than Z.
    Zone,
    /// A member in snake case.
    Name,
    /// None or several of the members of which there must be one.
    Choice,
}

impl Member {
    pub const fn required(name: &'static str, kind: Kind) -> Self {
        Member { name, need: Need::Required, kind }
    }

    pub const fn optional(name: &'static str, kind: Kind) -> Self {
        Member { name, need: Need::Optional, kind }
    }
}

impl Shape {
    pub const fn new(members: &'static [Member]) -> Self {
        Shape { members, one_of: &[], nulls: Nulls::Odd }
    }

    /// A shape of a version that writes null for what is absent.
    pub const fn with_nulls(members: &'static [Member]) -> Self {
        Shape { members, one_of: &[], nulls: Nulls::Usual }
    }

    pub const fn one_of(members: &'static [Member], one_of: &'static [&'static str]) -> Self {
        Shape { members, one_of, nulls: Nulls::Odd }
    }

    /// `place` is what the value is called in sentences, such as `result.task`.
    pub fn check(&self, value: &Value, place: &str) -> Vec<Difference> {
        let mut found = Vec::new();
        self.compare(value, place, &mut found);
        found
    }

    fn compare(&self, value: &Value, place: &str, found: &mut Vec<Difference>) {
        let Value::Object(members) = value else {
            return found.push(wrong_type(place, "an object", value));
        };
        for member in self.members {
            let path = join(place, member.name);
            match self.find(members, member, place, found) {
                Some(Value::Null) if !matches!(member.kind, Kind::Any) => match (member.need, self.nulls) {
                    (Need::Required, _) => found.push(Difference::new(Fault::Missing, format!("{path} is null"))),
                    (Need::Optional, Nulls::Odd) => {
                        found.push(Difference::new(Fault::Null, format!("{path} is null, and should be left out")));
                    }
                    (Need::Optional, Nulls::Usual) => {}
                },
                Some(value) => member.kind.compare(value, &path, found),
                None if member.need == Need::Required => {
                    found.push(Difference::new(Fault::Missing, format!("{path} is missing")));
                }
                None => {}
            }
        }
        self.compare_choice(members, place, found);
    }

    /// The member, in snake case if need be.
    fn find<'v>(
        &self,
        members: &'v Map<String, Value>,
        member: &Member,
        place: &str,
        found: &mut Vec<Difference>,
    ) -> Option<&'v Value> {
        if let Some(value) = members.get(member.name) {
            return Some(value);
        }
        let snake = snake_case(member.name);
        let value = members.get(&snake).filter(|_| snake != member.name)?;
        let words = format!("{} is spelled {snake}, not {}", place_or_object(place), member.name);
        found.push(Difference::new(Fault::Name, words));
        Some(value)
    }

    fn compare_choice(&self, members: &Map<String, Value>, place: &str, found: &mut Vec<Difference>) {
        if self.one_of.is_empty() {
            return;
        }
        let is_there = |name: &&&str| match members.get(**name) {
            // Data may be null.
            Some(Value::Null) => **name == "data",
            Some(_) => true,
            None => members.contains_key(&snake_case(name)),
        };
        let there: Vec<&str> = self.one_of.iter().filter(is_there).copied().collect();
        if there.len() != 1 {
            let has = if there.is_empty() { "none".to_owned() } else { there.join(" and ") };
            let words = format!("{} has {has} of {}", place_or_object(place), self.one_of.join(", "));
            found.push(Difference::new(Fault::Choice, words));
        }
    }
}

impl Kind {
    fn compare(&self, value: &Value, place: &str, found: &mut Vec<Difference>) {
        match self {
            Kind::Any => {}
            Kind::Text => expect(value.is_string(), "a text", value, place, found),
            Kind::Flag => expect(value.is_boolean(), "true or false", value, place, found),
            Kind::Integer => expect(value.is_i64() || value.is_u64(), "an integer", value, place, found),
            Kind::Object => expect(value.is_object(), "an object", value, place, found),
            Kind::Id => match value.as_str() {
                Some("") => found.push(Difference::new(Fault::Missing, format!("{place} is empty"))),
                Some(_) => {}
                None => found.push(wrong_type(place, "a text", value)),
            },
            Kind::Base64 => match value.as_str() {
                Some(text) if is_base64(text) => {}
                Some(_) => found.push(Difference::new(Fault::Type, format!("{place} is no base64"))),
                None => found.push(wrong_type(place, "base64", value)),
            },
            Kind::Time => compare_time(value, place, found),
            Kind::LooseTime => {
                let is_time = value.as_str().is_some_and(|text| is_time(text) || is_time(&format!("{text}Z")));
                if !is_time {
                    found.push(Difference::new(Fault::Time, format!("{place} is no time of ISO 8601: {value}")));
                }
            }
            Kind::Word(words) => match value.as_str() {
                Some(word) if words.contains(&word) => {}
                Some(word) => {
                    let known = words.join(", ");
                    found.push(Difference::new(Fault::Word, format!("{place} is {word:?}, and not one of {known}")));
                }
                None => found.push(wrong_type(place, "a word", value)),
            },
            Kind::Tag(expected) => {
                if value.as_str() != Some(expected) {
                    found.push(Difference::new(Fault::Tag, format!("{place} is {value}, not {expected:?}")));
                }
            }
            Kind::Nested(shape) => shape.compare(value, place, found),
            Kind::List(kind) => match value {
                Value::Array(list) => compare_each(kind, list, place, found),
                _ => found.push(wrong_type(place, "a list", value)),
            },
            Kind::Some(kind) => match value {
                Value::Array(list) if list.is_empty() => {
                    found.push(Difference::new(Fault::Missing, format!("{place} is empty")));
                }
                Value::Array(list) => compare_each(kind, list, place, found),
                _ => found.push(wrong_type(place, "a list", value)),
            },
            Kind::Map(kind) => match value {
                Value::Object(members) => {
                    members.iter().for_each(|(name, value)| kind.compare(value, &join(place, name), found));
                }
                _ => found.push(wrong_type(place, "an object", value)),
            },
            Kind::Choice(choose) => match (choose(value), value) {
                (Some(shape), _) => shape.compare(value, place, found),
                (None, Value::Object(_)) => {
                    found.push(Difference::new(Fault::Tag, format!("{place} does not say what it is")));
                }
                (None, _) => found.push(wrong_type(place, "an object", value)),
            },
        }
    }
}

impl Difference {
    fn new(fault: Fault, words: String) -> Self {
        Difference { fault, words }
    }
}

fn compare_each(kind: &Kind, list: &[Value], place: &str, found: &mut Vec<Difference>) {
    for (index, element) in list.iter().enumerate() {
        kind.compare(element, &format!("{place}[{index}]"), found);
    }
}

fn compare_time(value: &Value, place: &str, found: &mut Vec<Difference>) {
    let text = value.as_str().unwrap_or_default();
    if !is_time(text) {
        let why = if is_time(&format!("{text}Z")) { "has no zone" } else { "is no time of RFC 3339" };
        found.push(Difference::new(Fault::Time, format!("{place} {why}: {value}")));
    } else if !text.ends_with('Z') {
        found.push(Difference::new(Fault::Zone, format!("{place} is not in UTC with Z: {value}")));
    }
}

fn is_time(text: &str) -> bool {
    sabir_model::Timestamp::parse(text).is_some()
}

fn is_base64(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_');
    text.trim_end_matches('=').bytes().all(is_letter)
}

fn expect(is_right: bool, expected: &str, value: &Value, place: &str, found: &mut Vec<Difference>) {
    if !is_right {
        found.push(wrong_type(place, expected, value));
    }
}

fn wrong_type(place: &str, expected: &str, value: &Value) -> Difference {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    Difference::new(Fault::Type, format!("{} is {found}, not {expected}", place_or_object(place)))
}

fn place_or_object(place: &str) -> &str {
    if place.is_empty() { "the object" } else { place }
}

fn join(place: &str, name: &str) -> String {
    if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") }
}

/// `message_id` of `messageId`.
fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    static INNER: Shape =
        Shape::one_of(&[Member::optional("text", Kind::Text), Member::optional("data", Kind::Any)], &["text", "data"]);
    static OUTER: Shape = Shape::new(&[
        Member::required("contextId", Kind::Id),
        Member::optional("time", Kind::Time),
        Member::optional("parts", Kind::Some(&Kind::Nested(&INNER))),
        Member::optional("state", Kind::Word(&["a", "b"])),
        Member::optional("more", Kind::Map(&Kind::Flag)),
    ]);

    #[test]
    fn differences_are_named_with_their_place() {
        for (value, expected) in [
            (json!({"contextId": "c", "unknown": 1}), &[][..]),
            (json!({}), &["contextId is missing"]),
            (json!({"contextId": ""}), &["contextId is empty"]),
            (json!({"contextId": 7}), &["contextId is a number, not a text"]),
            (json!({"context_id": "c"}), &["the object is spelled context_id, not contextId"]),
            (json!({"contextId": "c", "state": null}), &["state is null, and should be left out"]),
            (json!({"contextId": "c", "state": "c"}), &["state is \"c\", and not one of a, b"]),
            (json!({"contextId": "c", "time": "2026-01-01T00:00:00"}), &["time has no zone: \"2026-01-01T00:00:00\""]),
            (
                json!({"contextId": "c", "time": "2026-01-01T00:00:00+00:00"}),
                &["time is not in UTC with Z: \"2026-01-01T00:00:00+00:00\""],
            ),
            (json!({"contextId": "c", "time": "2026-01-01T00:00:00.123456Z"}), &[]),
            (json!({"contextId": "c", "time": 5}), &["time is no time of RFC 3339: 5"]),
            (json!({"contextId": "c", "parts": []}), &["parts is empty"]),
            (json!({"contextId": "c", "parts": [{"text": "t"}, {"data": null}]}), &[]),
            (json!({"contextId": "c", "parts": [{}]}), &["parts[0] has none of text, data"]),
            (
                json!({"contextId": "c", "parts": [{"text": 1, "data": 2}]}),
                &["parts[0].text is a number, not a text", "parts[0] has text and data of text, data"],
            ),
            (json!({"contextId": "c", "more": {"x": 1}}), &["more.x is a number, not true or false"]),
            (json!([]), &["the object is a list, not an object"]),
        ] {
            let found: Vec<String> = OUTER.check(&value, "").into_iter().map(|difference| difference.words).collect();
            assert_eq!(found, expected, "{value}");
        }
    }
}
