//! Routing: which agent executes a task for the default agent. The caller's metadata decides, else the words of the message.
//!
//! The decision is a pure function of the task's first message, so an agent that has asked gets the answer. The engine
//! routes before it schedules, and the limits of the chosen agent apply.

use sabir_engine::{Route, Router};
use sabir_model::{Json, Message};

/// How hard a message is to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    Complex,
    Mid,
    Routine,
}

/// The profile of a message. `declared` is the caller's own value, which is ignored if it is no profile.
pub fn profile(text: &str, declared: Option<&str>) -> Profile {
    if let Some(profile) = declared.and_then(Profile::named) {
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

    /// Case-insensitive: callers write `COMPLEX`, the configuration `complex`.
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

/// The route of each profile. Tasks of a profile without a route stay with the default agent.
pub struct Routes(pub Vec<(Profile, Route)>);

impl Router for Routes {
    fn route(&self, opening: &Message, metadata: Option<&Json>) -> Option<Route> {
        let declared = |json: Option<&Json>| json.and_then(|json| json.text_of("profile"));
        let declared = declared(metadata).or_else(|| declared(opening.metadata.as_ref()));
        let profile = profile(&opening.text(), declared.as_deref());
        self.0.iter().find(|(of, _)| *of == profile).map(|(_, route)| route.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_declared_or_follows_from_the_words() {
        let long = "x ".repeat(751);
        let not_long = "x".repeat(1500);
        for (text, declared, expected) in [
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
            assert_eq!(profile(text, declared), expected, "{text:?} {declared:?}");
        }
    }
}
