//! A URL that was read once, into the parts that get dialled.
//!
//! There is no second parser behind this one: the connector gets a URI that is built from these parts. So a URL cannot
//! mean one host to the guard and another to the client.

use std::fmt;

use http::Uri;

use super::host::Host;
use super::refusal::Refusal;

/// Longer URLs are refused.
pub const MAX_URL_LENGTH: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    Http,
    Https,
}

impl Scheme {
    pub fn as_str(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }

    pub(crate) fn default_port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
        }
    }
}

/// Where a request goes: a URL that is well formed. Whether it may be dialled is the policy's decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub scheme: Scheme,
    pub host: Host,
    pub port: u16,
    /// Begins with `/`, ASCII, without fragment.
    pub(crate) path_and_query: String,
}

impl Target {
    pub fn parse(url: &str) -> Result<Self, Refusal> {
        if url.len() > MAX_URL_LENGTH {
            return Err(Refusal::TooLong(MAX_URL_LENGTH));
        }
        let (scheme, rest) = url.split_once(':').ok_or(Refusal::Scheme)?;
        let scheme = match scheme {
            _ if scheme.eq_ignore_ascii_case("http") => Scheme::Http,
            _ if scheme.eq_ignore_ascii_case("https") => Scheme::Https,
            _ => return Err(Refusal::Scheme),
        };
        Self::after_scheme(scheme, rest)
    }

    /// Resolves what a `Location` header says, relative to this URL.
    pub fn join(&self, location: &str) -> Result<Self, Refusal> {
        let has_scheme = location
            .split_once(':')
            .is_some_and(|(before, _)| !before.is_empty() && !before.contains(['/', '?', '#', '\\']));
        if location.len() > MAX_URL_LENGTH {
            Err(Refusal::TooLong(MAX_URL_LENGTH))
        } else if has_scheme {
            Self::parse(location)
        } else if location.starts_with("//") {
            Self::after_scheme(self.scheme, location)
        } else {
            let path = self.path_and_query.split('?').next().unwrap_or_default();
            let joined = match location.as_bytes().first() {
                None | Some(b'#') => self.path_and_query.clone(),
                Some(b'/') => location.to_owned(),
                Some(b'?') => format!("{path}{location}"),
                Some(_) => {
                    let folder = path.rfind('/').map_or("/", |slash| &path[..=slash]);
                    format!("{folder}{location}")
                }
            };
            Ok(Target { path_and_query: path_and_query(&without_dots(&joined))?, ..self.clone() })
        }
    }

    /// Scheme, host and port: what two URLs must share for one to see the secrets of the other.
    pub fn origin(&self) -> (Scheme, &Host, u16) {
        (self.scheme, &self.host, self.port)
    }

    pub fn to_uri(&self) -> Uri {
        self.to_string().parse().expect("every part was checked")
    }

    fn after_scheme(scheme: Scheme, rest: &str) -> Result<Self, Refusal> {
        let rest = rest.strip_prefix("//").ok_or(Refusal::Malformed)?;
        // Browsers take a backslash for a slash, others for a part of the host; here it is an error in the authority.
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if authority.contains('@') {
            return Err(Refusal::UserInfo);
        }
        let (host, port) = match authority.rfind(':') {
            Some(colon) if !authority[colon..].contains(']') => (&authority[..colon], Some(&authority[colon + 1..])),
            _ => (authority, None),
        };
        let host = Host::parse(host)?;
        let port = match port {
            None | Some("") => scheme.default_port(),
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().map_err(|_| Refusal::Malformed)?
            }
            Some(_) => return Err(Refusal::Malformed),
        };
        let target = Target { scheme, host, port, path_and_query: path_and_query(path)? };
        // Percent-encoding made it longer, at most three times: far below what a URI may have.
        Ok(target)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.as_str(), self.host)?;
        if self.port != self.scheme.default_port() {
            write!(f, ":{}", self.port)?;
        }
        f.write_str(&self.path_and_query)
    }
}

/// The path and query as they are sent: without fragment, percent-encoded where a URI must be.
fn path_and_query(text: &str) -> Result<String, Refusal> {
    let text = text.split('#').next().unwrap_or_default();
    let mut sent = String::with_capacity(text.len() + 1);
    if !text.starts_with('/') {
        sent.push('/');
    }
    for byte in text.bytes() {
        match byte {
            // A space or a line break within a URL is a mistake or an attack on the request line.
            0..=b' ' | 0x7f => return Err(Refusal::Malformed),
            b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' | 0x80.. => {
                sent.push_str(&format!("%{byte:02X}"));
            }
            _ => sent.push(char::from(byte)),
        }
    }
    Ok(sent)
}

