//! Media types that an agent takes or gives, as cards list them.
//!
//! A family (`image/*`) or everything (`*/*`) may be named too. Parameters are refused: a part is compared by its
//! type alone, so `text/plain; charset=utf-8` would never be met.

pub const EXPECTED: &str = "a media type such as \"text/plain\", \"image/*\" or \"*/*\"";

pub fn parse(text: &str) -> Option<String> {
    let (family, kind) = text.split_once('/')?;
    let fits = is_name(family) && (kind == "*" || is_name(kind));
    (fits || text == "*/*").then(|| text.to_owned())
}

fn is_name(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte);
    !text.is_empty() && text.bytes().all(is_letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_families_and_everything() {
        for text in ["text/plain", "image/*", "*/*", "application/vnd.example.plan-v1+json"] {
            assert_eq!(parse(text).as_deref(), Some(text));
        }
        for text in ["", "text", "/", "text/", "*/plain", "text/plain; charset=utf-8", "a/b/c", "text /plain", "té/x"]
        {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
