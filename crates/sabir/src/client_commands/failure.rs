//! Why a command failed: for people one line, for programs the error object of the `a2a-cli` specification.
//!
//! An error that the protocol has a name for keeps that name. What happens outside of a request has the code that the
//! specification gives it (`A2ACLI_ERR_...`), or one of ours where it gives none (`SABIR_ERR_...`).

use std::io;

use sabir_outbound::DialError;
use sabir_outbound::cards::CardError;
use sabir_outbound::remote::RemoteError;
use sabir_wire::{PeerError, PeerErrorKind};
use serde_json::{Value, json};

use crate::agents::object;
use crate::config::Problems;
use crate::exit::Exit;
use crate::terminal_text::visible;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub exit: Exit,
    pub code: &'static str,
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// The code of JSON-RPC, or else the HTTP status.
    pub a2a_code: Option<i64>,
    /// What may explain it, for people.
    pub notes: Vec<String>,
}

/// Whether the server was shown a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    Credential,
    Nothing,
}

const USAGE: &str = "A2ACLI_ERR_USAGE";
const INTERNAL: &str = "A2ACLI_ERR_INTERNAL";
const UNREACHABLE: &str = "A2ACLI_ERR_UNREACHABLE";
/// The standard output is closed: somebody has seen enough.
const NOBODY_READS: &str = "SABIR_ERR_NOBODY_READS";

