//! Reading a card that breaks the rules: what is wrong is left out, and the rest is used.
//!
//! A fifth of the cards on the public network cannot be read by the specification, mostly for one member that nobody
//! needs. So the strict reader is asked first; each fault that it names is removed from the card, and it is asked again.

use sabir_model as model;
use sabir_model::{Error, Violation};
use serde_json::Value;

use super::read::read;
use crate::json;

/// So many faults are removed; a card with more is no card.
const MOST_FAULTS: usize = 64;

/// A card, and what had to be left out of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LenientCard {
    pub card: model::Card,
    /// Empty: the card follows the specification.
    pub faults: Vec<Violation>,
}

/// `address` is where the card came from: that is where a card without any address is served, most likely.
pub fn read_card_leniently(text: &str, address: &str) -> Result<LenientCard, Error> {
    let first = match read(text) {
        Ok(card) => return Ok(LenientCard { card, faults: Vec::new() }),
        Err(error) => error,
    };
    let Ok(mut value) = json::parse::<Value>(text) else { return Err(first) };
    if !value.is_object() || !looks_like_a_card(&value) {
        return Err(first);
    }
    let mut faults: Vec<Violation> = Vec::new();
    let mut error = first;
    while faults.len() < MOST_FAULTS {
        let Error::Invalid(violations) = error else { return Err(error) };
        let mut is_mended = false;
        let mut removed: Vec<Vec<String>> = Vec::new();
        // From the last to the first, since removing an element of a list moves those behind it.
        for violation in violations.into_iter().rev() {
            is_mended |= match repair(&violation, address) {
                Repair::Fill(name, text) => {
                    value[name] = Value::from(text);
                    true
                }
                // Several things may be wrong with what is removed.
                Repair::Remove(path) if removed.contains(&path) => true,
                Repair::Remove(path) => {
                    let is_removed = remove(&mut value, &path);
                    removed.push(path);
                    is_removed
                }
            };
            faults.push(violation);
        }
        let mut text = Vec::new();
        json::write(&value, &mut text);
        let text = String::from_utf8(text).expect("JSON is UTF-8");
        error = match read(&text) {
            Ok(card) => return Ok(LenientCard { card, faults }),
            Err(error) if is_mended => error,
            Err(error) => return Err(error),
        };
    }
    Err(error)
}

/// Any JSON object could be taken for a card without its faults.
fn looks_like_a_card(value: &Value) -> bool {
    ["name", "url", "supportedInterfaces", "supported_interfaces", "skills", "capabilities"]
        .iter()
        .filter(|name| value.get(name).is_some())
        .count()
        >= 2
}

enum Repair<'a> {
    Fill(&'static str, &'a str),
    Remove(Vec<String>),
}

fn repair<'a>(violation: &Violation, address: &'a str) -> Repair<'a> {
    let is_missing = violation.description == "is required";
    match violation.field.as_str() {
        "name" if is_missing => return Repair::Fill("name", "unnamed agent"),
        "url" if is_missing => return Repair::Fill("url", address),
        _ => {}
    }
    // What lacks a member goes as a whole; of what has a wrong member, the member goes.
    let mut path = segments(&violation.field);
    if is_missing && path.len() > 1 {
        path.pop();
    }
    Repair::Remove(path)
}

/// `skills[2].id` is `skills`, `2`, `id`.
fn segments(field: &str) -> Vec<String> {
    let separated = field.replace('[', ".").replace(']', "");
    separated.split('.').filter(|segment| !segment.is_empty()).map(str::to_owned).collect()
}

