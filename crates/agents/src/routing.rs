//! Which agent gets a message that names none: by what its caller says of it, else by its words.
//!
//! The decision is a pure function. `RoutedAgent` stands in the place of the default agent and hands each turn to
//! the agent of its profile.

use std::sync::Arc;

use sabir_engine::{About, Admission, Agent, AgentFuture, Effects, Turn};
use sabir_model::{Json, Message, QuestionForm};

use crate::{ConformanceAgent, DemoAgent};

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

/// An agent that can be told for each turn which model to use.
pub trait ModelChoice: Agent {
    /// `None` means the model of its settings.
    fn run_with_model(&self, turn: Turn, model: Option<&str>) -> AgentFuture<'_>;
}

/// It has no model, and the configuration refuses one for it.
impl ModelChoice for DemoAgent {
    fn run_with_model(&self, turn: Turn, _model: Option<&str>) -> AgentFuture<'_> {
        self.run(turn)
    }
}

/// The same.
impl ModelChoice for ConformanceAgent {
    fn run_with_model(&self, turn: Turn, _model: Option<&str>) -> AgentFuture<'_> {
        self.run(turn)
    }
}

/// Where the messages of a profile go.
#[derive(Clone)]
pub struct Route {
    pub profile: Profile,
    pub agent: Arc<dyn ModelChoice>,
    pub model: Option<String>,
}

pub struct RoutedAgent {
    usual: Arc<dyn Agent>,
    routes: Vec<Route>,
}

impl RoutedAgent {
    /// `usual` is what the card describes, and what gets the messages of profiles without a route.
    pub fn new(usual: Arc<dyn Agent>, routes: Vec<Route>) -> Self {
        Self { usual, routes }
    }

    /// By the message that began the task: who has asked something gets the answer.
    fn route(&self, turn: &Turn) -> Option<&Route> {
        let opening = turn.opening();
        let said = |json: Option<&Json>| json.and_then(|json| json.text_of("profile"));
        let said = said(turn.task_metadata()).or_else(|| said(opening.metadata.as_ref()));
        let profile = profile(&opening.text(), said.as_deref());
        self.routes.iter().find(|route| route.profile == profile)
    }
}

impl Agent for RoutedAgent {
    fn about(&self) -> About {
        self.usual.about()
    }

    fn run(&self, turn: Turn) -> AgentFuture<'_> {
        Box::pin(async move {
            match self.route(&turn) {
                Some(route) => route.agent.run_with_model(turn, route.model.as_deref()).await,
                None => self.usual.run(turn).await,
            }
        })
    }

    fn effects(&self) -> Effects {
        match self.routes.is_empty() {
            true => self.usual.effects(),
            // Routes lead to programs.
            false => Effects::Anywhere,
        }
    }

    fn admit(&self, message: &Message) -> Admission {
        self.usual.admit(message)
    }

    fn question_form(&self) -> QuestionForm {
        match self.routes.is_empty() {
            true => self.usual.question_form(),
            false => QuestionForm::WithData,
        }
    }

    /// The memory does not say which of them asked. A run that cannot resume its session after all fails then.
    fn resumes(&self, memory: Option<&str>) -> bool {
        self.usual.resumes(memory) || self.routes.iter().any(|route| route.agent.resumes(memory))
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
