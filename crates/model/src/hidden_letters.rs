//! Letters of a text that nobody sees.

/// What Unicode lets no font show, what changes the order of what is read, and letters that are blank although they are no spaces.
/// Not the two selectors by which an emoji gets its colours.
pub fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
                | '\u{fe00}'..='\u{fe0d}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
        )
}

/// The text with a mark for each hidden letter, line ends and tabs included.
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
