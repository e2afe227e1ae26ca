//! Base64 as JSON signatures write it: URL-safe, without padding.

use crate::Base64;

/// The text of these bytes.
pub fn base64url(bytes: &[u8]) -> String {
    Base64::encode(bytes).as_str().trim_end_matches('=').replace('+', "-").replace('/', "_")
}

/// The bytes of a text. `None` for any other spelling of the same bytes: each value has one text.
pub fn from_base64url(text: &str) -> Option<Vec<u8>> {
    let bytes = Base64::parse(text)?.decode();
    (base64url(&bytes) == text).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_has_one_text() {
        for (text, expected) in [
            ("", Some(&b""[..])),
            ("_-8", Some(b"\xff\xef")),
            ("AQ", Some(b"\x01")),
            // Padding, the other alphabet, bits that are left over, white space.
            ("AQ==", None),
            ("/+8", None),
            ("AR", None),
            ("A", None),
            ("A Q", None),
        ] {
            assert_eq!(from_base64url(text).as_deref(), expected, "{text}");
        }
    }
}
