//! Why a remote agent could not be asked, or did not do what it was asked.

use std::time::Duration;

use sabir_wire::{PeerError, PeerErrorKind};

use super::event_stream::EventTooLarge;
use crate::cards::CardError;
use crate::client::DialError;

#[derive(Debug, Clone, thiserror::Error)]
pub enum RemoteError {
    #[error(transparent)]
    Card(#[from] CardError),
    /// The card names no address that can be used.
    #[error("{0}")]
    NoInterface(String),
    /// This version of the protocol has no words for the call.
    #[error("{0}")]
    NotInVersion(String),
    #[error("cannot show a credential to the remote agent: {0}")]
    Credential(String),
    #[error("the credential for the remote agent cannot be used: {0}")]
    InvalidCredential(String),
    #[error("{0}")]
    Dial(#[from] DialError),
    /// The server answered with an error.
    #[error("{error}")]
    Peer { error: PeerError, retry_after: Option<Duration> },
    /// A stream ended without saying how the task stands.
    #[error("the stream ended before the task did")]
    StreamEnded,
    #[error(transparent)]
    EventTooLarge(#[from] EventTooLarge),
    /// An agent that never stops must not fill our memory.
    #[error("the task has become larger than {0} bytes")]
    TaskTooLarge(usize),
    /// A message was sent, and nobody knows whether it arrived.
    #[error("outcome unknown: the message was sent, and the connection broke before the remote agent answered ({0})")]
    OutcomeUnknown(String),
    /// For so long nothing could be learned of the task.
    #[error("the remote agent could not be reached for {0:?}: {1}")]
    Unreachable(Duration, String),
}

impl RemoteError {
    pub fn peer_kind(&self) -> Option<PeerErrorKind> {
        match self {
            RemoteError::Peer { error, .. } => Some(error.kind),
            _ => None,
        }
    }

    /// Whether the same request may work a little later.
    pub fn is_transient(&self) -> bool {
        match self {
            // The same answer will be as large the next time.
            RemoteError::Dial(DialError::BodyTooLarge { .. }) => false,
            // A certificate is refused, here or there, until somebody changes one.
            RemoteError::Dial(DialError::Tls(_))
            | RemoteError::Card(CardError::Dial { error: DialError::Tls(_), .. }) => false,
            RemoteError::Dial(error) => !error.is_permanent(),
            RemoteError::Peer { error, .. } => {
                matches!(error.kind, PeerErrorKind::Unavailable | PeerErrorKind::Internal | PeerErrorKind::Malformed)
            }
            RemoteError::StreamEnded => true,
            RemoteError::Card(CardError::Dial { error, .. }) => !error.is_permanent(),
            RemoteError::Card(CardError::Status { status, .. }) => status.is_server_error(),
            RemoteError::Card(_)
            | RemoteError::NoInterface(_)
            | RemoteError::NotInVersion(_)
            | RemoteError::InvalidCredential(_)
            | RemoteError::EventTooLarge(_)
            | RemoteError::TaskTooLarge(_)
            | RemoteError::OutcomeUnknown(_)
            | RemoteError::Unreachable(..) => false,
            RemoteError::Credential(_) => true,
        }
    }

    /// Whether the server cannot have acted on the request: it was not reached, or it says that it does not know the call.
    pub fn did_nothing(&self) -> bool {
        match self {
            RemoteError::Dial(error) => !error.may_have_left(),
            // These two, with this header, are an invitation to repeat the request. Behind a 502 or 504 somebody may have it.
            RemoteError::Peer { error, retry_after } => match error.kind {
                PeerErrorKind::Unavailable => retry_after.is_some() && matches!(error.status, 429 | 503),
                PeerErrorKind::MethodNotFound | PeerErrorKind::Version | PeerErrorKind::Unsupported => true,
                _ => false,
            },
            RemoteError::Card(_)
            | RemoteError::NoInterface(_)
            | RemoteError::NotInVersion(_)
            | RemoteError::InvalidCredential(_)
            | RemoteError::Credential(_) => true,
            RemoteError::StreamEnded
            | RemoteError::EventTooLarge(_)
            | RemoteError::TaskTooLarge(_)
            | RemoteError::OutcomeUnknown(_)
            | RemoteError::Unreachable(..) => false,
        }
    }

    /// Whether the remote agent was not reached at all.
    pub fn is_unreachable(&self) -> bool {
        matches!(self, RemoteError::Dial(_) | RemoteError::Unreachable(..) | RemoteError::Card(CardError::Dial { .. }))
    }

    /// How long the server wants to be left alone.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            RemoteError::Peer { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}
