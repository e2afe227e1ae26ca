//! Sizes in bytes: `16MiB`, `500kB`, `1.5 GB`; a bare number is bytes.

use bytesize::{ByteSize, GB, GIB, KB, KIB, MB, MIB};

pub const EXPECTED: &str = "a size from 1 byte, such as \"16MiB\", \"500kB\" or 65536 (bytes)";

pub fn parse(text: &str) -> Option<usize> {
    let ByteSize(bytes) = text.parse().ok()?;
    // bytesize answers with the largest number there is when the real one does not fit.
    usize::try_from(bytes).ok().filter(|bytes| *bytes < usize::MAX)
}

/// The shortest spelling that `parse` reads back; that of bytesize is rounded.
pub fn spell(size: usize) -> String {
    let size = size as u64;
    let units = [("GiB", GIB), ("GB", GB), ("MiB", MIB), ("MB", MB), ("KiB", KIB), ("kB", KB), ("B", 1)];
    let (unit, factor) = units.into_iter().find(|(_, factor)| size.is_multiple_of(*factor)).unwrap_or(("B", 1));
    format!("{}{unit}", size / factor)
}

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
            ("1.5MiB", Some("1536KiB")),
            ("-1", None),
            ("16M", Some("16MB")),
            ("", None),
        ] {
            assert_eq!(parse(text).map(spell).as_deref(), expected, "{text:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_spelled_is_read_back(size in 1..1usize << 53) {
            assert_eq!(parse(&spell(size)), Some(size));
        }
    }
}
