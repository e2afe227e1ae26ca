//! Percent-encoding of URLs, both ways.
//!
//! Most text has no escapes, so decoding borrows unless there is something to decode.

use std::borrow::Cow;

use crate::work;

/// One segment of a path. `None`: an escape is broken, or the bytes are not UTF-8.
pub fn segment(text: &str) -> Option<Cow<'_, str>> {
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

/// A text as one segment of a path, or as a value in a query.
pub fn encode(text: &str) -> Cow<'_, str> {
    work::visit(text.len());
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    if text.bytes().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut encoded = String::with_capacity(text.len() + 8);
    for byte in text.bytes() {
        match is_plain(byte) {
            true => encoded.push(char::from(byte)),
            false => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    Cow::Owned(encoded)
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
    fn what_is_encoded_is_decoded_to_the_same_text() {
        for (text, expected) in [
            ("9b1f-2c.3_4~", "9b1f-2c.3_4~"),
            ("a b+c", "a%20b%2Bc"),
            ("tasks/1:cancel?x", "tasks%2F1%3Acancel%3Fx"),
            ("é%", "%C3%A9%25"),
            ("", ""),
        ] {
            assert_eq!(encode(text), expected);
            assert_eq!(segment(&encode(text)).as_deref(), Some(text));
            assert_eq!(value(&encode(text)).as_deref(), Some(text));
        }
    }

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
