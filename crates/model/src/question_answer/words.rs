//! Words that mean yes or no: one table, for all who read them.
//!
//! | what is said                       | how it is read                                                              |
//! |------------------------------------|-----------------------------------------------------------------------------|
//! | nothing but an entry of the table  | its verdict. A yes must be clear, so "yes?" is none; a no need not be       |
//! | a longer text                      | each single word of a no, each never and each of `NEGATIONS` denies: beside |
//! |                                    | a yes it makes a no of it                                                   |

use super::Verdict;

/// The first row that has the word decides.
const WORDS: [(Verdict, &[&str]); 4] = [
    (
        Verdict::No,
        &[
            "n",
            "no",
            "nope",
            "no thanks",
            "no way",
            "deny",
            "denied",
            "reject",
            "rejected",
            "decline",
            "declined",
            "refuse",
            "refused",
            "disallow",
            "disallowed",
            "forbid",
            "forbidden",
            "block",
            "blocked",
            "false",
            "cancel",
            "cancelled",
            "canceled",
            "abort",
            "aborted",
            "stop",
            "don't",
            "dont",
            "do not",
            "never mind",
        ],
    ),
    (Verdict::Never, &["never", "reject always", "always reject", "deny always", "always deny"]),
    (Verdict::Always, &["always", "yes always", "yes, always", "allow always", "always allow"]),
    (
        Verdict::Yes,
        &[
            "y",
            "yes",
            "yeah",
            "yep",
            "ok",
            "okay",
            "allow",
            "allowed",
            "approve",
            "approved",
            "accept",
            "accepted",
            "grant",
            "granted",
            "confirm",
            "confirmed",
            "true",
            "sure",
            "go",
            "go ahead",
            "resume",
            "continue",
        ],
    ),
];

/// Words that deny inside of a text, and are no answer alone.
const NEGATIONS: [&str; 3] = ["not", "nor", "cannot"];

const LONGEST: usize = 24;

/// A lone word, however it is written.
pub(super) struct Word;

impl Word {
    /// What a text means that is nothing but such a word.
    pub(super) fn of(text: &str) -> Option<Verdict> {
        let text = text.trim();
        if text.len() > LONGEST {
            return None;
        }
        let text = folded(text);
        // A yes must be clear: "yes?" is none. A no need not be.
        let clear = text.trim_end_matches(['.', '!']);
        let bare = text.trim_matches(|letter: char| !letter.is_alphanumeric());
        let means = |(verdict, words): &&(Verdict, &[&str])| {
            words.contains(&clear) || (refuses(*verdict) && words.contains(&bare))
        };
        WORDS.iter().find(means).map(|(verdict, _)| *verdict)
    }
}

fn refuses(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::No | Verdict::Never)
}

/// In small letters of one form, without what cannot be seen.
fn folded(text: &str) -> String {
    let plain = text.chars().filter_map(|letter| match letter {
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{feff}' => None,
        '’' => Some('\''),
        // Letters as wide as those of Chinese.
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(letter) - 0xfee0),
        letter => Some(letter),
    });
    plain.collect::<String>().to_lowercase()
}

/// Whether a text is nothing but a no.
pub(super) fn is_no(text: &str) -> bool {
    Word::of(text).is_some_and(refuses)
}

/// Whether there is a no among these words.
pub(super) fn denies(text: &str) -> bool {
    let text = folded(text);
    let mut words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '\'');
    let is_refusal = |word: &str| WORDS.iter().any(|(verdict, words)| refuses(*verdict) && words.contains(&word));
    words.any(|word| is_refusal(word) || NEGATIONS.contains(&word) || word.ends_with("n't"))
}

/// The entries of one row.
#[cfg(test)]
pub(super) fn words_of(verdict: Verdict) -> &'static [&'static str] {
    WORDS.iter().find(|(of, _)| *of == verdict).map_or(&[], |(_, words)| words)
}
