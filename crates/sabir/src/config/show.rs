//! What `sabir config` prints: every setting in force and where it came from.

use serde_json::{Value, json};

use super::layers::LoadedConfig;

/// Who reads the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// Lines to look at.
    Person,
    /// One JSON array, an object per line.
    Program,
}

pub fn show(loaded: &LoadedConfig, audience: Audience) -> String {
    match audience {
        Audience::Person => table(loaded),
        Audience::Program => array(loaded),
    }
}

fn table(loaded: &LoadedConfig) -> String {
    let rows =
        loaded.values.iter().map(|setting| (format!("{} = {}", setting.key, spell(&setting.value)), &setting.origin));
    let rows: Vec<_> = rows.collect();
    let width = rows.iter().map(|(row, _)| row.chars().count()).max().unwrap_or(0);
    let width = width.min(WIDEST);
    let mut out = String::new();
    for (row, origin) in rows {
        out += &format!("{row:width$}   # {origin}\n");
    }
    out
}

fn array(loaded: &LoadedConfig) -> String {
    let objects = loaded.values.iter().map(|setting| {
        // Written out, since a map would sort its members by name.
        let (key, source) = (json!(setting.key), json!(setting.origin.to_string()));
        format!(r#"{{"key":{key},"value":{},"source":{source}}}"#, setting.value)
    });
    format!("[\n{}\n]\n", objects.collect::<Vec<_>>().join(",\n"))
}

/// As in `sabir.toml`, whose texts, numbers and lists look like JSON; tables are shown as the card shows them.
fn spell(value: &Value) -> String {
    match value {
        Value::Null => "(not set)".to_owned(),
        value => value.to_string(),
    }
}

/// One long path should not push all origins off the screen.
const WIDEST: usize = 60;
