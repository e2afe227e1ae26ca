//! The few fields of an X.509 certificate that the TLS library keeps to itself: when it expires, and its URI names.
//!
//! Only certificates whose signature was verified are read here. What does not have the expected shape is `None`.

use std::time::{Duration, SystemTime};

const SEQUENCE: u8 = 0x30;
const OBJECT_ID: u8 = 0x06;
const OCTETS: u8 = 0x04;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
/// `[0]`, the version of the certificate.
const VERSION: u8 = 0xa0;
/// `[3]`, its extensions.
const EXTENSIONS: u8 = 0xa3;
/// `[6]` among the names of a subjectAltName.
const URI: u8 = 0x86;
/// 2.5.29.17
const SUBJECT_ALT_NAME: &[u8] = &[0x55, 0x1d, 0x11];

pub(super) struct Fields<'a> {
    pub(super) not_after: SystemTime,
    pub(super) uris: Vec<&'a str>,
}

pub(super) fn read(certificate: &[u8]) -> Option<Fields<'_>> {
    let mut signed = Der(Der(certificate).expect(SEQUENCE)?);
    let mut fields = Der(signed.expect(SEQUENCE)?);
    let (first, _) = fields.next()?;
    if first == VERSION {
        fields.next()?; // the serial number
    }
    fields.expect(SEQUENCE)?; // how it is signed
    fields.expect(SEQUENCE)?; // the issuer
    let mut validity = Der(fields.expect(SEQUENCE)?);
    validity.next()?;
    let (form, text) = validity.next()?;
    let not_after = time(form, text)?;
    let mut uris = Vec::new();
    while let Some((tag, value)) = fields.next() {
        if tag == EXTENSIONS {
            let mut extensions = Der(Der(value).expect(SEQUENCE)?);
            while !extensions.0.is_empty() {
                alt_names(extensions.expect(SEQUENCE)?, &mut uris)?;
            }
        }
    }
    Some(Fields { not_after, uris })
}

/// Adds the URI names of an extension, if it has names.
fn alt_names<'a>(extension: &'a [u8], uris: &mut Vec<&'a str>) -> Option<()> {
    let mut extension = Der(extension);
    if extension.expect(OBJECT_ID)? != SUBJECT_ALT_NAME {
        return Some(());
    }
    // A flag may stand before the value.
    let value = loop {
        match extension.next()? {
            (OCTETS, value) => break value,
            _ => continue,
        }
    };
    let mut names = Der(Der(value).expect(SEQUENCE)?);
    while !names.0.is_empty() {
        if let (URI, name) = names.next()? {
            uris.push(std::str::from_utf8(name).ok()?);
        }
    }
    Some(())
}

/// What is left of a sequence of values.
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// Tag and content of the next value.
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, rest) = rest.split_first()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            0x81..=0x84 => {
                let (bytes, rest) = rest.split_at_checked(usize::from(first - 0x80))?;
                (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
            }
            _ => return None,
        };
        let (value, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, value))
    }

    fn expect(&mut self, wanted: u8) -> Option<&'a [u8]> {
        self.next().filter(|(tag, _)| *tag == wanted).map(|(_, value)| value)
    }
}

/// RFC 5280 has two forms: two digits of the year until 2049, and four.
fn time(form: u8, text: &[u8]) -> Option<SystemTime> {
    let digits = text.strip_suffix(b"Z").filter(|digits| digits.iter().all(u8::is_ascii_digit))?;
    let number = |digits: &[u8]| digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0'));
    let (year, rest) = match (form, digits.len()) {
        (UTC_TIME, 12) => {
            let year = number(&digits[..2]);
            (if year < 50 { 2000 + year } else { 1900 + year }, &digits[2..])
        }
        (GENERALIZED_TIME, 14) => (number(&digits[..4]), &digits[4..]),
        _ => return None,
    };
    let [month, day, hour, minute, second] = [0, 2, 4, 6, 8].map(|start| number(&rest[start..start + 2]));
    let is_time = (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second < 61;
    let seconds = days_since_1970(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    match is_time {
        true if seconds < 0 => Some(SystemTime::UNIX_EPOCH),
        true => SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds as u64)),
        false => None,
    }
}

/// Counted in years that begin in March, so that the leap day is the last.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_time() {
        for (form, text, expected) in [
            (UTC_TIME, "700101000000Z", Some(0)),
            (UTC_TIME, "000301000000Z", Some(951_868_800)),
            (UTC_TIME, "491231235959Z", Some(2_524_607_999)),
            (UTC_TIME, "500101000000Z", Some(0)),
            (GENERALIZED_TIME, "20240229120000Z", Some(1_709_208_000)),
            (GENERALIZED_TIME, "99991231235959Z", Some(253_402_300_799)),
            (GENERALIZED_TIME, "20241301000000Z", None),
            (GENERALIZED_TIME, "20240229120000", None),
            (GENERALIZED_TIME, "2024022912000Z", None),
            (UTC_TIME, "+70101000000Z", None),
            (OCTETS, "700101000000Z", None),
        ] {
            let seconds =
                time(form, text.as_bytes()).map(|time| time.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs());
            assert_eq!(seconds, expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_certificate_is_not_read() {
        for bytes in [
            &[][..],
            &[0x30],
            &[0x30, 0x80],
            &[0x30, 0x84, 0xff, 0xff, 0xff, 0xff],
            &[0x30, 0x02, 0x30, 0x00],
            &[0x30, 0x04, 0x30, 0x02, 0xa0, 0x00],
            b"-----BEGIN CERTIFICATE-----",
        ] {
            assert!(read(bytes).is_none(), "{bytes:?}");
        }
    }
}
