//! Text of strangers on the operator's terminal.

/// The text without what would steer a terminal or change the order of what is read.
pub fn visible(text: &str) -> String {
    text.chars().map(|letter| if is_hidden(letter) { '\u{fffd}' } else { letter }).collect()
}

/// The same for a text of several lines: line ends and tabs stay. A carriage return is left out, since it comes before line
/// ends, perhaps at the end of a piece; alone it would let what follows overwrite the line.
pub fn visible_lines(text: &str) -> String {
    let shown = |letter| match letter {
        '\r' => None,
        '\n' | '\t' => Some(letter),
        letter if is_hidden(letter) => Some('\u{fffd}'),
        letter => Some(letter),
    };
    text.chars().filter_map(shown).collect()
}

fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}'
                | '\u{feff}' | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_the_terminal() {
        assert_eq!(visible("a\u{1b}[2Jé\u{202e}\n\u{9b}"), "a\u{fffd}[2Jé\u{fffd}\u{fffd}\u{fffd}");
        assert_eq!(visible_lines("a\u{1b}[2J\r\n\tb\rc\u{202e}\u{7}"), "a\u{fffd}[2J\n\tbc\u{fffd}\u{fffd}");
    }
}
