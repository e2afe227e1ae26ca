//! Values that are tables of the file: variables of a program, a route, and JSON that is passed on as it is.

use std::collections::BTreeMap;

use sabir_model::Json;
use serde_json::{Number, Value, json};

use super::raw::{Raw, RawEntry};
use super::sections::RouteConfig;
use super::values::{ValueKind, text};

/// Variables and their values, which may be secrets and are not shown.
pub fn variables() -> ValueKind<Vec<(String, String)>> {
    let schema = json!({"type": "object", "additionalProperties": {"type": "string"}});
    ValueKind::new(schema, |raw| {
        let Raw::Table(table) = raw else { return Err(raw.unexpected("a table of texts")) };
        let mut variables = Vec::new();
        for RawEntry { key: name, value, .. } in &table.entries {
            if !is_variable(name) {
                return Err(format!("holds the name {}, which no variable can have", Raw::Text(name.clone())));
            }
            let Raw::Text(value) = value else {
                return Err(format!("holds {name}, which is no text; put its value in quotes"));
            };
            if value.contains('\0') {
                return Err(format!("holds {name}, whose value has a zero byte"));
            }
            variables.push((name.clone(), value.clone()));
        }
        let shown: Value = variables.iter().map(|(name, _)| (name.clone(), json!("(not shown)"))).collect();
        Ok((variables, shown))
    })
}

/// Names and texts for them.
pub fn text_table() -> ValueKind<BTreeMap<String, String>> {
    let schema = json!({"type": "object", "additionalProperties": {"type": "string"}});
    ValueKind::new(schema, |raw| {
        let Raw::Table(table) = raw else { return Err(raw.unexpected("a table of texts")) };
        let mut texts = BTreeMap::new();
        for RawEntry { key, value, .. } in &table.entries {
            let (text, _) =
                text().read(value).map_err(|words| format!("holds {}, which {words}", Raw::Text(key.clone())))?;
            texts.insert(key.clone(), text);
        }
        let shown = json!(texts);
        Ok((texts, shown))
    })
}

/// The name of a variable, or the beginning of names with a star behind.
pub fn variable_name() -> ValueKind<String> {
    ValueKind::of_text("names such as \"HTTPS_PROXY\" or \"AWS_*\"", |name| {
        is_variable(name.strip_suffix('*').unwrap_or(name)).then(|| name.to_owned())
    })
}

/// The name of one variable.
pub fn variable() -> ValueKind<String> {
    ValueKind::of_text("the name of a variable, such as \"UPSTREAM_TOKEN\"", |name| {
        is_variable(name).then(|| name.to_owned())
    })
}

/// `{ agent = "id", model = "name" }`, or the id alone; in the environment `id` or `id model`.
pub fn route() -> ValueKind<Option<RouteConfig>> {
    let table = json!({
        "type": "object",
        "properties": {"agent": {"type": "string"}, "model": {"type": "string"}},
        "required": ["agent"],
        "additionalProperties": false,
    });
    ValueKind::new(json!({"anyOf": [table, {"type": "string"}]}), |raw| {
        let route = match raw {
            Raw::Table(table) => route_of_table(&table.entries)?,
            raw => {
                let words = raw.as_text().filter(|words| !words.is_empty()).ok_or_else(|| raw.unexpected(ROUTE))?;
                let (agent, model) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
                let model = Some(model.trim()).filter(|model| !model.is_empty());
                RouteConfig { agent: agent.to_owned(), model: model.map(str::to_owned) }
            }
        };
        let mut shown = json!({"agent": route.agent});
        if let Some(model) = &route.model {
            shown["model"] = json!(model);
        }
        Ok((Some(route), shown))
    })
}

/// Any table, passed on as JSON. Dates become texts, since JSON has none. A number that JSON cannot hold is refused.
pub fn json_table() -> ValueKind<Option<Json>> {
    ValueKind::new(json!({"type": "object"}), |raw| {
        if !matches!(raw, Raw::Table(_)) {
            return Err(raw.unexpected("a table"));
        }
        let value = json_of(raw)?;
        Ok((Some(Json::of(&value).expect("a value is JSON")), value))
    })
}

fn is_variable(name: &str) -> bool {
    !name.is_empty() && !name.contains(|letter: char| letter == '=' || letter == '*' || letter.is_control())
}

const ROUTE: &str = "{ agent = \"id\", model = \"name\" }, the model if you like";