impl Failure {
    fn new(exit: Exit, code: &'static str, message: impl Into<String>) -> Self {
        Failure { exit, code, message: message.into(), hint: None, a2a_code: None, notes: Vec::new() }
    }

    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Failure { hint: Some(hint.into()), ..self }
    }

    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, USAGE, message)
    }

    /// Why no local server is known: the configuration is wrong, or it does not say where a server would be.
    pub fn of_local_server(error: &anyhow::Error) -> Self {
        match error.downcast_ref() {
            Some(Problems(problems)) => {
                let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
                Self::usage(lines.join("\n"))
            }
            None => Self::unreachable(format!("{error:#}")),
        }
    }

    /// Something of this machine: a file, a pipe.
    pub fn local(message: impl Into<String>) -> Self {
        Self::new(Exit::Failed, INTERNAL, message)
    }

    pub fn unreachable(message: impl Into<String>) -> Self {
        Self::new(Exit::Unreachable, UNREACHABLE, message)
    }

    pub fn timeout(message: impl Into<String>) -> Self {
        Self::new(Exit::Timeout, "A2ACLI_ERR_TIMEOUT", message)
    }

    pub fn not_waiting(message: impl Into<String>) -> Self {
        Self::new(Exit::Refused, "SABIR_ERR_NOT_WAITING", message)
    }

    pub fn interrupted(message: impl Into<String>) -> Self {
        Self::new(Exit::Interrupted, "SABIR_ERR_INTERRUPTED", message)
    }

    /// The server answered, but not what it was asked for.
    pub fn strange(message: impl Into<String>) -> Self {
        Self::new(Exit::Failed, "SABIR_ERR_NOT_A2A", message)
    }

    pub fn of_output(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::new(Exit::Done, NOBODY_READS, "nobody reads the output"),
            _ => Self::local(format!("cannot write the output: {error}")),
        }
    }

    pub fn of_card(error: &CardError, shown: Shown) -> Self {
        let message = visible(&format!("{error}{}", detail(dial_error(error))));
        match error {
            CardError::Url { .. } => Self::usage(message),
            CardError::Dial { .. } => Self::unreachable(message),
            CardError::NotFound(_) => Self::new(Exit::Unreachable, "A2ACLI_ERR_CARD_NOT_FOUND", message),
            CardError::NotACard { .. } => Self::new(Exit::Failed, "A2ACLI_ERR_CARD_INVALID", message),
            CardError::Status { status, .. } => {
                let code = Some(i64::from(status.as_u16()));
                match status.as_u16() {
                    401 | 403 => Failure { a2a_code: code, ..Self::unauthorized(message, shown) },
                    _ => Failure { a2a_code: code, ..Self::unreachable(message) },
                }
            }
        }
    }

    pub fn of_remote(error: &RemoteError, shown: Shown) -> Self {
        let dial_error = if let RemoteError::Dial(error) = error { Some(error) } else { None };
        let message = visible(&format!("{error}{}", detail(dial_error)));
        match error {
            RemoteError::Card(error) => Self::of_card(error, shown),
            RemoteError::NoInterface(_) => Self::new(Exit::Unreachable, "SABIR_ERR_NO_INTERFACE", message),
            RemoteError::NotInVersion(_) => Self::new(Exit::Refused, PeerErrorKind::Unsupported.name(), message),
            RemoteError::Credential(_) => Self::new(Exit::Unauthorized, "A2ACLI_ERR_CREDENTIALS_MISSING", message),
            RemoteError::InvalidCredential(_) => Self::usage(message),
            RemoteError::Dial(_) | RemoteError::Unreachable(..) => Self::unreachable(message),
            RemoteError::Peer { error, .. } => Self::of_peer(error, message, shown),
            RemoteError::StreamEnded | RemoteError::EventTooLarge(_) | RemoteError::TaskTooLarge(_) => {
                Self::local(message)
            }
            RemoteError::OutcomeUnknown(_) => Self::new(Exit::Unknown, "SABIR_ERR_OUTCOME_UNKNOWN", message),
        }
    }

    fn of_peer(error: &PeerError, message: String, shown: Shown) -> Self {
        let failure = match (error.kind, error.status) {
            (PeerErrorKind::Unauthenticated | PeerErrorKind::Forbidden, _) => Self::unauthorized(message, shown),
            // 0.1 has no code for it.
            (_, 401 | 403) => Self::unauthorized(message, shown),
            (PeerErrorKind::Malformed, _) => Self::strange(message),
            (kind, _) => Self::new(Exit::Refused, kind.name(), message),
        };
        Failure { a2a_code: Some(error.code.unwrap_or(i64::from(error.status))), ..failure }
    }

    fn unauthorized(message: String, shown: Shown) -> Self {
        match shown {
            Shown::Nothing => Self::new(Exit::Unauthorized, "A2ACLI_ERR_CREDENTIALS_MISSING", message)
                .with_hint("give a token with SABIR_TOKEN or --bearer, or a key with A2ACLI_API_KEY or --api-key"),
            Shown::Credential => Self::new(Exit::Unauthorized, "A2ACLI_ERR_AUTH_FAILED", message),
        }
    }

    /// Nobody can be told of it any more.
    pub fn is_silent(&self) -> bool {
        self.code == NOBODY_READS
    }

    /// On stderr: what is wrong, and what may explain it.
    pub fn print(&self) {
        for line in self.line().lines() {
            eprintln!("sabir: {line}");
        }
        for note in &self.notes {
            eprintln!("sabir: note: {note}");
        }
    }

    /// Behind `sabir: `.
    pub fn line(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{}; {hint}", self.message),
            None => self.message.clone(),
        }
    }

    /// One line of JSON.
    pub fn envelope(&self) -> String {
        let members: [(&str, Value); 4] = [
            ("code", json!(self.code)),
            ("message", json!(self.message)),
            ("hint", json!(self.hint)),
            ("a2aCode", json!(self.a2a_code)),
        ];
        format!("{{\"error\":{}}}\n", object(&members))
    }
}

fn dial_error(error: &CardError) -> Option<&DialError> {
    if let CardError::Dial { error, .. } = error { Some(error) } else { None }
}

