//! Why credentials cannot be made, or not be shown.

use http::StatusCode;

use crate::client::DialError;
use crate::guard::Refusal;

/// Why a request cannot be authorized. The sentences hold no secret, but hosts and paths of this installation: they are
/// for the operator. Remote callers should only hear that the credentials for the upstream do not work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    #[error("the URL of the request cannot be used: {0}")]
    Url(Refusal),
    #[error("the credentials are for {known}, not for {origin}")]
    OtherOrigin { origin: String, known: String },
    #[error("the token file {path} {why}")]
    File { path: String, why: String },
    #[error("the token endpoint {endpoint} cannot be asked: {error}")]
    Dial { endpoint: String, error: DialError },
    /// `answer` is its error code and description, at most 200 characters.
    #[error("the token endpoint {endpoint} issues no token: {answer} (status {status})", status = status.as_u16())]
    Refused { endpoint: String, status: StatusCode, answer: String },
    #[error("the token endpoint {endpoint} answered {why} (status {status})", status = status.as_u16())]
    Unusable { endpoint: String, status: StatusCode, why: String },
    #[error("there is no token for the upstream within the time limit")]
    Timeout,
    /// The program ends, or has a fault.
    #[error("the token for the upstream was not fetched to the end")]
    Interrupted,
}

impl CredentialError {
    /// What the sentence leaves out.
    pub fn detail(&self) -> Option<&str> {
        match self {
            CredentialError::Dial { error, .. } => error.detail(),
            _ => None,
        }
    }
}

/// A setting that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} {reason}")]
pub struct InvalidCredentials {
    /// `upstream`, `token`, `name`, `value`, `user`, `password`, `token_url`, `client_id` or `headers`.
    pub field: &'static str,
    /// What is wrong with it, such as "must not be empty".
    pub reason: String,
}

impl InvalidCredentials {
    pub(super) fn new(field: &'static str, reason: impl Into<String>) -> Self {
        InvalidCredentials { field, reason: reason.into() }
    }
}
