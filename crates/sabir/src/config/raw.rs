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
    Boolean(bool),
    List(Vec<Raw>),
    /// Something that no setting takes, such as a date; what it is called.
    Other(String),
}

impl From<&DeValue<'_>> for Raw {
    fn from(value: &DeValue) -> Self {
        match value {
            DeValue::String(text) => Raw::Text(text.to_string()),
            DeValue::Boolean(value) => Raw::Boolean(*value),
            DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
                Ok(number) => Raw::Integer(number),
                Err(_) => Raw::Other(format!("the number {}", short(number.as_str()))),
            },
            DeValue::Float(number) => Raw::Other(format!("the number {}", short(number.as_str()))),
            DeValue::Datetime(date) => Raw::Other(format!("the date {date}")),
            DeValue::Array(list) => Raw::List(list.iter().map(|value| Raw::from(value.get_ref())).collect()),
            DeValue::Table(_) => Raw::Other("a table".to_owned()),
        }
    }
}

impl fmt::Display for Raw {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Raw::Word(text) | Raw::Text(text) => {
                let shown = short(text);
                let more = if shown.len() < text.len() { "..." } else { "" };
                write!(out, "{shown:?}{more}")
            }
            Raw::Integer(number) => write!(out, "{number}"),
            Raw::Boolean(value) => write!(out, "{value}"),
            Raw::List(_) => out.write_str("a list"),
            Raw::Other(name) => out.write_str(name),
        }
    }
}

/// An error message is one line for a person; nobody reads the rest of a long value.
const LONGEST: usize = 80;

fn short(text: &str) -> String {
    text.chars().take(LONGEST).collect()
}
