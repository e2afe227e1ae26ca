//! Whether a request came by http or by https, for the addresses that cards give.

use std::fmt;

use http::Extensions;

/// Among the extensions of a request that did not come by http.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
}

impl Scheme {
    pub(crate) fn of(request: &Extensions) -> Self {
        request.get().copied().unwrap_or(Scheme::Http)
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        })
    }
}