fn route_of_table(entries: &[RawEntry]) -> Result<RouteConfig, String> {
    let (mut agent, mut model) = (None, None);
    for RawEntry { key, value, .. } in entries {
        let field = match key.as_str() {
            "agent" => &mut agent,
            "model" => &mut model,
            _ => return Err(format!("holds the unknown key {}; expected {ROUTE}", Raw::Text(key.clone()))),
        };
        let (text, _) = text().read(value).map_err(|words| format!("has {key}, which {words}"))?;
        *field = Some(text);
    }
    let agent = agent.ok_or_else(|| format!("has no agent; expected {ROUTE}"))?;
    Ok(RouteConfig { agent, model })
}

fn json_of(raw: &Raw) -> Result<Value, String> {
    let unfit = || format!("holds {raw}, which does not fit into JSON");
    match raw {
        Raw::Untyped(text) | Raw::Text(text) | Raw::Date(text) => Ok(json!(text)),
        Raw::Integer(number) => Ok(json!(number)),
        Raw::Float(number) => Number::from_f64(*number).map(Value::Number).ok_or_else(unfit),
        Raw::Boolean(value) => Ok(json!(value)),
        Raw::List(list) => list.iter().map(json_of).collect(),
        Raw::Table(table) => {
            table.entries.iter().map(|entry| Ok((entry.key.clone(), json_of(&entry.value)?))).collect()
        }
        Raw::Other(_) => Err(unfit()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::file::parse_toml;

    fn outcome<V: 'static>(kind: &ValueKind<V>, raw: &Raw) -> String {
        kind.read(raw).map_or_else(|words| words, |(_, shown)| shown.to_string())
    }

    /// The value of the one key in this text.
    fn value(text: &str) -> Raw {
        parse_toml(text).unwrap().entries.remove(0).value
    }

    #[test]
    fn values_of_variables_are_not_shown() {
        for (text, expected) in [
            ("a = { KEY = 'secret' }", r#"{"KEY":"(not shown)"}"#),
            ("a = {}", "{}"),
            ("a = { KEY = 1 }", "holds KEY, which is no text; put its value in quotes"),
            ("a = { 'K=Y' = 'x' }", "holds the name \"K=Y\", which no variable can have"),
            ("a = { K = \"a\\u0000\" }", "holds K, whose value has a zero byte"),
            ("a = 'KEY=x'", "is \"KEY=x\"; expected a table of texts"),
        ] {
            assert_eq!(outcome(&variables(), &value(text)), expected, "{text}");
        }
    }

    #[test]
    fn names_of_variables_may_end_with_a_star() {
        let names = crate::config::values::list(variable_name());
        for (text, expected) in [
            ("a = ['HTTPS_PROXY', 'AWS_*']", r#"["HTTPS_PROXY","AWS_*"]"#),
            ("a = ['A*B']", "holds \"A*B\"; expected names such as \"HTTPS_PROXY\" or \"AWS_*\""),
            ("a = ['*']", "holds \"*\"; expected names such as \"HTTPS_PROXY\" or \"AWS_*\""),
        ] {
            assert_eq!(outcome(&names, &value(text)), expected, "{text}");
        }
    }

    #[test]
    fn routes_in_every_spelling() {
        for (raw, expected) in [
            (value("a = { agent = 'x' }"), r#"{"agent":"x"}"#.to_owned()),
            (value("a = { model = 'm', agent = 'x' }"), r#"{"agent":"x","model":"m"}"#.to_owned()),
            (value("a = 'x'"), r#"{"agent":"x"}"#.to_owned()),
            (Raw::untyped("x provider/m"), r#"{"agent":"x","model":"provider/m"}"#.to_owned()),
            (value("a = { model = 'm' }"), format!("has no agent; expected {ROUTE}")),
            (
                value("a = { agent = 'x', adapter = 'y' }"),
                format!("holds the unknown key \"adapter\"; expected {ROUTE}"),
            ),
            (value("a = { agent = 1 }"), "has agent, which is 1; expected a text that is not empty".to_owned()),
            (value("a = 3"), format!("is 3; expected {ROUTE}")),
        ] {
            assert_eq!(outcome(&route(), &raw), expected, "{raw:?}");
        }
    }

    #[test]
    fn tables_become_json_objects() {
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
            let raw = Raw::Table(parse_toml(text).unwrap());
            assert_eq!(outcome(&json_table(), &raw), expected, "{text}");
            if let Ok((json, shown)) = json_table().read(&raw) {
                assert_eq!(json.unwrap().as_str(), shown.to_string());
            }
        }
        assert!(json_table().read(&Raw::Integer(1)).is_err());
    }
}
