//! Carried JSON (metadata, data parts) as `google.protobuf.Struct` and `Value`, in both directions.
//!
//! A `Value` holds less than JSON: numbers are doubles, names of members are there once, text is Unicode, and readers of
//! protobuf stop at a hundred nested messages. What does not fit is replaced, as far inside as possible, by a Struct with the one
//! member `sabir:unrepresentable` that says why. Whole numbers survive as such as far as doubles have them exactly.
//!
//! The text is read once, front to back: it is known to be JSON, so there is nothing to refuse.

use std::collections::BTreeMap;

use sabir_model::Json;
use sabir_proto::prost_types::value::Kind;
use sabir_proto::prost_types::{ListValue, Struct, Value};

use crate::json;
use crate::wire_types::Violations;

/// The member of what stands in place of JSON that protobuf cannot hold.
pub(crate) const UNREPRESENTABLE: &str = "sabir:unrepresentable";

/// So many messages may be nested in each other in carried JSON. Readers stop at 100, and at most eight are around it.
const MAX_CARRIED_DEPTH: usize = 90;

/// Whole numbers up to this are doubles, and so are their neighbours.
const LARGEST_EXACT: f64 = 9_007_199_254_740_992.0;

/// Whole numbers below this are written as digits, larger ones with an exponent, as JavaScript does.
const LARGEST_DIGITS: f64 = 1e21;

/// A Struct, an entry of its map, and the value.
const OBJECT_DEPTH: usize = 3;
/// A ListValue, and the value.
const LIST_DEPTH: usize = 2;

/// Any JSON.
pub(crate) fn write_value(json: &Json) -> Value {
    Writer::new(json, Purpose::Write).value(1)
}

/// JSON that is an object. Anything else, which nobody can send as metadata, becomes an empty one.
pub(crate) fn write_struct(json: &Json) -> Struct {
    match write_value(json).kind {
        Some(Kind::StructValue(object)) => object,
        _ => Struct::default(),
    }
}

/// Why protobuf cannot hold this JSON, and where: `[2].id: ...`. `None`: it can.
pub(crate) fn unrepresentable(json: &Json) -> Option<String> {
    let mut writer = Writer::new(json, Purpose::Look);
    writer.value(1);
    writer.first_problem
}

/// A number that JSON does not have is a violation.
pub(crate) fn read_value(value: Value) -> Result<Json, Violations> {
    let mut text = Vec::new();
    push_value(&value, &mut text)?;
    into_json(text)
}

pub(crate) fn read_struct(object: Struct) -> Result<Json, Violations> {
    let mut text = Vec::new();
    push_object(&object, &mut text)?;
    into_json(text)
}

fn into_json(text: Vec<u8>) -> Result<Json, Violations> {
    Ok(json::raw(String::from_utf8(text).expect("it was written as text")).into())
}

/// Recursion ends where the reader of protobuf has ended it before.
fn push_value(value: &Value, out: &mut Vec<u8>) -> Result<(), Violations> {
    match &value.kind {
        None | Some(Kind::NullValue(_)) => out.extend_from_slice(b"null"),
        Some(Kind::BoolValue(flag)) => out.extend_from_slice(if *flag { b"true" } else { b"false" }),
        Some(Kind::NumberValue(number)) => push_number(*number, out)?,
        Some(Kind::StringValue(text)) => json::write(text, out),
        Some(Kind::StructValue(object)) => push_object(object, out)?,
        Some(Kind::ListValue(list)) => {
            out.push(b'[');
            for (index, value) in list.values.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                push_value(value, out).map_err(|inner| nested(&format!("[{index}]"), inner))?;
            }
            out.push(b']');
        }
    }
    Ok(())
}

fn push_object(object: &Struct, out: &mut Vec<u8>) -> Result<(), Violations> {
    out.push(b'{');
    for (index, (name, value)) in object.fields.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        json::write(name, out);
        out.push(b':');
        push_value(value, out).map_err(|inner| nested(name, inner))?;
    }
    out.push(b'}');
    Ok(())
}

