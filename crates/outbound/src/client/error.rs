//! Why a request got no response.

use std::error::Error;
use std::io;

use http::StatusCode;

use crate::guard::{GuardError, Refusal};

/// What went wrong with a request. The sentences may be shown to whoever chose the URL; `detail` is for the operator's log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DialError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The sentence is that of a refusal: a caller must not learn which names exist inside.
    #[error("the host name does not resolve to a public address")]
    Dns { detail: String },
    #[error("no connection within the time limit")]
    ConnectTimeout,
    #[error("the connection could not be opened: {0}")]
    Connect(io::ErrorKind),
    #[error("the TLS handshake failed: {0}")]
    Tls(String),
    #[error("no response within the time limit")]
    Timeout,
    #[error("the connection broke before a response came")]
    Broken { detail: String },
    #[error("the response is not valid HTTP")]
    Malformed { detail: String },
    #[error("the head of the response is too large")]
    HeadTooLarge,
    #[error("the body of the response is larger than {limit} bytes")]
    BodyTooLarge { status: StatusCode, limit: usize },
    #[error("the body of the response did not arrive within the time limit")]
    BodyTimeout { status: StatusCode },
    #[error("the connection broke before the body of the response was complete")]
    BodyBroken { status: StatusCode, detail: String },
    #[error("more than {0} redirects")]
    TooManyRedirects(u8),
}

impl DialError {
    /// Whether trying again is useless. Only the URL itself can make it so: names, certificates and hosts recover.
    pub fn is_permanent(&self) -> bool {
        match self {
            DialError::Refused(refusal) => refusal.is_permanent(),
            _ => false,
        }
    }

    /// The status of a response whose head arrived, although its body did not. Who only waits for an acknowledgement
    /// has got it.
    pub fn status(&self) -> Option<StatusCode> {
        match self {
            DialError::BodyTooLarge { status, .. }
            | DialError::BodyTimeout { status }
            | DialError::BodyBroken { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Whether some of the request may have reached the host. `false`: there was no connection, so nothing was done.
    pub fn may_have_left(&self) -> bool {
        match self {
            DialError::Refused(_)
            | DialError::Dns { .. }
            | DialError::ConnectTimeout
            | DialError::Connect(_)
            | DialError::Tls(_) => false,
            DialError::Timeout
            | DialError::Broken { .. }
            | DialError::Malformed { .. }
            | DialError::HeadTooLarge
            | DialError::BodyTooLarge { .. }
            | DialError::BodyTimeout { .. }
            | DialError::BodyBroken { .. }
            | DialError::TooManyRedirects(_) => true,
        }
    }

    /// What the sentence leaves out; never for remote callers.
    pub fn detail(&self) -> Option<&str> {
        match self {
            DialError::Dns { detail }
            | DialError::Broken { detail }
            | DialError::Malformed { detail }
            | DialError::BodyBroken { detail, .. } => Some(detail),
            _ => None,
        }
    }

    /// Finds our own error below those of hyper, or translates hyper's.
    pub(super) fn from_hyper(error: &(dyn Error + 'static)) -> Self {
        let mut next = Some(error);
        let mut detail = String::new();
        while let Some(error) = next {
            if let Some(ours) = error.downcast_ref::<DialError>() {
                return ours.clone();
            }
            if let Some(error) = error.downcast_ref::<hyper::Error>() {
                if error.is_parse_too_large() {
                    return DialError::HeadTooLarge;
                }
                if error.is_parse() {
                    return DialError::Malformed { detail: error.to_string() };
                }
            }
            detail = error.to_string();
            next = error.source();
        }
        if is_refused_certificate(&detail) { DialError::Tls(detail) } else { DialError::Broken { detail } }
    }
}

/// Whether the host does not accept our certificate, or misses one. With TLS 1.3 its alert comes after our side of the
/// handshake, so hyper finds it where it waits for the response; the host has not read any of the request then. Of
/// errors below HTTP/2 only the text is left.
fn is_refused_certificate(detail: &str) -> bool {
    use rustls::AlertDescription as Alert;
    let alerts = [
        Alert::BadCertificate,
        Alert::UnsupportedCertificate,
        Alert::CertificateRevoked,
        Alert::CertificateExpired,
        Alert::CertificateUnknown,
        Alert::UnknownCA,
        Alert::AccessDenied,
        Alert::CertificateRequired,
    ];
    alerts.into_iter().any(|alert| detail == rustls::Error::AlertReceived(alert).to_string())
}

impl From<GuardError> for DialError {
    fn from(error: GuardError) -> Self {
        match error {
            GuardError::Refused(refusal) => DialError::Refused(refusal),
            GuardError::Unresolved { detail } => DialError::Dns { detail },
        }
    }
}
