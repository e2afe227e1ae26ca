//! Percent-decoding of URLs.
//!
//! Most text has no escapes, so decoding borrows unless there is something to decode.

use std::borrow::Cow;

use crate::work;

/// One segment of a path. `None`: an escape is broken, or the bytes are not UTF-8.
pub(crate) fn segment(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('%') {
        return Some(Cow::Borrowed(text));
    }
    unescape(text.as_bytes()).map(Cow::Owned)
}

/// The value of a query parameter, where `+` is a space.
pub fn value(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('+') {
        return segment(text);
    }
    unescape(text.replace('+', " ").as_bytes()).map(Cow::Owned)
}

/// The names and values of a query, still as they were sent.
pub fn parameters(query: Option<&str>) -> impl Iterator<Item = (&str, &str)> {
    let each = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    each.map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

fn unescape(bytes: &[u8]) -> Option<String> {
    work::visit(bytes.len());
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    loop {
        rest = match rest {
            [] => return String::from_utf8(decoded).ok(),
            [b'%', high, low, rest @ ..] => {
                decoded.push(digit(*high)? << 4 | digit(*low)?);
                rest
            }
            [b'%', ..] => return None,
            [byte, rest @ ..] => {
                decoded.push(*byte);
                rest
            }
        };
    }
}

fn digit(hex: u8) -> Option<u8> {
    char::from(hex).to_digit(16).map(|value| value as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_and_query_values_are_percent_decoded() {
        for (text, as_segment, as_value) in [
            ("plain", Some("plain"), Some("plain")),
            ("a%20b", Some("a b"), Some("a b")),
            ("a+b", Some("a+b"), Some("a b")),
            ("a%2Bb", Some("a+b"), Some("a+b")),
            ("%C3%A9+", Some("é+"), Some("é ")),
            ("%c3%a9", Some("é"), Some("é")),
            ("%C3", None, None),
            ("%", None, None),
            ("%4", None, None),
            ("%zz", None, None),
            ("", Some(""), Some("")),
        ] {
            assert_eq!(segment(text).as_deref(), as_segment, "{text}");
            assert_eq!(value(text).as_deref(), as_value, "{text}");
        }
        let pairs: Vec<_> = parameters(Some("a=1&&b&c==2")).collect();
        assert_eq!(pairs, [("a", "1"), ("b", ""), ("c", "=2")]);
        assert_eq!(parameters(None).count(), 0);
    }
}