fn push_number(number: f64, out: &mut Vec<u8>) -> Result<(), Violations> {
    if !number.is_finite() {
        return Err(Violations::single("", "must be a number that JSON has, not an infinite one or NaN"));
    }
    let is_negative_zero = number == 0.0 && number.is_sign_negative();
    match number.fract() == 0.0 && number.abs() < LARGEST_DIGITS && !is_negative_zero {
        true => json::write(&(number as i128), out),
        false => json::write(&number, out),
    }
    Ok(())
}

fn nested(member: &str, inner: Violations) -> Violations {
    let mut violations = Violations::default();
    violations.add_nested(member, inner);
    violations
}

/// What the text is read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Write,
    /// Only problems are wanted; values are not kept.
    Look,
}

struct Writer<'a> {
    text: &'a str,
    purpose: Purpose,
    at: usize,
    /// Where the value is that is written now.
    path: Vec<Step<'a>>,
    first_problem: Option<String>,
}

enum Step<'a> {
    Member(&'a str),
    Element(usize),
}

impl<'a> Writer<'a> {
    fn new(json: &'a Json, purpose: Purpose) -> Self {
        let text = json.as_str();
        crate::work::visit(text.len());
        Self { text, purpose, at: 0, path: Vec::new(), first_problem: None }
    }

    /// The value that begins here; `depth` is how many messages deep it is itself.
    fn value(&mut self, depth: usize) -> Value {
        self.skip_space();
        let kind = match self.peek() {
            // What is inside may have to be replaced by an object.
            b'{' if depth + 2 * OBJECT_DEPTH > MAX_CARRIED_DEPTH => self.too_deep(),
            b'[' if depth + LIST_DEPTH + OBJECT_DEPTH > MAX_CARRIED_DEPTH => self.too_deep(),
            b'{' => self.object(depth),
            b'[' => self.list(depth),
            b'"' => match self.string() {
                Some(text) => Kind::StringValue(text),
                None => self.problem("the text is not Unicode: half of a surrogate pair"),
            },
            b't' => self.word("true", Kind::BoolValue(true)),
            b'f' => self.word("false", Kind::BoolValue(false)),
            b'n' => self.word("null", Kind::NullValue(0)),
            _ => self.number(),
        };
        Value { kind: Some(kind) }
    }

    fn object(&mut self, depth: usize) -> Kind {
        let mut fields = BTreeMap::new();
        let mut twice = None;
        self.at += 1;
        loop {
            self.skip_space();
            match self.peek() {
                b'}' => break,
                b',' => self.at += 1,
                _ => {
                    let start = self.at;
                    let name = self.string();
                    self.path.push(Step::Member(&self.text[start..self.at]));
                    self.skip_space();
                    // The colon.
                    self.at += 1;
                    let value = self.value(depth + OBJECT_DEPTH);
                    self.path.pop();
                    match name {
                        Some(name) if fields.contains_key(&name) => twice = Some("a member is there twice"),
                        Some(name) => {
                            let value = if self.purpose == Purpose::Write { value } else { Value::default() };
                            fields.insert(name, value);
                        }
                        None => twice = Some("the name of a member is not Unicode: half of a surrogate pair"),
                    }
                }
            }
        }
        self.at += 1;
        match twice {
            Some(why) => self.problem(why),
            None => Kind::StructValue(Struct { fields }),
        }
    }

    fn list(&mut self, depth: usize) -> Kind {
        let mut values = Vec::new();
        let mut count = 0;
        self.at += 1;
        loop {
            self.skip_space();
            match self.peek() {
                b']' => break,
                b',' => self.at += 1,
                _ => {
                    self.path.push(Step::Element(count));
                    count += 1;
                    let value = self.value(depth + LIST_DEPTH);
                    self.path.pop();
                    if self.purpose == Purpose::Write {
                        values.push(value);
                    }
                }
            }
        }
        self.at += 1;
        Kind::ListValue(ListValue { values })
    }

