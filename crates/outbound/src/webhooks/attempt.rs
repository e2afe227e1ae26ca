//! One attempt to deliver: what an answer, or none, means.

use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{HeaderMap, StatusCode};

use crate::client::{DialError, Response};

/// Longer waits that a receiver asks for are cut.
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(24 * 3600);

/// How an attempt went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Attempt {
    /// The receiver has acknowledged it.
    Delivered(StatusCode),
    Failed(FailedAttempt),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FailedAttempt {
    pub reason: String,
    /// The receiver answered, so it is there.
    pub has_answered: bool,
    /// Trying again is useless.
    pub is_permanent: bool,
    /// The receiver wants to be left alone for so long.
    pub retry_after: Option<Duration>,
}

impl Attempt {
    pub fn of(answer: Result<Response, DialError>, now: i64) -> Self {
        let (status, headers) = match answer {
            Ok(response) => (response.status, response.headers),
            // The head arrived: the rest of the answer is not needed.
            Err(error) => match error.status() {
                Some(status) => (status, HeaderMap::new()),
                None => {
                    return Attempt::Failed(FailedAttempt {
                        reason: error.to_string(),
                        has_answered: false,
                        is_permanent: error.is_permanent(),
                        retry_after: None,
                    });
                }
            },
        };
        if status.is_success() {
            return Attempt::Delivered(status);
        }
        let reason = match status {
            _ if status.is_redirection() => format!("the receiver answered {status}; redirects are not followed"),
            _ => format!("the receiver answered {status}"),
        };
        Attempt::Failed(FailedAttempt {
            reason,
            has_answered: true,
            is_permanent: status == StatusCode::GONE,
            retry_after: retry_after(&headers, now),
        })
    }
}

/// Seconds, or a date as HTTP writes it. `now` is in seconds since 1970.
fn retry_after(headers: &HeaderMap, now: i64) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let seconds = match text.parse::<u64>() {
        Ok(seconds) => seconds,
        Err(_) => u64::try_from(http_date(text)?.saturating_sub(now)).unwrap_or(0),
    };
    Some(Duration::from_secs(seconds).min(LONGEST_WAIT))
}

/// `Sun, 06 Nov 1994 08:49:37 GMT` in seconds since 1970.
fn http_date(text: &str) -> Option<i64> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut words = text.split_once(", ")?.1.split(' ');
    let day: i64 = words.next()?.parse().ok().filter(|day| (1..=31).contains(day))?;
    let month = words.next()?;
    let month = MONTHS.iter().position(|name| *name == month)? as i64 + 1;
    let year: i64 = words.next()?.parse().ok().filter(|year| (1970..=9999).contains(year))?;
    let mut clock = words.next()?.split(':').map(|number| number.parse::<i64>().ok().filter(|n| (0..=60).contains(n)));
    let (hours, minutes, seconds) = (clock.next()??, clock.next()??, clock.next()??);
    // Days since 1970 of a date, by counting years from March.
    let (years, months) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * years + years / 4 - years / 100 + years / 400 + (153 * months + 2) / 5 + day - 719_469;
    Some(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn attempt(status: u16, retry_after: Option<&str>) -> Attempt {
        let mut headers = HeaderMap::new();
        if let Some(value) = retry_after {
            headers.insert(RETRY_AFTER, value.parse().unwrap());
        }
        let status = StatusCode::from_u16(status).unwrap();
        Attempt::of(Ok(Response { status, headers, body: Bytes::new(), trailers: HeaderMap::new() }), 784_111_770)
    }

    #[test]
    fn answers_and_what_they_mean() {
        for status in [200, 201, 202, 204, 299] {
            assert_eq!(attempt(status, None), Attempt::Delivered(StatusCode::from_u16(status).unwrap()));
        }
        for (status, retry_after, wait, is_permanent) in [
            (301, None, None, false),
            (400, None, None, false),
            (404, None, None, false),
            (410, None, None, true),
            (429, Some("120"), Some(120), false),
            (503, Some("Sun, 06 Nov 1994 08:49:37 GMT"), Some(7), false),
            (503, Some("Sun, 06 Nov 1994 08:49:00 GMT"), Some(0), false),
            (503, Some("99999999999"), Some(24 * 3600), false),
            (503, Some("soon"), None, false),
            (500, Some("-1"), None, false),
            (500, Some("Sun, 99 Xxx 1994 08:49:37 GMT"), None, false),
        ] {
            let Attempt::Failed(failed) = attempt(status, retry_after) else { panic!("{status}") };
            assert_eq!(failed.retry_after, wait.map(Duration::from_secs), "{status} {retry_after:?}");
            assert_eq!((failed.is_permanent, failed.has_answered), (is_permanent, true), "{status}");
            assert!(failed.reason.contains(&status.to_string()), "{}", failed.reason);
        }
    }

    #[test]
    fn a_failure_without_an_answer() {
        for (error, is_delivered, is_permanent) in [
            (DialError::Timeout, false, false),
            (DialError::BodyTimeout { status: StatusCode::OK }, true, false),
            (DialError::Refused(crate::guard::Refusal::Scheme), false, true),
        ] {
            match Attempt::of(Err(error), 0) {
                Attempt::Delivered(_) => assert!(is_delivered),
                Attempt::Failed(failed) => {
                    assert_eq!((failed.is_permanent, failed.has_answered, is_delivered), (is_permanent, false, false));
                }
            }
        }
    }
}
