//! Ids as names of folders and of refs. Callers choose ids, so they may hold any character.

/// The id as one component of a path. If characters have to be replaced, a hash is added, so that two ids never get the same
/// name.
pub(super) fn folder_name(id: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    if !id.is_empty() && id.len() <= 100 && id.chars().all(is_plain) {
        return id.to_owned();
    }
    let start: String = id.chars().filter(|letter| is_plain(*letter)).take(40).collect();
    format!("{start}-{:016x}", fingerprint(id.as_bytes()))
}

/// A hash of a name (FNV-1a).
pub(super) fn fingerprint(name: &[u8]) -> u64 {
    name.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::folder_name;

    #[test]
    fn names_are_one_part_of_a_path() {
        assert_eq!(folder_name("0190-abc_D"), "0190-abc_D");
        for strange in ["", "..", ".gitignore", "a/b", "a b", "ä", &"x".repeat(200)] {
            let name = folder_name(strange);
            assert!(name.len() < 80 && !name.contains(['/', '.', ' ']), "{strange:?}: {name}");
        }
        assert_ne!(folder_name("a/b"), folder_name("a.b"));
    }
}
