//! What is known of a token that is fetched, as a pure state over time.
//!
//! | known                          | a request             | the upstream refuses that token (401)           |
//! |--------------------------------|-----------------------|-------------------------------------------------|
//! | nothing                        | needs a fetch         |                                                 |
//! | a token                        | shows it              | forgets it, but at most once in 10 s            |
//! | a token near its end           | needs a fetch         | the same                                        |
//! | a failure, at most 5 s ago     | fails like it         |                                                 |
//! | an older failure               | needs a fetch         |                                                 |
//!
//! A token is near its end in the last tenth of its life, but not earlier than 30 s before it ends. Tokens are numbered,
//! so that the refusal of an earlier one does not cost the current one.

use std::time::{Duration, Instant};

use super::error::CredentialError;
use super::secret::Secret;
use super::token_answer::Grant;

/// A failure is repeated to all who ask for so long.
const FAILURE_PAUSE: Duration = Duration::from_secs(5);

/// An upstream that refuses every token must not make us fetch one for each request.
const REFUSAL_PAUSE: Duration = Duration::from_secs(10);

/// A token is not used for longer before its end.
const LARGEST_MARGIN: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NumberedToken {
    pub token: Secret,
    pub number: u64,
}

#[derive(Debug, Default)]
pub(super) struct TokenState {
    known: Known,
    /// Of the last token that was fetched.
    number: u64,
    forgotten: Option<Instant>,
}

#[derive(Debug, Default)]
enum Known {
    #[default]
    Nothing,
    Token {
        token: NumberedToken,
        usable_until: Instant,
    },
    Failure {
        error: CredentialError,
        until: Instant,
    },
}

impl TokenState {
    /// What a request gets now; `None` if a fetch is needed.
    pub fn current(&self, now: Instant) -> Option<Result<NumberedToken, CredentialError>> {
        match &self.known {
            Known::Token { token, usable_until } if now < *usable_until => Some(Ok(token.clone())),
            Known::Failure { error, until } if now < *until => Some(Err(error.clone())),
            _ => None,
        }
    }

    /// Notes what a fetch led to. Those who have waited for it get the token even if its life is too short for others.
    pub fn fetched(
        &mut self,
        began: Instant,
        ended: Instant,
        outcome: Result<Grant, CredentialError>,
    ) -> Result<NumberedToken, CredentialError> {
        match outcome {
            Ok(Grant { token, lifetime }) => {
                self.number += 1;
                let token = NumberedToken { token, number: self.number };
                let margin = (lifetime / 10).min(LARGEST_MARGIN);
                self.known = Known::Token { token: token.clone(), usable_until: began + (lifetime - margin) };
                Ok(token)
            }
            Err(error) => {
                self.known = Known::Failure { error: error.clone(), until: ended + FAILURE_PAUSE };
                Err(error)
            }
        }
    }

    /// The upstream has refused the token with this number. Whether another request may be shown another token.
    pub fn refused(&mut self, number: u64, now: Instant) -> bool {
        match &self.known {
            Known::Token { token, .. } if token.number == number => {
                if self.forgotten.is_some_and(|forgotten| now < forgotten + REFUSAL_PAUSE) {
                    return false;
                }
                self.forgotten = Some(now);
                self.known = Known::Nothing;
                true
            }
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What happened, in seconds and a letter: `t60` a token for 60 s was fetched, `e` a fetch failed, `r1` the upstream
    /// refused token 1, `?` a request came.
    fn check(story: &[(f64, &str, &str)]) {
        let start = Instant::now();
        let mut state = TokenState::default();
        for (at, event, expected) in story {
            let now = start + Duration::from_secs_f64(*at);
            let error = || CredentialError::Timeout;
            let say = |outcome: Result<NumberedToken, CredentialError>| match outcome {
                Ok(token) => format!("{} {}", token.token.as_str(), token.number),
                Err(_) => "failure".to_owned(),
            };
            let said = match event.split_at(1) {
                ("t", life) => {
                    let lifetime = Duration::from_secs(life.parse().unwrap());
                    say(state.fetched(now, now, Ok(Grant { token: Secret::new("t"), lifetime })))
                }
                ("e", _) => say(state.fetched(now, now, Err(error()))),
                ("r", number) => state.refused(number.parse().unwrap(), now).to_string(),
                _ => state.current(now).map_or("fetch".to_owned(), say),
            };
            assert_eq!(&said, expected, "{event} at {at} s of {story:?}");
        }
    }

    #[test]
    fn the_life_of_tokens() {
        check(&[(0.0, "?", "fetch"), (0.0, "t3600", "t 1"), (3569.9, "?", "t 1"), (3570.0, "?", "fetch")]);
        check(&[
            (0.0, "t60", "t 1"),
            (53.9, "?", "t 1"),
            (54.0, "?", "fetch"),
            (54.0, "t60", "t 2"),
            (55.0, "?", "t 2"),
        ]);
        check(&[(0.0, "t0", "t 1"), (0.0, "?", "fetch")]);
    }

    #[test]
    fn failures_are_remembered_for_a_while() {
        check(&[
            (0.0, "e", "failure"),
            (4.9, "?", "failure"),
            (5.0, "?", "fetch"),
            (5.0, "e", "failure"),
            (6.0, "?", "failure"),
        ]);
        check(&[(0.0, "e", "failure"), (5.0, "t60", "t 1"), (5.1, "?", "t 1")]);
        check(&[(0.0, "t60", "t 1"), (54.0, "e", "failure"), (55.0, "?", "failure"), (55.0, "r1", "true")]);
    }

    #[test]
    fn refused_tokens_are_forgotten_but_not_too_often() {
        check(&[
            (0.0, "t3600", "t 1"),
            (1.0, "r1", "true"),
            (1.0, "?", "fetch"),
            // Others were shown the same one.
            (1.0, "r1", "true"),
            (1.0, "t3600", "t 2"),
            (1.0, "r1", "true"),
            (1.0, "?", "t 2"),
            (2.0, "r2", "false"),
            (2.0, "?", "t 2"),
            (10.9, "r2", "false"),
            (11.0, "r2", "true"),
            (11.0, "?", "fetch"),
        ]);
    }

    #[test]
    fn a_life_counts_from_the_beginning_of_the_fetch() {
        let (start, mut state) = (Instant::now(), TokenState::default());
        let grant = Grant { token: Secret::new("t"), lifetime: Duration::from_secs(100) };
        let second = Duration::from_secs(1);
        state.fetched(start, start + 9 * second, Ok(grant)).unwrap();
        assert!(state.current(start + 89 * second).is_some());
        assert!(state.current(start + 90 * second).is_none());
    }
}