    fn number(&mut self) -> Kind {
        let rest = &self.text.as_bytes()[self.at..];
        let length =
            rest.iter().take_while(|byte| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')).count();
        let text = &self.text[self.at..self.at + length];
        self.at += length;
        let number: f64 = text.parse().unwrap_or(f64::INFINITY);
        if number.is_infinite() {
            return self.problem("the number is too large for a double");
        }
        let is_whole = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        let is_exact =
            || number.abs() <= LARGEST_EXACT || text.parse::<i128>().is_ok_and(|whole| number as i128 == whole);
        if is_whole && !is_exact() {
            return self.problem("a double cannot hold this whole number exactly");
        }
        Kind::NumberValue(number)
    }

    /// The text of the string that begins here; `None`: it is not Unicode.
    fn string(&mut self) -> Option<String> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        let mut is_escaped = false;
        self.at += 1;
        while bytes[self.at] != b'"' {
            if bytes[self.at] == b'\\' {
                is_escaped = true;
                self.at += 1;
            }
            self.at += 1;
        }
        self.at += 1;
        match is_escaped {
            true => json::read(&self.text[start..self.at]).ok(),
            false => Some(self.text[start + 1..self.at - 1].to_owned()),
        }
    }

    fn word(&mut self, word: &str, kind: Kind) -> Kind {
        self.at += word.len();
        kind
    }

    /// Passes over a value that is nested too deep.
    fn too_deep(&mut self) -> Kind {
        let bytes = self.text.as_bytes();
        let mut open = 0usize;
        loop {
            match bytes[self.at] {
                b'"' => {
                    self.string();
                    continue;
                }
                b'{' | b'[' => open += 1,
                b'}' | b']' => open -= 1,
                _ => {}
            }
            self.at += 1;
            if open == 0 {
                return self.problem("it is nested deeper than readers of protobuf go");
            }
        }
    }

    /// What stands in place of the value that was just passed.
    fn problem(&mut self, why: &str) -> Kind {
        if self.first_problem.is_none() {
            let path: String = self
                .path
                .iter()
                .map(|step| match step {
                    Step::Member(name) => format!(".{}", name.trim_matches('"')),
                    Step::Element(index) => format!("[{index}]"),
                })
                .collect();
            self.first_problem = Some(format!("{path}: {why}"));
        }
        let reason = Value { kind: Some(Kind::StringValue(why.to_owned())) };
        Kind::StructValue(Struct { fields: BTreeMap::from([(UNREPRESENTABLE.to_owned(), reason)]) })
    }

    fn peek(&self) -> u8 {
        self.text.as_bytes()[self.at]
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sabir_proto::prost::Message;

    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(text).unwrap()
    }

    /// Written to protobuf and read back.
    fn there_and_back(text: &str) -> String {
        let bytes = write_value(&json(text)).encode_to_vec();
        read_value(Value::decode(bytes.as_slice()).unwrap()).unwrap().as_str().to_owned()
    }

    #[test]
    fn what_protobuf_can_hold_comes_back() {
        for text in [
            "null",
            "true",
            "false",
            "0",
            "-0.0",
            "5",
            "-17",
            "0.1",
            "1.5e-7",
            "9007199254740992",
            "\"\"",
            "\"a\\n\\\"é😀\"",
            "[]",
            "{}",
            "[1,[2,{\"a\":[]}],null]",
            "{\"a\":{\"b\":[1,2.5,\"x\"]},\"c\":false}",
        ] {
            assert_eq!(there_and_back(text), text);
            assert_eq!(unrepresentable(&json(text)), None, "{text}");
        }
        for (text, expected) in [
            (" { \"b\" : 1 , \"a\" : [ ] } ", "{\"a\":[],\"b\":1}"),
            ("5.0", "5"),
            ("1e3", "1000"),
            ("\"\\u00e9\"", "\"é\""),
        ] {
            assert_eq!(there_and_back(text), expected, "{text}");
        }
    }