/// Removes what the path leads to. A name may hold a dot, so that the path leads nowhere; then all of the last place goes.
fn remove(place: &mut Value, path: &[String]) -> bool {
    let Some((first, rest)) = path.split_first() else { return false };
    let index = first.parse::<usize>().ok();
    match place {
        Value::Object(members) if members.contains_key(first) => match members.get_mut(first) {
            Some(inner) if !rest.is_empty() && (inner.is_object() || inner.is_array()) => remove(inner, rest),
            _ => members.remove(first).is_some(),
        },
        Value::Array(list) if index.is_some_and(|index| index < list.len()) => {
            let index = index.unwrap_or_default();
            match &mut list[index] {
                inner if !rest.is_empty() && (inner.is_object() || inner.is_array()) => remove(inner, rest),
                _ => {
                    list.remove(index);
                    true
                }
            }
        }
        Value::Object(members) => {
            let had_members = !members.is_empty();
            members.clear();
            had_members
        }
        Value::Array(list) => {
            let had_elements = !list.is_empty();
            list.clear();
            had_elements
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: &str = "https://a.example/";

    fn say(text: &str) -> String {
        match read_card_leniently(text, ADDRESS) {
            Ok(LenientCard { card, faults }) => {
                let interfaces: Vec<String> =
                    card.interfaces.iter().map(|one| format!("{} {} {}", one.url, one.binding, one.version)).collect();
                let skills: Vec<&str> = card.skills.iter().map(|skill| skill.id.as_str()).collect();
                let faults: Vec<&str> = faults.iter().map(|fault| fault.field.as_str()).collect();
                let streaming = card.capabilities.streaming;
                let schemes: Vec<&str> = card.security_schemes.iter().map(|(name, _)| name.as_str()).collect();
                let schemes = if schemes.is_empty() { String::new() } else { format!(" {schemes:?}") };
                format!(
                    "{} [{}] {skills:?} {streaming:?}{schemes} without {faults:?}",
                    card.name,
                    interfaces.join(", ")
                )
            }
            Err(error) => format!("refused: {error}"),
        }
    }

    #[test]
    fn a_fault_costs_what_is_wrong_and_nothing_else() {
        for (card, expected) in [
            (
                r#"{"name":"a","url":"http://x/","protocolVersion":"0.3.0","capabilities":{},"skills":[]}"#,
                "a [http://x/ JSONRPC 0.3] [] None without []",
            ),
            (
                r#"{"name":"a","url":"http://x/","version":2,"capabilities":{"streaming":true},"skills":[]}"#,
                r#"a [http://x/ JSONRPC 0.2] [] Some(true) without ["version"]"#,
            ),
            (
                r#"{"name":"a","url":"http://x/","capabilities":{"streaming":"yes"},"skills":[{"id":"s"},{"name":"no id"},{"id":"u"},7]}"#,
                r#"a [http://x/ JSONRPC 0.2] ["s", "u"] None without ["capabilities.streaming", "skills[3]", "skills[1].id"]"#,
            ),
            (
                r#"{"url":"http://x/","skills":[{"id":"s"}]}"#,
                r#"unnamed agent [http://x/ JSONRPC 0.2] ["s"] None without ["name"]"#,
            ),
            (
                r#"{"name":"a","skills":[{"id":"s","tags":"none"}]}"#,
                r#"a [https://a.example/ JSONRPC 0.2] ["s"] None without ["skills[0].tags", "url"]"#,
            ),
            (
                r#"{"name":"a","supportedInterfaces":[{"url":"http://x/","protocolBinding":"JSONRPC","protocolVersion":"1.0"},{"protocolBinding":"GRPC"}],"securitySchemes":{"k":{"apiKeySecurityScheme":{}},"h":{"httpAuthSecurityScheme":{"scheme":"Bearer"}}},"skills":null}"#,
                r#"a [http://x/ JSONRPC 1.0] [] None ["h"] without ["securitySchemes.k.name", "securitySchemes.k.location", "supportedInterfaces[1].url"]"#,
            ),
            (r#"{"hello":"world"}"#, "refused: invalid parameters: url is required; name is required"),
            ("[]", "refused: invalid parameters: params expected an object, found an array"),
            ("<html>", "refused: the body is not JSON: expected value"),
        ] {
            assert_eq!(say(card), expected, "{card}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(text: String, json in "[\\{\\}\\[\\]\":,a-z0-9 ]{0,80}") {
            for text in [text, json.clone(), format!(r#"{{"name":"a","url":"u","skills":[{json}]}}"#)] {
                let _ = read_card_leniently(&text, ADDRESS);
            }
        }
    }
}
