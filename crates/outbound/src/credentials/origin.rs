//! Scheme, host and port: who may see the credentials.

use std::fmt;

use crate::guard::{Host, Refusal, Scheme, Target};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    scheme: Scheme,
    host: Host,
    port: u16,
}

impl Origin {
    pub fn parse(url: &str) -> Result<Self, Refusal> {
        let Target { scheme, host, port, .. } = Target::parse(url)?;
        Ok(Origin { scheme, host, port })
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}://{}", self.scheme.as_str(), self.host)?;
        if self.port != self.scheme.default_port() {
            write!(out, ":{}", self.port)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_one_origin() {
        for (url, expected) in [
            ("https://A.example./x?y", "https://a.example"),
            ("https://a.example:443", "https://a.example"),
            ("http://a.example:443", "http://a.example:443"),
            ("https://a.example:8443/", "https://a.example:8443"),
            ("http://[::1]:80/", "http://[::1]"),
        ] {
            let origin = Origin::parse(url).unwrap();
            assert_eq!(origin.to_string(), expected);
            assert_eq!(origin, Origin::parse(expected).unwrap());
        }
    }
}
