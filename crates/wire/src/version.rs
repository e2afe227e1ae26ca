//! Which version a request asks for, and which dialect it is therefore served in.
//!
//! The name of a JSON-RPC method says more than the header: clients of 0.3 send none, and the names of 1.0
//! are its own. So the name decides, and a header of the other family is refused instead of obeyed.

use std::borrow::Cow;

use sabir_model::Error;

use crate::{Dialect, Head, percent, v01::V01, v1::V1, v03::V03};

/// What we tell a client that asks for something else.
pub(crate) const SUPPORTED: &str = "0.1,0.2,0.3,1.0";

/// `A2A-Version`, from the header or else from the query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Version<'a> {
    pub release: Release,
    /// As the caller wrote it.
    text: Cow<'a, str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Release {
    /// The caller did not say.
    Unsaid,
    V0_1,
    V0_2,
    V0_3,
    V1_0,
    /// Not one of ours, or not a version at all.
    Unknown,
}

impl<'a> Version<'a> {
    pub fn of(head: &Head<'a>) -> Self {
        let header = head.version.map(str::trim).filter(|text| !text.is_empty());
        let text = header.map(Cow::Borrowed).or_else(|| in_query(head.query));
        match text {
            None => Self { release: Release::Unsaid, text: Cow::Borrowed("") },
            Some(text) => Self { release: Release::parse(&text), text },
        }
    }

    pub fn is_0_x(&self) -> bool {
        matches!(self.release, Release::V0_1 | Release::V0_2 | Release::V0_3)
    }

    pub fn refused(&self) -> Error {
        Error::Version(self.text.clone().into_owned())
    }
}

fn in_query(query: Option<&str>) -> Option<Cow<'_, str>> {
    let (_, text) = percent::parameters(query).find(|(name, _)| name.eq_ignore_ascii_case("A2A-Version"))?;
    let text = percent::value(text).unwrap_or(Cow::Borrowed(text));
    if text.trim().is_empty() { None } else { Some(text) }
}

impl Release {
    /// Major and minor count; a patch number is ignored.
    fn parse(text: &str) -> Self {
        let mut numbers = text.trim().splitn(3, '.').map(number);
        match (numbers.next().flatten(), numbers.next().flatten()) {
            (Some(0), Some(1)) => Release::V0_1,
            (Some(0), Some(2)) => Release::V0_2,
            (Some(0), Some(3)) => Release::V0_3,
            (Some(1), Some(0)) => Release::V1_0,
            _ => Release::Unknown,
        }
    }
}

fn number(digits: &str) -> Option<u8> {
    if digits.bytes().all(|digit| digit.is_ascii_digit()) { digits.parse().ok() } else { None }
}

/// The generations of JSON-RPC method names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Generation {
    V1,
    V0_3,
    V0_1,
    /// In 0.1, 0.2 and 0.3 alike.
    Shared,
}

/// What is spoken on a JSON-RPC mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Spoken {
    V1,
    /// 0.2 too, which has the same wire.
    V0_3,
    V0_1,
}

/// How errors are spelled: 1.0 has typed details, 0.x an object, and 0.1 few codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    V1,
    V0,
    V0_1,
}

/// The dialect of a JSON-RPC request, or the refusal of the version that it asks for.
pub(crate) fn negotiate(forced: Option<Spoken>, names: Generation, version: &Version<'_>) -> Result<Spoken, Error> {
    use Release::{Unsaid, V0_1, V0_2, V0_3, V1_0};
    let spoken = match (forced, names, version.release) {
        (Some(Spoken::V1), _, Unsaid | V1_0) => Some(Spoken::V1),
        (Some(forced @ (Spoken::V0_3 | Spoken::V0_1)), _, Unsaid | V0_1 | V0_2 | V0_3) => Some(forced),
        (None, Generation::V1, Unsaid | V1_0) => Some(Spoken::V1),
        (None, Generation::V0_3, Unsaid | V0_1 | V0_2 | V0_3) => Some(Spoken::V0_3),
        (None, Generation::V0_1, Unsaid | V0_1 | V0_2 | V0_3) => Some(Spoken::V0_1),
        (None, Generation::Shared, V0_1) => Some(Spoken::V0_1),
        // Answered as the task was born, which only the answer tells: see `Voice`.
        (None, Generation::Shared, Unsaid | V0_2 | V0_3) => Some(Spoken::V0_3),
        _ => None,
    };
    spoken.ok_or_else(|| version.refused())
}

