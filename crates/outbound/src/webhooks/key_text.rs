//! Keys as they are written into a configuration: a prefix that says what a key is for, and 32 bytes in hex.

use aws_lc_rs::rand;

pub(super) const KEY_BYTES: usize = 32;

pub(super) fn random() -> [u8; KEY_BYTES] {
    let mut bytes = [0; KEY_BYTES];
    rand::fill(&mut bytes).expect("the system has random numbers");
    bytes
}

pub(super) fn write(prefix: &str, bytes: &[u8; KEY_BYTES]) -> String {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{prefix}{hex}")
}

/// Space around it is ignored.
pub(super) fn read(prefix: &str, text: &str) -> Option<[u8; KEY_BYTES]> {
    let hex = text.trim().strip_prefix(prefix)?;
    if hex.len() != 2 * KEY_BYTES || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; KEY_BYTES];
    for (place, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&hex[2 * place..2 * place + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_as_text() {
        let bytes = random();
        assert_eq!(read("a-", &format!(" {}\n", write("a-", &bytes))), Some(bytes));
        assert_eq!(read("b-", &write("a-", &bytes)), None);
        for hex in ["", "00", &"g".repeat(64), &"ä".repeat(32), &"+1".repeat(32), &"0".repeat(66)] {
            assert_eq!(read("a-", &format!("a-{hex}")), None, "{hex}");
        }
    }
}
