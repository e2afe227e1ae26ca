//! Why the model gave no answer. Callers read what they can act on; addresses, and what the server says of credentials,
//! are for the log alone.

use std::fmt;
use std::time::Duration;

use sabir_outbound::{DialError, ServiceError};

use super::completion_reader::error_message;
use crate::lenient_json::Object;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// The server answered with an error.
    Status {
        status: u16,
        reason: Option<String>,
        retry_after: Option<Duration>,
    },
    Unreachable(DialError),
    /// This server has nothing valid to show.
    Credential,
    /// It did not begin its answer in this time.
    NoAnswer(Duration),
    /// It paused for this long in the middle.
    Silent(Duration),
    /// The answer broke off.
    Broken,
    /// The server failed after it had begun.
    InAnswer(String),
    TooLarge,
    NotChat,
    TooManyRounds(usize),
}

/// Longer reasons are whole pages.
const LONGEST_REASON: usize = 300;

impl Failure {
    /// Of an answer that is no success. Its body may be anything.
    pub(super) fn of_response(status: u16, body: &str, retry_after: Option<Duration>) -> Self {
        let reason = Object::parse(body.trim()).and_then(|body| error_message(&body));
        Failure::Status { status, reason: reason.map(|reason| cut(&reason)), retry_after }
    }

    pub(super) fn of_service(error: &ServiceError, limit: Duration) -> Self {
        match error {
            ServiceError::Dial(DialError::Timeout) => Failure::NoAnswer(limit),
            ServiceError::Dial(error) => Failure::Unreachable(error.clone()),
            ServiceError::Credential(_) | ServiceError::Settings(_) => Failure::Credential,
        }
    }

    /// Whether the same request may work a moment later.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Failure::Status { status, .. } => matches!(status, 408 | 409 | 425 | 429 | 500..),
            Failure::Unreachable(error) => !error.is_permanent(),
            Failure::Credential => true,
            Failure::NoAnswer(_)
            | Failure::Silent(_)
            | Failure::Broken
            | Failure::InAnswer(_)
            | Failure::TooLarge
            | Failure::NotChat
            | Failure::TooManyRounds(_) => false,
        }
    }

    pub(super) fn retry_after(&self) -> Option<Duration> {
        match self {
            Failure::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Whether the server complains of this word of the request.
    pub(super) fn names(&self, word: &str) -> bool {
        matches!(self, Failure::Status { status: 400 | 422, reason: Some(reason), .. } if reason.contains(word))
    }
}

/// What the caller reads.
impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Status { status: 401 | 403, .. } => {
                out.write_str("the model server does not accept the credential of this server; its operator must correct it")
            }
            Failure::Status { status: 404, .. } => {
                out.write_str("the model server does not know the model or the address; the operator of this server must correct them")
            }
            Failure::Status { status: 413, .. } => out.write_str("the message is too large for the model server; send less"),
            Failure::Status { status: 429, .. } => {
                out.write_str("the model server has no capacity for this server now (HTTP status 429); try again later")
            }
            Failure::Status { status, reason: Some(reason), .. } if *status < 500 => {
                write!(out, "the model server refused the request: {reason}")
            }
            Failure::Status { status, .. } if *status < 500 => {
                write!(out, "the model server refused the request (HTTP status {status})")
            }
            Failure::Status { status, .. } => {
                write!(out, "the model server failed (HTTP status {status}); try again later")
            }
            Failure::Unreachable(error) => write!(out, "the model server cannot be reached: {error}"),
            Failure::Credential => out.write_str("this server has no valid credential for the model server now"),
            Failure::NoAnswer(limit) => {
                write!(out, "the model server did not begin its answer within {} s", limit.as_secs_f32())
            }
            Failure::Silent(limit) => {
                write!(out, "the model server paused for more than {} s in the middle of its answer", limit.as_secs_f32())
            }
            Failure::Broken => {
                out.write_str("the connection to the model server broke in the middle of its answer; send the message again")
            }
            Failure::InAnswer(reason) if reason.is_empty() => {
                out.write_str("the model server failed in the middle of its answer; send the message again")
            }
            Failure::InAnswer(reason) => {
                write!(out, "the model server failed in the middle of its answer: {}", cut(reason))
            }
            Failure::TooLarge => out.write_str("the model server sent a larger answer than this server takes"),
            Failure::NotChat => {
                out.write_str("the model server answered with something that is no answer of /chat/completions")
            }
            Failure::TooManyRounds(limit) => write!(
                out,
                "the model called tools more than {limit} times in a row and gave no answer; ask for less at once"
            ),
        }
    }
}

fn cut(text: &str) -> String {
    let mut cut: String = text.trim().chars().take(LONGEST_REASON).collect();
    if cut.len() < text.trim().len() {
        cut.push_str(" ...");
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_read_what_they_can_act_on() {
        for (status, body, transient, expected) in [
            (
                401,
                r#"{"error":{"message":"Incorrect API key provided: sk-abc"}}"#,
                false,
                "does not accept the credential",
            ),
            (404, r#"{"error":{"message":"model not found"}}"#, false, "does not know the model"),
            (429, "", true, "status 429"),
            (500, r#"{"error":{"message":"/srv/model/secret.py"}}"#, true, "failed (HTTP status 500)"),
            (503, "<html>", true, "failed (HTTP status 503)"),
            (
                400,
                r#"{"error":{"message":"context is 4096 tokens"}}"#,
                false,
                "refused the request: context is 4096 tokens",
            ),
            (400, r#"{"object":"error","message":"too long"}"#, false, "refused the request: too long"),
            (418, "tea", false, "refused the request (HTTP status 418)"),
        ] {
            let failure = Failure::of_response(status, body, None);
            let text = failure.to_string();
            assert!(text.contains(expected), "{status}: {text}");
            assert!(!text.contains("sk-abc") && !text.contains("secret.py"), "{text}");
            assert_eq!(failure.is_transient(), transient, "{status}");
        }
    }
}
