//! Sizes in bytes: `16MiB`, `500kB`, a bare number is bytes.

pub const EXPECTED: &str = "a size from 1 byte, such as \"16MiB\", \"500kB\" or 65536 (bytes)";

pub fn parse(text: &str) -> Option<usize> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit());
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let unit = unit.trim_start().to_ascii_lowercase();
    let (_, factor) = UNITS.iter().find(|(name, _)| name.to_ascii_lowercase() == unit)?;
    number.parse::<usize>().ok()?.checked_mul(*factor)
}

/// The shortest spelling that `parse` reads back.
pub fn spell(size: usize) -> String {
    for (unit, factor) in UNITS {
        if size >= factor && size.is_multiple_of(factor) && !unit.is_empty() {
            return format!("{}{unit}", size / factor);
        }
    }
    size.to_string()
}

/// Binary ones first, since sizes of buffers mostly are.
const UNITS: [(&str, usize); 8] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1000),
    ("B", 1),
    ("", 1),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_in_every_spelling() {
        for (text, expected) in [
            ("16MiB", Some("16MiB")),
            ("16 mib", Some("16MiB")),
            ("65536", Some("64KiB")),
            ("500KB", Some("500kB")),
            ("1234", Some("1234B")),
            ("99999999999GiB", None),
            ("MiB", None),
            ("1.5MiB", None),
            ("-1", None),
            ("16M", None),
            ("", None),
        ] {
            assert_eq!(parse(text).map(spell).as_deref(), expected, "{text:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_spelled_is_read_back(size in 1..usize::MAX) {
            assert_eq!(parse(&spell(size)), Some(size));
        }
    }
}