/// What a person at a command line may know, and a remote caller may not.
fn detail(error: Option<&DialError>) -> String {
    error.and_then(DialError::detail).map(|detail| format!(" ({detail})")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::StatusCode;
    use sabir_outbound::Refusal;

    use super::*;

    fn peer(kind: PeerErrorKind, code: Option<i64>, status: u16) -> RemoteError {
        let error = PeerError { kind, code, status, message: "no\u{1b}[2J".into(), data: None };
        RemoteError::Peer { error, retry_after: None }
    }

    #[test]
    fn each_error_has_its_code_and_its_exit_code() {
        use PeerErrorKind::{
            Forbidden, Internal, InvalidRequest, Malformed, NotCancelable, TaskNotFound, Unauthenticated,
        };
        let url = || "http://a".to_owned();
        let status = |status| RemoteError::Card(CardError::Status { url: url(), status });
        for (error, shown, expected) in [
            (peer(TaskNotFound, Some(-32001), 200), Shown::Nothing, "7 TaskNotFoundError -32001"),
            (peer(NotCancelable, None, 409), Shown::Nothing, "7 TaskNotCancelableError 409"),
            (peer(Internal, Some(-32603), 500), Shown::Nothing, "7 InternalError -32603"),
            (peer(Malformed, None, 200), Shown::Nothing, "1 SABIR_ERR_NOT_A2A 200"),
            (peer(Unauthenticated, None, 401), Shown::Nothing, "4 A2ACLI_ERR_CREDENTIALS_MISSING 401"),
            (peer(Unauthenticated, None, 401), Shown::Credential, "4 A2ACLI_ERR_AUTH_FAILED 401"),
            (peer(Forbidden, Some(-32009), 403), Shown::Credential, "4 A2ACLI_ERR_AUTH_FAILED -32009"),
            (peer(InvalidRequest, Some(-32600), 401), Shown::Credential, "4 A2ACLI_ERR_AUTH_FAILED -32600"),
            (status(StatusCode::UNAUTHORIZED), Shown::Nothing, "4 A2ACLI_ERR_CREDENTIALS_MISSING 401"),
            (status(StatusCode::BAD_GATEWAY), Shown::Nothing, "3 A2ACLI_ERR_UNREACHABLE 502"),
            (RemoteError::Card(CardError::NotFound(url())), Shown::Nothing, "3 A2ACLI_ERR_CARD_NOT_FOUND"),
            (
                RemoteError::Card(CardError::NotACard { url: url(), why: String::new() }),
                Shown::Nothing,
                "1 A2ACLI_ERR_CARD_INVALID",
            ),
            (
                RemoteError::Card(CardError::Url { url: url(), refusal: Refusal::Scheme }),
                Shown::Nothing,
                "2 A2ACLI_ERR_USAGE",
            ),
            (RemoteError::Dial(DialError::ConnectTimeout), Shown::Nothing, "3 A2ACLI_ERR_UNREACHABLE"),
            (RemoteError::Unreachable(Duration::ZERO, url()), Shown::Nothing, "3 A2ACLI_ERR_UNREACHABLE"),
            (RemoteError::NoInterface(url()), Shown::Nothing, "3 SABIR_ERR_NO_INTERFACE"),
            (RemoteError::NotInVersion(url()), Shown::Nothing, "7 UnsupportedOperationError"),
            (RemoteError::OutcomeUnknown(url()), Shown::Nothing, "9 SABIR_ERR_OUTCOME_UNKNOWN"),
            (RemoteError::StreamEnded, Shown::Nothing, "1 A2ACLI_ERR_INTERNAL"),
        ] {
            let failure = Failure::of_remote(&error, shown);
            let a2a_code = failure.a2a_code.map(|code| format!(" {code}")).unwrap_or_default();
            assert_eq!(format!("{} {}{a2a_code}", failure.exit.code(), failure.code), expected, "{error}");
            assert!(!failure.line().contains('\u{1b}'), "{error}");
        }
    }

    #[test]
    fn programs_get_the_envelope_of_the_specification() {
        let failure =
            Failure { a2a_code: Some(-32001), ..Failure::new(Exit::Refused, "TaskNotFoundError", "no \"t\"") };
        assert_eq!(
            failure.with_hint("look").envelope(),
            "{\"error\":{\"code\":\"TaskNotFoundError\",\"message\":\"no \\\"t\\\"\",\"hint\":\"look\",\"a2aCode\":-32001}}\n"
        );
        assert_eq!(
            Failure::usage("no").envelope(),
            "{\"error\":{\"code\":\"A2ACLI_ERR_USAGE\",\"message\":\"no\",\"hint\":null,\"a2aCode\":null}}\n"
        );
    }
}
