//! Where a value came from, and how messages name that place.

use std::fmt;

#[derive(Debug, Clone, PartialEq)]
pub enum Origin {
    Default,
    File {
        name: String,
        line: usize,
    },
    /// A `SABIR_` name.
    Variable(String),
    /// One or more environment names that other A2A servers use.
    Borrowed(String),
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => out.write_str("default"),
            Origin::File { name, line } => write!(out, "{name}:{line}"),
            Origin::Variable(name) | Origin::Borrowed(name) => out.write_str(name),
            Origin::Flag(name) => out.write_str(name),
        }
    }
}

/// One line on something that is wrong, and the line of the file that it is in.
#[derive(Debug)]
pub struct Problem {
    /// What is not in the file comes after all that is.
    pub line: usize,
    pub text: String,
}

impl Problem {
    /// On a value that does not fit; `words` follow the name of the setting.
    pub fn of(origin: &Origin, key: &str, words: &str) -> Self {
        match origin {
            Origin::File { name, line } => Problem::in_file(name, *line, &format!("{key} {words}")),
            Origin::Default => Problem::outside(format!("{key} {words}")),
            Origin::Variable(_) | Origin::Borrowed(_) | Origin::Flag(_) => {
                Problem::outside(format!("{origin} {words}"))
            }
        }
    }

    pub fn in_file(name: &str, line: usize, words: &str) -> Self {
        Problem { line, text: format!("{name}:{line}: {words}") }
    }

    pub fn outside(text: String) -> Self {
        Problem { line: usize::MAX, text }
    }

    /// For values that may be wrong without harm.
    pub fn as_warning(&self) -> String {
        format!("{}; it is ignored", self.text)
    }
}
