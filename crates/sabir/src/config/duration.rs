//! Durations as people write them: `20m`, `500ms`, `1h30m`, `7 days`; a bare number is seconds.
//!
//! There is a longest one, so that adding a duration to a clock can never overflow.

use std::time::Duration;

pub const EXPECTED: &str = "a duration such as \"20m\", \"1h30m\", \"500ms\" or 30 (seconds), at most 36500d";

pub fn parse(text: &str) -> Option<Duration> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let duration = match text {
        number if is_number => Duration::from_secs(number.parse().ok()?),
        // humantime reads `M` as months; whoever writes `20M` means minutes.
        text if text.contains('M') => return None,
        text => humantime::parse_duration(text).ok()?,
    };
    (duration <= LONGEST).then_some(duration)
}

/// The shortest spelling that `parse` reads back. humantime's own has months and years of odd lengths.
pub fn spell(duration: Duration) -> String {
    let mut rest = duration.as_nanos();
    let mut spelled = String::new();
    for (unit, length) in UNITS {
        if rest >= length {
            spelled += &format!("{}{unit}", rest / length);
            rest %= length;
        }
    }
    if spelled.is_empty() { "0s".to_owned() } else { spelled }
}

const LONGEST: Duration = Duration::from_secs(36_500 * 24 * 60 * 60);

/// Longest first; lengths in nanoseconds.
const UNITS: [(&str, u128); 7] = [
    ("d", 24 * 60 * 60 * 1_000_000_000),
    ("h", 60 * 60 * 1_000_000_000),
    ("m", 60 * 1_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1000),
    ("ns", 1),
];

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
            ("30m1h", Some("1h30m")),
            ("1.5h", Some("1h30m")),
            ("5 m", Some("5m")),
            ("2 weeks", Some("14d")),
            ("20M", None),
            ("-5s", None),
            ("+5", None),
            ("m", None),
            ("5x", None),
            ("", None),
        ] {
            assert_eq!(parse(text).map(spell).as_deref(), expected, "{text:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_spelled_is_read_back(nanoseconds in 0..=3_153_600_000_000_000_000u64) {
            let duration = Duration::from_nanos(nanoseconds);
            assert_eq!(parse(&spell(duration)), Some(duration));
        }

        #[test]
        fn no_text_panics(text in ".*") {
            parse(&text);
        }
    }
}
