//! A line of arguments, as people put it into a variable: words between blanks, with double quotes around blanks.

/// The words, or `None` if a quote has no end.
pub fn split(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut is_quoted = false;
    for letter in line.chars() {
        match letter {
            '"' => {
                is_quoted = !is_quoted;
                // Two quotes alone are an empty word.
                word.get_or_insert_default();
            }
            letter if letter.is_whitespace() && !is_quoted => words.extend(word.take()),
            letter => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    (!is_quoted).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_between_blanks_and_quotes() {
        for (line, expected) in [
            ("", Some(&[][..])),
            ("  a   b ", Some(&["a", "b"])),
            (r#"--system "be brief" -v"#, Some(&["--system", "be brief", "-v"])),
            (r#"--name="a b""#, Some(&["--name=a b"])),
            (r#"a "" b"#, Some(&["a", "", "b"])),
            ("it's", Some(&["it's"])),
            (r#"a "b"#, None),
        ] {
            let expected = expected.map(|words| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
            assert_eq!(split(line), expected, "{line}");
        }
    }
}
