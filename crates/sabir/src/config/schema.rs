//! The JSON Schema of `sabir.toml`, written from the tables of settings, so that editors can complete and check the file.

use serde_json::{Map, Value, json};

use sabir_model::{Extension, Skill};

use super::agent_settings::{AGENT_SETTINGS, EXTENSION_SETTINGS, SKILL_SETTINGS};
use super::auth::{self, credential_settings};
use super::auth_issuers::{self, ISSUER_SETTINGS};
use super::origin::Configured;
use super::sections::{AgentConfig, Config, CredentialConfig};
use super::settings::{DATA_DIRECTORY, SETTINGS, Setting};

/// The schema as text. Draft 7, since that is what editors of TOML know.
pub fn schema() -> String {
    let mut sections = Map::new();
    for (setting, property) in SETTINGS.iter().zip(properties(&SETTINGS, Config::default())) {
        let section = sections.entry(setting.section()).or_insert_with(|| object(Map::new(), Vec::new()));
        section["properties"][setting.leaf()] = property;
    }
    for name in auth::LISTS {
        let items = table(&credential_settings(name), CredentialConfig::default());
        sections["auth"]["properties"][name] = list(items);
    }
    let mut agent = table(&AGENT_SETTINGS, AgentConfig::default());
    agent["properties"]["skill"] = list(table(&SKILL_SETTINGS, Skill::default()));
    let blank = Extension { uri: String::new(), description: None, required: false, params: None };
    agent["properties"]["extension"] = list(table(&EXTENSION_SETTINGS, blank));
    sections.insert("agent".to_owned(), list(agent));
    sections["auth"]["properties"]["issuer"] = list(table(&ISSUER_SETTINGS, auth_issuers::blank()));

    let mut schema = object(sections, Vec::new());
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    schema["title"] = json!("sabir.toml");
    schema["description"] = json!("The configuration of the A2A server sabir.");
    format!("{schema:#}\n")
}

/// One table of a list.
fn table<T>(settings: &[Setting<T>], blank: T) -> Value {
    let named = settings.iter().map(|setting| setting.key.to_owned()).zip(properties(settings, blank));
    let required = settings.iter().filter(|setting| setting.is_required).map(|setting| setting.key);
    object(named.collect(), required.collect())
}

/// What each setting takes, with its meaning and its default.
fn properties<T>(settings: &[Setting<T>], blank: T) -> Vec<Value> {
    let defaults = Configured::new(blank, settings).values;
    let property = |(setting, default): (&Setting<T>, Value)| {
        let mut property = setting.schema.clone();
        property["description"] = json!(setting.help);
        // That one depends on the machine.
        if !default.is_null() && setting.default != DATA_DIRECTORY {
            property["default"] = default;
        }
        property
    };
    settings.iter().zip(defaults.into_iter().map(|default| default.value)).map(property).collect()
}

fn object(properties: Map<String, Value>, required: Vec<&str>) -> Value {
    let mut object = json!({"type": "object", "additionalProperties": false, "properties": properties});
    if !required.is_empty() {
        object["required"] = json!(required);
    }
    object
}

