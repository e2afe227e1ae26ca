//! Durations as people write them: `20m`, `500ms`, `1h30m`; a bare number is seconds.
//!
//! There is a longest one, so that adding a duration to a clock can never overflow.

use std::time::Duration;

pub const EXPECTED: &str = "a duration such as \"20m\", \"1h30m\", \"500ms\" or 30 (seconds), at most 36500d";

pub fn parse(text: &str) -> Option<Duration> {
    let milliseconds = if let Some(seconds) = number(text) { seconds.checked_mul(1000)? } else { sum(text)? };
    let duration = Duration::from_millis(milliseconds);
    (duration <= LONGEST).then_some(duration)
}

/// The shortest spelling that `parse` reads back; parts of a millisecond are dropped.
pub fn spell(duration: Duration) -> String {
    let mut rest = duration.as_millis();
    let mut spelled = String::new();
    for (unit, length) in UNITS {
        let length = u128::from(length);
        if rest >= length {
            spelled += &format!("{}{unit}", rest / length);
            rest %= length;
        }
    }
    if spelled.is_empty() { "0s".to_owned() } else { spelled }
}

const LONGEST: Duration = Duration::from_secs(36_500 * 24 * 60 * 60);

/// Longest first; lengths in milliseconds.
const UNITS: [(&str, u64); 5] =
    [("d", 24 * 60 * 60 * 1000), ("h", 60 * 60 * 1000), ("m", 60 * 1000), ("s", 1000), ("ms", 1)];

/// The sum of `number unit` pairs, in milliseconds. Units stand in order, each at most once.
fn sum(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut total: u64 = 0;
    let mut smaller = &UNITS[..];
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit())?;
        let count = number(&rest[..digits])?;
        rest = &rest[digits..];
        let letters = rest.find(|letter: char| letter.is_ascii_digit());
        let (unit, next) = rest.split_at(letters.unwrap_or(rest.len()));
        let position = smaller.iter().position(|(name, _)| *name == unit)?;
        total = total.checked_add(count.checked_mul(smaller[position].1)?)?;
        smaller = &smaller[position + 1..];
        rest = next;
    }
    (!text.is_empty()).then_some(total)
}

fn number(digits: &str) -> Option<u64> {
    // `parse` of a number also takes a sign.
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    if plain { digits.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_in_every_spelling() {
        for (text, expected) in [
            ("20m", Some("20m")),
            ("500ms", Some("500ms")),
            ("1h30m", Some("1h30m")),
            ("90", Some("1m30s")),
            ("1500ms", Some("1s500ms")),
            ("0", Some("0s")),
            ("36500d", Some("36500d")),
            ("36501d", None),
            ("99999999999999999999", None),
            ("30m1h", None),
            ("1h1h", None),
            ("-5s", None),
            ("+5", None),
            ("1.5h", None),
            ("5 m", None),
            ("m", None),
            ("5x", None),
            ("", None),
        ] {
            assert_eq!(parse(text).map(spell).as_deref(), expected, "{text:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_spelled_is_read_back(milliseconds in 0..=3_153_600_000_000u64) {
            let duration = Duration::from_millis(milliseconds);
            assert_eq!(parse(&spell(duration)), Some(duration));
        }

        #[test]
        fn no_text_panics(text in ".*") {
            parse(&text);
        }
    }
}
