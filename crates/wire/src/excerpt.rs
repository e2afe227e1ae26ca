//! An error repeats at most 200 characters of what the caller wrote.

use std::borrow::Cow;

const MAX_CHARS: usize = 200;

/// The beginning of the text.
pub fn excerpt(text: &str) -> &str {
    match text.char_indices().nth(MAX_CHARS) {
        None => text,
        Some((end, _)) => &text[..end],
    }
}

/// The beginning of the text, with an ellipsis where something was cut off.
pub(crate) fn excerpt_with_ellipsis(text: &str) -> Cow<'_, str> {
    let excerpt = excerpt(text);
    if excerpt.len() == text.len() { Cow::Borrowed(text) } else { Cow::Owned(format!("{excerpt}…")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_has_at_most_200_characters() {
        for (text, expected, with_ellipsis) in [
            ("short".to_owned(), "short".to_owned(), "short".to_owned()),
            ("é".repeat(200), "é".repeat(200), "é".repeat(200)),
            ("é".repeat(201), "é".repeat(200), "é".repeat(200) + "…"),
        ] {
            assert_eq!(excerpt(&text), expected);
            assert_eq!(excerpt_with_ellipsis(&text), with_ellipsis);
        }
    }
}
