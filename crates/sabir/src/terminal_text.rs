//! Text of strangers on the operator's terminal.

use sabir_model::is_hidden;
pub use sabir_model::{visible, visible_lines};

/// JSON that steers no terminal: the values stay what they are, since what would steer a terminal is written as an escape.
pub fn visible_json(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for letter in json.chars() {
        match letter {
            '\n' | '\t' => shown.push(letter),
            // Between two values; within a text it is an escape already.
            '\r' => shown.push(' '),
            letter if is_hidden(letter) => {
                for unit in letter.encode_utf16(&mut [0; 2]) {
                    shown += &format!("\\u{unit:04x}");
                }
            }
            letter => shown.push(letter),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_the_terminal() {
        assert_eq!(visible("a\u{1b}[2Jé\u{202e}\n\u{9b}"), "a\u{fffd}[2Jé\u{fffd}\u{fffd}\u{fffd}");
        assert_eq!(visible_lines("a\u{1b}[2J\r\n\tb\rc\u{202e}\u{7}"), "a\u{fffd}[2J\n\tbc\u{fffd}\u{fffd}");
    }

    #[test]
    fn letters_that_take_no_room_are_seen() {
        let hidden =
            "\u{200b}\u{2067}\u{206a}\u{e0101}\u{e0041}\u{3164}\u{115f}\u{34f}\u{fe00}\u{2800}\u{180e}\u{fff9}";
        assert_eq!(visible(hidden), "\u{fffd}".repeat(hidden.chars().count()));
        let shown = "a b\u{a0}\u{2764}\u{fe0f} \u{1f600} \u{fffd} \u{5d0} \u{e01}";
        assert_eq!(visible(shown), shown);
    }

    #[test]
    fn json_is_shown_with_escapes_and_means_the_same() {
        for (json, expected) in [
            ("{\"a\":\"é\u{9b}2J\u{7f}\"}", r#"{"a":"é\u009b2J\u007f"}"#),
            ("[\"\u{85}\",\r\n\t\"\u{202e}\"]", "[\"\\u0085\", \n\t\"\\u202e\"]"),
            // A letter of two units, and one behind a backslash that is itself escaped.
            ("\"\u{e0041}\"", r#""\udb40\udc41""#),
            ("\"\\\\\u{9b}\"", r#""\\\u009b""#),
            (r#"{"a":"\u001b[2J","b":[1e3]}"#, r#"{"a":"\u001b[2J","b":[1e3]}"#),
        ] {
            let shown = visible_json(json);
            assert_eq!(shown, expected);
            let read = |json: &str| serde_json::from_str::<serde_json::Value>(json).unwrap();
            assert_eq!(read(&shown), read(json));
        }
    }
}
