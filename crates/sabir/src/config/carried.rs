//! A table of the file that is carried as it is, in JSON.
//!
//! Dates become texts, since JSON has none. A number that JSON cannot hold is refused rather than bent.

use sabir_model::Json;
use serde_json::{Number, Value, json};

use super::kinds::{Read, wrong};
use super::raw::Raw;

pub fn table(raw: &Raw) -> Read<Option<Json>> {
    if !matches!(raw, Raw::Table(_)) {
        return Err(wrong(raw, "a table"));
    }
    let value = carry(raw)?;
    let json = Json::of(&value).expect("a value is JSON");
    Ok((Some(json), value))
}

fn carry(raw: &Raw) -> Result<Value, String> {
    match raw {
        Raw::Word(text) | Raw::Text(text) | Raw::Date(text) => Ok(json!(text)),
        Raw::Integer(number) => Ok(json!(number)),
        Raw::Float(number) => Number::from_f64(*number).map(Value::Number).ok_or_else(|| lost(raw)),
        Raw::Boolean(value) => Ok(json!(value)),
        Raw::List(list) => list.iter().map(carry).collect(),
        Raw::Table(members) => members.iter().map(|(name, raw)| Ok((name.clone(), carry(raw)?))).collect(),
        Raw::Other(_) => Err(lost(raw)),
    }
}

fn lost(raw: &Raw) -> String {
    format!("holds {raw}, which does not fit into JSON")
}

#[cfg(test)]
mod tests {
    use toml::de::{DeTable, DeValue};

    use super::*;

    fn say(text: &str) -> String {
        let parsed = DeTable::parse(text).unwrap().into_inner();
        match table(&Raw::from(&DeValue::Table(parsed))) {
            Ok((json, shown)) => {
                assert_eq!(json.unwrap().as_str(), shown.to_string());
                shown.to_string()
            }
            Err(words) => words,
        }
    }

    #[test]
    fn tables_become_objects() {
        let deep = format!("a = {}1{}", "[".repeat(70), "]".repeat(70));
        for (text, expected) in [
            ("", "{}"),
            ("a.b = [1, 'x', {c = true}]\nd = 0x10", r#"{"a":{"b":[1,"x",{"c":true}]},"d":16}"#),
            ("a = 1.5\nb = 1e3\nc = -0.0", r#"{"a":1.5,"b":1000.0,"c":-0.0}"#),
            ("a = 1979-05-27T07:32:00Z\nb = 07:32:00", r#"{"a":"1979-05-27T07:32:00Z","b":"07:32:00"}"#),
            ("a = [nan]", "holds the number NaN, which does not fit into JSON"),
            ("a = inf", "holds the number inf, which does not fit into JSON"),
            ("a = 99999999999999999999", "holds the number 99999999999999999999, which does not fit into JSON"),
            (&deep, "holds a value more than 64 levels deep, which does not fit into JSON"),
        ] {
            assert_eq!(say(text), expected, "{text}");
        }
        assert!(table(&Raw::Integer(1)).is_err());
    }
}
