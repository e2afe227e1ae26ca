//! All that is said of an error, as plain text, for a binding that is not JSON.

use std::borrow::Cow;

use sabir_model::Error;

use super::details::{self, ErrorDetails};
use super::{code, status};

pub(crate) struct ErrorText {
    pub(crate) title: &'static str,
    /// `ErrorInfo.reason`.
    pub(crate) reason: &'static str,
    /// Our own sentence; empty where the title says all.
    pub(crate) sentence: String,
    pub(crate) members: Vec<(&'static str, String)>,
    /// Fields, and what is wrong with each.
    pub(crate) violations: Vec<(String, String)>,
}

impl ErrorText {
    pub(crate) fn of(error: &Error) -> Self {
        let owned = |text: Cow<'_, str>| text.into_owned();
        let (members, violations) = match details::of(error) {
            ErrorDetails::Members(members) => (members, Vec::new()),
            ErrorDetails::Violations(violations) => (Vec::new(), violations),
        };
        let is_internal = matches!(error, Error::Internal(_));
        ErrorText {
            title: status::http_title(error),
            reason: code::reason(error),
            sentence: if is_internal { String::new() } else { details::sentence(error) },
            members: members.into_iter().map(|(name, value)| (name, owned(value))).collect(),
            violations: violations.into_iter().map(|(field, what)| (owned(field), owned(what))).collect(),
        }
    }
}
