//! Words that mean yes or no.

use super::Verdict;

/// Words that grant what was asked for.
pub const YES: [&str; 22] = [
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
];
/// Words that grant it for the rest of the session.
pub const ALWAYS: [&str; 5] = ["always", "yes always", "yes, always", "allow always", "always allow"];
/// Words that refuse it.
pub const NO: [&str; 30] = [
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
];
/// Words that refuse it for the rest of the session.
pub const NEVER: [&str; 5] = ["never", "reject always", "always reject", "deny always", "always deny"];

/// Beside a yes, each of these makes a no of it.
const DENIALS: [&str; 28] = [
    "no",
    "n",
    "false",
    "not",
    "never",
    "nope",
    "nor",
    "cannot",
    "dont",
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
    "cancel",
    "cancelled",
    "canceled",
    "abort",
    "stop",
];

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
        let among = |words: &[&str], word: &str| words.contains(&word);
        // A yes must be clear: "yes?" is none. A no need not be.
        let clear = text.trim_end_matches(['.', '!']);
        let bare = text.trim_matches(|letter: char| !letter.is_alphanumeric());
        match () {
            () if among(&NO, clear) || among(&NO, bare) => Some(Verdict::No),
            () if among(&NEVER, clear) || among(&NEVER, bare) => Some(Verdict::Never),
            () if among(&ALWAYS, clear) => Some(Verdict::Always),
            () if among(&YES, clear) => Some(Verdict::Yes),
            () => None,
        }
    }
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
    matches!(Word::of(text), Some(Verdict::No | Verdict::Never))
}

/// Whether there is a no among these words.
pub(super) fn denies(text: &str) -> bool {
    let text = folded(text);
    let mut words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '\'');
    words.any(|word| DENIALS.contains(&word) || word.ends_with("n't"))
}
