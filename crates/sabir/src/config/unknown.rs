//! What to say of a key that does not exist: the one that was most likely meant, or all that are known there.

use toml::de::DeValue;

use super::agent_settings::AGENT_SETTINGS;
use super::nearest::nearest;
use super::raw::Raw;
use super::settings::SETTINGS;

/// A level of the file, and what may stand there.
pub struct Place {
    /// Such as `[server]`; empty at the top.
    pub header: String,
    pub keys: Vec<&'static str>,
    /// The headers of tables below.
    pub tables: Vec<String>,
}

pub fn unknown(place: &Place, name: &str, value: &DeValue) -> String {
    let brackets = match value {
        DeValue::Table(_) => Some(("[", "]")),
        DeValue::Array(list) if list.iter().any(|item| item.get_ref().is_table()) => Some(("[[", "]]")),
        _ => None,
    };
    match brackets {
        Some((open, close)) if !place.tables.is_empty() => {
            let path = match path(&place.header) {
                "" => short(name),
                path => format!("{path}.{}", short(name)),
            };
            unknown_table(place, name, &format!("{open}{path}{close}"))
        }
        _ => unknown_key(place, name),
    }
}

fn unknown_table(place: &Place, name: &str, header: &str) -> String {
    match nearest(name, place.tables.iter().map(|table| leaf(table))) {
        Some(near) => format!("unknown section {header}; did you mean {}?", spell(place, near)),
        None => format!("unknown section {header}; known sections: {}", place.tables.join(", ")),
    }
}

fn unknown_key(place: &Place, name: &str) -> String {
    let here = match place.header.as_str() {
        "" => "at the top level".to_owned(),
        header => format!("in {header}"),
    };
    let unknown = format!("unknown key {} {here}", Raw::Text(name.to_owned()));
    let known = place.keys.iter().copied().chain(place.tables.iter().map(|table| leaf(table)));
    if let Some(near) = nearest(name, known) {
        return format!("{unknown}; did you mean {}?", spell(place, near));
    }
    if let Some(header) = elsewhere(place, name) {
        return format!("{unknown}; did you mean \"{name}\" in {header}?");
    }
    match place.keys.as_slice() {
        [] => format!("{unknown}; known sections: {}", place.tables.join(", ")),
        keys => format!("{unknown}; known keys: {}", keys.join(", ")),
    }
}

/// A key that is right and stands in the wrong place. What follows a table of an agent belongs to that table, so
/// the agent is the first to ask there.
fn elsewhere(place: &Place, name: &str) -> Option<String> {
    let section = SETTINGS.iter().find(|setting| setting.leaf() == name);
    let section = section.map(|setting| format!("[{}]", setting.section()));
    let agent = AGENT_SETTINGS.iter().any(|setting| setting.key == name).then(|| "[[agent]]".to_owned());
    if path(&place.header).starts_with("agent") { agent.or(section) } else { section.or(agent) }
}

/// A known name as it is written: a key in quotes, a table with its brackets.
fn spell(place: &Place, name: &str) -> String {
    match place.tables.iter().find(|table| leaf(table) == name) {
        Some(header) => header.clone(),
        None => format!("\"{name}\""),
    }
}

fn path(header: &str) -> &str {
    header.trim_matches(['[', ']'])
}

fn leaf(header: &str) -> &str {
    path(header).rsplit('.').next().unwrap_or_default()
}

/// A name in a message, kept to one short line.
fn short(name: &str) -> String {
    name.chars().take(80).map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}
