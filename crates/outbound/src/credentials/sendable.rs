//! What can be sent: the names and values of headers and cookies that the operator chose.

use http::{HeaderName, HeaderValue, header};

use super::error::InvalidCredentials;
use crate::client::CONNECTION_HEADERS;

/// Servers refuse longer headers and URLs.
pub(super) const MAX_LENGTH: usize = 8192;

/// Headers by which the protocol works; the call itself sets them.
const PROTOCOL_HEADERS: [HeaderName; 4] =
    [header::ACCEPT, header::CONTENT_TYPE, header::CONTENT_ENCODING, HeaderName::from_static("a2a-version")];

/// A token that can follow `Bearer `.
pub(super) fn is_token(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_TOKEN && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Tokens with many claims are long, and some servers take them.
const MAX_TOKEN: usize = 32 * 1024;

pub(super) fn header_name(field: &'static str, name: &str) -> Result<HeaderName, InvalidCredentials> {
    let read = HeaderName::from_bytes(name.as_bytes());
    let read = read.map_err(|_| InvalidCredentials::new(field, format!("`{name}` is not the name of a header")))?;
    if CONNECTION_HEADERS.contains(&read) || PROTOCOL_HEADERS.contains(&read) {
        return Err(InvalidCredentials::new(field, format!("`{name}` is a header that Sabir sets itself")));
    }
    Ok(read)
}

/// The value, marked as a secret.
pub(super) fn header_value(field: &'static str, value: &str) -> Result<HeaderValue, InvalidCredentials> {
    let is_sendable = !value.is_empty()
        && value.len() <= MAX_LENGTH
        && value.trim_ascii() == value
        && value.bytes().all(|byte| (b' '..0x7f).contains(&byte));
    let read = HeaderValue::from_str(value).ok().filter(|_| is_sendable);
    let mut read = read.ok_or_else(|| {
        let reason = format!("must be 1 to {MAX_LENGTH} printable ASCII characters without spaces at its ends");
        InvalidCredentials::new(field, reason)
    })?;
    read.set_sensitive(true);
    Ok(read)
}

/// The header `Cookie` with this one cookie (RFC 6265, section 4.1.1).
pub(super) fn cookie(name: &str, value: &str) -> Result<HeaderValue, InvalidCredentials> {
    let is_of_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_of_token) {
        return Err(InvalidCredentials::new("name", format!("`{name}` is not the name of a cookie")));
    }
    let is_of_cookie = |byte: u8| byte.is_ascii_graphic() && !b"\",;\\".contains(&byte);
    if !value.bytes().all(is_of_cookie) {
        let reason = "must be visible ASCII characters other than quotes, commas, semicolons and backslashes";
        return Err(InvalidCredentials::new("value", reason));
    }
    header_value("value", &format!("{name}={value}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens() {
        for (text, expected) in [
            ("a.b-c_d~e+f/g==", true),
            ("", false),
            ("Bearer a", false),
            ("a\n", false),
            ("ü", false),
            (&"a".repeat(MAX_TOKEN), true),
            (&"a".repeat(MAX_TOKEN + 1), false),
        ] {
            assert_eq!(is_token(text), expected, "{:?}", &text[..text.len().min(20)]);
        }
    }

    #[test]
    fn names_of_headers() {
        for (name, expected) in [
            ("X-API-Key", "x-api-key"),
            ("authorization", "authorization"),
            ("", "headers `` is not the name of a header"),
            ("a b", "headers `a b` is not the name of a header"),
            ("Host", "headers `Host` is a header that Sabir sets itself"),
            ("proxy-authorization", "headers `proxy-authorization` is a header that Sabir sets itself"),
            ("Content-Type", "headers `Content-Type` is a header that Sabir sets itself"),
            ("A2A-Version", "headers `A2A-Version` is a header that Sabir sets itself"),
        ] {
            let outcome = header_name("headers", name).map(|name| name.to_string());
            assert_eq!(outcome.unwrap_or_else(|error| error.to_string()), expected);
        }
    }

    #[test]
    fn values_of_headers_and_cookies() {
        for (value, as_header, as_cookie) in [
            ("secret", true, true),
            ("two words", true, false),
            ("a;b", true, false),
            ("", false, true),
            (" secret", false, false),
            ("a\r\nHost: b", false, false),
            ("ü", false, false),
            (&"a".repeat(MAX_LENGTH + 1), false, false),
        ] {
            let header = header_value("value", value);
            assert_eq!(header.is_ok(), as_header, "{value:?}");
            assert!(header.iter().all(HeaderValue::is_sensitive));
            let cookie = cookie("key", value);
            assert_eq!(cookie.is_ok(), as_cookie, "{value:?}");
            assert!(cookie.iter().all(|cookie| cookie.is_sensitive() && *cookie == format!("key={value}")));
            for error in [header.err(), cookie.err()].into_iter().flatten().filter(|_| value.len() > 2) {
                assert!(!error.to_string().contains(value), "{error}");
            }
        }
        assert!(cookie("a=b", "c").is_err());
        assert!(cookie("", "c").is_err());
    }
}
