//! Which version of A2A a request asks for, and which version answers it.
//!
//! The name of a JSON-RPC method says more than the header: clients of 0.3 send no header, and the names of 1.0
//! belong to 1.0 alone. So the method decides, and a header of the other line (0.x against 1.x) is refused.

use std::borrow::Cow;

use sabir_model::Error;

use crate::{JsonDialect, RequestHead, percent, v01::V01, v1::V1, v03::V03};

/// The list for clients that ask for another version.
pub(crate) const SUPPORTED: &str = "0.1,0.2,0.3,1.0";

/// A version of the A2A protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProtocolVersion {
    V0_1,
    /// Its wire format is that of 0.3.
    V0_2,
    V0_3,
    V1_0,
}

impl ProtocolVersion {
    /// Each of them, oldest first.
    pub const ALL: [ProtocolVersion; 4] =
        [ProtocolVersion::V0_1, ProtocolVersion::V0_2, ProtocolVersion::V0_3, ProtocolVersion::V1_0];

    /// As `A2A-Version` and cards write it.
    pub fn number(self) -> &'static str {
        match self {
            ProtocolVersion::V0_1 => "0.1",
            ProtocolVersion::V0_2 => "0.2",
            ProtocolVersion::V0_3 => "0.3",
            ProtocolVersion::V1_0 => "1.0",
        }
    }

    /// Major and minor number count; a patch number is ignored.
    pub fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.trim().splitn(3, '.').map(number);
        match (numbers.next().flatten(), numbers.next().flatten()) {
            (Some(0), Some(1)) => Some(ProtocolVersion::V0_1),
            (Some(0), Some(2)) => Some(ProtocolVersion::V0_2),
            (Some(0), Some(3)) => Some(ProtocolVersion::V0_3),
            (Some(1), Some(0)) => Some(ProtocolVersion::V1_0),
            _ => None,
        }
    }

    pub(crate) fn is_0_x(self) -> bool {
        self < ProtocolVersion::V1_0
    }

    /// The dialect of JSON-RPC in this version.
    pub(crate) fn json_rpc_dialect(self) -> &'static dyn JsonDialect {
        match self {
            ProtocolVersion::V1_0 => &V1,
            ProtocolVersion::V0_3 | ProtocolVersion::V0_2 => &V03,
            ProtocolVersion::V0_1 => &V01,
        }
    }
}

fn number(digits: &str) -> Option<u8> {
    if digits.bytes().all(|digit| digit.is_ascii_digit()) { digits.parse().ok() } else { None }
}

/// `A2A-Version`, from the header or else from the query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VersionHeader<'a> {
    pub requested: Requested,
    /// As the caller wrote it.
    text: Cow<'a, str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Requested {
    /// The caller names no version.
    Nothing,
    Version(ProtocolVersion),
    /// The caller names a version that is not served, or writes something that is no version.
    Unsupported,
}

impl<'a> VersionHeader<'a> {
    pub fn of(head: &RequestHead<'a>) -> Self {
        let header = head.version.map(str::trim).filter(|text| !text.is_empty());
        let text = header.map(Cow::Borrowed).or_else(|| in_query(head.query));
        match text {
            None => Self { requested: Requested::Nothing, text: Cow::Borrowed("") },
            Some(text) => {
                let version = ProtocolVersion::parse(&text);
                Self { requested: version.map_or(Requested::Unsupported, Requested::Version), text }
            }
        }
    }

    pub fn is_missing(&self) -> bool {
        self.requested == Requested::Nothing
    }

    pub fn is_1_0(&self) -> bool {
        self.requested == Requested::Version(ProtocolVersion::V1_0)
    }

    pub fn is_0_x(&self) -> bool {
        matches!(self.requested, Requested::Version(version) if version.is_0_x())
    }

    pub fn not_supported(&self) -> Error {
        Error::Version(self.text.clone().into_owned())
    }
}

fn in_query(query: Option<&str>) -> Option<Cow<'_, str>> {
    let (_, text) = percent::parameters(query).find(|(name, _)| name.eq_ignore_ascii_case("A2A-Version"))?;
    let text = percent::value(text).unwrap_or(Cow::Borrowed(text));
    if text.trim().is_empty() { None } else { Some(text) }
}

/// The versions that have a JSON-RPC method of one name, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MethodVersions(&'static [ProtocolVersion]);

