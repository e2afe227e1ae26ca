//! File content as it travels: base64, checked once.
//!
//! A server that carries files mostly copies them from one JSON to another, so the text is kept as
//! standard base64 with padding and is decoded only when somebody needs the bytes.

use serde::{Deserialize, Serialize};

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Valid standard base64 with padding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Base64(String);

impl Base64 {
    /// The text of these bytes.
    pub fn encode(bytes: &[u8]) -> Self {
        let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
        for chunk in bytes.chunks(3) {
            let group = u32::from(chunk[0]) << 16
                | u32::from(chunk.get(1).copied().unwrap_or(0)) << 8
                | u32::from(chunk.get(2).copied().unwrap_or(0));
            for place in 0..4 {
                if place <= chunk.len() {
                    text.push(STANDARD[(group >> (18 - 6 * place) & 63) as usize] as char);
                } else {
                    text.push('=');
                }
            }
        }
        Self(text)
    }

    /// Reads standard or URL-safe base64, padded or not; `None` if it is neither.
    pub fn parse(text: impl Into<String>) -> Option<Self> {
        let mut text = text.into();
        let digits = text.trim_end_matches('=').len();
        let padding = text.len() - digits;
        let remainder = digits % 4;
        if remainder == 1 || (padding != 0 && padding != (4 - remainder) % 4) {
            return None;
        }
        let mut url_safe = false;
        for byte in &text.as_bytes()[..digits] {
            match byte {
                b'-' | b'_' => url_safe = true,
                _ if value(*byte).is_some() => {}
                _ => return None,
            }
        }
        if url_safe {
            text = text.replace('-', "+").replace('_', "/");
        }
        if padding == 0 {
            text.extend(std::iter::repeat_n('=', (4 - remainder) % 4));
        }
        Some(Self(text))
    }

    /// As it is written in JSON.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The bytes.
    pub fn decode(&self) -> Vec<u8> {
        let digits = self.0.trim_end_matches('=').as_bytes();
        let mut bytes = Vec::with_capacity(digits.len() / 4 * 3 + 2);
        for chunk in digits.chunks(4) {
            let group = chunk.iter().fold(0u32, |group, digit| group << 6 | value(*digit).unwrap_or(0))
                << (6 * (4 - chunk.len()));
            bytes.extend_from_slice(&group.to_be_bytes()[1..chunk.len()]);
        }
        bytes
    }
}

fn value(digit: u8) -> Option<u32> {
    Some(u32::from(match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_base64() {
        for (text, expected) in [
            ("", Some("")),
            ("AAAA", Some("AAAA")),
            ("iVBORw0KGgo=", Some("iVBORw0KGgo=")),
            ("iVBORw0KGgo", Some("iVBORw0KGgo=")),
            ("_-8", Some("/+8=")),
            ("A", None),
            ("AA=", None),
            ("A A=", None),
            ("====", None),
            ("AAAA=", None),
            ("héé=", None),
        ] {
            assert_eq!(Base64::parse(text).as_ref().map(Base64::as_str), expected, "{text:?}");
        }
        assert_eq!(Base64::encode(b"Hello file").as_str(), "SGVsbG8gZmlsZQ==");
    }

    proptest! {
        #[test]
        fn bytes_survive(bytes: Vec<u8>) {
            let text = Base64::encode(&bytes);
            prop_assert_eq!(Base64::parse(text.as_str()), Some(text.clone()));
            prop_assert_eq!(text.decode(), bytes);
        }

        #[test]
        fn any_text_is_read_or_refused(text: String) {
            if let Some(read) = Base64::parse(text) {
                read.decode();
            }
        }
    }
}
