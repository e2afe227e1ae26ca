//! A secret that travels in the query of a URL.
//!
//! It is no part of `Request::url`, so nothing that shows the URL shows the secret: no error, no log, no card. The client adds
//! it when the request goes out. Like secret headers it is for one origin: a redirect to another one drops it, and
//! is not followed if its own URL repeats the secret, as servers do that redirect with the query they were sent.

use std::fmt;

use http::Uri;
use sabir_wire::{percent_encode, query_value};

use crate::guard::Target;

#[derive(Clone, PartialEq, Eq)]
pub struct SecretQuery {
    name: String,
    value: String,
}

impl SecretQuery {
    /// The parameter, not encoded.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        SecretQuery { name: name.into(), value: value.into() }
    }

    pub(crate) fn value(&self) -> &str {
        &self.value
    }

    /// The URL as it is sent, with the secret.
    pub(super) fn add_to(&self, target: &Target) -> Uri {
        let (url, parameter) = (target.to_string(), self.parameter());
        let has_it = url.split_once('?').is_some_and(|(_, query)| query.split('&').any(|pair| pair == parameter));
        let url = match url.contains('?') {
            // A server may redirect to the URL with the query that it was sent.
            true if has_it => url,
            true => format!("{url}&{parameter}"),
            false => format!("{url}?{parameter}"),
        };
        url.parse().expect("the target is a URI, and the parameter is percent-encoded")
    }

    /// Whether this URL holds the secret, whichever way it is encoded.
    pub(super) fn is_in(&self, target: &Target) -> bool {
        let url = target.to_string();
        let decoded = query_value(&url);
        let holds = |text: &str| text.contains(&self.value) || text.contains(&*percent_encode(&self.value));
        // A URL with a broken escape cannot be decoded.
        holds(&url) || decoded.as_deref().is_none_or(holds)
    }

    fn parameter(&self) -> String {
        format!("{}={}", percent_encode(&self.name), percent_encode(&self.value))
    }
}

/// Shows the name.
impl fmt::Debug for SecretQuery {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SecretQuery").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secret_is_added_once() {
        let query = SecretQuery::new("api key", "s&cret+/é");
        let parameter = "api%20key=s%26cret%2B%2F%C3%A9";
        for (url, expected) in [
            ("http://a", format!("http://a/?{parameter}")),
            ("http://a/x#y", format!("http://a/x?{parameter}")),
            ("http://a/x?", format!("http://a/x?&{parameter}")),
            ("http://a/x?b=c", format!("http://a/x?b=c&{parameter}")),
            (&format!("http://a/x?{parameter}&b"), format!("http://a/x?{parameter}&b")),
        ] {
            assert_eq!(query.add_to(&Target::parse(url).unwrap()).to_string(), expected, "{url}");
        }
        assert_eq!(format!("{query:?}"), "SecretQuery { name: \"api key\", .. }");
    }

    #[test]
    fn the_secret_is_found_in_a_url() {
        let query = SecretQuery::new("key", "s+cret/");
        for (url, expected) in [
            ("http://a/?key=s%2Bcret%2F", true),
            ("http://a/?key=s%2bcret%2f", true),
            ("http://a/?other=s+cret/", true),
            ("http://a/s%2Bcret%2F", true),
            ("http://a/s+cret/x", true),
            ("http://a/?key=%zz", true),
            ("http://a/?key=secret", false),
            ("http://a/", false),
        ] {
            assert_eq!(query.is_in(&Target::parse(url).unwrap()), expected, "{url}");
        }
    }
}