impl MethodVersions {
    pub const V1: Self = Self(&[ProtocolVersion::V1_0]);
    pub const V0_3: Self = Self(&[ProtocolVersion::V0_2, ProtocolVersion::V0_3]);
    pub const V0_1: Self = Self(&[ProtocolVersion::V0_1]);
    /// The same name in 0.1, 0.2 and 0.3.
    pub const ALL_0_X: Self = Self(&[ProtocolVersion::V0_1, ProtocolVersion::V0_2, ProtocolVersion::V0_3]);

    pub fn contains(self, version: ProtocolVersion) -> bool {
        self.0.contains(&version)
    }

    pub fn newest(self) -> ProtocolVersion {
        self.0[self.0.len() - 1]
    }
}

/// The version that answers a JSON-RPC request. `fixed` is the version of a mount that has only one.
pub(crate) fn negotiate(
    fixed: Option<ProtocolVersion>,
    method: MethodVersions,
    header: &VersionHeader<'_>,
) -> Result<ProtocolVersion, Error> {
    let default = fixed.unwrap_or(method.newest());
    match header.requested {
        Requested::Nothing => Ok(default),
        Requested::Version(version) if version.is_0_x() != default.is_0_x() => Err(header.not_supported()),
        Requested::Version(version) if fixed.is_none() && method.contains(version) => Ok(version),
        Requested::Version(_) => Ok(default),
        Requested::Unsupported => Err(header.not_supported()),
    }
}

#[cfg(test)]
mod tests {
    use super::ProtocolVersion::{V0_1, V0_2, V0_3, V1_0};
    use super::*;

    #[test]
    fn the_version_is_read_from_the_header_or_the_query() {
        for (header, query, expected) in [
            (None, None, Requested::Nothing),
            (Some(""), None, Requested::Nothing),
            (Some("  "), Some("a=b"), Requested::Nothing),
            (Some("1.0"), None, Requested::Version(V1_0)),
            (Some(" 1.0.1 "), None, Requested::Version(V1_0)),
            (Some("0.3.0"), None, Requested::Version(V0_3)),
            (Some("0.2"), Some("A2A-Version=1.0"), Requested::Version(V0_2)),
            (None, Some("x=1&A2A-Version=1.0"), Requested::Version(V1_0)),
            (Some(""), Some("a2a-version=0%2E1"), Requested::Version(V0_1)),
            (None, Some("A2A-Version="), Requested::Nothing),
            (None, Some("A2A-Version=%zz"), Requested::Unsupported),
            (Some("1"), None, Requested::Unsupported),
            (Some("1.7"), None, Requested::Unsupported),
            (Some("0.5"), None, Requested::Unsupported),
            (Some("+1.0"), None, Requested::Unsupported),
            (Some("1."), None, Requested::Unsupported),
            (Some("999999999999.0"), None, Requested::Unsupported),
            (Some("latest"), None, Requested::Unsupported),
        ] {
            let head = RequestHead { version: header, query, ..RequestHead::default() };
            assert_eq!(VersionHeader::of(&head).requested, expected, "{header:?} {query:?}");
        }
    }

    #[test]
    fn the_method_and_the_header_decide_which_version_answers() {
        let versions = ["", "0.1", "0.2", "0.3", "1.0", "2.0"];
        for (fixed, method, expected) in [
            (None, MethodVersions::V1, "1.0 - - - 1.0 -"),
            (None, MethodVersions::V0_3, "0.3 0.3 0.3 0.3 - -"),
            (None, MethodVersions::V0_1, "0.1 0.1 0.1 0.1 - -"),
            (None, MethodVersions::ALL_0_X, "0.3 0.1 0.3 0.3 - -"),
            (Some(V1_0), MethodVersions::V1, "1.0 - - - 1.0 -"),
            (Some(V0_3), MethodVersions::V0_3, "0.3 0.3 0.3 0.3 - -"),
            (Some(V0_3), MethodVersions::ALL_0_X, "0.3 0.3 0.3 0.3 - -"),
            (Some(V0_1), MethodVersions::ALL_0_X, "0.1 0.1 0.1 0.1 - -"),
        ] {
            let row = versions.map(|version| {
                let head = RequestHead { version: Some(version), ..RequestHead::default() };
                match negotiate(fixed, method, &VersionHeader::of(&head)) {
                    Ok(V1_0) => "1.0",
                    Ok(V0_3 | V0_2) => "0.3",
                    Ok(V0_1) => "0.1",
                    Err(Error::Version(requested)) if requested == version => "-",
                    Err(other) => panic!("{other}"),
                }
            });
            assert_eq!(row.join(" "), expected, "{fixed:?} {method:?}");
        }
    }
}