    #[test]
    fn what_protobuf_cannot_hold_is_marked_where_it_is() {
        let marker = |why: &str| format!("{{\"{UNREPRESENTABLE}\":\"{why}\"}}");
        let (large, whole) = ("the number is too large for a double", "a double cannot hold this whole number exactly");
        let half = "the text is not Unicode: half of a surrogate pair";
        for (text, expected, problem) in [
            ("[1,1e999]", format!("[1,{}]", marker(large)), format!("[1]: {large}")),
            ("{\"id\":12345678901234567}", format!("{{\"id\":{}}}", marker(whole)), format!(".id: {whole}")),
            ("{\"a\":[\"\\ud800\"]}", format!("{{\"a\":[{}]}}", marker(half)), format!(".a[0]: {half}")),
            ("{\"a\":1,\"a\":2}", marker("a member is there twice"), ": a member is there twice".to_owned()),
        ] {
            assert_eq!(there_and_back(text), expected, "{text}");
            assert_eq!(unrepresentable(&json(text)), Some(problem), "{text}");
        }
        let large_but_exact = "18014398509481984";
        assert_eq!(unrepresentable(&json(large_but_exact)), None);
    }

    /// Eight messages around it, as in a list of tasks, and every reader still gets to the bottom.
    #[test]
    fn deep_json_is_cut_where_readers_would_stop() {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            for levels in [1, 10, 29, 30, 31, 45, 46, 128] {
                let text = format!("{}1{}", open.repeat(levels), close.repeat(levels));
                let value = write_value(&json(&text));
                let mut bytes = value.encode_to_vec();
                for _ in 0..4 {
                    // A list in a list: two messages each.
                    let inner = Value::decode(bytes.as_slice()).unwrap();
                    bytes = Value { kind: Some(Kind::ListValue(ListValue { values: vec![inner] })) }.encode_to_vec();
                }
                let read = Value::decode(bytes.as_slice());
                assert!(read.is_ok(), "{levels} levels of {open}: {read:?}");
                assert_eq!(unrepresentable(&json(&text)).is_some(), read_value(value).unwrap().as_str() != text);
            }
        }
    }

    #[test]
    fn numbers_that_json_does_not_have_are_named() {
        let infinite = Value { kind: Some(Kind::NumberValue(f64::INFINITY)) };
        let list = Value { kind: Some(Kind::ListValue(ListValue { values: vec![infinite] })) };
        let object = Struct { fields: BTreeMap::from([("a".to_owned(), list)]) };
        let error = sabir_model::Error::from(read_struct(object).unwrap_err());
        assert!(error.to_string().contains("a[0]"), "{error}");
    }

    fn any_json() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            Just("null".to_owned()),
            any::<bool>().prop_map(|flag| flag.to_string()),
            any::<i64>().prop_map(|number| number.to_string()),
            any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(|number| format!("{number:e}")),
            ".*".prop_map(|text| serde_json::to_string(&text).unwrap()),
        ];
        leaf.prop_recursive(6, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(|all| format!("[{}]", all.join(" ,\n"))),
                prop::collection::vec((".{0,3}", inner), 0..5).prop_map(|all| {
                    let members: Vec<String> = all
                        .iter()
                        .map(|(name, value)| format!("{} : {value}", serde_json::to_string(name).unwrap()))
                        .collect();
                    format!("{{{}}}", members.join(","))
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_json_is_written_and_what_fits_comes_back(text in any_json()) {
            let original = json(&text);
            let back = there_and_back(&text);
            if unrepresentable(&original).is_none() {
                let (a, b): (serde_json::Value, serde_json::Value) =
                    (serde_json::from_str(&text).unwrap(), serde_json::from_str(&back).unwrap());
                prop_assert!(same(&a, &b), "{} became {}", text, back);
            }
        }
    }

    fn same(a: &serde_json::Value, b: &serde_json::Value) -> bool {
        use serde_json::Value::{Array, Number, Object};
        match (a, b) {
            // serde_json reads the last digit of a double only nearly right.
            (Number(a), Number(b)) => {
                let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
                (a - b).abs() <= a.abs() * 1e-15
            }
            (Array(a), Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
            (Object(a), Object(b)) => {
                a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| same(a, b)))
            }
            (a, b) => a == b,
        }
    }
}
