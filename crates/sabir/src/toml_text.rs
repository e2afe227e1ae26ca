//! TOML with words of strangers in it: whatever they wrote stays in its comment or its string.

use crate::terminal_text::visible;

/// A comment shows no more of a text than this.
const LONGEST_COMMENT: usize = 300;

/// One line, without the `#`.
pub fn comment(text: &str) -> String {
    let line = visible(&text.split_whitespace().collect::<Vec<_>>().join(" "));
    match line.char_indices().nth(LONGEST_COMMENT) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}

/// A string with its quotes. What a reader would not see is escaped.
pub fn string(text: &str) -> String {
    let mut quoted = String::from('"');
    for letter in text.chars() {
        let is_hidden = visible(letter.encode_utf8(&mut [0; 4])) != letter.to_string();
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            _ if is_hidden => quoted += &format!("\\U{:08X}", u32::from(letter)),
            _ => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_read_back_as_they_were() {
        for text in
            ["", "plain", "a\"b'''c", "back\\slash", "x\"\n[[agent]]\nid = \"y", "\0\t\u{7f}\u{202e}é\u{1f600}", "]#"]
        {
            let line = format!("a = {}", string(text));
            assert_eq!(line.lines().count(), 1, "{line}");
            let table: toml::Table = toml::from_str(&line).unwrap();
            assert_eq!(table["a"].as_str(), Some(text));
        }
    }

    #[test]
    fn comments_end_with_their_line() {
        for (text, expected) in [
            ("two\n\r\n  lines", "two lines"),
            ("x\u{2028}[[agent]]\u{85}y", "x [[agent]] y"),
            ("bell\u{7}\u{1b}[2J \u{202e}", "bell\u{fffd}\u{fffd}[2J \u{fffd}"),
        ] {
            assert_eq!(comment(text), expected);
            assert!(toml::from_str::<toml::Table>(&format!("# {}", comment(text))).unwrap().is_empty());
        }
        assert_eq!(comment(&"é".repeat(1000)).chars().count(), LONGEST_COMMENT + 3);
    }
}
