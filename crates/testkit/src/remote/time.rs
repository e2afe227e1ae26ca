//! Times as A2A spells them: RFC 3339 in UTC with milliseconds.

use std::time::{SystemTime, UNIX_EPOCH};

const DAY: u64 = 86_400_000;

/// Milliseconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970").as_millis() as u64
}

pub(super) fn spell(millis: u64) -> String {
    let (year, month, day) = civil(millis / DAY);
    let rest = millis % DAY;
    let (hour, minute, second) = (rest / 3_600_000, rest / 60_000 % 60, rest / 1000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", rest % 1000)
}

/// Reads `2026-02-03T10:15:02Z` with any number of fraction digits.
pub(super) fn read(text: &str) -> Option<u64> {
    let text = text.strip_suffix('Z')?;
    let (date, clock) = text.split_once('T')?;
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let numbers = |text: &str, separator: char| -> Option<Vec<u64>> {
        let numbers: Vec<u64> = text.split(separator).map(|number| number.parse().ok()).collect::<Option<_>>()?;
        (numbers.len() == 3).then_some(numbers)
    };
    let (date, clock) = (numbers(date, '-')?, numbers(clock, ':')?);
    let is_possible = (1..=12).contains(&date[1]) && (1..=31).contains(&date[2]) && clock[0] < 24 && clock[1] < 60;
    let millis: u64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    let seconds = clock[0] * 3600 + clock[1] * 60 + clock[2];
    is_possible.then(|| days(date[0], date[1], date[2]) * DAY + seconds * 1000 + millis)
}

/// Year, month and day of a day since 1970-01-01.
fn civil(days: u64) -> (u64, u64, u64) {
    let mut year = 1970 + days / 366;
    while days_before(year + 1) <= days {
        year += 1;
    }
    let mut left = days - days_before(year);
    let mut month = 1;
    while left >= month_length(year, month) {
        left -= month_length(year, month);
        month += 1;
    }
    (year, month, left + 1)
}

fn days(year: u64, month: u64, day: u64) -> u64 {
    days_before(year) + (1..month).map(|month| month_length(year, month)).sum::<u64>() + day - 1
}

/// Days from 1970-01-01 to the first of January of this year.
fn days_before(year: u64) -> u64 {
    let leaps = |year: u64| year / 4 - year / 100 + year / 400;
    let year = year.max(1970);
    (year - 1970) * 365 + leaps(year - 1) - leaps(1969)
}

fn month_length(year: u64, month: u64) -> u64 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_spelled_and_read_alike() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_770_113_702_500, "2026-02-03T10:15:02.500Z"),
            (1_798_761_599_999, "2026-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(spell(millis), text);
            assert_eq!(read(text), Some(millis), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_in_utc_is_not_read() {
        for text in ["", "2026-02-03", "2026-02-03T10:15:02", "2026-02-03T10:15:02+02:00", "2026-13-03T10:15:02Z"] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(read("2026-02-03T10:15:02Z"), Some(1_770_113_702_000));
    }
}