fn list(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_schema_is_what_the_command_prints() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sabir.schema.json");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(path, schema()).unwrap();
        }
        let is_same = std::fs::read_to_string(path).unwrap() == schema();
        assert!(is_same, "UPDATE_GOLDEN=1, or `sabir config --schema > sabir.schema.json`, writes it again");
    }

    #[test]
    fn editors_accept_the_example_file_with_everything_switched_on() {
        let file = crate::config::tests::documents::example_with_everything();
        assert_eq!(check(&file), Ok(()));
    }

    #[test]
    fn editors_are_told_what_is_wrong_and_where() {
        for (file, expected) in [
            ("[server]\nlisten = 7870\ngrace = 5\n[retention]\nmax_tasks = 'off'", Ok(())),
            ("[[agent]]\nid = 'a'\nkind = 'codex'\ncommand = 'codex'\nenv = { KEY = 'x' }", Ok(())),
            ("[routing]\nmid = 'a'\nroutine = { agent = 'a', model = 'm' }", Ok(())),
            ("[server]\nlisen = 1", Err("/server/lisen")),
            ("[server]\ngrace = true", Err("/server/grace")),
            ("[server]\nallow_open = 'yes'", Err("/server/allow_open")),
            ("[store]\ndurability = 'none'", Err("/store/durability")),
            ("[retention]\nmax_tasks = 0", Err("/retention/max_tasks")),
            ("[routing]\nmid = { model = 'm' }", Err("/routing/mid")),
            ("[agent]\nid = 'a'", Err("/agent")),
            ("[[agent]]\nid = 'a'", Err("/agent/0/kind")),
            ("[[agent]]\nid = 'a'\nkind = 'banana'", Err("/agent/0/kind")),
            ("[[agent]]\nid = 'a'\nkind = 'demo'\n[[agent.skill]]\nid = 'x'", Err("/agent/0/skill/0/name")),
        ] {
            assert_eq!(check(file), expected.map_err(str::to_owned), "{file}");
        }
    }

    /// `Err` is the path of the first value that does not fit.
    fn check(file: &str) -> Result<(), String> {
        fits(&serde_json::from_str(&schema()).unwrap(), &toml::from_str(file).unwrap(), "")
    }

    /// As much of a validator as the schema needs; a keyword that it does not know is an error.
    fn fits(schema: &Value, value: &Value, path: &str) -> Result<(), String> {
        let wrong = || Err(path.to_owned());
        for (keyword, rule) in schema.as_object().unwrap() {
            match keyword.as_str() {
                "$schema" | "title" | "description" | "default" | "examples" => {}
                "type" => {
                    let kind = match value {
                        Value::String(_) => "string",
                        Value::Bool(_) => "boolean",
                        Value::Number(number) if number.is_i64() || number.is_u64() => "integer",
                        Value::Number(_) => "number",
                        Value::Array(_) => "array",
                        Value::Object(_) => "object",
                        Value::Null => "null",
                    };
                    let kinds = rule.as_array().cloned().unwrap_or_else(|| vec![rule.clone()]);
                    if !kinds.iter().any(|known| known == kind) {
                        return wrong();
                    }
                }
                "enum" if !rule.as_array().unwrap().contains(value) => return wrong(),
                "minimum" if value.as_u64() < rule.as_u64() => return wrong(),
                "maximum" if value.as_u64() > rule.as_u64() => return wrong(),
                "enum" | "minimum" | "maximum" => {}
                "anyOf" if rule.as_array().unwrap().iter().any(|schema| fits(schema, value, path).is_ok()) => {}
                "anyOf" => return wrong(),
                "items" => {
                    for (position, item) in value.as_array().into_iter().flatten().enumerate() {
                        fits(rule, item, &format!("{path}/{position}"))?;
                    }
                }
                "required" => {
                    for key in rule.as_array().unwrap().iter().map(|key| key.as_str().unwrap()) {
                        if value.get(key).is_none() {
                            return Err(format!("{path}/{key}"));
                        }
                    }
                }
                "properties" => {
                    for (key, schema) in rule.as_object().unwrap() {
                        value.get(key).map_or(Ok(()), |value| fits(schema, value, &format!("{path}/{key}")))?;
                    }
                }
                "additionalProperties" => {
                    for (key, value) in value.as_object().into_iter().flatten() {
                        let is_known = schema.get("properties").is_some_and(|known| known.get(key).is_some());
                        match (is_known, rule) {
                            (true, _) => {}
                            (false, Value::Bool(false)) => return Err(format!("{path}/{key}")),
                            (false, rule) => fits(rule, value, &format!("{path}/{key}"))?,
                        }
                    }
                }
                unknown => panic!("the test does not know the keyword {unknown}"),
            }
        }
        Ok(())
    }
}
