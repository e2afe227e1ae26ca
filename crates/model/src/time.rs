//! Moments, as whole milliseconds since 1970 in UTC.
//!
//! Milliseconds are what A2A writes, so a moment that was stored and one that was shown are the same.

use std::fmt;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

/// 0001-01-01 and 9999-12-31: what RFC 3339 can spell.
const RANGE: std::ops::RangeInclusive<i64> = -62_135_596_800_000..=253_402_300_799_999;

impl Timestamp {
    pub fn from_millis(millis: i64) -> Self {
        Self(millis.clamp(*RANGE.start(), *RANGE.end()))
    }

    pub fn as_millis(self) -> i64 {
        self.0
    }

    /// Reads RFC 3339 with any offset and up to nine fraction digits; a zone is required.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        if bytes.len() < 20 || !text.is_ascii() {
            return None;
        }
        let number = |range: std::ops::Range<usize>| -> Option<i64> {
            let digits = bytes.get(range)?;
            digits
                .iter()
                .try_fold(0i64, |sum, digit| digit.is_ascii_digit().then(|| sum * 10 + i64::from(digit - b'0')))
        };
        let separators = [(4, b"-"), (7, b"-"), (13, b":"), (16, b":")];
        if separators.iter().any(|(at, mark)| &bytes[*at..at + 1] != *mark) || !matches!(bytes[10], b'T' | b't' | b' ')
        {
            return None;
        }
        let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
        let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
        let in_range = year >= 1
            && (1..=12).contains(&month)
            && (1..=days_in_month(year, month)).contains(&day)
            && hour < 24
            && minute < 60
            && second <= 60;
        if !in_range {
            return None;
        }
        let mut rest = &text[19..];
        let mut millis = 0;
        if let Some(fraction) = rest.strip_prefix('.') {
            let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
            if !(1..=9).contains(&digits) {
                return None;
            }
            let padded = format!("{:0<3}", &fraction[..digits]);
            millis = padded[..3].parse::<i64>().ok()?;
            rest = &fraction[digits..];
        }
        let offset_minutes = match rest.as_bytes() {
            [b'Z' | b'z'] => 0,
            [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] if [h1, h2, m1, m2].iter().all(|d| d.is_ascii_digit()) => {
                let two = |tens: &u8, ones: &u8| i64::from(tens - b'0') * 10 + i64::from(ones - b'0');
                let (hours, minutes) = (two(h1, h2), two(m1, m2));
                if hours > 23 || minutes > 59 {
                    return None;
                }
                (hours * 60 + minutes) * if *sign == b'+' { 1 } else { -1 }
            }
            _ => return None,
        };
        let seconds = days_since_1970(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
        let total = (seconds - offset_minutes * 60) * 1000 + millis;
        RANGE.contains(&total).then_some(Self(total))
    }
}

/// `2026-02-03T10:15:02.500Z`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, millis) = (self.0.div_euclid(86_400_000), self.0.rem_euclid(86_400_000));
        let (year, month, day) = civil(days);
        let (seconds, millis) = (millis / 1000, millis % 1000);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        let mut text = *b"0000-00-00T00:00:00.000Z";
        let mut write = |at: usize, width: usize, mut number: i64| {
            for place in (at..at + width).rev() {
                text[place] = b'0' + (number % 10) as u8;
                number /= 10;
            }
        };
        write(0, 4, year);
        write(5, 2, month);
        write(8, 2, day);
        write(11, 2, hour);
        write(14, 2, minute);
        write(17, 2, second);
        write(20, 3, millis);
        f.write_str(std::str::from_utf8(&text).expect("digits and marks are ASCII"))
    }
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Years begin in March here, so that the leap day is the last of its year.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rfc_3339_in_and_out() {
        for (text, expected) in [
            ("2026-02-03T10:15:02.500Z", Some("2026-02-03T10:15:02.500Z")),
            ("2026-02-03T10:15:02Z", Some("2026-02-03T10:15:02.000Z")),
            ("2026-02-03T12:15:02.123456789+02:00", Some("2026-02-03T10:15:02.123Z")),
            ("1969-12-31T23:59:59.999Z", Some("1969-12-31T23:59:59.999Z")),
            ("2024-02-29T00:00:00Z", Some("2024-02-29T00:00:00.000Z")),
            ("2023-02-29T00:00:00Z", None),
            ("2026-02-03T10:15:02", None),
            ("2026-02-03T10:15:02.Z", None),
            ("2026-02-03", None),
            ("9999-12-31T23:59:59-01:00", None),
            ("2026-02-03T10:15:02+24:00", None),
            ("now", None),
        ] {
            assert_eq!(Timestamp::parse(text).map(|t| t.to_string()).as_deref(), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn every_moment_survives(millis in RANGE) {
            let moment = Timestamp::from_millis(millis);
            prop_assert_eq!(Timestamp::parse(&moment.to_string()), Some(moment));
        }

        #[test]
        fn any_text_is_read_or_refused(text: String) {
            Timestamp::parse(&text);
        }
    }
}
