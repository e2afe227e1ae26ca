//! Which agent executes a task that is addressed to the default agent: by what its caller says of it, else by its words.
//!
//! The decision is a pure function of the message that began the task, so whoever has asked something gets the answer. The
//! engine asks for it before the schedule, and the limits of the agent that is chosen hold.

use sabir_engine::{Route, Router};
use sabir_model::{Json, Message};

/// How hard a message is to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    Complex,
    Mid,
    Routine,
}

/// The profile of a message. `said` is what the caller says of it; a word that is no profile says nothing.
pub fn profile(text: &str, said: Option<&str>) -> Profile {
    if let Some(profile) = said.and_then(Profile::named) {
        return profile;
    }
    if text.chars().count() > LONG {
        return Profile::Complex;
    }
    let has = |words: &[&str]| {
        let mut all = text.split(|letter: char| !letter.is_alphanumeric());
        all.any(|word| words.iter().any(|known| known.eq_ignore_ascii_case(word)))
    };
    // "Rename it, then migrate the data" is as hard as its hardest part.
    if has(&COMPLEX) {
        Profile::Complex
    } else if has(&ROUTINE) {
        Profile::Routine
    } else {
        Profile::Mid
    }
}

/// A longer text describes more than a small change.
const LONG: usize = 1500;

const COMPLEX: [&str; 27] = [
    "refactor",
    "refactors",
    "refactoring",
    "migrate",
    "migrates",
    "migrating",
    "migration",
    "debug",
    "debugging",
    "security",
    "vulnerability",
    "vulnerabilities",
    "architecture",
    "architect",
    "redesign",
    "rewrite",
    "concurrency",
    "deadlock",
    "performance",
    "optimize",
    "optimise",
    "optimization",
    "algorithm",
    "distributed",
    "investigate",
    "diagnose",
    "leak",
];

const ROUTINE: [&str; 16] = [
    "rename",
    "renaming",
    "typo",
    "typos",
    "lint",
    "linting",
    "format",
    "formatting",
    "reformat",
    "whitespace",
    "indent",
    "indentation",
    "spelling",
    "bump",
    "changelog",
    "readme",
];

impl Profile {
    pub const ALL: [Profile; 3] = [Profile::Complex, Profile::Mid, Profile::Routine];

    /// In any case: callers write `COMPLEX`, the configuration `complex`.
    pub fn named(name: &str) -> Option<Profile> {
        Profile::ALL.into_iter().find(|profile| profile.name().eq_ignore_ascii_case(name.trim()))
    }

    pub fn name(self) -> &'static str {
        match self {
            Profile::Complex => "complex",
            Profile::Mid => "mid",
            Profile::Routine => "routine",
        }
    }
}

/// Where the tasks of each profile go. A profile without a route stays with the agent that its tasks are addressed to.
pub struct Routes(pub Vec<(Profile, Route)>);

impl Router for Routes {
    fn route(&self, opening: &Message, metadata: Option<&Json>) -> Option<Route> {
        let said = |json: Option<&Json>| json.and_then(|json| json.text_of("profile"));
        let said = said(metadata).or_else(|| said(opening.metadata.as_ref()));
        let profile = profile(&opening.text(), said.as_deref());
        self.0.iter().find(|(of, _)| *of == profile).map(|(_, route)| route.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_what_is_said_or_what_the_words_say() {
        let long = "x ".repeat(751);
        let not_long = "x".repeat(1500);
        for (text, said, expected) in [
            ("Add a health check", None, Profile::Mid),
            ("", None, Profile::Mid),
            ("Refactor the auth module", None, Profile::Complex),
            ("please DEBUG this", None, Profile::Complex),
            ("check security/permissions", None, Profile::Complex),
            ("Rename foo to bar", None, Profile::Routine),
            ("fix a typo.", None, Profile::Routine),
            ("run lint", None, Profile::Routine),
            // Whole words only.
            ("show me information about splinters", None, Profile::Mid),
            ("Rename it, then migrate the data", None, Profile::Complex),
            (&long, None, Profile::Complex),
            (&not_long, None, Profile::Mid),
            ("Refactor everything", Some("ROUTINE"), Profile::Routine),
            ("fix a typo", Some("Complex"), Profile::Complex),
            ("fix a typo", Some("mid"), Profile::Mid),
            ("fix a typo", Some("banana"), Profile::Routine),
        ] {
            assert_eq!(profile(text, said), expected, "{text:?} {said:?}");
        }
    }
}