impl Spoken {
    pub(crate) fn dialect(self) -> &'static dyn Dialect {
        match self {
            Spoken::V1 => &V1,
            Spoken::V0_3 => &V03,
            Spoken::V0_1 => &V01,
        }
    }

    pub(crate) fn has(self, names: Generation) -> bool {
        match self {
            Spoken::V1 => names == Generation::V1,
            Spoken::V0_3 => matches!(names, Generation::V0_3 | Generation::Shared),
            Spoken::V0_1 => matches!(names, Generation::V0_1 | Generation::Shared),
        }
    }

    pub(crate) fn family(self) -> Family {
        match self {
            Spoken::V1 => Family::V1,
            Spoken::V0_3 => Family::V0,
            Spoken::V0_1 => Family::V0_1,
        }
    }
}

impl Generation {
    pub fn family(self) -> Family {
        match self {
            Generation::V1 => Family::V1,
            Generation::V0_3 | Generation::Shared => Family::V0,
            Generation::V0_1 => Family::V0_1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_as_they_are_written() {
        for (header, query, expected) in [
            (None, None, Release::Unsaid),
            (Some(""), None, Release::Unsaid),
            (Some("  "), Some("a=b"), Release::Unsaid),
            (Some("1.0"), None, Release::V1_0),
            (Some(" 1.0.1 "), None, Release::V1_0),
            (Some("0.3.0"), None, Release::V0_3),
            (Some("0.2"), Some("A2A-Version=1.0"), Release::V0_2),
            (None, Some("x=1&A2A-Version=1.0"), Release::V1_0),
            (Some(""), Some("a2a-version=0%2E1"), Release::V0_1),
            (None, Some("A2A-Version="), Release::Unsaid),
            (None, Some("A2A-Version=%zz"), Release::Unknown),
            (Some("1"), None, Release::Unknown),
            (Some("1.7"), None, Release::Unknown),
            (Some("0.5"), None, Release::Unknown),
            (Some("+1.0"), None, Release::Unknown),
            (Some("1."), None, Release::Unknown),
            (Some("999999999999.0"), None, Release::Unknown),
            (Some("latest"), None, Release::Unknown),
        ] {
            let head = Head { version: header, query, ..Head::default() };
            assert_eq!(Version::of(&head).release, expected, "{header:?} {query:?}");
        }
    }

    #[test]
    fn the_decision_table() {
        let versions = ["", "0.1", "0.2", "0.3", "1.0", "2.0"];
        for (forced, names, expected) in [
            (None, Generation::V1, "1.0 - - - 1.0 -"),
            (None, Generation::V0_3, "0.3 0.3 0.3 0.3 - -"),
            (None, Generation::V0_1, "0.1 0.1 0.1 0.1 - -"),
            (None, Generation::Shared, "0.3 0.1 0.3 0.3 - -"),
            (Some(Spoken::V1), Generation::V1, "1.0 - - - 1.0 -"),
            (Some(Spoken::V0_3), Generation::V0_3, "0.3 0.3 0.3 0.3 - -"),
            (Some(Spoken::V0_3), Generation::Shared, "0.3 0.3 0.3 0.3 - -"),
            (Some(Spoken::V0_1), Generation::Shared, "0.1 0.1 0.1 0.1 - -"),
        ] {
            let row = versions.map(|version| {
                let head = Head { version: Some(version), ..Head::default() };
                match negotiate(forced, names, &Version::of(&head)) {
                    Ok(Spoken::V1) => "1.0",
                    Ok(Spoken::V0_3) => "0.3",
                    Ok(Spoken::V0_1) => "0.1",
                    Err(Error::Version(requested)) if requested == version => "-",
                    Err(other) => panic!("{other}"),
                }
            });
            assert_eq!(row.join(" "), expected, "{forced:?} {names:?}");
        }
    }
}
