//! A value as somebody wrote it, before anyone knows what it should be.
//!
//! Files have types and the rest has only text, so `true` in the environment is a switch while `"true"` in a
//! file is a mistake. `Display` is how error messages repeat the value.

use std::fmt;

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

impl fmt::Display for Raw {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Raw::Word(text) | Raw::Text(text) => {
                let shown: String = text.chars().take(LONGEST).collect();
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
