//! How a program asks for permission in plain text, and which answers it reads.

use regex_lite::Regex;

/// Ends of lines that ask.
const CHOICES: [&str; 2] = ["[y/n]", "(y/n)"];
const QUESTIONS: [&str; 3] = ["approve?", "approve this command?", "continue?"];
const WISH: &str = "do you want to ";

#[derive(Debug, Clone)]
pub struct Approval {
    /// `None`: the usual forms of questions.
    pattern: Option<Regex>,
    yes: String,
}

impl Default for Approval {
    fn default() -> Self {
        Self::of(None, "")
    }
}

impl Approval {
    /// An invalid pattern means the usual forms, and an empty response means `y`.
    pub fn of(pattern: Option<&str>, response: &str) -> Self {
        let yes = if response.is_empty() { "y" } else { response };
        Self { pattern: pattern.and_then(|pattern| Regex::new(pattern).ok()), yes: yes.to_owned() }
    }

    /// Whether the operator has configured how the program asks.
    pub fn is_configured(&self) -> bool {
        self.pattern.is_some()
    }

    pub fn yes(&self) -> &str {
        &self.yes
    }

    pub fn asks(&self, line: &str) -> bool {
        match &self.pattern {
            Some(pattern) => pattern.is_match(line),
            None => asks_as_usual(line),
        }
    }
}

fn asks_as_usual(line: &str) -> bool {
    let line = line.trim().to_ascii_lowercase();
    let bare = line.trim_end_matches([' ', ':', '?', '>']);
    CHOICES.iter().any(|choices| bare.ends_with(choices))
        || QUESTIONS.iter().any(|question| line.ends_with(question))
        || (line.contains(WISH) && line.ends_with('?'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_questions() {
        for line in [
            "Overwrite? [Y/n]",
            "Overwrite? [y/N] ",
            "Go on (y/n)",
            "Go on (Y/n):",
            "Go on (y/N)?",
            "Approve? (y/n)",
            "Approve this command?",
            "Do you want to delete build/?",
            "Continue?",
        ] {
            assert!(Approval::default().asks(line), "{line}");
        }
        for line in ["", "type [Y/n] to answer", "I do not want to go on?", "Continued", "What do you want to do"] {
            assert!(!Approval::default().asks(line), "{line}");
        }
    }

    #[test]
    fn a_pattern_takes_their_place_unless_it_cannot_be_read() {
        let own = Approval::of(Some("^OK to .*\\?$"), "yes");
        assert!(own.asks("OK to run?") && !own.asks("Continue?"));
        assert_eq!(own.yes(), "yes");
        let broken = Approval::of(Some("(["), "");
        assert!(broken.asks("Continue?"));
        assert_eq!(broken.yes(), "y");
    }
}
