//! A value as somebody wrote it, before its setting says what it should be.
//!
//! Files have types and the rest has only text, so `true` in the environment is a switch while `"true"` in a
//! file is a mistake. `Display` is how error messages repeat the value.

use std::fmt;

#[derive(Debug, Clone, PartialEq)]
pub enum Raw {
    /// From the environment, the command line or the table of defaults, where all is text.
    Untyped(String),
    Text(String),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    /// A date, a time or both, as TOML writes it.
    Date(String),
    List(Vec<Raw>),
    Table(RawTable),
    /// Something that no setting takes, such as a huge number; what it is called.
    Other(String),
}

/// A table of the file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RawTable {
    /// Where its header is.
    pub line: usize,
    pub entries: Vec<RawEntry>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RawEntry {
    pub key: String,
    pub line: usize,
    pub value: Raw,
}

impl Raw {
    pub fn untyped(text: impl Into<String>) -> Self {
        Raw::Untyped(text.into())
    }

    /// The trimmed text, if it is text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Raw::Untyped(text) | Raw::Text(text) => Some(text.trim()),
            _ => None,
        }
    }

    /// The members of a list. Untyped text separates them by commas; a single value is a list of one.
    pub fn members(&self) -> Vec<Raw> {
        match self {
            Raw::List(list) => list.clone(),
            Raw::Untyped(text) => {
                let members = text.split(',').map(str::trim).filter(|member| !member.is_empty());
                members.map(Raw::untyped).collect()
            }
            single => vec![single.clone()],
        }
    }

    /// Says what is there and what should be, in words that follow the name of the setting. A value that may hold a
    /// password is not repeated.
    pub fn unexpected(&self, expected: &str) -> String {
        let may_hold_password = self.as_text().is_some_and(|text| text.contains("://") && text.contains('@'));
        match may_hold_password {
            true => format!("does not fit; expected {expected}"),
            false => format!("is {self}; expected {expected}"),
        }
    }
}

impl fmt::Display for Raw {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Raw::Untyped(text) | Raw::Text(text) => {
                let shown = shortened(text);
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
pub fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}
