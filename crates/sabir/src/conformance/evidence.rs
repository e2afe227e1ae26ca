//! What was tried and what came back, in few enough characters to be read.

/// The beginning of a body is enough to see what is wrong with it.
const LONGEST_BODY: usize = 600;

/// A request and its response as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    pub tried: String,
    pub got: String,
}

impl Evidence {
    pub fn new(tried: impl Into<String>, got: impl Into<String>) -> Self {
        Evidence { tried: tried.into(), got: got.into() }
    }
}

/// The beginning of a body as one line of text.
pub fn excerpt(body: &[u8]) -> String {
    let end = body.len().min(LONGEST_BODY * 4);
    let text = String::from_utf8_lossy(&body[..end]);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(LONGEST_BODY) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None if end < body.len() => format!("{text}…"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_one_line_and_bounded() {
        assert_eq!(excerpt(b"{\n  \"a\":  1\n}"), "{ \"a\": 1 }");
        assert_eq!(excerpt(b""), "");
        let long = "é".repeat(5000);
        let shown = excerpt(long.as_bytes());
        assert_eq!(shown.chars().count(), LONGEST_BODY + 1);
        assert!(shown.ends_with('…'));
        assert_eq!(excerpt(&[0xff, b'a']), "\u{fffd}a");
    }
}
