//! A value as somebody wrote it, before anyone knows what it should be.
//!
//! Files have types and the rest has only text, so `true` in the environment is a switch while `"true"` in a
//! file is a mistake. `Display` is how error messages repeat the value.

use std::fmt;

use toml::de::DeValue;

#[derive(Debug, Clone, PartialEq)]
pub enum Raw {
    /// From the environment, the command line or the table of defaults, where all is text.
    Word(String),
    Text(String),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    /// A date, a time or both, as TOML writes it.
    Date(String),
    List(Vec<Raw>),
    Table(Vec<(String, Raw)>),
    /// Something that no setting takes, such as a huge number; what it is called.
    Other(String),
}

impl From<&DeValue<'_>> for Raw {
    fn from(value: &DeValue) -> Self {
        Raw::at_level(0, value)
    }
}

impl Raw {
    fn at_level(level: usize, value: &DeValue) -> Self {
        let below = |value: &DeValue| Raw::at_level(level + 1, value);
        match value {
            DeValue::String(text) => Raw::Text(text.to_string()),
            DeValue::Boolean(value) => Raw::Boolean(*value),
            DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
                Ok(number) => Raw::Integer(number),
                Err(_) => Raw::Other(format!("the number {}", short(number.as_str()))),
            },
            DeValue::Float(number) => match number.as_str().parse() {
                Ok(number) => Raw::Float(number),
                Err(_) => Raw::Other(format!("the number {}", short(number.as_str()))),
            },
            DeValue::Datetime(date) => Raw::Date(date.to_string()),
            DeValue::Array(_) | DeValue::Table(_) if level >= DEEPEST => {
                Raw::Other(format!("a value more than {DEEPEST} levels deep"))
            }
            DeValue::Array(list) => Raw::List(list.iter().map(|value| below(value.get_ref())).collect()),
            DeValue::Table(table) => {
                let members = table.iter().map(|(key, value)| (key.get_ref().to_string(), below(value.get_ref())));
                Raw::Table(members.collect())
            }
        }
    }
}

/// What is deeper than this is not looked into. Nobody writes it by hand, and readers of JSON give up at 128.
const DEEPEST: usize = 64;

impl fmt::Display for Raw {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Raw::Word(text) | Raw::Text(text) => {
                let shown = short(text);
                let more = if shown.len() < text.len() { "..." } else { "" };
                write!(out, "{shown:?}{more}")
            }
            Raw::Integer(number) => write!(out, "{number}"),
            Raw::Float(number) => write!(out, "the number {number}"),
            Raw::Boolean(value) => write!(out, "{value}"),
            Raw::Date(date) => write!(out, "the date {date}"),
            Raw::List(_) => out.write_str("a list"),
            Raw::Table(_) => out.write_str("a table"),
            Raw::Other(name) => out.write_str(name),
        }
    }
}

/// An error message is one line for a person; nobody reads the rest of a long value.
const LONGEST: usize = 80;

fn short(text: &str) -> String {
    text.chars().take(LONGEST).collect()
}
