//! Text of strangers on the operator's terminal.

/// The text without what would steer a terminal or change the order of what is read.
pub fn visible(text: &str) -> String {
    let is_hidden = |letter: char| {
        letter.is_control()
            || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|letter| if is_hidden(letter) { '\u{fffd}' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_the_terminal() {
        assert_eq!(visible("a\u{1b}[2Jé\u{202e}\n\u{9b}"), "a\u{fffd}[2Jé\u{fffd}\u{fffd}\u{fffd}");
    }
}