/// Removes the segments `.` and `..` from a path that begins with `/`.
fn without_dots(path_and_query: &str) -> String {
    let end = path_and_query.find(['?', '#']).unwrap_or(path_and_query.len());
    let (path, rest) = path_and_query.split_at(end);
    let mut segments: Vec<&str> = vec![];
    let mut ends_in_folder = false;
    for segment in path.split('/').skip(1) {
        ends_in_folder = matches!(segment, "." | "..");
        match segment {
            "." => {}
            ".." => {
                segments.pop();
            }
            _ => segments.push(segment),
        }
    }
    let slash = if ends_in_folder && !segments.is_empty() { "/" } else { "" };
    format!("/{}{slash}{rest}", segments.join("/"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn urls_that_can_be_dialled() {
        for (url, expected) in [
            ("http://example.com", "http://example.com/"),
            ("HTTPS://Example.COM.:443/a?b#c", "https://example.com/a?b"),
            ("http://example.com:443", "http://example.com:443/"),
            ("http://example.com:", "http://example.com/"),
            ("http://example.com:0080/", "http://example.com/"),
            ("http://example.com?x=1", "http://example.com/?x=1"),
            ("http://example.com#x", "http://example.com/"),
            ("https://[2606:4700::1111]:8443/x", "https://[2606:4700::1111]:8443/x"),
            ("https://example.com/ä?q=ü", "https://example.com/%C3%A4?q=%C3%BC"),
            ("https://example.com/{id}|\\", "https://example.com/%7Bid%7D%7C%5C"),
            ("https://example.com/a%20b/@:;", "https://example.com/a%20b/@:;"),
            ("https://example.com/a@b", "https://example.com/a@b"),
        ] {
            let target = Target::parse(url).expect(url);
            assert_eq!(target.to_string(), expected);
            assert_eq!(target.to_uri().to_string(), expected);
        }
    }

    #[test]
    fn urls_that_break_a_rule() {
        for (url, expected) in [
            ("", Refusal::Scheme),
            ("example.com", Refusal::Scheme),
            ("//example.com", Refusal::Scheme),
            ("file:///etc/passwd", Refusal::Scheme),
            ("gopher://example.com", Refusal::Scheme),
            ("ftp://example.com", Refusal::Scheme),
            ("unix:/run/docker.sock", Refusal::Scheme),
            ("data:text/plain,x", Refusal::Scheme),
            (" http://example.com", Refusal::Scheme),
            ("http:example.com", Refusal::Malformed),
            ("http:/example.com", Refusal::Malformed),
            ("http:\\\\example.com", Refusal::Malformed),
            ("http://", Refusal::Malformed),
            ("http:///x", Refusal::Malformed),
            ("http://:80/", Refusal::Malformed),
            ("http://user@example.com/", Refusal::UserInfo),
            ("http://user:pass@example.com/", Refusal::UserInfo),
            ("http://@example.com/", Refusal::UserInfo),
            ("http://example.com:99999/", Refusal::Malformed),
            ("http://example.com:+80/", Refusal::Malformed),
            ("http://example.com:80:80/", Refusal::Malformed),
            ("http://example.com\\@evil/", Refusal::UserInfo),
            ("http://example.com\\evil/", Refusal::Malformed),
            ("http://example.com/a b", Refusal::Malformed),
            ("http://example.com/\r\nX: y", Refusal::Malformed),
            ("http://exa\tmple.com/", Refusal::Malformed),
            ("http://[::1]x/", Refusal::Malformed),
        ] {
            assert_eq!(Target::parse(url), Err(expected), "{url:?}");
        }
        let long = format!("http://example.com/{}", "a".repeat(MAX_URL_LENGTH));
        assert_eq!(Target::parse(&long), Err(Refusal::TooLong(MAX_URL_LENGTH)));
    }

    #[test]
    fn locations_are_relative_to_the_url() {
        let base = Target::parse("https://example.com:8443/a/b?c").unwrap();
        for (location, expected) in [
            ("http://other.example/x", "http://other.example/x"),
            ("//other.example/x", "https://other.example/x"),
            ("/x?y", "https://example.com:8443/x?y"),
            ("x", "https://example.com:8443/a/x"),
            ("./x", "https://example.com:8443/a/x"),
            ("../x/", "https://example.com:8443/x/"),
            ("../../../x", "https://example.com:8443/x"),
            ("..", "https://example.com:8443/"),
            ("x/..", "https://example.com:8443/a/"),
            ("?z", "https://example.com:8443/a/b?z"),
            ("#z", "https://example.com:8443/a/b?c"),
            ("", "https://example.com:8443/a/b?c"),
            ("/x?u=http://y", "https://example.com:8443/x?u=http://y"),
        ] {
            assert_eq!(base.join(location).expect(location).to_string(), expected, "{location:?}");
        }
        for location in ["file:///x", "javascript:x", "http://u@x/", "a b", "\\\\evil\r\n"] {
            assert!(base.join(location).is_err(), "{location:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(url in "\\PC*", host in "[a-z0-9.:%@\\[\\]\\\\xX１。-]{0,30}", rest in "\\PC{0,20}") {
            for url in [url, format!("http://{host}{rest}"), format!("https://{host}/{rest}")] {
                if let Ok(target) = Target::parse(&url) {
                    // What is dialled says the same as what was checked.
                    let uri = target.to_uri();
                    prop_assert_eq!(Target::parse(&uri.to_string()), Ok(target.clone()));
                    prop_assert_eq!(uri.host().map(str::to_owned), Some(target.host.to_string()));
                    let _ = target.join(&rest);
                }
            }
        }
    }
}
