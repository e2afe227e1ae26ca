//! The known word that somebody most likely meant.

/// The nearest of the known words, if one is near enough to be worth a hint.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // No key is longer than 64 letters; the distance to a longer word is large enough anyway.
    let word: String = word.to_lowercase().chars().take(64).collect();
    let distances = known.into_iter().map(|candidate| {
        let letters = word.chars().count().max(candidate.chars().count());
        (strsim::osa_distance(&word, &candidate.to_lowercase()), letters, candidate)
    });
    let near_enough = distances.filter(|(distance, letters, _)| *distance <= (letters / 3).max(1));
    near_enough.min_by_key(|(distance, ..)| *distance).map(|(.., candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_understood_and_other_words_are_not() {
        let known = ["listen", "public_url", "grace", "id"];
        for (word, expected) in [
            ("lisen", Some("listen")),
            ("lsiten", Some("listen")),
            ("publicUrl", Some("public_url")),
            ("public-url", Some("public_url")),
            ("ID", Some("id")),
            ("port", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known), expected, "{word:?}");
        }
    }
}
